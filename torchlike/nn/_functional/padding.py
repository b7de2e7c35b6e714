"""pad: constant, reflect, replicate and circular borders."""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._arguments import as_size, number, real
from ..._autocast import full_on_cpu
from ..._core import dtype as dt
from ..._core.errors import class_name, not_implemented
from ..._core.registry import Op
from ..._public import public
from ..._tensor import Tensor, apply
from ...ops.elements import held
from ...ops.materializing import once
from .common import ints, keep_format, need


def _along(ndim: int, axis: int, piece: slice) -> tuple:
    return (slice(None),) * axis + (piece,) + (slice(None),) * (ndim - axis - 1)


# -- constant ----------------------------------------------------------------------------------------------------------------


def _constant(xp, x, value, pads):
    """pads: (before, after) of every dimension; negative ones crop."""
    if xp is not np:
        return lax.pad(x, xp.asarray(value).astype(x.dtype), [(a, b, 0) for a, b in pads])
    out = np.empty([n + a + b for n, (a, b) in zip(x.shape, pads)], x.dtype)
    out[...] = np.asarray(value).astype(x.dtype)
    inside = tuple(slice(max(a, 0), out.shape[i] - max(b, 0)) for i, (a, b) in enumerate(pads))
    kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, pads))
    out[inside] = x[kept]
    return out


_PAD = Op("constant_pad_nd", _constant, shape=lambda x, value, pads: (tuple(n + a + b for n, (a, b) in zip(x.shape, pads)), x.dtype),
          vjp=lambda xp, g, pads: (_constant(xp, g, 0, tuple((-a, -b) for a, b in pads)), None))


@public(method=False)
def constant_pad_nd(input: Tensor, pad, value=0) -> Tensor:
    """input with `value` around it: pad = (before, after) of the last dimension, then of the one before it, and so on."""
    pad = as_size(pad)
    _check_length(input, pad)
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    for n, (a, b) in zip(input.shape, pairs):
        if n + min(a, 0) + min(b, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    if not any(pad):
        return input.clone()
    return keep_format(apply(_PAD, (input, held(number(value), input.dtype)), (tuple(pairs),)), input)


def _check_length(input: Tensor, pad: tuple) -> None:
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got padding length "
                           f"{len(pad)} and input of dimension {input.ndim}")


# -- borders made of the input -----------------------------------------------------------------------------------------------


def _border(xp, x, axis: int, a: int, b: int, mode: str):
    """x with a elements before and b after along axis; both at least 0."""
    n, take = x.shape[axis], lambda piece: x[_along(x.ndim, axis, piece)]  # noqa: E731
    if mode == "reflect":
        before, after = xp.flip(take(slice(1, a + 1)), axis), xp.flip(take(slice(n - 1 - b, n - 1)), axis)
    elif mode == "circular":
        before, after = take(slice(n - a, n)), take(slice(0, b))
    else:
        before, after = xp.repeat(take(slice(0, 1)), a, axis=axis), xp.repeat(take(slice(n - 1, n)), b, axis=axis)
    return xp.concatenate([before, x, after], axis=axis)


def _border_adjoint(xp, g, axis: int, a: int, b: int, mode: str):
    n, take = g.shape[axis] - a - b, lambda piece: g[_along(g.ndim, axis, piece)]  # noqa: E731
    before, after = take(slice(0, a)), take(slice(a + n, a + n + b))
    if mode == "replicate":
        before, after = xp.sum(before, axis=axis, keepdims=True), xp.sum(after, axis=axis, keepdims=True)
        at, end = 0, n - 1
    elif mode == "reflect":
        before, after, at, end = xp.flip(before, axis), xp.flip(after, axis), 1, n - 1 - b
    else:
        at, end = n - a, 0

    def placed(part, start):
        rest = n - start - part.shape[axis]
        return _constant(xp, part, 0, tuple((start, rest) if i == axis else (0, 0) for i in range(g.ndim)))
    return take(slice(a, a + n)) + placed(before, at) + placed(after, end)


