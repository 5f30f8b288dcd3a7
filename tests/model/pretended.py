"""A device that is not there: tensors that live on it are tensors of the CPU which are known to be elsewhere.

What runs on it computes as usual, but a tensor says that it is on `cuda`, and everything is refused that CUDA would
refuse: operations on tensors of two devices, the generator of another device, an array of a tensor that is not on
the CPU. An index of the CPU, which CUDA would fetch, is refused, too. Whatever makes the host wait is counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
WAITING = {
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
    "aten::equal",
    "aten::bincount",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::_linalg_check_errors",
    "aten::repeat_interleave.Tensor",
    "aten::isin.Tensor_Tensor",
}
"""Operations whose result the host must know before it can go on."""
UNCHECKED = {torch.nn.functional.one_hot}
"""What looks at values on a CPU only."""


class OtherDevice(RuntimeError):
    """Tensors of two devices met."""


class Pretended:
    """Which tensors are on the device, and what made the host wait for it."""

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        """By what was asked for and where, in the package."""
        self.making = False
        """Whether tensors that are made now are on the device."""
        self.looking = True
        """Whether waits count."""
        self._storages: dict[int, StorageWeakRef] = {}

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor is on the device."""
        with torch._C.DisableTorchFunction():
            return tensor.untyped_storage()._cdata in self._storages

    def take(self, result: Any) -> None:
        """From now on the tensors in a result are on the device."""
        with torch._C.DisableTorchFunction():
            for each in leaves(result):
                if isinstance(each, Tensor):
                    reference = StorageWeakRef(each.untyped_storage())  # type: ignore[no-untyped-call]
                    self._storages[reference.cdata] = reference

    def wait(self, what: str) -> None:
        """Somebody waits for the device."""
        if self.looking:
            frame: FrameType | None = sys._getframe()
            while frame is not None and "/src/pcdnet/" not in frame.f_code.co_filename:
                frame = frame.f_back
            code = None if frame is None else frame.f_code
            where = "a test" if code is None else f"{code.co_filename.rpartition('/src/pcdnet/')[2]}:{code.co_name}"
            self.waits[f"{what} in {where}"] += 1

    @property
    def count(self) -> int:
        """How often the host waited."""
        return sum(self.waits.values())


@contextmanager
def pretended() -> Iterator[Pretended]:
    """Let there be a device `cuda` meanwhile."""
    device = Pretended()
    with _Dispatch(device), _Functions(device):
        yield device


def leaves(nested: Any) -> list[Any]:
    """What is in lists, tuples and dictionaries."""
    if isinstance(nested, dict):
        nested = list(nested.values())
    if isinstance(nested, list | tuple):
        return [leaf for each in nested for leaf in leaves(each)]
    return [nested]


