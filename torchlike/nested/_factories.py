"""torch.nested's functions: nested tensors from lists, from packed values, from parts of plain ones; and back."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .._core.device import device as _device
from .._core.dtype import dtype as _dtype
from .._core.history import warn
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..ops.layouts import layout as _layout
from ._tensor import JAGGED, STRIDED, NestedTensor


def _made(parts: list[Tensor], layout: _layout | None, view: bool = False) -> NestedTensor:
    kind = STRIDED if layout is None else layout
    if kind not in (STRIDED, JAGGED):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {kind}")
    if len({p.ndim for p in parts}) > 1:
        k = next(k for k in range(1, len(parts)) if parts[k].ndim != parts[k - 1].ndim)
        raise RuntimeError(f"All Tensors given to nested_tensor must have the same dimension. Found dimension {parts[k].ndim} for Tensor at index {k} and "
                           f"dimension {parts[k - 1].ndim} for Tensor at index {k - 1}.")
    if len({p.dtype for p in parts}) > 1:
        raise RuntimeError("All Tensors given to nested_tensor must have the same dtype.")
    if kind is STRIDED:
        if not view:
            warn("The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend specifying layout=torch.jagged "
                 "when constructing a nested tensor, as this layout receives active development, has better operator coverage, and works with "
                 "torch.compile.", once=True)
        return NestedTensor(parts, kind)
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    differing = [d for d, sizes in enumerate(zip(*[p.shape for p in parts]), 1) if len(set(sizes)) > 1]
    if not parts[0].ndim or len(differing) > 1:
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only allows for a "
                           "single ragged dimension.")
    return NestedTensor(parts, kind, None, differing[0] if differing else 1)


def nested_tensor(tensor_list: Sequence[Any], *, dtype: _dtype | None = None, layout: _layout | None = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> NestedTensor:
    """A nested tensor that has copies of the tensors (or lists of numbers); a leaf."""
    if layout is JAGGED and isinstance(tensor_list, Tensor) and tensor_list.ndim:
        tensor_list = tensor_list.unbind(0)
    if isinstance(tensor_list, Tensor) or not isinstance(tensor_list, (list, tuple)):
        raise TypeError("nested_tensor(): argument 'tensor_list' (position 1) must be list, not " + type(tensor_list).__name__)
    parts = [(x.detach().clone() if isinstance(x, Tensor) else FUNCTIONS["tensor"](x)).to(dtype=dtype, device=device) for x in tensor_list]
    made = _made(parts, layout)
    if parts:
        made = made.pieces_of(made.values())
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts: Tensor | Sequence[Tensor], dtype: _dtype | None = None, device: Any = None, layout: _layout | None = None) -> NestedTensor:
    """A nested tensor of the tensors, whose gradients reach them; of a plain tensor's items; of a nested tensor of that layout (None: strided) itself
    where it has the dtype and the device. RuntimeError for one of the other layout."""
    if isinstance(ts, NestedTensor):
        if layout is not ts.layout:  # also for None
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(dtype=dtype, device=device)
    if not isinstance(ts, Tensor) and not (isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, Tensor) and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, Tensor) and ts.is_contiguous() and dtype in (None, ts.dtype) and (device is None or _device(device) == ts.device):
        return _made(list(ts.unbind(0)), layout, view=True)
    return _made([t.clone().to(dtype=dtype, device=device) for t in (ts.unbind(0) if isinstance(ts, Tensor) else ts)], layout)


def to_padded_tensor(input: NestedTensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """The parts stacked, filled up with padding. NotImplementedError for a plain tensor."""
    return input.to_padded_tensor(padding, output_size)


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
                              min_seqlen: int | None = None, max_seqlen: int | None = None) -> NestedTensor:
    """A nested tensor of pieces of `values`: between the offsets, or of the lengths one after the other (from the offsets, if both are given)."""
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    dim = 1 if jagged_dim is None else jagged_dim
    if offsets is None:
        sizes, start = lengths.tolist(), 0
        starts = [start := start + n for n in [0, *sizes[:-1]]]
    else:
        starts = offsets.tolist()
        sizes = [b - a for a, b in zip(starts, starts[1:])] if lengths is None else lengths.tolist()
    made = NestedTensor([values.narrow(dim - 1, a, n) for a, n in zip(starts, sizes)], JAGGED, None, dim)
    if [*starts[:len(sizes)], values.shape[dim - 1]] == [0, *itertools.accumulate(sizes)]:
        made._whole = values
    return made


def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: _layout = STRIDED) -> NestedTensor:
    """From each item of a plain tensor `length` entries from `start` on, along dimension 1."""
    if layout is not JAGGED:
        raise RuntimeError(f"torch.nested.narrow only supports jagged layout: {layout}")
    if dim != 1:
        raise RuntimeError("torch.nested.narrow only supports dim=1")
    n = tensor.shape[0]
    starts, lengths = ([x] * n if isinstance(x, int) else x.tolist() for x in (start, length))
    return NestedTensor([tensor[i, a:a + size] for i, (a, size) in enumerate(zip(starts, lengths))], JAGGED)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """What a mask of two dimensions selects of each item."""
    tensor, mask = FUNCTIONS["broadcast_tensors"](tensor, mask)
    return NestedTensor([t[m] for t, m in zip(tensor.unbind(0), mask.unbind(0))], JAGGED)
