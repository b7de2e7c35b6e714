"""Nested tensors: a batch of tensors of several sizes as one object. Functions run on each part; its operations are what the layouts allow.

With the strided layout the parts may differ in every size; with the jagged layout in one, and then sums over any dimension are there.
"""
from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .._core import dtype as dt
from .._public import FUNCTIONS
from .._size import Size
from .._symbolic import SymInt
from .._tensor import Tensor
from ..nn import functional as F
from ..ops.layouts import LAYOUTS, layout

STRIDED, JAGGED = LAYOUTS["strided"], LAYOUTS["jagged"]
_numbers = itertools.count(1)


class NestedTensor(Tensor):
    """A batch of tensors of one number of dimensions."""

    __module__ = "torch.nested._internal.nested_tensor"

    _parts: tuple[Tensor, ...]
    _layout_of: layout
    _ragged: int  # the jagged layout's dimension of several sizes
    _offsets: Tensor | None
    _symbol: SymInt
    _whole: Tensor | None  # what the parts are pieces of, if they are of one tensor

    def __new__(cls, parts: Sequence[Tensor], kind: layout, like: NestedTensor | None = None, ragged: int = 1) -> NestedTensor:
        self = Tensor._make_subclass(cls, FUNCTIONS["empty"](0, device="meta"))
        self._parts, self._layout_of, self._ragged, self._whole = tuple(parts), kind, ragged, None
        if kind is JAGGED:
            lengths = [p.shape[ragged - 1] for p in self._parts]
            shared = like is not None and like._layout_of is JAGGED and like._lengths == lengths
            self._lengths = lengths
            self._symbol = like._symbol if shared else SymInt(f"j{next(_numbers)}")
            self._offsets = like._offsets if shared else FUNCTIONS["tensor"]([0, *itertools.accumulate(lengths)], device=self.device)
        return self

    # -- what it is ------------------------------------------------------------------------------------------------------

    is_nested = property(lambda self: True)
    layout = property(lambda self: self._layout_of)
    dtype = property(lambda self: self._parts[0].dtype if self._parts else dt.get_default_dtype())
    device = property(lambda self: self._parts[0].device if self._parts else FUNCTIONS["empty"](0).device)
    ndim = property(lambda self: self.dim())
    shape = property(lambda self: self.size())
    grad_fn = property(lambda self: next((p.grad_fn for p in self._parts if p.grad_fn is not None), None))
    is_leaf = property(lambda self: all(p.is_leaf for p in self._parts))
    data = property(lambda self: self._like([p.data for p in self._parts]))
    real = property(lambda self: self._like([p.real for p in self._parts]))
    imag = property(lambda self: self._like([p.imag for p in self._parts]))
    mT = property(lambda self: self.transpose(-2, -1))
    mH = property(lambda self: self.transpose(-2, -1).conj())
    T = property(lambda self: self.permute(*reversed(range(self.dim()))))
    nbytes = property(lambda self: self.numel() * self.element_size())

    @property
    def requires_grad(self) -> bool:
        """Whether one of the parts requires gradients."""
        return any(p.requires_grad for p in self._parts)

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self.requires_grad_(on)

    def requires_grad_(self, requires_grad: bool = True) -> NestedTensor:
        """Let all parts require gradients, or none."""
        for p in self._parts:
            p.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> NestedTensor | None:
        """The parts' gradients: zeros for those that nothing reached, if something reached others."""
        grads = [p.grad for p in self._parts]
        if all(g is None for g in grads):
            return None
        return NestedTensor([FUNCTIONS["zeros_like"](p) if g is None else g for p, g in zip(self._parts, grads)], self._layout_of, self, self._ragged)

    @grad.setter
    def grad(self, new: NestedTensor | None) -> None:
        for p, g in zip(self._parts, [None] * len(self._parts) if new is None else new._parts):
            p.grad = g

    def _like(self, parts: Sequence[Tensor]) -> NestedTensor:
        return NestedTensor(parts, self._layout_of, self, self._ragged)

    def dim(self) -> int:
        """The parts' dimensions and the batch's."""
        return 1 + (self._parts[0].ndim if self._parts else 0)

    def size(self, dim: int | None = None) -> Any:
        """The sizes. One that differs is a symbol in the jagged layout, and has no answer in the strided one."""
        if dim is None:
            if self._layout_of is STRIDED:
                raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")
            return tuple.__new__(Size, [self.size(d) for d in range(self.dim())])
        d = dim % self.dim()
        if d == 0:
            return len(self._parts)
        if self._layout_of is JAGGED and d == self._ragged:
            return self._symbol
        sizes = {p.shape[d - 1] for p in self._parts}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return sizes.pop()

    def __len__(self) -> int:
        if self._layout_of is STRIDED:
            self.size()
        return len(self._parts)

    def numel(self) -> int:
        """The elements of all parts."""
        return sum(p.numel() for p in self._parts)

    nelement = numel

    def is_floating_point(self) -> bool:
        """Whether the parts hold floats."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the parts hold complex numbers."""
        return self.dtype.is_complex

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    def storage_offset(self) -> int:
        """0: where the values begin."""
        return 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether every part is."""
        return (self._layout_of is STRIDED or self._ragged == 1) and all(p.is_contiguous() for p in self._parts)

    def _nested_tensor_size(self) -> Tensor:
        return FUNCTIONS["tensor"]([list(p.shape) for p in self._parts])

    # -- its data --------------------------------------------------------------------------------------------------------

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts."""
        if dim % self.dim():
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0" if self._layout_of is JAGGED else
                               f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
        return tuple([p.view_as(p) for p in self._parts])

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __getitem__(self, where: Any) -> Tensor:
        if where.__class__ is int:
            n = len(self._parts)
            if not -n <= where < n:
                raise IndexError(f"index {where} is out of bounds for dimension 0 with size {n}")
            return self.unbind()[where]
        if isinstance(where, tuple) and where and where[0].__class__ is int:
            return self.unbind()[where[0]][where[1:]]
        if where is ... and self._layout_of is STRIDED:
            return NestedTensor(self.unbind(), STRIDED, self)
        raise NotImplementedError("nested tensors: index the batch with a number first")

    def __setitem__(self, where: Any, value: Any) -> None:
        if self._layout_of is STRIDED:
            self.size()
        if where.__class__ is not int and not (isinstance(where, tuple) and where and where[0].__class__ is int):
            raise NotImplementedError("nested tensors: index the batch with a number first")
        self[where].copy_(value) if isinstance(value, Tensor) else self[where].fill_(value)

    def __bool__(self) -> bool:
        """The only element's truth."""
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with " + ("more than one value" if self.numel() else "no values") + " is ambiguous")
        return bool(self.values())

    def is_pinned(self, device: Any = None) -> bool:
        """Whether all parts lie in pinned memory."""
        return bool(self._parts) and all(p.is_pinned() for p in self._parts)

    def values(self) -> Tensor:
        """All parts one after the other; the strided layout's as one vector. Of the same memory where the parts are pieces of one tensor."""
        if self._whole is not None and (self._whole.requires_grad or not self.requires_grad):
            return self._whole.view_as(self._whole)
        if self._layout_of is STRIDED:
            return FUNCTIONS["cat"]([p.reshape(-1) for p in self._parts])
        return FUNCTIONS["cat"](list(self._parts), self._ragged - 1)

    def offsets(self) -> Tensor:
        """Where each part begins among the values."""
        if self._layout_of is STRIDED:
            raise AttributeError("'Tensor' object has no attribute 'offsets'")
        return self._offsets

    def lengths(self) -> None:
        """None: the parts lie without gaps."""
        if self._layout_of is STRIDED:
            raise AttributeError("'Tensor' object has no attribute 'lengths'")

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """The parts stacked, filled up with padding to the largest size or to `output_size`."""
        if self._layout_of is STRIDED and self._parts and not any(p.numel() for p in self._parts):
            raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
        if not self._parts:
            return FUNCTIONS["zeros"](0 if output_size is None else list(output_size))
        largest = [max(sizes) for sizes in zip(*[p.shape for p in self._parts])]
        target = largest if output_size is None else list(output_size)[1:]
        if self._layout_of is JAGGED:  # only the jagged dimension grows
            target = [*largest[:self._ragged - 1], target[self._ragged - 1], *largest[self._ragged:]]
        if any(a > b for a, b in zip(largest, target)):
            raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
        padded = []
        for p in self._parts:
            room = [n for have, want in zip(reversed(p.shape), reversed(target)) for n in (0, want - have)]
            padded.append(F.pad(p, room, value=padding))
        if output_size is not None and self._layout_of is STRIDED:
            if output_size[0] < len(padded):
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
            padded += [FUNCTIONS["full_like"](padded[0], padding)] * (output_size[0] - len(padded))
        return FUNCTIONS["stack"](padded)

    def backward(self, gradient: NestedTensor | None = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Gradients from all parts."""
        from ..autograd import backward
        if gradient is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        backward(list(self._parts), list(gradient._parts), retain_graph, create_graph, inputs=inputs)

    def __repr__(self) -> str:
        if self._layout_of is STRIDED:
            inner = ",\n".join("  " + repr(p.detach()).replace("\n", "\n  ") for p in self._parts)
            tail = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
            return f"nested_tensor([\n{inner}\n]{tail})"
        tail = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        sizes = ", ".join(str(self.size(d)) for d in range(self.dim()))
        return f"NestedTensor(size=({sizes}), offsets={self._offsets!r}{tail}, contiguous={self.is_contiguous()})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: int) -> tuple:
        return _restored, (self._parts, self._layout_of, self._ragged)

    def pieces_of(self, whole: Tensor) -> NestedTensor:
        """The same numbers as pieces of `whole`, which has what `values` gives."""
        if self._layout_of is STRIDED:
            parts = [piece.view(p.shape) for piece, p in zip(whole.split([p.numel() for p in self._parts]), self._parts)]
        else:
            parts = whole.split(self._lengths, self._ragged - 1)
        made = NestedTensor(parts, self._layout_of, self, self._ragged)
        made._whole = whole
        return made

    def __deepcopy__(self, memo: dict) -> NestedTensor:
        made = memo[id(self)] = NestedTensor(copy.deepcopy(self._parts, memo), self._layout_of, self, self._ragged)
        made._whole = copy.deepcopy(self._whole, memo) if self._whole is not None and self._whole.is_leaf else None
        return made

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        from ._functions import call
        return call(func, args, kwargs or {})


def _restored(parts: Sequence[Tensor], kind: layout, ragged: int) -> NestedTensor:
    return NestedTensor(parts, kind, None, ragged)
