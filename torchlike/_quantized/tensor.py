"""Quantized: a tensor of integers that stand for numbers.

It holds the integers as an ordinary tensor (`_held`), so that views of it share memory as any, and a quantizer. Nothing of it is differentiable.
"""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core.aval import Aval
from .._fields import fields
from .._tensor import Tensor, _new
from .._tensor_str import _append_suffixes, _elements_str
from .._valueless import Valueless
from ..ops.layouts import LAYOUTS
from ..ops.storages import TypedStorage
from .quantizers import PerChannel, PerTensor, Quantizer, expected

FORMS: dict[str, Callable] = {}  # by torch's name: what runs where an argument is quantized; see forms.py


class Quantized(Valueless):
    """Integers `_held` and what they stand for, `_quantizer`."""

    _quantizer: Quantizer
    backend = "Quantized"
    forms = FORMS
    is_leaf, grad_fn, output_nr, retains_grad, is_quantized = (property(lambda self, x=x: x) for x in (True, None, 0, False, True))

    @property
    def _aval(self) -> Aval:
        return self._held._aval

    shape = property(lambda self: self._held.shape)
    dtype = property(lambda self: self._quantizer.dtype)
    device = property(lambda self: self._held.device)
    layout = property(lambda self: LAYOUTS["strided"])

    def is_signed(self) -> bool:
        """RuntimeError: torch knows of none."""
        return self.dtype.is_signed

    def is_floating_point(self) -> bool:
        """False."""
        return False

    # -- autograd: none ----------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return False

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """RuntimeError but for False."""
        self.requires_grad = requires_grad
        return self

    # -- what the integers stand for ---------------------------------------------------------------------------------------

    def int_repr(self) -> Tensor:
        """The integers, in memory of their own."""
        return self._held.detach().clone()

    def dequantize(self) -> Tensor:
        """The numbers, as float32."""
        return self._quantizer.dequantize(self._held)

    def qscheme(self) -> Any:
        return self._quantizer.qscheme

    def q_scale(self) -> float:
        return self._uniform().scale

    def q_zero_point(self) -> int:
        return self._uniform().zero_point

    def _uniform(self) -> PerTensor:
        if not isinstance(self._quantizer, PerTensor):
            expected("PerTensorAffine")
        return self._quantizer

    def _channels(self) -> PerChannel:
        if not isinstance(self._quantizer, PerChannel):
            expected("PerChannelAffine PerChannelAffineFloatQParams")
        return self._quantizer

    def q_per_channel_scales(self) -> Tensor:
        return self._channels().scales

    def q_per_channel_zero_points(self) -> Tensor:
        return self._channels().zero_points

    def q_per_channel_axis(self) -> int:
        return self._channels().axis

    # -- made from it ------------------------------------------------------------------------------------------------------

    def _like(self, integers: Tensor) -> Quantized:
        """Other integers that stand for the same."""
        return quantized(integers, self._quantizer)

    def adopt(self, made: Tensor) -> Tensor:
        """Take over what another quantized tensor is, in its own memory."""
        self._held.copy_(made._held)
        self._quantizer = made._quantizer
        return self

    def become(self, made: Tensor, name: str) -> Tensor:
        """Take over a result, as `out=` of function `name` or in place."""
        if not isinstance(made, Quantized) or made.dtype is not self.dtype:
            self.refuse(f"{name}.out")
        if made.shape != self.shape:
            self._held.resize_(made.shape)
        return self.adopt(made)

    def _become_data(self, other: Tensor) -> None:
        fields(self).update(fields(other.detach()))

    data = property(lambda self: self.detach(), _become_data)

    def __deepcopy__(self, memo: dict) -> Tensor:
        if id(self) not in memo:
            made = self._like(copy.deepcopy(self._held, memo))
            made._quantizer = copy.deepcopy(self._quantizer, memo)
            if type(self) is not Quantized:
                made.__class__ = type(self)
            memo[id(self)] = made
        return memo[id(self)]

    def __copy__(self) -> Tensor:
        return self.detach()

    def __reduce_ex__(self, protocol: int) -> tuple:
        return quantized, (self._held, self._quantizer)

    # -- elements ----------------------------------------------------------------------------------------------------------

    def item(self) -> float:
        """The number that the only element stands for."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.dequantize().item()

    __float__ = item

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    is_nonzero = __bool__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.ndim and spec else object.__format__(self, spec)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def storage(self) -> TypedStorage:
        """The memory of the integers."""
        return TypedStorage(wrap_storage=self._held.untyped_storage(), dtype=self.dtype)

    def tolist(self) -> NoReturn:
        raise RuntimeError("load_scalar: invalid type")

    def numpy(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"Got unsupported ScalarType {self.dtype.short}")

    __array__ = numpy

    def __dlpack__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise BufferError("QUInt/QInt types are not supported by dlpack")

    def type(self, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The name of the type; RuntimeError for another one."""
        if dtype is None:
            return f"torch.quantized.{self.dtype.short}Tensor"
        return self.to(dtype)


def quantized(integers: Tensor, quantizer: Quantizer) -> Quantized:
    """A tensor of these integers, whose memory it shares."""
    if isinstance(quantizer, PerChannel):
        quantizer.fit(integers.shape)
    made = _new(Quantized)
    fields(made)["_value"] = None  # for those who go through all tensors
    made._held, made._quantizer = integers, quantizer
    return made


def quantized_str(self: Quantized, *, tensor_contents: str | None = None) -> str:
    """repr(tensor)."""
    prefix = "tensor("
    if tensor_contents is None:
        array = np.asarray(self.dequantize()._host_array())
        tensor_contents = _elements_str(array, len(prefix), "float32") if array.size else "[]"
    suffixes = [f"device='{self.device}'"] if self.device.type != "cpu" else []
    suffixes += [f"size={tuple(self.shape)}", f"dtype={self.dtype}", f"quantization_scheme={self.qscheme()}", *self._quantizer.words()]
    role = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
    return role + _append_suffixes(prefix + tensor_contents, suffixes, len(prefix))


Quantized.__repr__ = quantized_str
HELD = ("stride", "is_contiguous", "storage_offset", "data_ptr", "untyped_storage", "is_shared", "nbytes", "is_inference", "is_pinned", "_version", "is_non_overlapping_and_dense")


def _of_held(name: str) -> Any:
    if isinstance(vars(Tensor).get(name), property):
        return property(lambda self: getattr(self._held, name))
    return lambda self, *args, **kwargs: getattr(self._held, name)(*args, **kwargs)


for _name in HELD:
    setattr(Quantized, _name, _of_held(_name))
__all__ = ["FORMS", "Quantized", "quantized"]
