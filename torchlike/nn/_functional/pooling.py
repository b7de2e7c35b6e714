"""Max, average, power-average and adaptive pooling in one to three dimensions."""
from __future__ import annotations

import functools
import math
from typing import Literal, overload

import jax.numpy as jnp
import numpy as np

from ..._core import dtype as dt
from ..._core.layout import Layout, channels_last_strides, is_channels_last
from ..._core.registry import Op
from ..._public import named
from ..._tensor import Tensor, apply, as_tensor_value
from ...ops.choosing import choose
from ...ops.creation import arange, check_size
from ...ops.materializing import materialized
from .common import each, gradient_format, ints, keep_format, not_implemented
from .resampling_maps import OPS, edges
from .windows import FEW, Window, best_by_axes, better, offsets, reduced, slices, spread_to_all, spread_to_best

# A pool is an elementwise combination of the input's strided slices, one slice per position inside the window.


def _padded(xp, x, pads, value):
    if not any(a or b for a, b in pads):
        return x
    config = [(0, 0)] * (x.ndim - len(pads)) + list(pads)
    return xp.pad(x, config, constant_values=value)


def _lowest(np_dtype):
    return -np.inf if np_dtype.kind in "fV" else np.iinfo(np_dtype).min


def _unpad(x, pads, shape):
    lead = x.ndim - len(pads)
    return x[(slice(None),) * lead + tuple(slice(a, a + n) for (a, _), n in zip(pads, shape[lead:]))]