class _Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every operation, those of the backward pass too."""

    def __init__(self, device: Pretended) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            tensors = [each for each in leaves((args, kwargs)) if isinstance(each, Tensor)]
            there = [self._device.has(each) for each in tensors]
            name = func.name()
            copies = name in ("aten::copy_", "aten::_to_copy", "aten::_copy_from")
            if any(there):
                here = [each for each, far in zip(tensors, there, strict=True) if not far]
                if copies and here:
                    self._device.wait("copy")
                elif any(each.ndim for each in here) and not name.startswith("aten::_foreach_add_"):
                    sizes = [(tuple(each.shape), far) for each, far in zip(tensors, there, strict=True)]
                    raise OtherDevice(f"{name} of tensors on two devices: {sizes}")
                self._count(name, args)
            result = func(*args, **(kwargs or {}))
            if (any(there) and not (copies and not there[0])) or (not tensors and self._device.making):
                self._device.take(result)
            return result

    def _count(self, name: str, args: Any) -> None:
        masks = leaves(args[1]) if len(args) > 1 else []
        by_mask = any(isinstance(each, Tensor) and each.dtype == torch.bool for each in masks)
        scalar = len(args) > 2 and isinstance(args[2], Tensor) and args[2].ndim == 0
        if name in WAITING:
            self._device.wait(name.removeprefix("aten::"))
        elif name == "aten::index.Tensor" and by_mask:
            self._device.wait("index by a mask")
        elif name.startswith(("aten::index_put", "aten::_index_put")) and by_mask and not scalar:
            self._device.wait("assignment by a mask")


class _Functions(TorchFunctionMode):
    """Every call of torch from Python, where devices are named."""

    def __init__(self, device: Pretended) -> None:
        super().__init__()
        self._device = device
        self._special: dict[Any, Callable[..., Any]] = {
            Tensor.device.__get__: lambda x: CUDA if device.has(x) else CPU,
            Tensor.is_cuda.__get__: device.has,  # type: ignore[attr-defined]
            Tensor.to: self._to,
            Tensor.cpu: lambda x, **_: self._moved(x, far=False),
            Tensor.cuda: lambda x, *_, **__: self._moved(x, far=True),
            Tensor.numpy: self._refused("numpy"),
            Tensor.__array__: self._refused("__array__"),
            Tensor.tolist: self._tolist,
            Tensor.new_tensor: self._new_tensor,
            Tensor.backward: self._backward,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, device = dict(kwargs or {}), self._device
        if func in self._special:
            return self._special[func](*args, **kwargs)
        named = kwargs.get("device")
        far = named is not None and torch.device(named).type == "cuda"
        if far:
            kwargs["device"] = CPU
            generator = kwargs.get("generator")
            if generator is not None:
                raise OtherDevice("a generator of the CPU makes no numbers on another device")
            if func is torch.tensor:
                device.wait("tensor from a list")
        before = device.making, device.looking
        checks = func in UNCHECKED
        device.making, device.looking = far or (checks and device.has(args[0])), device.looking and not checks
        try:
            result = func(*args, **kwargs)
        finally:
            device.making, device.looking = before
        if far:
            device.take(result)
        return result

    def _to(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        far, rest = self._device.has(x), []
        for each in (*args, *([kwargs.pop("device")] if "device" in kwargs else [])):
            if isinstance(each, Tensor):
                far = self._device.has(each)
                kwargs["dtype"] = each.dtype
            elif isinstance(each, torch.device | str):
                far = torch.device(each).type == "cuda"
            elif each is not None:
                rest.append(each)
        if rest and isinstance(rest[0], torch.dtype):
            kwargs["dtype"], *rest = rest
        kwargs.pop("non_blocking", None)
        if kwargs.get("dtype") is None:
            kwargs.pop("dtype", None)
        converted = x.to(**kwargs) if kwargs else x
        return self._moved(converted, far=far)

    def _moved(self, x: Tensor, *, far: bool) -> Tensor:
        if self._device.has(x) == far:
            return x
        self._device.wait("copy to the device" if far else "copy to the host")
        looking, self._device.looking = self._device.looking, False
        moved = _Moved.apply(x, far, self._device)  # type: ignore[no-untyped-call]
        self._device.looking = looking
        result: Tensor = moved
        return result

    def _refused(self, what: str) -> Callable[..., Any]:
        original = getattr(Tensor, what)

        def refused(x: Tensor, *args: Any, **kwargs: Any) -> Any:
            if self._device.has(x):
                raise OtherDevice(f"{what} of a tensor that is not on the CPU")
            return original(x, *args, **kwargs)

        return refused

    def _tolist(self, x: Tensor) -> Any:
        if self._device.has(x):
            self._device.wait("tolist")
        return x.tolist()

    def _backward(self, x: Tensor, **_: Any) -> None:
        before, self._device.making = self._device.making, self._device.has(x)
        run, one = torch.autograd.graph._engine_run_backward, torch.ones_like(x)
        self._device.take(one)
        try:
            with self:  # what `torch.autograd.backward` does, but formulas of our own meet the device, too
                run((x,), (one,), False, False, (), allow_unreachable=True, accumulate_grad=True)
        finally:
            self._device.making = before

    def _new_tensor(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        made = x.new_tensor(*args, **kwargs)
        if self._device.has(x):
            self._device.wait("tensor from a list")
            self._device.take(made)
        return made


class _Moved(torch.autograd.Function):
    """A copy on the other side."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, far: bool, device: Pretended) -> Tensor:
        ctx.device, ctx.far = device, far
        with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
            copy = x.detach().clone()
        if far:
            device.take(copy)
        return copy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None]:
        with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
            copy = gradients[0].clone()
        if not ctx.far:
            ctx.device.take(copy)
        return copy, None, None
