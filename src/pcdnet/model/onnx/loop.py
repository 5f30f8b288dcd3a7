"""Loop: rounds of a graph within a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import ValueInfoProto, helper

from pcdnet.model.onnx.graph import BOOL, INT, Graph, Value, nodes


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of a loop leaves behind."""

    more: Value
    """Whether there may be another round."""
    state: Sequence[Value]
    """What the next round begins with."""
    results: Sequence[Value]
    """What is collected, round by round."""


def loop(
    rounds: int, state: Sequence[Value], body: Callable[[Value, list[Value]], Round]
) -> tuple[list[Value], list[Value]]:
    """Up to so many rounds of a body that is given the round's number, from 0, and the state.

    Returns the last state, and all rounds' results along a new first axis, which is as long as there were rounds.
    """
    graph = Graph(outer=state[0].graph)
    number, more = graph.value(INT), graph.value(BOOL)
    inside = [graph.value(each.dtype) for each in state]
    left = body(number, inside)
    # An output must be made by a node of the body itself, and not be the same as another.
    outputs = [graph.copy(each) for each in (left.more, *left.state, *left.results)]
    inputs = [_info(number, ()), _info(more, ()), *(_info(each) for each in inside)]
    content = graph.proto("round", inputs, [_info(each) for each in outputs])
    root = graph.root
    given = [root.constant(rounds, INT), root.constant(True, BOOL), *state]
    found = nodes("Loop", given, [each.dtype for each in outputs[1:]], {"body": content})
    return found[: len(inside)], found[len(inside) :]


def _info(value: Value, shape: tuple[int, ...] | None = None) -> ValueInfoProto:
    return helper.make_tensor_value_info(value.name, value.dtype, shape)