def _borders_numpy(x, pads, mode) -> np.ndarray:
    """Borders of no negative width, written into the result: joining parts copies everything once for each axis."""
    out = np.empty([n + a + b for n, (a, b) in zip(x.shape, pads)], x.dtype)
    inner = [slice(a, a + n) for n, (a, _) in zip(x.shape, pads)]
    out[tuple(inner)] = x
    for axis, (a, b) in enumerate(pads):
        n = x.shape[axis]

        def at(start: int, stop: int, axis=axis, step: int = 1) -> np.ndarray:
            return out[(*inner[:axis], slice(start, stop) if step > 0 else slice(stop - 1, start - 1 if start else None, -1), *inner[axis + 1:])]
        if a:
            at(0, a)[...] = at(a, a + 1) if mode == "replicate" else at(a + 1, 2 * a + 1, step=-1) if mode == "reflect" else at(n, n + a)
        if b:
            at(a + n, a + n + b)[...] = (at(a + n - 1, a + n) if mode == "replicate" else at(a + n - 1 - b, a + n - 1, step=-1) if mode == "reflect"
                                         else at(a, a + b))
        inner[axis] = slice(None)  # what the next axis repeats has these borders
    return out


def _borders(xp, x, pads, mode):
    if xp is np and min(map(min, pads)) >= 0 and all(n > 0 or not a + b for n, (a, b) in zip(x.shape, pads)):
        return _borders_numpy(x, pads, mode)
    for axis, (a, b) in enumerate(pads):
        if mode == "circular":  # made of what is left; other borders are made of the whole input
            x = _cropped(x, axis, a, b)
        if a > 0 or b > 0:
            x = _border(xp, x, axis, max(a, 0), max(b, 0), mode)
        if mode != "circular":
            x = _cropped(x, axis, a, b)
    return x


def _cropped(x, axis: int, a: int, b: int):
    return x[_along(x.ndim, axis, slice(max(-a, 0), x.shape[axis] - max(-b, 0)))] if a < 0 or b < 0 else x


def _uncropped(xp, g, axis: int, a: int, b: int):
    crop = (max(-a, 0), max(-b, 0))
    return _constant(xp, g, 0, tuple(crop if i == axis else (0, 0) for i in range(g.ndim))) if a < 0 or b < 0 else g


def _borders_vjp(xp, g, pads, mode):
    for axis in range(len(pads) - 1, -1, -1):
        a, b = pads[axis]
        if mode != "circular":
            g = _uncropped(xp, g, axis, a, b)
        if a > 0 or b > 0:
            g = _border_adjoint(xp, g, axis, max(a, 0), max(b, 0), mode)
        if mode == "circular":
            g = _uncropped(xp, g, axis, a, b)
    return g


def _bordered_shape(x, pads, mode):
    return tuple(n + a + b for n, (a, b) in zip(x.shape, pads)), x.dtype


_BORDERS = {(mode, n): Op(f"{mode}_pad{n}d", _borders, shape=_bordered_shape, vjp=_borders_vjp,
                          torch_name=f"{'Reflection' if mode == 'reflect' else 'Replication'}Pad{n}DBackward0" if mode != "circular"
                          else "torch::autograd::CopySlices")
            for mode in ("reflect", "replicate", "circular") for n in (1, 2, 3)}


def _sources(mode: str, n: int, a: int, b: int) -> np.ndarray | None:
    """Where each element comes from along an axis of n elements, with a before and b after it; None where there is too little to take."""
    left = n + min(a, 0) + min(b, 0)  # of which circular borders are made
    if min(n, n + a + b, left) <= 0 or mode == "circular" and max(a, b) > left:
        return None
    at = np.arange(-a, n + b)
    if mode == "circular":
        return max(-a, 0) + (at + min(a, 0)) % left
    if mode == "replicate":
        return at.clip(0, n - 1)
    at = abs(at)
    return np.where(at < n, at, 2 * (n - 1) - at)


