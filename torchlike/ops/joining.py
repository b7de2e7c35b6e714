"""Tensors from tensors: cat, stack and their kin; repeat, tile, flip, roll, triangles, meshgrid."""
from __future__ import annotations

import math
from typing import overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._arguments import as_dim, as_int, as_own_dim, as_size, distinct, listed_dims, need_tensors, refuse_huge
from .._core import device as dev
from .._core import dtype as dt
from .._core import program
from .._core.arrays import cast
from .._core.aval import broadcast_shapes, result_dtype
from .._core.errors import class_name
from .._core.grad_mode import mode
from .._core.history import warn
from .._core.layout import Layout, channels_last_strides, suggests_channels_last
from .._core.program import is_tracer
from .._core.registry import Op, Plan, common_device
from .._public import Tensors, named, public
from .._tensor import Tensor, apply, as_tensor_value
from .choosing import choose
from .known import nobody_watches
from .materializing import once

MANY = 8  # tensors; so many that are known already are joined at once, and fewer where other small operations would be


def _listed(name: str, tensors: Tensors) -> tuple[Tensor, ...]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    return tuple(tensors)


def _some(name: str, tensors: Tensors) -> tuple[Tensor, ...]:
    tensors = _listed(name, tensors)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


class _Cat(Op):
    """Concatenation promotes its inputs."""

    def make(self, avals, statics) -> Plan:
        dim = statics[0]
        device = common_device(self, avals, statics)
        out = result_dtype(*avals)
        shape = list(next((a.shape for a in avals if a.shape != (0,)), (0,)))
        shape[dim] = sum(a.shape[dim] for a in avals if a.ndim == len(shape))

        empty = [a.shape == (0,) and len(shape) > 1 for a in avals]  # joins with anything, and counts for the type alone

        def run(xp, *arrays):
            return xp.concatenate([cast(xp, x, out.np) for x, skipped in zip(arrays, empty) if not skipped], axis=dim)
        plan = Plan(self, avals, statics, (tuple(shape), out), run, device)
        if all(a.dtype is out for a in avals) and not any(empty):
            plan.host, plan.exact = (lambda *arrays: np.concatenate(arrays, dim)), True
        return plan


def _cat_vjp(xp, g, plan, needs):
    dim, start, out = plan.statics[0], 0, []
    for a, need in zip(plan.avals, needs):
        n = a.shape[dim] if a.ndim == g.ndim else 0
        if need and a.ndim != g.ndim:
            out.append(xp.zeros(a.shape, g.dtype))
        elif need:
            index = (slice(None),) * dim + (slice(start, start + n),)
            out.append(g[index] if xp is np else lax.slice_in_dim(g, start, start + n, axis=dim))
        else:
            out.append(None)
        start += n
    return out


def _known(tensors) -> list[np.ndarray] | None:
    """The arrays of many CPU tensors (or of a few, in a run) of one dtype outside any graph, on the host; None where they are not all that.

    A batch of samples joined at once is one input of the program that reads it. As its inputs the samples would be hundreds,
    and another number of them another program.
    """
    if len(tensors) < MANY and not program.computes_at_once() or not nobody_watches():
        return None
    first, arrays, with_grad = None, [], mode.enabled
    for t in tensors:
        if not isinstance(t, Tensor) or not t._plain or (with_grad and t._edge is not None):
            return None
        v = t._value if t._storage is None else t._current()
        array, a = v.array, v.aval
        first = first or a
        if (a is not first and (a.dtype is not first.dtype or a.device is not first.device)) or (t._layout is not None and a.ndim in (4, 5)):
            return None  # of four or five dimensions: channels_last is kept
        if array.__class__ is not np.ndarray:
            if array is None or a.device.type != "cpu" or is_tracer(array):
                return None
            array = v.array = np.asarray(array)
        arrays.append(array)
    return arrays


