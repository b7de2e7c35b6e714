"""Views of the same memory as other types: parts of complex numbers, conjugates, bits."""
from __future__ import annotations

import numpy as np
from jax import lax

from .._arguments import need_tensor
from .._core import dtype as dt
from .._core.layout import Layout
from .._core.registry import View
from .._public import FUNCTIONS, called, public
from .._tensor import Tensor
from .complex_parts import joined
from .memory_formats import clone


def _component_layout(a: Layout, which):
    return Layout(a.shape, tuple(2 * s for s in a.strides), 2 * a.offset + which)


def _set_part(xp, base, new, which):
    return joined(xp, *((new, base.imag) if which == 0 else (base.real, new)), base.dtype)


class _Component(View):
    """Views of a complex tensor's parts; their dtype differs from the base's."""

    def _shape(self, a, *rest):
        shape, _ = super()._shape(a, *rest)
        return shape, a.dtype.to_complex() if self.name == "view_as_complex" else a.dtype.to_real()


_REAL = _Component("real", lambda xp, x: xp.real(x), put=lambda xp, base, new: _set_part(xp, base, new, 0), layout=lambda a: _component_layout(a, 0),
                   vjp=lambda xp, g: xp.real(g), overlaps=False, torch_name="SelectBackward0")
_IMAG = _Component("imag", lambda xp, x: xp.imag(x), put=lambda xp, base, new: _set_part(xp, base, new, 1), layout=lambda a: _component_layout(a, 1),
                   vjp=lambda xp, g, plan: joined(xp, xp.zeros_like(g), g, plan.avals[0].dtype.np), torch_name="SelectBackward0")
_AS_REAL = _Component("view_as_real", lambda xp, x: xp.stack([xp.real(x), xp.imag(x)], -1),
                      put=lambda xp, base, new: joined(xp, new[..., 0], new[..., 1], base.dtype),
                      layout=lambda a: Layout((*a.shape, 2), (*(2 * s for s in a.strides), 1), 2 * a.offset),
                      vjp=lambda xp, g, plan: joined(xp, g[..., 0], g[..., 1], plan.avals[0].dtype.np))
