"""Graph: ONNX graphs written as formulas.

A Value stands for a tensor that will be there when the graph runs. Operators and methods, named as in PyTorch, add a
node to the graph and return the Value of its result. A node goes into the innermost graph that one of its inputs is
of: what does not change from one round of a loop to the next is computed before the loop, without anybody asking.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT, INT, BOOL = int(TensorProto.FLOAT), int(TensorProto.INT64), int(TensorProto.BOOL)
"""The data types that graphs use here."""

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

    def value(self, dtype: int, name: str = "") -> Value:
        """A Value of its own, with a name that no other has."""
        root = self.root
        root.written += 1
        return Value(name or f"v{root.written}", self, dtype)

    def copy(self, value: Value, name: str = "") -> Value:
        """The same value, computed by a node of this graph, under a name of its own."""
        copied = self.value(value.dtype, name)
        self.nodes.append(helper.make_node("Identity", [value.name], [copied.name]))
        return copied

    def constant(self, content: NDArray[Any] | float, dtype: int | None = None) -> Value:
        """Given numbers; without a data type, whole numbers stay whole and fractions become single precision."""
        array = np.asarray(content)
        if dtype is None:
            dtype = {"b": BOOL, "i": INT, "u": INT, "f": FLOAT}[array.dtype.kind]
        array = np.ascontiguousarray(array, dtype=_TYPES[dtype]).reshape(array.shape)
        root = self.root
        digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
        name = f"{array.dtype}_{'x'.join(map(str, array.shape))}_{digest}"
        root.constants.setdefault(name, numpy_helper.from_array(array, name))
        return Value(name, root, dtype)

    def proto(self, name: str, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> GraphProto:
        """The finished graph."""
        return helper.make_graph(self.nodes, name, inputs, outputs, initializer=list(self.constants.values()))


def _operator(operator: str, dtype: int | None = None) -> Callable[[Value, Operand], Value]:
    """An operator of two operands, of which the first is a Value."""
    return lambda one, other: node(operator, one, other, dtype=dtype)


def _reflected(operator: str) -> Callable[[Value, Operand], Value]:
    """The same where the Value stands on the right."""
    return lambda one, other: node(operator, other, one)


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of a graph; numbers and arrays on the other side of an operator become constants of its type."""

    name: str
    graph: Graph
    dtype: int
    __array_ufunc__: ClassVar[None] = None
    """It tells NumPy's arrays to leave operators to this class."""

    __add__ = __radd__ = _operator("Add")
    __mul__ = __rmul__ = _operator("Mul")
    __sub__, __rsub__ = _operator("Sub"), _reflected("Sub")
    __matmul__, __rmatmul__ = _operator("MatMul"), _reflected("MatMul")
    __truediv__, __mod__, __and__ = _operator("Div"), _operator("Mod"), _operator("And")
    __gt__, __ge__ = _operator("Greater", BOOL), _operator("GreaterOrEqual", BOOL)
    __lt__, __le__ = _operator("Less", BOOL), _operator("LessOrEqual", BOOL)

    def __floordiv__(self, other: int) -> Value:
        assert self.dtype == INT
        return node("Div", self, other)  # cuts towards zero; there are no negative numbers to tell the difference

    def __getitem__(self, index: Value) -> Value:
        """The entries of the first axis that the index names."""
        return node("Gather", self, index, attributes={"axis": 0})

    def index_put(self, index: Value, values: Value) -> Value:
        """The entries of the first axis that the index names, replaced."""
        return node("ScatterND", self, index.unsqueeze(-1), values)

    def gather(self, dim: int, index: Value) -> Value:
        """Along one axis, the elements that the index names; all other axes are walked side by side."""
        return node("GatherElements", self, index, attributes={"axis": dim})

    def reshape(self, *shape: int) -> Value:
        """The same numbers in another shape."""
        return node("Reshape", self, _whole(self, shape))

    def permute(self, *axes: int) -> Value:
        """The axes in another order."""
        return node("Transpose", self, attributes={"perm": axes})

    def unsqueeze(self, dim: int) -> Value:
        """One more axis, of length 1."""
        return node("Unsqueeze", self, _whole(self, [dim]))

    def expand(self, *shape: int) -> Value:
        """Repeated along axes of length 1, and along new ones before the first, up to a shape."""
        return node("Expand", self, _whole(self, shape))

    def slice(self, dim: int, start: int, stop: int) -> Value:
        """The elements from `start` up to, not including, `stop` along an axis."""
        return node("Slice", self, *(_whole(self, [each]) for each in (start, stop, dim)))

    def split(self, sizes: Sequence[int], dim: int) -> list[Value]:
        """Parts of these sizes, one after the other along an axis."""
        stops = itertools.accumulate(sizes)
        return [self.slice(dim, stop - size, stop) for size, stop in zip(sizes, stops, strict=True)]

    def pad(self, sides: Sequence[int], fill: float = 0.0) -> Value:
        """More cells around the axes: first how many before each of them, then how many after."""
        return node("Pad", self, _whole(self, sides), fill)

    def clamp(self, min: float, max: float | None = None) -> Value:
        """Nothing below `min`, nothing above `max`."""
        return node("Clip", self, min, *([] if max is None else [max]))

    def sum(self, dim: int | Sequence[int], keepdim: bool = False) -> Value:
        """The sum along one axis or several."""
        axes = [dim] if isinstance(dim, int) else dim
        return node("ReduceSum", self, _whole(self, axes), attributes={"keepdims": int(keepdim)})

    def amax(self, dim: int) -> Value:
        """The largest element along an axis."""
        return node("ReduceMax", self, attributes={"axes": [dim], "keepdims": 0})

    def any(self, dim: int) -> Value:
        """Whether one of the elements along an axis is true."""
        return self.to(INT).amax(dim).to(BOOL)

    def to(self, dtype: int) -> Value:
        """The same numbers as another data type; true is 1."""
        return node("Cast", self, attributes={"to": dtype}, dtype=dtype)

    def topk(self, count: int) -> tuple[Value, Value]:
        """The `count` largest elements along the last axis, best first, and where they are."""
        height, index = nodes("TopK", [self, _whole(self, [count])], [self.dtype, INT], {"axis": -1})
        return height, index


