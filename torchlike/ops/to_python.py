"""What leaves a tensor: Python numbers and lists, NumPy's arrays, and what Python's own functions ask of it (`bool`, `len`, `iter`)."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core import program, runs
from .._core.errors import class_name
from .._core.grad_mode import mode
from .._public import public
from .._tensor import Tensor
from .element_writes import read_element
from .from_data import from_numpy, warn_of_gradient


def _number_array(self) -> np.ndarray:
    """The array of what becomes one of Python's numbers."""
    try:
        return self._host_array()
    except NotImplementedError:
        if not self.is_meta:
            raise
    raise RuntimeError("Tensor.item() cannot be called on meta tensors")


@public(function=False)
def item(self) -> int | float | bool:
    """The value of a one-element tensor as a Python number."""
    a = self._value.aval
    if a.numel != 1:
        if not self.is_meta:
            self._host_array()  # vmap has words of its own for one example of many
        raise RuntimeError(f"a Tensor with {a.numel} elements cannot be converted to Scalar")
    array = _number_array(self)
    return array.item() if a.dtype.itemsize > 2 or a.dtype.category != dt.FLOAT else float(array.reshape(()))


@public(function=False)
def tolist(self) -> Any:
    """Nested Python lists (a number for a 0-dim tensor)."""
    array = self._host_array()
    if self.dtype.category == dt.FLOAT and self.dtype.itemsize < 4:
        array = array.astype(np.float32)
    return array.tolist()


@public(function=False)
def numpy(self, *, force: bool = False) -> np.ndarray:
    """An array that shares memory with the tensor."""
    from .._host import numpy_view
    if force.__class__ is not bool:
        raise TypeError(f"numpy(): argument 'force' must be bool, not {class_name(force)}")
    if force:
        return self.detach().cpu().resolve_conj().resolve_neg().numpy()
    a = self._value.aval
    if a.device.type != "cpu":
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    if mode.enabled and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if a.dtype is dt.bfloat16 or a.dtype in dt.FLOAT8:
        raise TypeError(f"Got unsupported ScalarType {a.dtype.short}")
    if self._chain and self.is_conj():
        raise RuntimeError("Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.")
    if self._chain and self.is_neg():
        raise RuntimeError("Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.")
    if program.state.program.__class__ is not program.Program:
        self._host_array()  # under vmap: what all examples share is there then
    runs.looked()
    if self._storage is None or self._storage.host is None:
        program.concrete(self._current())
    program.raise_failed_checks()
    return numpy_view(self)


def _array(self, dtype=None, copy=None) -> np.ndarray:
    return np.array(self.numpy(), dtype, copy=copy)


def _truth(self) -> bool:
    n = self._value.aval.numel
    if n != 1:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if n == 0 else
                           "Boolean value of Tensor with more than one value is ambiguous")
    return bool(_number_array(self).reshape(()))


def _as_number(kind):
    def convert(self):
        if self._value.aval.numel != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if kind is not int:
            warn_of_gradient(self)
        x = self.item()
        if isinstance(x, complex) and kind is not complex:
            if not x.imag:
                return kind(x.real)
            raise RuntimeError(f"value cannot be converted to type {'double' if kind is float else 'int64_t'} without overflow")
        return kind(x)
    return convert


def _index(self) -> int:
    if self.dtype.category > dt.INT or self._value.aval.numel != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self.item())


def _len(self) -> int:
    if not self._value.aval.ndim:
        raise TypeError("len() of a 0-d tensor")
    return self._value.aval.shape[0]


_MANY = 1000


def _iter(self) -> Iterator[Tensor]:
    if not self._value.aval.ndim:
        raise TypeError("iteration over a 0-d tensor")
    n = self._value.aval.shape[0]
    if n > _MANY and self._edge is None and not self.requires_grad and self.__class__._plain:  # a program of all the slices costs each of them several times its own
        return _each(self, n)
    return iter(self.unbind(0))


def _each(self, n: int):
    """The rows one after the other. Elements of a known vector come with their values: most loops over so many look at each."""
    vector = self._value.aval.ndim == 1
    for i in range(n):
        made = read_element(self, i) if vector and self._value.array is not None else None
        yield self[i] if made is None else made


def _contains(self, x) -> bool:
    if isinstance(x, (Tensor, int, float, complex)):
        return bool((self == x).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(x)}.")


Tensor.__array__, Tensor.__bool__, Tensor.__index__, Tensor.__len__, Tensor.__iter__, Tensor.__contains__ = (
    _array, _truth, _index, _len, _iter, _contains)
Tensor.__float__, Tensor.__int__, Tensor.__complex__ = map(_as_number, (float, int, complex))
Tensor.__nonzero__, Tensor.__array_priority__ = _truth, 1000


def _array_wrap(self, array, context=None, return_scalar: bool = False) -> Tensor:
    """A tensor over the result of a NumPy function of tensors; truth values become uint8, as in torch."""
    array = np.asarray(array)
    return from_numpy(array.astype(np.uint8) if array.dtype == np.bool_ else array)


Tensor.__array_wrap__ = _array_wrap