def _max_pool(xp, x, kernel, stride, pads, dilation, sizes):
    """(maxima, flat positions of the maxima in the unpadded plane)."""
    shape = x.shape[x.ndim - len(kernel):]
    x = _padded(xp, x, pads, _lowest(x.dtype))
    steps = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    starts = firsts = np.zeros((), np.int64)  # of the windows, and their first positions inside of the plane, the best ones where all is -inf
    for n, s, d, (a, _), step in zip(sizes, stride, dilation, pads, steps):
        start = np.arange(n) * s - a
        starts, firsts = np.add.outer(starts, start * step), np.add.outer(firsts, (start + np.maximum(0, -(start // d)) * d) * step)
    inside = np.array([sum(o * d * step for o, d, step in zip(offset, dilation, steps)) for offset in offsets(kernel)])

    def best_of(part, t, best, where):
        take = better(xp, part, best)
        return choose(xp, take, part, best), choose(xp, take, starts + inside[t], where)
    if xp is np and len(inside) > FEW:
        where = np.pad(np.arange(math.prod(shape)).reshape(shape), pads, mode="edge")  # where all is -inf, torch's first position is the first one inside
        return best_by_axes(x, where, Window(kernel, stride, dilation, sizes))
    if xp is np or len(inside) <= FEW:
        first, *rest = slices(xp, x, kernel, stride, dilation, sizes)
        made = first, xp.broadcast_to(xp.asarray(firsts), first.shape)
        for t, part in enumerate(rest, 1):
            made = best_of(part, t, *made)
        return [made[0], made[1].astype(np.int64)]
    window, inside = Window(kernel, stride, dilation, sizes), jnp.asarray(inside)
    blocks = window.split(x)
    first = window.take(blocks, 0)
    return list(window.loop(lambda t, made: best_of(window.take(blocks, t), t, *made), (first, jnp.broadcast_to(firsts, first.shape)), 1))


def _max_only(xp, x, kernel, stride, pads, dilation, sizes):
    return reduced(xp, xp.maximum, _padded(xp, x, pads, _lowest(x.dtype)), kernel, stride, dilation, sizes)


def _max_vjp(xp, g, x, out, kernel, stride, pads, dilation, sizes, plan):
    if x.dtype.kind in "fV" and any(map(any, pads)) and (xp is not np or (out == -np.inf).any()):  # so that what is around the plane is never the best
        least = jnp.finfo(x.dtype).min
        x, out = xp.maximum(x, least), xp.maximum(out, least)
    spread = spread_to_best(xp, _padded(xp, x, pads, _lowest(x.dtype)), out, g, kernel, stride, dilation, sizes, plan.device.type == "cpu")
    return _unpad(spread, pads, x.shape)


def _pool_shape(x, kernel, stride, pads, dilation, sizes):
    return (*x.shape[:x.ndim - len(sizes)], *sizes), x.dtype


_MAX_POOL = Op("max_pool", _max_only, shape=_pool_shape, vjp=_max_vjp, torch_name="MaxPool2DWithIndicesBackward0")


@_MAX_POOL.backward.kernel_for("cpu")
def _max_backward_cpu(x, out, g, plan, needs):
    if x.size == 0 or x.dtype.kind not in "fV":
        return NotImplemented
    x = materialized(x)
    return [_max_vjp(jnp, g, x, _max_only(jnp, x, *plan.statics), *plan.statics, plan)]


_MAX_POOL_INDICES = Op(
    "max_pool_indices", _max_pool, torch_name="MaxPool2DWithIndicesBackward0",
    shape=lambda x, *s: [_pool_shape(x, *s), (_pool_shape(x, *s)[0], dt.int64)],
    vjp=lambda xp, g0, x, out0, kernel, stride, pads, dilation, sizes, plan: _max_vjp(xp, g0, x, out0, kernel, stride, pads, dilation, sizes, plan))


def _output_size(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = n + 2 * p - d * (k - 1) - 1
    size = (span + (s - 1 if ceil_mode else 0)) // s + 1
    if ceil_mode and (size - 1) * s >= n + p:
        size -= 1
    return size


_COUNTS = {2: "two", 3: "three"}
_PLACES = {"kernel_size": 2, "stride": 3, "padding": 4, "dilation": 5}


def _numbers(value, n: int, name: str, argument: str, called: str = "") -> tuple[int, ...]:
    """n ints, of one or of n; RuntimeError in torch's words, which differ from function to function, for another number of them. `called`: the function's
    name in words about kinds, where that is another."""
    value = ints(value, n, called or name, argument, _PLACES[argument])
    if len(value) in (1, n):
        return value if len(value) == n else value * n
    if name == "max_pool1d":
        kind = {"stride": "None, an int, list of ints,", "padding": "an int, list of ints,"}.get(argument, "an int, list of ints")
        raise RuntimeError(f"max_pool1d() {argument} must be {kind} or tuple of ints of size 1 but got size {len(value)}")
    if n == 1:
        raise RuntimeError(f"{name.removesuffix('_with_indices')}() argument '{argument}' should contain one int (got {len(value)})")
    must = "must be" if name == "avg_pool3d" else "must be either" if argument == "dilation" else "must either be"
    raise RuntimeError(f"{name}: {argument} {must} {'omitted, ' * (argument == 'stride')}a single int, or a tuple of {_COUNTS[n]} ints")


def _check_ranks(input, n: int, name: str) -> None:
    if input.ndim in (n + 1, n + 2):
        return
    if name == "max_pool1d":
        raise RuntimeError(f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(input.shape)}")
    if n == 1:
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while checking arguments for "
                           f"{name[:10]})")
    if name != "avg_pool2d":
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    if input.ndim < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, {max(input.ndim, 1) - 1}], but got -3)"
                         if input.ndim else "Dimension specified as -3 but tensor has no dimensions")


def _check_window(input, kernel, stride, padding, dilation, n: int, name: str) -> None:
    if name == "max_pool1d":
        _check_line(kernel[0], stride[0], padding[0], dilation[0])
        return
    axes, line = "THW"[-max(n, 2):], (1,) if n == 1 else ()  # torch sees a line as a plane of height 1
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    for p, k, d in zip(padding, kernel, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > int((d * (k - 1) + 1) / 2):
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
    for values, what, letter in ((kernel, "kernel size", "k"), (stride, "stride", "d"), (dilation, "dilation", "dilation")):
        if min(values) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got " + " ".join(f"{letter}{a}: {v}" for a, v in zip(axes, (*line, *values))))
    _refuse_empty(input, n, name)
    if any(p > k // 2 for p, k in zip(padding, kernel)):  # also where dilation makes the kernel wider
        _raise_wide_padding(kernel, padding, n)


def _raise_wide_padding(kernel, padding, n: int) -> None:
    if n == 3:
        (kt, kh, kw), (pt, ph, pw) = kernel, padding
        got = f"kT: {kt} kW: {kw} kH: {kh} padT: {pt} padW: {pw} padH: {ph}"
    else:
        (kh, kw), (ph, pw) = ((1, *kernel), (0, *padding)) if n == 1 else (kernel, padding)
        got = f"padW = {pw}, padH = {ph}, kW = {kw}, kH = {kh}"
    raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {got}")


def _check_line(kernel: int, stride: int, padding: int, dilation: int) -> None:
    for value, what in ((kernel, "kernel_size"), (stride, "stride")):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and kernel_size={kernel}")
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")


def _refuse_empty(input, n: int, name: str) -> None:
    """Only a batch may be without elements."""
    if input.ndim in (n + 1, n + 2) and 0 not in input.shape[input.ndim - n - 1:]:
        return
    if n == 3:  # torch means to say which dimension that is, and says its size
        raise RuntimeError(f"{'max_pool3d_with_indices_out_cpu_template' if name == 'max_pool3d' else name}(): Expected input's non-batch dimensions to "
                           f"have positive length, but input has a shape of {list(input.shape)} and non-batch dimension 0 has length zero!")
    shape = [*input.shape[:-1], 1, input.shape[-1]] if n == 1 and name != "max_pool1d" else list(input.shape)  # torch sees a line as a plane of height 1
    start, dims = ("max_pool1d: ", "2D or 3D") if name == "max_pool1d" else ("", "3D or 4D")
    raise RuntimeError(f"{start}Expected {dims} (batch mode) tensor with optional 0 dim batch size for input, but got:{shape}")


def _raise_too_small(input, shape, sizes, kernel, n: int, name: str) -> None:
    if name == "max_pool1d":
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {min(sizes)}")
    if name == "avg_pool3d":
        given, window = (" ".join(f"{p}{a}: {v}" for a, v in zip("THW", values)) for p, values in (("", shape), ("k", kernel)))
        raise RuntimeError(f"input image ({given}) smaller than kernel size ({window})")
    line = (1,) if n == 1 else ()  # torch sees a line as a plane of height 1
    said = lambda v: "(" + "x".join(map(str, (input.shape[-n - 1], *line, *v))) + ")"  # noqa: E731
    raise RuntimeError(f"Given input size: {said(shape)}. Calculated output size: {said(sizes)}. Output size is too small")


def _geometry(input, kernel_size, stride, padding, dilation, ceil_mode, n, name, divisor=None, called=""):
    """Checked (kernel, stride, pads, dilation, output sizes)."""
    if n == 1:
        _check_ranks(input, n, name)
        if name == "max_pool1d":
            _refuse_empty(input, n, name)
    kernel = _numbers(kernel_size, n, name, "kernel_size", called)
    stride = kernel if stride is None or stride == () or stride == [] else _numbers(stride, n, name, "stride", called)
    padding, dilation = _numbers(padding, n, name, "padding", called), _numbers(dilation, n, name, "dilation", called)
    if divisor == 0 and n == 2:
        raise RuntimeError("divisor must be not zero")
    _check_ranks(input, n, name)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    _check_window(input, kernel, stride, padding, dilation, n, name)
    shape = tuple(input.shape[-n:])
    sizes, pads = _sizes(shape, kernel, stride, padding, dilation, bool(ceil_mode))
    if min(sizes) < 1 or name == "avg_pool3d" and any(k > m for k, m in zip(kernel, shape)):
        _raise_too_small(input, shape, sizes, kernel, n, name)
    fitting = tuple(min(k, (m + 2 * p - 1) // d + 1) for k, m, p, d in zip(kernel, shape, padding, dilation))
    if fitting != kernel:  # the only window sees all there is (transformers' EfficientNet: 2560 over two pixels); nothing should be made as large as it
        kernel, (sizes, pads) = fitting, _sizes(shape, fitting, stride, padding, dilation, True)
    return kernel, stride, pads, dilation, sizes


@functools.lru_cache(1024)
def _sizes(shape: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool) -> tuple:
    """(output sizes, what is added before and after each axis)"""
    sizes = tuple(_output_size(*a, ceil_mode) for a in zip(shape, kernel, stride, padding, dilation))
    return sizes, tuple((p, max(p, (o - 1) * s + d * (k - 1) + 1 - m - p))
                        for p, o, s, d, k, m in zip(padding, sizes, stride, dilation, kernel, shape))


def _keep_volumes_format(result: Tensor, input: Tensor) -> Tensor:
    """`keep_format`; one volume without a batch is looked at as a batch of one."""
    a = input._layout
    if input.ndim == 4 and result.ndim == 4 and a is not None and is_channels_last(Layout((1, *a.shape), (a.shape[0] * a.strides[0], *a.strides), 0)):
        result._layout = Layout(result.shape, channels_last_strides((1, *result.shape))[1:], 0)
        return result
    return keep_format(result, input)


def _ranks(n: int) -> tuple[int, ...]:
    """Of inputs of how many dimensions a pool over n of them keeps the format: a batch of lines is one of planes of height 1 to torch."""
    return (3,) if n == 1 else (4,)


def _max_pool_nd(n: int):
    name, node = f"max_pool{n}d", "SqueezeBackward1" if n == 1 else f"MaxPool{n}DWithIndicesBackward0"
    keep = _keep_volumes_format if n == 3 else functools.partial(keep_format, ranks=_ranks(n))

    @overload
    def f(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor: ...
    @overload
    def f(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, *, return_indices: bool) -> tuple[Tensor, Tensor]: ...
    def f(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False):
        # with indices a line is a plane of height 1 to torch, in its words too
        called = f"{name}_with_indices" if return_indices else name
        statics = _geometry(input, kernel_size, stride, padding, dilation, ceil_mode, n, called if n == 1 else name, called=called)
        kind = input.dtype.category
        if kind != dt.FLOAT and (kind != dt.INT or n == 1 and not return_indices):
            raise not_implemented("max_pool1d_impl" if n == 1 and not return_indices else f"max_pool{max(n, 2)}d", input.dtype)
        if return_indices:
            return tuple(named(keep(t, input), node) for t in apply(_MAX_POOL_INDICES, (input,), statics))
        made = apply(_MAX_POOL, (input,), statics)
        if n > 1 or made._edge is not None or input.device.type != "cpu":  # a line without a graph has a kernel of its own in torch, which leaves the format
            made = keep(made, input)
        return named(made, node)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The largest element of each window over the last {n} dimensions."

    def with_indices(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return f(input, kernel_size, stride, padding, dilation, ceil_mode, True)
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    with_indices.__doc__ = "The maxima and their positions in the flattened plane."
    return f, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool_nd(1)
max_pool2d, max_pool2d_with_indices = _max_pool_nd(2)
max_pool3d, max_pool3d_with_indices = _max_pool_nd(3)


# -- averages ----------------------------------------------------------------------------------------------------------------


def _sum_pool(xp, x, kernel, stride, pads, dilation, sizes):
    return reduced(xp, lambda a, b: a + b, _padded(xp, x, pads, 0), kernel, stride, dilation, sizes)


def _sum_pool_vjp(xp, g, plan):
    kernel, stride, pads, dilation, sizes = plan.statics
    shape = plan.avals[0].shape
    lead = len(shape) - len(kernel)
    padded = (*shape[:lead], *(n + a + b for n, (a, b) in zip(shape[lead:], pads)))
    return _unpad(spread_to_all(xp, g, padded, kernel, stride, dilation, sizes), pads, shape)


_SUM_POOL = Op("avg_pool", _sum_pool, shape=_pool_shape, vjp=_sum_pool_vjp, torch_name="AvgPool2DBackward0")


def _divided(total: Tensor, count, kind: dt.dtype, n: int) -> Tensor:
    """Means of integers are integers."""
    mean = total / count if total.is_floating_point() or total.is_complex() else total.div(count, rounding_mode="trunc")
    return mean if mean.dtype is kind else keep_format(mean.to(kind), mean, ranks=_ranks(n))


def _node(kind: str, n: int) -> str:
    """The name of a pool's node: pools over one dimension are to torch those over two, squeezed."""
    return "SqueezeBackward1" if n == 1 else f"{kind}Pool{n}DBackward0"


@functools.lru_cache(256)
def _counts(shape: tuple, kernel: tuple, stride: tuple, padding: tuple, sizes: tuple, count_include_pad: bool) -> int | np.ndarray:
    """How many elements each window counts, a number where that is the same for all: those that hang over the edge count fewer."""
    counts = np.ones((), np.int64)
    for size, k, s, p, n in zip(shape, kernel, stride, padding, sizes):
        start = np.arange(n) * s - p
        end = np.minimum(start + k, size + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, size)
        counts = np.multiply.outer(counts, end - start)
    return int(counts.flat[0]) if (counts == counts.flat[0]).all() else counts


def _avg_pool_nd(n: int):
    name, node = f"avg_pool{n}d", _node("Avg", n)

    def f(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
          divisor_override: int | None = None) -> Tensor:
        kernel, stride_, pads, dilation, sizes = _geometry(input, kernel_size, stride, padding, 1, ceil_mode, n, name, divisor_override)
        if (input.dtype.category != dt.FLOAT and input.dtype is not dt.int64) or (n == 3 and input.dtype.itemsize == 2):
            raise not_implemented("avg_pool3d_out_frame" if n == 3 else "avg_pool2d", input.dtype)
        kind = input.dtype
        if kind.itemsize == 2:  # torch adds up in float32
            input = input.float()
        total = keep_format(apply(_SUM_POOL, (input,), (kernel, stride_, pads, dilation, sizes)), input, ranks=_ranks(n))

        def laid(quotient: Tensor) -> Tensor:  # of one pixel, whose sum shows no format
            return keep_format(quotient, input) if n == 2 else quotient
        if divisor_override is not None:
            return named(laid(_divided(total, divisor_override, kind, n)), node, input)
        counts = _counts(tuple(input.shape[-n:]), kernel, stride_, each(padding, n, "padding"), sizes, bool(count_include_pad))
        if counts.__class__ is not int:
            counts = as_tensor_value(counts.astype(input.dtype.np), input.device)
        return named(laid(_divided(total, counts, kind, n)), node, input)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The mean of each window over the last {n} dimensions."
    return f


avg_pool2d, avg_pool3d = _avg_pool_nd(2), _avg_pool_nd(3)
_avg1 = _avg_pool_nd(1)


def avg_pool1d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window over the last dimension."""
    return _avg1(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _power_pool(n: int):
    def f(input: Tensor, norm_type, kernel_size, stride=None, ceil_mode: bool = False) -> Tensor:
        pool = (_avg1, avg_pool2d, avg_pool3d)[n - 1]
        kernel = _numbers(kernel_size, n, pool.__name__, "kernel_size")
        if norm_type in (math.inf, -math.inf):
            sizes, most = input.abs(), (max_pool1d, max_pool2d, max_pool3d)[n - 1]
            return most(sizes, kernel, stride, 0, 1, ceil_mode) if norm_type > 0 else -most(-sizes, kernel, stride, 0, 1, ceil_mode)
        mean = pool(input.pow(norm_type), kernel, stride, 0, ceil_mode)
        return (mean.sign() * mean.abs().relu() * math.prod(kernel)).pow(1.0 / norm_type)
    f.__name__ = f.__qualname__ = f"lp_pool{n}d"
    f.__doc__ = "The p-norm of each window."
    return f


lp_pool1d, lp_pool2d, lp_pool3d = map(_power_pool, (1, 2, 3))

# -- adaptive ----------------------------------------------------------------------------------------------------------------


def _adaptive_size(input: Tensor, output_size, n: int, name: str) -> tuple[int, ...]:
    if n > 1 and not isinstance(output_size, int):
        if input.ndim <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        output_size = [size if own is None else own for own, size in zip(output_size, input.shape[-len(output_size):])]
    output_size = ints(output_size, n, name, "output_size", 2)
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while checking arguments for {name})"
                           if n == 1 else f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{':' * ('max' in name)} {list(input.shape)}")
    largest = "max" in name
    # torch takes the mean of a line as that of a plane of height 1, and asks nothing of a plane's channels there
    own = [*input.shape[:-1], 1, input.shape[-1]] if n == 1 and not largest else list(input.shape)
    first = len(own) - max(n, 2) if n < 3 and not largest else input.ndim - n - 1
    for i, size in enumerate(own[first:], first):
        if not size and i:
            raise RuntimeError(f"{name if largest else name.replace('1', '2')}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {own} with "
                               f"dimension {i} being empty")
    if len(output_size) != n:
        raise RuntimeError(f"{name}: output_size must be {n}")
    if min(output_size) < 0:
        sizes = output_size if n > 1 else (1, *output_size)
        if largest:
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {[*input.shape[:-n], *sizes]}")
        raise RuntimeError(f"adaptive_avg_pool{max(n, 2)}d: elements of output_size must be greater than or equal to 0 but received "
                           f"{{{', '.join(map(str, sizes))}}}")
    check_size((*input.shape[:-n], *output_size), input.dtype, input.device)
    return output_size


def _adaptive_avg(n: int):
    name, node = f"adaptive_avg_pool{n}d", _node("AdaptiveAvg", n)
    kernel = ("adaptive_avg_pool2d", "adaptive_avg_pool3d_cpu")[n == 3]

    def f(input: Tensor, output_size) -> Tensor:
        asked = output_size if output_size.__class__ in (tuple, list) else (output_size,) * n
        if n > 1 and len(asked) == n and all(s.__class__ is int and s == 1 for s in asked) and (
                input.ndim > n + 2 or input.ndim > n and 0 in input.shape[1:] or input.ndim <= n and asked is not output_size):
            return input.mean([*range(-n, 0)], keepdim=True)  # to torch that is a mean, of any number of dimensions
        sizes = _adaptive_size(input, output_size, n, name)
        if input.dtype.category != dt.FLOAT and set(sizes) != {1}:  # a size of 1 is a mean to torch
            raise not_implemented(kernel, input.dtype)
        shape = input.shape[-n:]
        if all(o and not s % o for s, o in zip(shape, sizes)):
            split = [m for s, o in zip(shape, sizes) for m in (o, s // o)]
            lead = list(input.shape[:-n])
            whole = set(sizes) == {1}
            parts = gradient_format(input.reshape(lead + split), input, () if whole else _ranks(n))
            made = parts.mean([len(lead) + 2 * i + 1 for i in range(n)])
            return named(keep_format(made, input, ranks=(4, 5) if whole and n > 1 else _ranks(n)), "MeanBackward1" if whole and n > 1 else node, input)
        if 0 in sizes:
            return named(input.new_zeros((*input.shape[:-n], *sizes)) + input.reshape(-1)[:0].sum(), node, input)
        kind = "float64" if input.dtype is dt.float64 else "float32"
        made = apply(OPS["area", n], (input,), (tuple((s, o, "area", False, None, False, kind) for s, o in zip(shape, sizes)),))
        return named(keep_format(gradient_format(made, input, _ranks(n)), input, ranks=_ranks(n)), node, input)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Means of windows chosen so that the last {n} dimensions get output_size."
    return f


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg, (1, 2, 3))


def _window_table(shape, sizes) -> np.ndarray:
    """The pixels of each window of an adaptive pool, (windows, pixels): those of a narrow one several times."""
    table = np.zeros((1, 1), np.int64)
    for length, size in zip(shape, sizes):
        low, high = edges(length, size)
        axis = np.minimum(low[:, None] + np.arange((high - low).max(initial=0)), high[:, None] - 1)
        table = (table[:, None, :, None] * length + axis[None, :, None, :]).reshape(len(table) * len(axis), table.shape[1] * axis.shape[1])
    return table


def _best(windows: Tensor) -> Tensor:
    """Where the last dimension has its first maximum, or its last NaN."""
    last = (windows.isnan() * arange(1, windows.shape[-1] + 1, device=windows.device)).amax(-1)
    return windows.argmax(-1).where(last == 0, last - 1)


def _adaptive_max(n: int):
    name, node = f"adaptive_max_pool{n}d", _node("AdaptiveMax", n)
    kernel = ("adaptive_max_pool2d", "adaptive_max_pool3d_cpu")[n == 3]

    @overload
    def f(input: Tensor, output_size, return_indices: Literal[False] = False) -> Tensor: ...
    @overload
    def f(input: Tensor, output_size, return_indices: bool) -> tuple[Tensor, Tensor]: ...
    def f(input: Tensor, output_size, return_indices: bool = False):
        sizes = _adaptive_size(input, output_size, n, name)
        if input.dtype.category != dt.FLOAT:
            raise not_implemented(kernel, input.dtype)
        shape = tuple(input.shape[-n:])
        if all(o and not s % o for s, o in zip(shape, sizes)):
            window = tuple(s // o for s, o in zip(shape, sizes))
            statics = (window, window, ((0, 0),) * n, (1,) * n, sizes)
            if return_indices:
                return tuple(named(keep_format(t, input, ranks=_ranks(n)), node) for t in apply(_MAX_POOL_INDICES, (input,), statics))
            return named(keep_format(apply(_MAX_POOL, (input,), statics), input, ranks=_ranks(n)), node)
        flat = gradient_format(input.flatten(-n), input, _ranks(n))
        windows = as_tensor_value(_window_table(shape, sizes), input.device)
        best = _best(flat[..., windows]) if windows.numel() else flat.new_zeros((*flat.shape[:-1], windows.shape[0]), dtype=dt.int64)
        indices = windows[arange(windows.shape[0], device=input.device), best]
        values = flat.gather(-1, indices)
        if flat is input:  # a line, where that is the first operation of a graph
            gradient_format(values, input, _ranks(n))
        values = values.reshape(*input.shape[:-n], *sizes)
        values = named(keep_format(values, input, ranks=_ranks(n)), node, input)
        return (values, keep_format(indices.reshape(*input.shape[:-n], *sizes), input, ranks=_ranks(n))) if return_indices else values
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Maxima of windows chosen so that the last {n} dimensions get output_size."

    def with_indices(input: Tensor, output_size, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return f(input, output_size, True)
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    with_indices.__doc__ = "The maxima and their positions in the flattened plane."
    return f, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max(3)


def _max_unpool(n: int):
    name = f"max_unpool{n}d"

    def f(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
        kernel = each(kernel_size, n, "kernel_size")
        stride = kernel if stride is None else each(stride, n, "stride")
        padding = each(padding, n, "padding")
        if indices.shape != input.shape:
            line = [1] * (n == 1)
            raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({[*input.shape, *line]}) but got indices tensor with "
                               f"shape: {[*indices.shape, *line]}")
        if input.dtype.category != dt.FLOAT:
            raise not_implemented(f"max_unpool{max(n, 2)}d", input.dtype)
        default = tuple((s - 1) * t - 2 * p + k for s, t, p, k in zip(input.shape[-n:], stride, padding, kernel))
        size = default if output_size is None else tuple(output_size[-n:])
        for i in range(n):
            if not default[i] - stride[i] < size[i] < default[i] + stride[i]:
                raise ValueError(f'invalid output_size "{size}" (dim {i} must be between {default[i] - stride[i]} and {default[i] + stride[i]})')
        zeros = input.new_zeros((*input.shape[:-n], math.prod(size)))
        made = zeros.scatter(-1, indices.flatten(-n), input.flatten(-n)).reshape(*input.shape[:-n], *size)
        return keep_format(made, input, ranks=(4,))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = "The partial inverse of max pooling: maxima at their positions, zeros elsewhere."
    return f


max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool, (1, 2, 3))


# -- fractional --------------------------------------------------------------------------------------------------------------


def _fractional_starts(samples: np.ndarray, n: int, k: int, out: int) -> np.ndarray:
    """Window starts from one uniform sample per plane (Graham 2014): (planes, out)."""
    if out < 2:
        return np.full((samples.size, out), n - k)
    alpha = (n - k) / (out - 1)
    steps = np.arange(out - 1)
    inner = ((steps + samples[:, None]) * alpha).astype(np.int64) - (samples[:, None] * alpha).astype(np.int64)
    return np.concatenate([inner, np.full((samples.size, 1), n - k)], 1)


def _fractional(n: int):
    name = f"fractional_max_pool{n}d"

    @overload
    def f(input: Tensor, kernel_size, output_size=None, output_ratio=None, return_indices: Literal[False] = False, _random_samples=None) -> Tensor: ...
    @overload
    def f(input: Tensor, kernel_size, output_size=None, output_ratio=None, *, return_indices: bool, _random_samples=None) -> tuple[Tensor, Tensor]: ...
    def f(input: Tensor, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None):
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        shape = tuple(input.shape[-n:])
        if output_size is None:
            ratio = (output_ratio,) * n if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
            if len(ratio) > n == 2:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = tuple(int(shape[i] * ratio[i]) for i in range(n))
        for sequence, what in ((kernel_size, "kernel_size"), (output_size, "output_size")):
            if isinstance(sequence, (tuple, list)) and len(sequence) != n:
                raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of {'three ' * (n == 3)}Ints")
        kernel, sizes = each(kernel_size, n, "kernel_size"), each(output_size, n, "output_size")
        for d, size in list(enumerate(input.shape))[input.ndim - n - 1:]:
            if size == 0:
                raise RuntimeError(f"{name}{'_out' * (n == 3)}(): Expected input to have non-zero size for non-batch dimensions, but got"
                                   f"{list(input.shape)} with dimension {d} being empty.")
        for what, s, k, o in zip(("time", "height", "width")[-n:], shape, kernel, sizes):
            if o + k - 1 > s - (n == 3):
                raise RuntimeError(f"{name}{'_out' * (n == 3)}(): pool {what} {k} too large relative to input {what} {s}")
        x = input if input.ndim == n + 2 else input.unsqueeze(0)
        batch, channels = x.shape[:2]
        if _random_samples is None:
            from ...ops.random import rand
            _random_samples = rand(batch, channels, n, dtype=input.dtype)
        elif _random_samples.dtype is not input.dtype:
            raise RuntimeError("Expect _random_samples to have the same dtype as input")
        elif _random_samples.ndim != 3:
            raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {_random_samples.ndim}")
        elif _random_samples.shape[0] < batch:
            raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
        elif _random_samples.shape[1] != channels:
            raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
        elif _random_samples.shape[2] != n:
            raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {_random_samples.shape[2]}.")
        host = _random_samples._host_array()[:batch].astype(np.float64).reshape(batch * channels, n)
        if n == 2:  # of a plane torch keeps the width's sample first
            host = host[:, ::-1]
        index = np.zeros((batch * channels, *sizes, *kernel), np.int64)
        for i in range(n):
            starts = _fractional_starts(host[:, i], shape[i], kernel[i], sizes[i])
            at = starts[:, :, None] + np.arange(kernel[i])
            view = [1] * (2 * n + 1)
            view[0], view[1 + i], view[1 + n + i] = at.shape[0], sizes[i], kernel[i]
            index = index * shape[i] + at.reshape(view)
        planes = x.reshape(batch * channels, math.prod(shape))
        flat = as_tensor_value(index.reshape(batch * channels, math.prod(sizes), math.prod(kernel)), x.device)
        windows = planes.gather(1, flat.flatten(1)).reshape(flat.shape)
        where = flat.gather(2, _best(windows).unsqueeze(2)).squeeze(2)
        out = (*input.shape[:-n], *sizes)
        values = planes.gather(1, where).reshape(out)
        return (values, where.reshape(out)) if return_indices else values
    f.__name__ = f.__qualname__ = name
    f.__doc__ = "The maxima of randomly placed windows."

    def with_indices(input: Tensor, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None) -> tuple[Tensor, Tensor]:
        return f(input, kernel_size, output_size, output_ratio, True, _random_samples)
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    with_indices.__doc__ = "The maxima and their positions in the flattened plane."
    return f, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)
