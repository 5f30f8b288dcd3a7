"""Laws of graphs that are written as formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pcdnet.model.onnx.graph import BOOL, FLOAT, INT, Graph, Value, concat, where
from tests.model.onnx.models import evaluate


def test_equal_constants_are_stored_once() -> None:
    graph = Graph()
    one, other = graph.constant(np.eye(3)), graph.constant(np.eye(3, dtype=np.float32))
    assert one.name == other.name
    assert graph.constant(np.eye(3), BOOL).name != one.name
    assert len(graph.constants) == 2


def test_numbers_and_arrays_become_constants_of_the_type_of_what_they_meet() -> None:
    graph = Graph()
    x = graph.value(INT, "x")
    assert (x * 2).dtype == (np.arange(3) + x).dtype == INT
    assert (x > 1).dtype == BOOL
    assert (graph.value(FLOAT) * 2).dtype == FLOAT
    assert {name.split("_")[0] for name in graph.constants} == {"int64", "float32"}


FORMULAS: list[Callable[[Any], Any]] = [
    lambda x: x + 1.5,
    lambda x: 2 * x - x * x,
    lambda x: 1 - x / 3,
    lambda x: x @ torch.eye(4) if isinstance(x, Tensor) else x @ np.eye(4),
    lambda x: x.reshape(4, 6).sum(-1),
    lambda x: x.sum((-3, -1), keepdim=True),
    lambda x: x.permute(2, 0, 1).amax(1),
    lambda x: x.unsqueeze(1).expand(2, 5, 3, 4),
    lambda x: x.clamp(0.2, 0.6),
    lambda x: x.clamp(min=0.5),
    lambda x: x.split([1, 2], 1)[1],
    lambda x: x.topk(2)[0],
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_means_the_same_in_a_graph_as_in_torch(formula: Callable[[Any], Any], rng: torch.Generator) -> None:
    x, graph = torch.rand(2, 3, 4, generator=rng), Graph()
    expected = formula(x)
    (found,) = evaluate(graph, [formula(graph.value(FLOAT, "x"))], x=x.numpy())
    torch.testing.assert_close(torch.from_numpy(found), expected, atol=1e-6, rtol=1e-6)


def test_entries_are_picked_and_replaced_as_in_torch(rng: torch.Generator) -> None:
    x, index = torch.rand(5, 3, generator=rng), torch.tensor([4, 0])
    graph = Graph()
    X, chosen = graph.value(FLOAT, "x"), graph.constant(index.numpy())
    along = graph.constant(np.array([[2], [0], [1], [1], [0]]))
    outputs: list[Value] = [
        X[chosen],
        X.index_put(chosen, X[chosen] + 1),
        X.gather(1, along),
        where(X > 0.5, X, 0),
        (X > 0.9).any(1),
        concat([X, X.slice(0, 1, 3)], 0),
        X.pad([1, 0, 0, 2], -1.0),
        X.to(INT) // 2 + chosen.slice(0, 0, 1) % 3,
    ]
    replaced = x.clone()
    replaced[index] += 1
    padded = torch.nn.functional.pad(x, (0, 2, 1, 0), value=-1.0)
    expected = [
        x[index],
        replaced,
        x.gather(1, torch.tensor([[2], [0], [1], [1], [0]])),
        x.where(x > 0.5, 0),
        (x > 0.9).any(1),
        torch.cat([x, x[1:3]]),
        padded,
        x.long() // 2 + 1,
    ]
    for ours, theirs in zip(evaluate(graph, outputs, x=x.numpy()), expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(ours), theirs)
