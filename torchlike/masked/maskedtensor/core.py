"""MaskedTensor: values and a mask that says which of them count. What functions make of one, `_functions` says."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..._core import dtype as dt
from ..._core.history import warn
from ..._public import FUNCTIONS
from ..._tensor import Tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]

_DTYPES = (dt.float16, dt.float32, dt.float64, dt.bool_, dt.int8, dt.int16, dt.int32, dt.int64)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether obj is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Tensor):
    """A copy of `data`, and of `mask`, which is True where it counts. It is the data that autograd knows."""

    __module__ = "torch.masked.maskedtensor.core"

    _masked_data: Tensor
    _masked_mask: Tensor

    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        for t, name in ((data, "data"), (mask, "mask")):
            if not isinstance(t, Tensor) or is_masked_tensor(t):
                raise TypeError(f"{name} must be a Tensor")
        warn("The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github issue for features "
             "requests and see our documentation on the torch.masked module for further information about the project.")
        if data.requires_grad:
            warn("It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use data.detach().clone()")
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return _made(data.detach().clone(), mask.clone()).requires_grad_(requires_grad)

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        pass

    # -- what it is --------------------------------------------------------------------------------------------------------

    shape = property(lambda self: self._masked_data.shape)
    dtype = property(lambda self: self._masked_data.dtype)
    device = property(lambda self: self._masked_data.device)
    layout = property(lambda self: self._masked_data.layout)
    ndim = property(lambda self: self._masked_data.ndim)
    is_leaf = property(lambda self: self._masked_data.is_leaf)
    grad_fn = property(lambda self: self._masked_data.grad_fn)
    is_sparse = property(lambda self: False)
    mT = property(lambda self: self.transpose(-2, -1))

    @property
    def requires_grad(self) -> bool:
        """Whether the data requires gradients."""
        return self._masked_data.requires_grad

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self._masked_data.requires_grad = on

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        """Let the data require gradients, or not."""
        self._masked_data.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> MaskedTensor | None:
        """The data's gradient, under the mask."""
        grad = self._masked_data.grad
        return None if grad is None else _made(grad, self._masked_mask)

    @grad.setter
    def grad(self, new: MaskedTensor | None) -> None:
        self._masked_data.grad = new._masked_data if is_masked_tensor(new) else new

    def size(self, dim: int | None = None) -> Any:
        """The data's sizes."""
        return self._masked_data.size() if dim is None else self._masked_data.size(dim)

    def stride(self, dim: int | None = None) -> Any:
        """The data's strides."""
        return self._masked_data.stride() if dim is None else self._masked_data.stride(dim)

    def dim(self) -> int:
        """The data's dimensions."""
        return self._masked_data.dim()

    def numel(self) -> int:
        """All elements, also those that do not count."""
        return self._masked_data.numel()

    nelement = numel

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the data is."""
        return self._masked_data.is_contiguous() if memory_format is None else self._masked_data.is_contiguous(memory_format=memory_format)

    def is_sparse_coo(self) -> bool:
        """False: the data is strided."""
        return False

    is_sparse_csr = is_sparse_coo

    def __len__(self) -> int:
        return len(self._masked_data)

    # -- its data ----------------------------------------------------------------------------------------------------------

    def get_data(self) -> Tensor:
        """The data as a plain tensor of the same memory, also what does not count."""
        data = self._masked_data
        return data.view_as(data) if data.requires_grad else data.detach()

    def get_mask(self) -> Tensor:
        """True where the data counts."""
        return self._masked_mask

    def to_tensor(self, value: float) -> Tensor:
        """A plain tensor that has `value` where the mask is False."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Gradients of the data; `gradient` counts as zero where it is masked out."""
        from ...autograd import backward
        given = gradient.to_tensor(0) if is_masked_tensor(gradient) else gradient
        if inputs is not None:
            inputs = [_data(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        backward(self._masked_data, given, retain_graph, create_graph, inputs=inputs)

    def __deepcopy__(self, memo: dict) -> MaskedTensor:
        if id(self) not in memo:
            memo[id(self)] = _made(copy.deepcopy(self._masked_data, memo), copy.deepcopy(self._masked_mask, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple:
        return _made, (self._masked_data, self._masked_mask)

    # -- printing ----------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        data, mask = self._masked_data.detach().tolist(), self._masked_mask.tolist()
        if not self.dim():
            return f"MaskedTensor({_number(data) if mask else '--'}, {mask})"
        return "MaskedTensor(\n" + _indented(_listed(data, mask)) + "\n)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        from ._functions import call
        return call(func, args, kwargs or {})


def _number(x: Any) -> str:
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _listed(data: list, mask: list) -> str:
    """Nested lists with a line for each row, and -- for what does not count."""
    if any(isinstance(x, list) for x in data):
        return "[\n" + ",\n".join(_indented(_listed(x, m)) for x, m in zip(data, mask)) + "\n]"
    shown = [_number(x) for x in data]
    width = max([len(text) if m else 8 for text, m in zip(shown, mask)], default=0)
    return "[" + ", ".join(text if m else "--".rjust(width) for text, m in zip(shown, mask)) + "]"


def _data(x: Any) -> Any:
    return x._masked_data if is_masked_tensor(x) else x


def _made(data: Tensor, mask: Tensor) -> MaskedTensor:
    """The two as one, which shares their memory and data's place in the graph."""
    if data._sparse or mask._sparse:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not dt.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    for what in ("dim", "size"):
        if getattr(data, what)() != getattr(mask, what)():
            raise ValueError(f"data.{what}() must equal mask.{what}()")
    self = Tensor._make_subclass(MaskedTensor, FUNCTIONS["empty"](0, device="meta"))
    self._masked_data, self._masked_mask = data, mask
    return self
