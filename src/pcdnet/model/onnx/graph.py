"""Graph: ONNX graphs written as formulas.

A Value stands for a tensor that will be there when the graph runs. Operators and the functions below add a node to the
graph and return the Value of its result. A node goes into the innermost graph that one of its inputs is of: what does
not change from one round of a loop to the next is computed before the loop, without anybody asking for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT, INT, BOOL = int(TensorProto.FLOAT), int(TensorProto.INT64), int(TensorProto.BOOL)
"""The kinds of numbers that graphs use here."""

_TYPES: dict[int, Any] = {FLOAT: np.float32, INT: np.int64, BOOL: np.bool_}


@dataclass(slots=True)
class Graph:
    """Nodes in the order in which they were written down; constants are kept by the outermost graph."""

    outer: Graph | None = None
    """The graph in which this one is the body of a loop."""
    nodes: list[NodeProto] = field(default_factory=list)
    """What is computed."""
    constants: dict[str, TensorProto] = field(default_factory=dict)
    """What is given, by a name that tells the content: the same numbers are stored once."""
    written: int = 0
    """How many names were given out."""

    @property
    def root(self) -> Graph:
        """The outermost graph."""
        return self if self.outer is None else self.outer.root

    @property
    def depth(self) -> int:
        """How many loops are around it."""
        return 0 if self.outer is None else 1 + self.outer.depth

    def value(self, kind: int, name: str = "") -> Value:
        """A Value of its own, with a name that no other has."""
        root = self.root
        root.written += 1
        return Value(name or f"v{root.written}", self, kind)

    def constant(self, content: NDArray[Any] | float, kind: int | None = None) -> Value:
        """Given numbers; without a kind, whole numbers stay whole and fractions become single precision."""
        array = np.asarray(content)
        if kind is None:
            kind = {"b": BOOL, "i": INT, "u": INT, "f": FLOAT}[array.dtype.kind]
        array = np.ascontiguousarray(array, dtype=_TYPES[kind]).reshape(array.shape)
        root = self.root
        digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
        name = f"{array.dtype}_{'x'.join(map(str, array.shape))}_{digest}"
        root.constants.setdefault(name, numpy_helper.from_array(array, name))
        return Value(name, root, kind)

    def proto(self, name: str, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> GraphProto:
        """The finished graph."""
        return helper.make_graph(self.nodes, name, inputs, outputs, initializer=list(self.constants.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of a graph; numbers and arrays on the other side of an operator become constants of its kind."""

    name: str
    graph: Graph
    kind: int
    __array_ufunc__: ClassVar[None] = None
    """It tells NumPy's arrays to leave operators to this class."""

    def __add__(self, other: Operand) -> Value:
        return node("Add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Value:
        return node("Sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return node("Sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return node("Mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Value:
        return node("Div", self, other)

    def __floordiv__(self, other: int) -> Value:
        assert self.kind == INT
        return node("Div", self, other)  # cuts towards zero; there are no negative numbers to tell the difference

    def __mod__(self, other: int) -> Value:
        return node("Mod", self, other)

    def __matmul__(self, other: Operand) -> Value:
        return node("MatMul", self, other)

    def __rmatmul__(self, other: Operand) -> Value:
        return node("MatMul", other, self)

    def __and__(self, other: Operand) -> Value:
        return node("And", self, other)

    def __gt__(self, other: Value | float) -> Value:
        return node("Greater", self, other, gives=BOOL)

    def __ge__(self, other: Value | float) -> Value:
        return node("GreaterOrEqual", self, other, gives=BOOL)

    def __lt__(self, other: Value | float) -> Value:
        return node("Less", self, other, gives=BOOL)

    def __le__(self, other: Value | float) -> Value:
        return node("LessOrEqual", self, other, gives=BOOL)


Operand = Value | NDArray[Any] | float
"""What operators take."""


def node(kind: str, *inputs: Operand, attributes: dict[str, Any] | None = None, gives: int | None = None) -> Value:
    """The result of one node, of the first Value's kind unless another is said."""
    return nodes(kind, inputs, [gives if gives is not None else _first(inputs).kind], attributes)[0]


def nodes(
    kind: str, inputs: Sequence[Operand], gives: Sequence[int], attributes: dict[str, Any] | None = None
) -> list[Value]:
    """The results of one node that has several."""
    first = _first(inputs)
    graph = max((each.graph for each in inputs if isinstance(each, Value)), key=lambda graph: graph.depth)
    given = [each if isinstance(each, Value) else graph.constant(each, first.kind) for each in inputs]
    results = [graph.value(each) for each in gives]
    names = [each.name for each in given], [each.name for each in results]
    graph.nodes.append(helper.make_node(kind, *names, **(attributes or {})))
    return results


def _first(inputs: Iterable[Operand]) -> Value:
    return next(each for each in inputs if isinstance(each, Value))


def reshape(x: Value, *shape: int) -> Value:
    """The same numbers in another shape."""
    return node("Reshape", x, _whole(x, shape))


def transpose(x: Value, *axes: int) -> Value:
    """The axes in another order."""
    return node("Transpose", x, attributes={"perm": axes})


def concat(parts: Sequence[Value], axis: int) -> Value:
    """The parts one after the other along an axis."""
    return node("Concat", *parts, attributes={"axis": axis})


def part(x: Value, axis: int, start: int, stop: int) -> Value:
    """The elements from `start` up to, not including, `stop` along an axis."""
    return node("Slice", x, *(_whole(x, [each]) for each in (start, stop, axis)))


def pad(x: Value, sides: Sequence[int], fill: float = 0.0) -> Value:
    """More cells around the last axes: first how many before each of them, then how many after."""
    return node("Pad", x, _whole(x, sides), fill)


def gather(x: Value, index: Value) -> Value:
    """The entries of the first axis that the index names."""
    return node("Gather", x, index, attributes={"axis": 0})


def pick(x: Value, index: Value, axis: int) -> Value:
    """Along one axis, the elements that the index names; all other axes are walked side by side."""
    return node("GatherElements", x, index, attributes={"axis": axis})


def put(x: Value, index: Value, values: Value) -> Value:
    """The entries of the first axis that the index names, replaced."""
    return node("ScatterND", x, unsqueeze(index, -1), values)


def unsqueeze(x: Value, axis: int) -> Value:
    """One more axis, of length 1."""
    return node("Unsqueeze", x, _whole(x, [axis]))


def expand(x: Value, *shape: int) -> Value:
    """Repeated along axes of length 1, and along new ones before the first, up to a shape."""
    return node("Expand", x, _whole(x, shape))


def clip(x: Value, low: float, high: float) -> Value:
    """Nothing below `low`, nothing above `high`."""
    return node("Clip", x, low, high)


def where(condition: Value, x: Operand, y: Operand) -> Value:
    """`x` where the condition holds, otherwise `y`."""
    kind = _first((x, y)).kind
    chosen = (each if isinstance(each, Value) else condition.graph.constant(each, kind) for each in (x, y))
    return node("Where", condition, *chosen, gives=kind)


def total(x: Value, axis: int, *, keep: bool = False) -> Value:
    """The sum along an axis."""
    return node("ReduceSum", x, _whole(x, [axis]), attributes={"keepdims": int(keep)})


def highest(x: Value, axis: int) -> Value:
    """The largest element along an axis."""
    return node("ReduceMax", x, attributes={"axes": [axis], "keepdims": 0})


def some(x: Value, axis: int) -> Value:
    """Whether one of the truths along an axis is true."""
    return cast(highest(cast(x, INT), axis), BOOL)


def cast(x: Value, kind: int) -> Value:
    """The same numbers as another kind; true is 1."""
    return node("Cast", x, attributes={"to": kind}, gives=kind)


def largest(x: Value, count: int) -> tuple[Value, Value]:
    """The `count` largest elements along the last axis, best first, and where they are."""
    height, index = nodes("TopK", [x, _whole(x, [count])], [x.kind, INT], {"axis": -1})
    return height, index


def _whole(x: Value, numbers: Sequence[int]) -> Value:
    return x.graph.constant(np.array(numbers, dtype=np.int64), INT)