def _stacked(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    """np.stack, without a view of each array where they are stacked along the first dimension."""
    shape = arrays[0].shape
    if dim or not shape or any(a.shape != shape for a in arrays):
        return np.stack(arrays, dim)
    return np.concatenate(arrays).reshape(len(arrays), *shape)


def joined(tensors, join, dim) -> Tensor | None:
    """Many known tensors joined by NumPy; None where they are not known, or do not fit: torch has its own words for that."""
    arrays = _known(tensors)
    if arrays is None or dim.__class__ is not int:
        return None
    try:
        return as_tensor_value(join(arrays, dim))
    except (TypeError, ValueError):
        return None


def _all_channels_last(tensors, shape: tuple) -> bool:
    return len(shape) in (4, 5) and all(suggests_channels_last(t._layout) for t in tensors)


CAT = _Cat("cat", lambda xp, *rest: xp.concatenate(rest[:-1], axis=rest[-1]), vjp=_cat_vjp)
CAT.asks = ("cat",)


class _Stack(Op):
    """Tensors of one shape side by side; promotes its inputs."""

    def make(self, avals, statics) -> Plan:
        dim, shape, out = statics[0], avals[0].shape, result_dtype(*avals)
        made = (*shape[:dim], len(avals), *shape[dim:])

        def run(xp, *arrays):
            return xp.stack([cast(xp, x, out.np) for x in arrays], axis=dim)
        plan = Plan(self, avals, statics, (made, out), run, common_device(self, avals, statics))
        if all(a.dtype is out for a in avals):
            plan.exact, plan.host = True, lambda *arrays: _stacked(arrays, dim)
        return plan


def _stack_vjp(xp, g, plan, needs):
    dim = plan.statics[0]
    return [None if not need else g[(slice(None),) * dim + (i,)] if xp is np else lax.index_in_dim(g, i, dim, False) for i, need in enumerate(needs)]


STACK = _Stack("stack", lambda xp, *rest: xp.stack(rest[:-1], axis=rest[-1]), vjp=_stack_vjp)
STACK.asks = ("cat",)  # which PyTorch makes of it


@public(method=False, out=True, names=("concat", "concatenate"))
def cat(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors joined along an existing dimension."""
    tensors = _listed("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    made = joined(tensors, np.concatenate, dim)
    if made is not None:
        return made
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(t)}")
        if not t._value.aval.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    kept = [t for t in tensors if t._value.aval.shape != (0,)]
    if not kept:  # empty vectors fit everything
        kept, dim = [tensors[0]], 0
    first = kept[0]._value.aval.shape
    d = as_dim(dim, len(first))
    for i, t in enumerate(kept):
        shape = t._value.aval.shape
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        if shape != first:
            for k, (n, m) in enumerate(zip(first, shape)):
                if n != m and k != d:
                    raise RuntimeError(f"Sizes of tensors must match except in dimension {d}. Expected size {n} but got size {m} for tensor number {i} "
                                       "in the list.")
    out = apply(CAT, tensors, (d,))
    if _all_channels_last(kept, first):
        shape = out._value.aval.shape
        out._layout = Layout(shape, channels_last_strides(shape), 0)
    return out


@public(method=False, out=True)
def stack(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension."""
    tensors = _some("stack", tensors)
    made = joined(tensors, _stacked, dim)
    if made is not None:
        return made
    first = tensors[0]._value.aval.shape
    d = as_dim(dim, len(first) + 1)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(t)}")
        if t._value.aval.shape != first:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(t.shape)} at entry {i}")
    out = apply(STACK, tensors, (d,))
    if d < len(first) and _all_channels_last(tensors, first):  # lie as joined along d, which then is split
        strides = channels_last_strides((*first[:d], len(tensors) * first[d], *first[d + 1:]))
        out._layout = Layout(out._value.aval.shape, (*strides[:d], first[d] * strides[d], *strides[d:]), 0)
    return out


def _atleast(name, shapes):
    @overload
    def f(tensor: Tensor, /) -> Tensor: ...
    @overload
    def f(tensors: list[Tensor] | tuple[Tensor, ...], /) -> tuple[Tensor, ...]: ...
    @overload
    def f(tensor: Tensor, second: Tensor, /, *more: Tensor) -> tuple[Tensor, ...]: ...
    def f(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
            tensors = tuple(tensors[0])
        if not all(isinstance(t, Tensor) for t in tensors):
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(map(class_name, tensors))}), but expected one of:")
        made = tuple(shapes(t) for t in tensors)
        return made[0] if len(made) == 1 and isinstance(tensors, tuple) and len(tensors) == 1 else made
    f.__name__ = f.__qualname__ = name
    f.__doc__ = "Each tensor with at least that many dimensions."
    return public(method=False)(f)


atleast_1d = _atleast("atleast_1d", lambda t: t if t.ndim else t.reshape(1))
atleast_2d = _atleast("atleast_2d", lambda t: t.reshape(1, 1) if t.ndim == 0 else t.unsqueeze(0) if t.ndim == 1 else t)
atleast_3d = _atleast("atleast_3d", lambda t: t.reshape(1, 1, 1) if t.ndim == 0 else t[None, :, None] if t.ndim == 1 else t.unsqueeze(-1) if t.ndim == 2 else t)


@public(method=False, out=True)
def hstack(tensors: Tensors) -> Tensor:
    """cat along the second dimension (the first for vectors)."""
    tensors = [atleast_1d(t) for t in _some("hstack", tensors)]
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


