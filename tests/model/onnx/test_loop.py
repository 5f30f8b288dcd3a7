"""Laws of loops in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.onnx.graph import FLOAT, Graph
from pcdnet.model.onnx.loop import Round, loop
from tests.model.onnx.models import evaluate


def test_loops_end_when_their_body_says_so_and_collect_what_their_rounds_leave() -> None:
    graph = Graph()
    x = graph.value(FLOAT, "x")

    def body(number: Any, state: list[Any]) -> Round:
        doubled = state[0] * (x + x)  # x + x is the same in every round, and so computed before the loop
        return Round(doubled < 100, [doubled], [number.to(FLOAT) + doubled])

    (last,), (collected,) = loop(10, [graph.constant(1.0)], body)
    assert [each.op_type for each in graph.nodes] == ["Add", "Loop"]
    end, rounds = evaluate(graph, [last, collected], x=np.array(2, np.float32))
    assert end == 256
    assert rounds.tolist() == [4, 17, 66, 259]


def test_a_loop_ends_after_its_last_round_at_the_latest() -> None:
    graph = Graph()
    x = graph.value(FLOAT, "x")
    (last,), (collected,) = loop(3, [x], lambda _, state: Round(state[0] < 1e9, [state[0] + 1], [state[0]]))
    end, rounds = evaluate(graph, [last, collected], x=np.array(5, np.float32))
    assert end == 8
    assert rounds.tolist() == [5, 6, 7]