_AS_COMPLEX = _Component("view_as_complex", lambda xp, x: joined(xp, x[..., 0], x[..., 1], np.complex128 if x.dtype == np.float64 else np.complex64),
                         put=lambda xp, base, new: xp.stack([xp.real(new), xp.imag(new)], -1).astype(base.dtype),
                         layout=lambda a: Layout(a.shape[:-1], tuple(s // 2 for s in a.strides[:-1]), a.offset // 2),
                         vjp=lambda xp, g: xp.stack([xp.real(g), xp.imag(g)], -1))


@public(method=False)
def real(input) -> Tensor:
    """The real part of a complex tensor, as a view; real tensors are returned as they are."""
    return input._view(_REAL, ()) if input.dtype.is_complex else input


@public(method=False)
def imag(input) -> Tensor:
    """The imaginary part of a complex tensor, as a view."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return input._view(_IMAG, ())


Tensor.real = property(real, lambda self, value: self.real.copy_(value))
Tensor.imag = property(imag, lambda self, value: self.imag.copy_(value))


@public(method=False)
def view_as_real(input) -> Tensor:
    """A complex tensor as real pairs in a new last dimension."""
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if is_conj(input):
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as real, use "
                           "self.resolve_conj(); however, be warned that the resulting tensor will not alias the original.")
    return input._view(_AS_REAL, ())


@public(method=False)
def view_as_complex(input) -> Tensor:
    """Pairs in the last dimension as complex numbers."""
    if input.dtype not in (dt.float32, dt.float64, dt.float16):
        raise RuntimeError(f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {input.dtype.short}")
    shape = input._value.aval.shape
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.stride(-1) != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in input.stride()[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return input._view(_AS_COMPLEX, ())


# `_neg_view`; and how the imaginary part of a conjugated tensor is seen in a window that skips the conjugation
_NEGATED = View("neg_view", lambda xp, x: -x, put=lambda xp, base, new: -new, layout=lambda a: a)
_CONJ = View("conj", lambda xp, x: xp.conj(x), put=lambda xp, base, new: xp.conj(new), layout=lambda a: a)


@public()
def conj(input) -> Tensor:
    """The complex conjugate, as a view; real tensors are returned as they are."""
    return input._view(_CONJ, ()) if input.dtype.is_complex else input


def _neg_view(input) -> Tensor:
    """The negated numbers, as a view: what is written to it is negated in the memory."""
    if input.dtype is dt.bool_:
        raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
    return input._view(_NEGATED, ())


FUNCTIONS["_neg_view"] = called(_neg_view)
Tensor._neg_view = called(_neg_view, method=True)


@public()
def is_conj(input) -> bool:
    """Whether the tensor is a conjugated view of its storage."""
    return input.dtype.is_complex and _conjugated(input._chain)


@public()
def is_neg(input) -> bool:
    """Whether the tensor's storage holds the negated numbers: of the imaginary part of a conjugated view, or of `_neg_view`."""
    ops = [op for op, _, _ in input._chain]
    return (ops.count(_NEGATED) + (_IMAG in ops and ops[:ops.index(_IMAG)].count(_CONJ))) % 2 == 1


def _conjugated(chain) -> bool:
    return bool(chain) and sum(op is _CONJ for op, _, _ in chain) % 2 == 1


@public()
def resolve_conj(input) -> Tensor:
    """input, or a copy of it where it is a conjugated view."""
    return clone(input) if is_conj(need_tensor(input, "resolve_conj", "'input' (position 1)")) else input


@public()
def resolve_neg(input) -> Tensor:
    """input, or a copy of it where it is the imaginary part of a conjugated view."""
    return clone(input) if is_neg(need_tensor(input, "resolve_neg", "'input' (position 1)")) else input


def _bits(xp, x, np_dtype):
    if xp is np:
        out = np.asarray(x, order="C").view(np.uint8 if np_dtype == np.bool_ else np_dtype)
        return out != 0 if np_dtype == np.bool_ and x.dtype != bool else out.view(np_dtype)  # NumPy compares and sorts booleans as bytes
    if x.dtype.kind == "c":  # JAX casts the bits of real numbers only
        x = xp.stack([x.real, x.imag], -1).reshape(*x.shape[:-1], -1) if x.ndim else xp.stack([x.real, x.imag])
    if np.dtype(np_dtype).kind == "c":
        parts = _bits(xp, x, np.empty(0, np_dtype).real.dtype)
        return lax.complex(parts[..., 0::2], parts[..., 1::2])
    if x.dtype == bool:
        x = x.astype(np.uint8)
    target = np.dtype(np.uint8) if np_dtype == np.bool_ else np_dtype
    ratio = x.dtype.itemsize / target.itemsize
    if ratio < 1:
        x = x.reshape(*x.shape[:-1], -1, int(1 / ratio))
    out = lax.bitcast_convert_type(x, target)
    if ratio > 1:
        out = out.reshape(*x.shape[:-1], -1)
    return out.astype(bool) if np_dtype == np.bool_ else out


def _write_bits(xp, base, new):
    if new.dtype == bool and base.dtype != bool:  # which bytes other than 0 were there is not told by truth
        old = _bits(xp, base, np.dtype(np.uint8))
        new = xp.where((old != 0) == new, old, new.astype(np.uint8))
    return _bits(xp, new, base.dtype)


class _BitView(View):
    def _shape(self, a, dtype):
        shape, _ = super()._shape(a, dtype)
        ratio = a.dtype.itemsize / dtype.itemsize
        return (shape if ratio == 1 else (*shape[:-1], int(a.shape[-1] * ratio))), dtype


_VIEW_DTYPE = _BitView("view_dtype", lambda xp, x, dtype: _bits(xp, x, dtype.np), put=lambda xp, base, new, dtype: _write_bits(xp, base, new),
                       layout=lambda a, dtype: a)
_VIEW_DTYPE.differentiable = _VIEW_DTYPE.put.differentiable = False


def view_dtype(self, dtype) -> Tensor:
    """The same bits read as another dtype; the last dimension grows or shrinks with the element size."""
    if dtype is self.dtype:
        return self._alias()  # nothing is differentiated through it, as with any other dtype
    if is_conj(self):
        raise RuntimeError("torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype.")
    if is_neg(self):
        raise RuntimeError("torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype.")
    a, b = self.dtype.itemsize, dtype.itemsize
    if a != b:
        if not self.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to view {self.dtype.short} as {dtype.short} (different element sizes)")
        if a < b:
            _need_multiple(self, dtype, "size(-1)", self.shape[-1])
            _need_multiple(self, dtype, "storage_offset()", self.storage_offset())
        if self.stride(-1) != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {self.dtype.short} as {dtype.short} (different element sizes), but got {self.stride(-1)}")
        if a < b:
            for d, stride in enumerate(self.stride()[:-1]):
                _need_multiple(self, dtype, f"stride({d})", stride)
    before = self._strided()
    out = self._view(_VIEW_DTYPE, (dtype,))
    strides = before.strides if a == b else (*[s * a // b for s in before.strides[:-1]], 1)
    out._layout = Layout(out._value.aval.shape, strides, before.offset * a // b)
    out._base = None  # nothing is differentiated through it
    return out


def _need_multiple(t: Tensor, dtype, what: str, n: int) -> None:
    ratio = dtype.itemsize // t.dtype.itemsize
    if n % ratio:
        raise RuntimeError(f"self.{what} must be divisible by {ratio} to view {t.dtype.short} as {dtype.short} (different element sizes), but got {n}")