@public(method=False, out=True, names=("row_stack",))
def vstack(tensors: Tensors) -> Tensor:
    """cat along the first dimension of at least 2-dimensional tensors."""
    return cat([atleast_2d(t) for t in _some("vstack", tensors)], 0)


@public(method=False, out=True)
def dstack(tensors: Tensors) -> Tensor:
    """cat along the third dimension."""
    return cat([atleast_3d(t) for t in _some("dstack", tensors)], 2)


@public(method=False, out=True)
def column_stack(tensors: Tensors) -> Tensor:
    """Vectors as columns, matrices side by side."""
    return cat([t.reshape(-1, 1) if t.ndim <= 1 else t for t in _some("column_stack", tensors)], 1)


# -- repetition ------------------------------------------------------------------------------------------------------------


def _repeat_vjp(xp, g, plan):
    shape, (reps,) = plan.avals[0].shape, plan.statics
    shape = (1,) * (len(reps) - len(shape)) + shape
    split = [n for r, s in zip(reps, shape) for n in (r, s)]
    return xp.sum(g.reshape(split), axis=tuple(range(0, 2 * len(reps), 2))).reshape(plan.avals[0].shape)


_REPEAT = Op("repeat", lambda xp, x, reps: xp.tile(x, reps), vjp=_repeat_vjp,
             shape=lambda a, reps: (tuple(r * n for r, n in zip(reps, (1,) * (len(reps) - a.ndim) + a.shape)), a.dtype))


@public(function=False)
def repeat(self, *repeats) -> Tensor:
    """The tensor repeated along each dimension (new dimensions in front)."""
    reps = as_size(*repeats)
    if len(reps) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    refuse_huge(reps)
    if any(r < 0 for r in reps):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(reps)}: {list(reps)}")
    return apply(_REPEAT, (self,), (reps,))


@public()
def tile(input, *counts, dims=None) -> Tensor:
    """repeat, with missing leading counts taken as one."""
    dims = as_size(*counts) if dims is None else as_size(dims)
    return repeat(input, (1,) * (input.ndim - len(dims)) + dims)