def _borders_on_cpu(x, pads, mode):
    """Every element taken from its place in its plane, as an array of its own: XLA joins parts with a choice for each element, along one axis after
    the other, which takes two to four times as long."""
    framed = [i for i, pair in enumerate(pads) if any(pair)]
    if not x.size or len(framed) < 2 or framed[-1] < x.ndim - 1 or math.prod(x.shape[framed[0]:]) >= 1 << 31:
        return NotImplemented
    first = framed[0]
    shape, at = [n + a + b for n, (a, b) in zip(x.shape, pads)], jnp.zeros((), np.int32)
    for n, (a, b) in zip(x.shape[first:], pads[first:]):
        places = _sources(mode, n, a, b)
        if places is None:
            return NotImplemented
        at = at[..., None] * n + lax.optimization_barrier(jnp.asarray(places, np.int32))

    def taken(x):
        planes = lax.optimization_barrier(x.reshape(math.prod(x.shape[:first]), -1))  # else XLA takes the elements of a constant itself, for seconds
        return jax.vmap(lambda plane: plane.at[at.reshape(-1)].get(mode="promise_in_bounds"))(planes).reshape(shape)
    return once(taken, x)


for _op in _BORDERS.values():
    _op.kernel_for("cpu")(_borders_on_cpu)
_MODES = ("constant", "reflect", "replicate", "circular")


def pad(input: Tensor, pad, mode: str = "constant", value: float | None = None) -> Tensor:
    """input with a border: pad = (before, after) of the last dimension, then of the one before it, and so on; negative
    numbers crop. mode: 'constant' (value, default 0), 'reflect', 'replicate', 'circular'."""
    need(input, "pad")
    if isinstance(pad, int) or not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {class_name(pad)}")
    pad = ints(pad, 1, "pad", "pad", 2)
    if not isinstance(mode, str):
        raise TypeError(f"pad(): argument 'mode' (position 3) must be str, not {class_name(mode)}")
    if value is not None:
        value = real(value, "pad", "value", 4)
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check_length(input, pad)
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(pad) // 2
    if not (len(pad) in (2, 4, 6) and input.ndim in (n + 1, n + 2)):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.\nSupported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)")
    pairs = [(0, 0)] * (input.ndim - n) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    _check_borders(input, pad, pairs, mode, n)
    if mode == "replicate" or mode == "reflect" and n < 3:
        input = full_on_cpu(input)
    made = apply(_BORDERS[mode, n], (input,), (tuple(pairs), mode))
    return made if mode == "circular" else keep_format(made, input)


def _check_borders(input: Tensor, pad: tuple, pairs, mode: str, n: int) -> None:
    shape = [size + a + b for size, (a, b) in zip(input.shape, pairs, strict=True)]
    if mode == "circular":
        for size, border, made in zip(input.shape, pairs, shape, strict=True):
            if max(border) > size:
                raise RuntimeError("Padding value causes wrapping around more than once.")
            if made < 0:
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
        return
    if 0 in input.shape[input.ndim == n + 2:]:
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
                           f"but got: {list(input.shape)}")
    for k in range(n if mode == "reflect" else 0):
        size, given = input.shape[-1 - k], pad[2 * k:2 * k + 2]
        if max(given) >= size:
            raise RuntimeError(f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding input dimension, but got: "
                               f"padding ({given[0]}, {given[1]}) at dimension {input.ndim - 1 - k} of input {list(input.shape)}")
    if max(shape[-n:]) < 1:
        given, made = ([f"{name}: {size}" for name, size in zip("DHW"[-n:], sizes[-n:], strict=True)] for sizes in (input.shape, shape))
        given = ", ".join([" ".join(given[:-1]), given[-1]][n == 1:]) + " " * (n == 2 and mode == "replicate")
        raise RuntimeError(f"input ({given}) is too small. Calculated output {' '.join(made)}")
    if min(shape) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {shape}")
    if input.dtype is dt.bool_:
        raise not_implemented(f'{"reflection" if mode == "reflect" else "replication"}_pad{n}d', dt.bool_)