Operand = Value | NDArray[Any] | float
"""What operators take."""


def node(operator: str, *inputs: Operand, attributes: dict[str, Any] | None = None, dtype: int | None = None) -> Value:
    """The result of one node, of the first Value's data type unless another is said."""
    return nodes(operator, inputs, [_first(inputs).dtype if dtype is None else dtype], attributes)[0]


def nodes(
    operator: str, inputs: Sequence[Operand], dtypes: Sequence[int], attributes: dict[str, Any] | None = None
) -> list[Value]:
    """The results of one node that has several, of these data types."""
    first = _first(inputs)
    graph = max((each.graph for each in inputs if isinstance(each, Value)), key=lambda graph: graph.depth)
    given = [each if isinstance(each, Value) else graph.constant(each, first.dtype) for each in inputs]
    results = [graph.value(dtype) for dtype in dtypes]
    names = [each.name for each in given], [each.name for each in results]
    graph.nodes.append(helper.make_node(operator, *names, **(attributes or {})))
    return results


def concat(parts: Sequence[Value], dim: int) -> Value:
    """The parts one after the other along an axis."""
    return node("Concat", *parts, attributes={"axis": dim})


def where(condition: Value, x: Operand, y: Operand) -> Value:
    """`x` where the condition holds, otherwise `y`."""
    dtype = _first((x, y)).dtype
    chosen = (each if isinstance(each, Value) else condition.graph.constant(each, dtype) for each in (x, y))
    return node("Where", condition, *chosen, dtype=dtype)


def _first(inputs: Iterable[Operand]) -> Value:
    return next(each for each in inputs if isinstance(each, Value))


def _whole(x: Value, numbers: Sequence[int]) -> Value:
    return x.graph.constant(np.array(numbers, dtype=np.int64), INT)