@public(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    if not tensors:
        return ()
    shape = broadcast_shapes(*(t._value.aval.shape for t in tensors))
    return tuple(t if t._value.aval.shape == shape else t.expand(shape) for t in tensors)


def _flip(xp, x, dims):
    return xp.flip(x, dims)


_FLIP = Op("flip", _flip, shape=lambda a, dims: (a.shape, a.dtype), vjp=lambda xp, g, dims: xp.flip(g, dims))
_FLIP.pointwise = True  # of strides
_FEW = 1 << 14  # elements


def _rolled(xp, x, shifts, dims):
    if xp is not np or len(dims) > 1 and x.size > _FEW:  # one pass of np.roll's, which takes 20 us to begin
        return xp.roll(x, shifts, dims)
    out = x
    for k, d in zip(shifts, dims):
        if x.shape[d] and (k := k % x.shape[d]):
            before = (slice(None),) * d
            out = np.concatenate((out[(*before, slice(-k, None))], out[(*before, slice(None, -k))]), d)
    return x.copy() if out is x else out


_ROLL = Op("roll", _rolled, shape=lambda a, shifts, dims: (a.shape, a.dtype), vjp=lambda xp, g, shifts, dims: _rolled(xp, g, tuple(-s for s in shifts), dims))


_SLICE = 16  # elements side by side from which on slices are copied


@_ROLL.kernel_for("cpu")
def _roll_made(x, shifts, dims):
    """A roll as an array of its own: fused, XLA asks at each element which part it is of, and computes what is rolled again for each roll of it."""
    if not x.size:
        return x
    by: dict[int, int] = {}
    for shift, d in zip(shifts, dims):
        by[d] = by.get(d, 0) + shift
    first, behind = min(by, default=0), max(by, default=0) + 1
    width = math.prod(x.shape[behind:])
    if width < _SLICE or math.prod(x.shape[first:behind]) >= 1 << 31:
        return once(lambda x: jnp.roll(x, shifts, dims), x)
    at = jnp.zeros((), np.int32)  # slices taken from their places: all dimensions at once
    for d, n in enumerate(x.shape[first:behind], first):
        at = at[..., None] * n + lax.optimization_barrier(jnp.asarray((np.arange(n) - by.get(d, 0)) % n, np.int32))

    def taken(x):
        parts = lax.optimization_barrier(x.reshape(math.prod(x.shape[:first]), -1, width))  # XLA would take those of a constant itself, for seconds
        return jax.vmap(lambda part: part.at[at.reshape(-1)].get(mode="promise_in_bounds"))(parts).reshape(x.shape)
    return once(taken, x)


@public(function=False)
def flip(input, *which, dims=None) -> Tensor:
    """The order of elements along dims reversed."""
    dims = distinct(listed_dims(as_size(*which) if dims is None else as_size(dims), input.ndim))
    return apply(_FLIP, (input,), (dims if input.ndim else (),))


def _flip_listed(input, dims) -> Tensor:
    """flip as a function: dims in a tuple."""
    if not isinstance(dims, (tuple, list)):
        raise TypeError(f"flip(): argument 'dims' (position 2) must be tuple of ints, not {class_name(dims)}")
    return flip(input, dims)


_flip_listed.__name__ = "flip"
public(method=False)(_flip_listed)


@public()
def fliplr(input) -> Tensor:
    """Columns in reverse order."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public()
def flipud(input) -> Tensor:
    """Rows in reverse order."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public()
def roll(input, shifts, dims=None) -> Tensor:
    """Elements shifted along dims, around the end."""
    shifts = as_size(shifts) if isinstance(shifts, (tuple, list)) else (as_int(shifts, "shifts", symbolic=True),)
    refuse_huge(shifts)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == ():
        if len(shifts) != 1:
            raise RuntimeError("shifts and dimensions must align. shifts: " + f"{len(shifts)}, dims:0")
        return named(apply(_ROLL, (input.flatten(),), (shifts, (0,))).reshape(input.shape), "RollBackward0", input)
    dims = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not input.numel():
        return named(input.clone(), "RollBackward0", input)  # torch does not look at the dimensions of no elements
    dims, shape = tuple(as_own_dim(d, input.ndim) for d in dims), input._value.aval.shape
    out = apply(_ROLL, (input,), (shifts, dims))
    if _all_channels_last([input], shape) and all(k % shape[d] for k, d in zip(shifts, dims)):  # two parts joined
        out._layout = Layout(shape, channels_last_strides(shape), 0)
    return out


@public()
def rot90(input, k: int = 1, dims=(0, 1)) -> Tensor:
    """Rotated by 90 degrees k times in the plane of dims."""
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    a, b = (as_dim(d, input.ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")
    k = as_int(k, "k") % 4
    if k == 0:
        return input.clone()
    if k == 2:
        return named(flip(input, a, b), "Rot90Backward0", input)
    return named(flip(input.transpose(a, b), a if k == 1 else b), "Rot90Backward0", input)


def _triangle(name):
    def f(input, diagonal: int = 0) -> Tensor:
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return apply(op, (input,), (as_int(diagonal, "diagonal", f"{name}(): ", " (position 1)", symbolic=True),))

    def kernel(xp, x, diagonal):
        rows, columns = np.arange(x.shape[-2], dtype=np.int32)[:, None] + min(max(diagonal, -x.shape[-2]), x.shape[-1]), np.arange(x.shape[-1], dtype=np.int32)
        return choose(xp, columns <= rows if name == "tril" else columns >= rows, x, xp.zeros((), x.dtype))
    op = Op(name, kernel, shape=lambda a, diagonal: (a.shape, a.dtype), vjp=lambda xp, g, diagonal: kernel(xp, g, diagonal))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The {'lower' if name == 'tril' else 'upper'} triangle of matrices, zeros elsewhere."
    return public(inplace=True, out=True)(f)


tril, triu = _triangle("tril"), _triangle("triu")


@public(method=False)
def meshgrid(*tensors, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids of vectors: 'ij' (rows first, the default) or 'xy'."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    need_tensors(tensors)
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", once=True)
        indexing = "ij"
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors[1:]:
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device is not tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(t.numel() for t in tensors)
    grids = [t.reshape([-1 if i == k else 1 for i in range(len(tensors))]).expand(shape) for k, t in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors) -> Tensor:
    """All combinations of the vectors' elements, one a row."""
    need_tensors(tensors)
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


@public(method=False)
def block_diag(*tensors) -> Tensor:
    """Matrices along the diagonal of one matrix, zeros elsewhere."""
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(t)}")
        if t.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions")
    blocks = [t.reshape(1, -1) if t.ndim < 2 else t for t in tensors]
    from .creation import constant
    if not blocks:
        return constant((1, 0), 0, dt.get_default_dtype(), dev.resolve(None))
    columns = sum(b.shape[1] for b in blocks)
    rows, start = [], 0
    for b in blocks:
        before = constant((b.shape[0], start), 0, b.dtype, b.device)
        after = constant((b.shape[0], columns - start - b.shape[1]), 0, b.dtype, b.device)
        rows.append(cat([before, b, after], 1))
        start += b.shape[1]
    return named(cat(rows, 0), "BlockDiagBackward0", *tensors)


