"""Convolutions in one to three dimensions, and their transposes."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import dtype as dt
from ..._core.halves import converted, widened
from ..._core.layout import is_contiguous
from ..._core.registry import Op, jax_vjp
from ..._public import named
from ..._tensor import Tensor, apply
from ...ops.memory_formats import contiguous_format
from . import conv_cpu, conv_host
from .common import each, keep_format, need, not_implemented

# -- one op for all ranks --------------------------------------------------------------------------------------------------


def _numbers(n: int):
    spatial = "DHW"[-n:]
    return "NC" + spatial, "OI" + spatial, "NC" + spatial


def _wide(x, b):
    """The dtype in which a convolution of x and its bias are added: 16-bit floats are rounded once, after it."""
    return x.dtype if b is None or not jnp.issubdtype(x.dtype, jnp.floating) else np.promote_types(x.dtype, np.float32)


def _biased(y, b, dtype):
    return (y if b is None else y + b.reshape(-1, *(1,) * (y.ndim - 2))).astype(dtype)


def _alone(x, w, dtype, stride, padding, dilation, groups):
    return lax.conv_general_dilated(x, w, stride, padding, rhs_dilation=dilation, dimension_numbers=_numbers(x.ndim - 2), feature_group_count=groups,
                                    preferred_element_type=dtype)


def _conv(xp, input, weight, bias, stride, padding, dilation, groups):
    return _biased(_alone(input, weight, _wide(input, bias), stride, padding, dilation, groups), bias, input.dtype)


def _of_bias(g):
    return g.sum((0, *range(2, g.ndim)))


def _vjp(xp, g, input, weight, needs, plan):
    if xp is np:
        return _gradients_host(g, input, weight, needs, plan)
    alone = plan.op.plan((*plan.avals[:2], None), plan.statics)
    found = iter(jax_vjp(alone, (*needs[:2], False), xp, (input, weight, None, g)))
    return [*(next(found) if need else None for need in needs[:2]), _of_bias(g) if needs[2] else None]


def _conv_shape(x, w, b, stride, padding, dilation, groups):
    sizes = [(n + lo + hi - d * (k - 1) - 1) // s + 1 for n, k, s, (lo, hi), d in zip(x.shape[2:], w.shape[2:], stride, padding, dilation)]
    return (x.shape[0], w.shape[0], *sizes), x.dtype


# -- in NumPy: see conv_host.py ----------------------------------------------------------------------------------------------


def _geometry(x: tuple, w: tuple, stride, padding, dilation, groups) -> conv_cpu.Geometry:
    """Of the convolution of x with w, given by their shapes."""
    return conv_cpu.Geometry(x[0], x[1], x[2:], w[0], w[2:], stride, padding, dilation, groups)


def _transposed_geometry(x, w, stride, padding, output_padding, dilation, groups):
    """Of the convolution that takes the transposed one's result back to the shape of its input."""
    shape = (x.shape[0], w.shape[1] * groups, *(
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, o, d in zip(x.shape[2:], w.shape[2:], stride, padding, output_padding, dilation)))
    return _geometry(shape, w.shape, stride, tuple((p, p - o) for p, o in zip(padding, output_padding)), dilation, groups)


def _conv_host(x, w, b, *statics):
    y = conv_host.convolve(widened(x), widened(w), _geometry(x.shape, w.shape, *statics))
    return _biased_host(y, x, b, _wide(x, b))


def _conv_transpose_host(x, w, b, *statics):
    return _biased_host(conv_host.of_input(widened(w), widened(x), _transposed_geometry(x, w, *statics)), x, b, _wide_transposed(x, b))


def _biased_host(y, x, b, wide):
    """With the bias added in place in `wide`, and in the dtype of x."""
    y = y if y.dtype == wide else converted(y, wide)
    if b is not None:
        y += b.reshape(-1, *(1,) * (y.ndim - 2)).astype(wide, copy=False)
    return y if y.dtype == x.dtype else converted(y, x.dtype)


def _gradients_host(g, x, w, needs, plan) -> list:
    wide, v, upper = map(widened, (x, w, g))
    if x.dtype.kind == "c":  # torch's gradients are conjugates of JAX's
        wide, v = wide.conj(), v.conj()
    if plan.op is CONV:
        geo = _geometry(x.shape, w.shape, *plan.statics)
        of_x, of_w = (lambda: conv_host.of_input(v, upper, geo)), lambda: conv_host.of_weight(wide, upper, geo)
    else:
        geo = _transposed_geometry(x, w, *plan.statics)
        of_x, of_w = (lambda: conv_host.convolve(upper, v, geo)), lambda: conv_host.of_weight(upper, wide, geo)
    return [find() if need else None for find, need in zip((of_x, of_w, lambda: _of_bias(upper)), needs)]


CONV = Op("convolution", _conv, shape=_conv_shape, numpy=_conv_host, vjp=_vjp)
CONV.cudnn = "conv"


def _transposed_alone(x, w, dtype, stride, padding, output_padding, dilation, groups):
    """The gradient of a convolution with respect to its input: x dilated by stride, kernel flipped, channels swapped."""
    n = x.ndim - 2
    inputs, per_group, *kernel = w.shape
    w = w.reshape(groups, inputs // groups, per_group, *kernel).swapaxes(1, 2).reshape(groups * per_group, inputs // groups, *kernel)
    w = jnp.flip(w, tuple(range(2, n + 2)))
    pads = [(d * (k - 1) - p, d * (k - 1) - p + o) for k, p, o, d in zip(kernel, padding, output_padding, dilation)]
    return lax.conv_general_dilated(x, w, (1,) * n, pads, lhs_dilation=stride, rhs_dilation=dilation, dimension_numbers=_numbers(n),
                                    feature_group_count=groups, preferred_element_type=dtype)


def _wide_transposed(x, b):
    """As `_wide`, but for float16, which PyTorch rounds twice."""
    return x.dtype if x.dtype == np.float16 else _wide(x, b)


def _conv_transpose(xp, input, weight, bias, stride, padding, output_padding, dilation, groups):
    wide = _wide_transposed(input, bias)
    return _biased(_transposed_alone(input, weight, wide, stride, padding, output_padding, dilation, groups), bias, input.dtype)


def _conv_transpose_shape(x, w, b, stride, padding, output_padding, dilation, groups):
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1
             for n, k, s, p, o, d in zip(x.shape[2:], w.shape[2:], stride, padding, output_padding, dilation)]
    return (x.shape[0], w.shape[1] * groups, *sizes), x.dtype


CONV_TRANSPOSE = Op("conv_transpose", _conv_transpose, shape=_conv_transpose_shape, numpy=_conv_transpose_host, vjp=_vjp, torch_name="ConvolutionBackward0")
CONV_TRANSPOSE.cudnn = "conv"


def _second_host(x, w, g, *more) -> list:
    """Gradients of gradients in NumPy: each of those is a product of g and the conjugate of w or x, so these are convolutions and their gradients again."""
    *found, plan, needs = more
    of_x, of_w, of_b = _by_input([widened(a) for a in found], plan)
    x, w, upper = map(widened, (x, w, g))
    forward = plan.statics[0]
    if forward.op is CONV:
        geo = _geometry(x.shape, w.shape, *forward.statics)
        to_x, to_w = (lambda kernel: conv_host.of_input(kernel, upper, geo)), lambda image: conv_host.of_weight(image, upper, geo)
    else:
        geo = _transposed_geometry(x, w, *forward.statics)
        to_x, to_w = (lambda kernel: conv_host.convolve(upper, kernel, geo)), lambda image: conv_host.of_weight(upper, image, geo)
    dx = to_x(of_w.conj()) if needs[0] and of_w is not None else None
    dw = to_w(of_x.conj()) if needs[1] and of_x is not None else None
    dg = [conv_host.convolve(image, kernel, geo) if forward.op is CONV else conv_host.of_input(kernel, image, geo)
          for image, kernel in ((of_x, w), (x, of_w)) if needs[2] and image is not None and kernel is not None]
    if needs[2] and of_b is not None:
        dg.append(np.broadcast_to(of_b.reshape(-1, *(1,) * (g.ndim - 2)), g.shape))
    found = (dx, dw, sum(dg[1:], dg[0]) if dg else None)
    return [np.zeros(a.shape, a.dtype) if d is None else d for a, d, need in zip((x, w, g), found, needs) if need]


for _op in CONV, CONV_TRANSPOSE:
    _op.backward.backward.numpy = _second_host


# cuDNN multiplies 16-bit floats as they are where its result is of their type; it sums in 32 bits, and XLA makes the bias a part of it

@CONV.kernel_for("cuda")
def _conv_cuda(x, w, b, *statics):
    return _biased(_alone(x, w, x.dtype, *statics), b, x.dtype)


@CONV_TRANSPOSE.kernel_for("cuda")
def _conv_transpose_cuda(x, w, b, *statics):
    return _biased(_transposed_alone(x, w, x.dtype, *statics), b, x.dtype)


# -- on the CPU: see conv_cpu.py -------------------------------------------------------------------------------------------


def _served(x, w) -> bool:
    """Whether there are floats to multiply."""
    return x.size > 0 and w.size > 0 and dt.from_numpy_dtype(x.dtype).category == dt.FLOAT


@CONV.kernel_for("cpu")
def _conv_cpu(x, w, b, *statics):
    return _biased(conv_cpu.convolve(x, w, _geometry(x.shape, w.shape, *statics)), b, x.dtype) if _served(x, w) else NotImplemented


def _with_bias(found: list, g, needs) -> list:
    return [*found, _of_bias(g)] if needs[2] else found


@CONV.backward.kernel_for("cpu")
def _conv_backward_cpu(x, w, g, plan, needs):
    return _with_bias(conv_cpu.gradients(x, w, g, _geometry(x.shape, w.shape, *plan.statics), needs[:2]), g, needs) if _served(x, w) else NotImplemented


@CONV.backward.backward.kernel_for("cpu")
def _conv_second_cpu(x, w, g, *more):
    """Gradients of gradients. Each of those is linear in g and in w or x, so these are convolutions and their gradients again."""
    *found, plan, needs = more
    if not _served(x, w):
        return NotImplemented
    of_x, of_w, of_b = _by_input(found, plan)
    geo = _geometry(x.shape, w.shape, *plan.statics[0].statics)
    dx = conv_cpu.gradients(None, of_w, g, geo, (True, False))[0] if needs[0] and of_w is not None else None
    dw = conv_cpu.gradients(of_x, None, g, geo, (False, True))[0] if needs[1] and of_x is not None else None
    dg = [conv_cpu.convolve(y, v, geo).astype(g.dtype) for y, v in ((of_x, w), (x, of_w)) if needs[2] and y is not None and v is not None]
    return _listed((x, w, g), (dx, dw, _summed(dg, of_b, g)), needs)


def _by_input(found: list, plan) -> list:
    """What reached a derivative's results, one for each of the convolution's inputs."""
    given = iter(found)
    return [next(given) if wanted else None for wanted in plan.statics[1]]


def _summed(terms: list, of_b, g):
    if of_b is not None:
        terms.append(jnp.broadcast_to(of_b.reshape(-1, *(1,) * (g.ndim - 2)), g.shape).astype(g.dtype))
    return sum(terms[1:], terms[0]) if terms else None


def _listed(inputs: tuple, found: tuple, needs) -> list:
    """The gradients that are asked for; zeros for an input that nothing depends on."""
    return [jnp.zeros(a.shape, a.dtype) if d is None else d for a, d, need in zip(inputs, found, needs) if need]


@CONV_TRANSPOSE.kernel_for("cpu")
def _conv_transpose_cpu(x, w, b, *statics):
    if not _served(x, w):
        return NotImplemented
    wide = x.astype(_wide_transposed(x, b))
    y, = conv_cpu.gradients(None, w.astype(wide.dtype), wide, _transposed_geometry(x, w, *statics), (True, False))
    return _biased(y, b, x.dtype)


@CONV_TRANSPOSE.backward.kernel_for("cpu")
def _conv_transpose_backward_cpu(x, w, g, plan, needs):
    if not _served(x, w):
        return NotImplemented
    geo = _transposed_geometry(x, w, *plan.statics)
    return _with_bias(([conv_cpu.convolve(g, w, geo).astype(g.dtype)] if needs[0] else []) + (conv_cpu.gradients(g, None, x, geo, (False, True)) if needs[1] else []), g, needs)


@CONV_TRANSPOSE.backward.backward.kernel_for("cpu")
def _conv_transpose_second_cpu(x, w, g, *more):
    *found, plan, needs = more
    if not _served(x, w):
        return NotImplemented
    of_x, of_w, of_b = _by_input(found, plan)
    geo = _transposed_geometry(x, w, *plan.statics[0].statics)
    dx = conv_cpu.convolve(g, of_w, geo).astype(x.dtype) if needs[0] and of_w is not None else None
    dw = conv_cpu.gradients(g, None, of_x, geo, (False, True))[0] if needs[1] and of_x is not None else None
    dg = [conv_cpu.gradients(None, v, y, geo, (True, False))[0] for y, v in ((of_x, w), (x, of_w)) if needs[2] and y is not None and v is not None]
    return _listed((x, w, g), (dx, dw, _summed(dg, of_b, g)), needs)


# -- checks ----------------------------------------------------------------------------------------------------------------


def _check(input: Tensor, weight: Tensor, bias, n: int, groups: int, transposed: bool, stride, padding, dilation, output_padding=0) -> tuple:
    """(stride, padding, dilation, output padding), n numbers each. Errors in torch's order; what depends on the sizes is checked later."""
    name = f"conv_transpose{n}d" if transposed else f"conv{n}d"
    by_name = isinstance(padding, str)
    try:
        ranks = input.ndim, weight.ndim
    except AttributeError:
        need(input, name), need(weight, name, "weight", 2)
        raise
    if bias is not None and bias.dtype is not input.dtype and not transposed and not by_name:
        raise RuntimeError(f"Input type ({input.dtype.c_name}) and bias type ({bias.dtype.c_name}) should be the same")
    if ranks[0] not in (n + 1, n + 2):
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}")
    if by_name:
        if padding not in ("same", "valid"):
            raise RuntimeError("Invalid padding string: '" + padding + "'")
        if padding == "valid":
            padding = 0
    if ranks[1] < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if padding == "same":
        if isinstance(stride, (tuple, list)) and len(stride) not in (1, n):
            raise RuntimeError(f"stride cannot broadcast to {n} dimensions")
        if any(s != 1 for s in each(stride, n, "stride")):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
    for t, what in ((weight, "weight"), (bias, "bias")):
        if t is not None and t.device is not input.device:
            or_else = f" or input should be a MKLDNN tensor and {what} is a dense tensor" if input.device.type == "cpu" else ""
            raise RuntimeError(f"Input type ({input.type()}) and {what} type ({t.type()}) should be the same{or_else}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if ranks[1] != n + 2:
        raise RuntimeError(f"expected stride to be a single integer value or a list of {ranks[1] - 2} values to match the convolution dimensions, but got "
                           f"stride={list(each(stride, n, 'stride'))}")
    stride = each(stride, n, "stride")
    padding = padding if padding == "same" else each(padding, n, "padding")
    dilation, output_padding = each(dilation, n, "dilation"), each(output_padding, n, "output_padding")
    if padding != "same" and min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    channels = input.shape[-n - 1]
    if weight.shape[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
                           f"{list(weight.shape)} instead")
    if weight.shape[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
                           f"[{list(weight.shape)}] instead")
    want = weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != want:
        batched = [1, *input.shape] if input.ndim == n + 1 else list(input.shape)
        if transposed:
            raise RuntimeError(f"Given transposed=1, weight of size {list(weight.shape)}, expected input{batched} to have {want} channels, but got "
                               f"{channels} channels instead")
        raise RuntimeError(f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{batched} to have {want} channels, but got "
                           f"{channels} channels instead")
    outs = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and tuple(bias.shape) != (outs,):
        raise RuntimeError(f"Given {'transposed=1, ' if transposed else ''}weight of size {list(weight.shape)}, expected bias to be "
                           f"1-dimensional with {outs} elements, but got bias of size {list(bias.shape)} instead")
    return stride, padding, dilation, output_padding


_AXES = "depth", "height", "width"


def _check_kernel(input: Tensor, weight: Tensor, n: int, dilation, transposed: bool) -> None:
    """What torch checks once it knows that the kernel fits."""
    line = (1,) if n == 1 else ()  # torch sees a line as a plane of height 1
    if 0 in input.shape[-n:]:
        shape = [1, *input.shape] if input.ndim == n + 1 else list(input.shape)
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {[*shape[:2], *line, *shape[2:]]}")
    axes, kernel = _AXES[-max(n, 2):], (*line, *weight.shape[2:])
    if transposed and n == 3 and 0 in weight.shape[1:]:
        raise RuntimeError("non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x kernel_width) tensor expected for weight, but got: "
                           f"{list(weight.shape)}")
    if transposed and not weight.shape[1]:
        raise RuntimeError(f"non-empty 2D or 4D weight tensor expected, but got: {[*weight.shape[:2], *kernel]}")
    if 0 in kernel:
        raise RuntimeError("kernel size should be greater than zero, but got" + (
            f" {list(kernel)}" if not transposed and any(d != 1 for d in dilation) else ": " + " x ".join(map(str, kernel)) + " (TxHxW)" if n == 3 else
            " " + " ".join(f"kernel_{axis}: {k}" for axis, k in zip(axes, kernel))))
    if min(dilation) <= 0:
        full = (*line, *dilation)
        raise RuntimeError("dilation should be greater than zero, but got " + (
            ", ".join(f"dilation_{axis}: {d}" for axis, d in zip(axes, full)) if transposed else str(list(full))))


def _check_kinds(input: Tensor, weight: Tensor, bias, n: int, transposed: bool) -> Tensor | None:
    """The bias, in the input's dtype."""
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.short} but found {weight.dtype.short}")
    if input.dtype is dt.bool_:
        raise not_implemented(f"slow_conv_transpose{max(n, 2)}d_out_cpu" if transposed else "compute_columns3d" if n == 3 else "slow_conv2d_cpu", input.dtype)
    return bias if bias is None or bias.dtype is input.dtype else bias.to(input.dtype)


def _finish(y: Tensor, x: Tensor, weight: Tensor, n: int, unbatched: bool) -> Tensor:
    if n > 1 and x.shape[0]:
        keep_format(y, x, weight)
    elif n == 1 and x._layout is not None and x.shape[0] and is_contiguous(x._layout):
        keep_format(y, x, ranks=(3,))  # one channel, whose stride says channels_last; torch puts other lines in order first
    return y.squeeze(0) if unbatched else y


def _without_channels(x: Tensor, weight: Tensor, bias, sizes: list) -> Tensor:
    """torch's result for an input without channels: it has none either. No gradient is other than zero."""
    total = x.sum() + weight.sum()
    return named((total if bias is None else total + bias.sum()).expand(x.shape[0], 0, *sizes).clone(memory_format=contiguous_format),
                 "ConvolutionBackward0")


def _convolve(input, weight, bias, stride, padding, dilation, groups, n: int) -> Tensor:
    stride, padding, dilation, _ = _check(input, weight, bias, n, groups, False, stride, padding, dilation)
    kernel = weight.shape[2:]
    effective = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    pads = tuple(((e - 1) // 2, e - 1 - (e - 1) // 2) for e in effective) if padding == "same" else tuple((p, p) for p in padding)
    padded = [s + a + b for s, (a, b) in zip(input.shape[-n:], pads)]
    if any(e > p for e, p in zip(effective, padded)):
        size = lambda v: "(" + " x ".join(map(str, v)) + ")"  # noqa: E731
        raise RuntimeError(f"Calculated padded input size per channel: {size(padded)}. Kernel size: {size(effective)}. Kernel size can't be greater than "
                           "actual input size")
    unbatched = input.ndim == n + 1
    x = input.unsqueeze(0) if unbatched else input
    if x.shape[0] and x.shape[1]:
        _check_kernel(input, weight, n, dilation, False)
    bias = _check_kinds(input, weight, bias, n, False)
    if not x.shape[1]:
        y = _without_channels(x, weight, bias, [(p - e) // s + 1 for p, e, s in zip(padded, effective, stride)])
        return y.squeeze(0) if unbatched else y
    return _finish(apply(CONV, (x, weight, bias), (stride, pads, dilation, int(groups))), x, weight, n, unbatched)


def conv1d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """(N, C, L) * (O, C / groups, K) to (N, O, L')."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """(N, C, H, W) * (O, C / groups, KH, KW) to (N, O, H', W')."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """(N, C, D, H, W) * (O, C / groups, KD, KH, KW) to (N, O, D', H', W')."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups, 3)


def _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, n: int) -> Tensor:
    stride, padding, dilation, output_padding = _check(input, weight, bias, n, groups, True, stride, padding, dilation, output_padding)
    unbatched = input.ndim == n + 1
    x = input.unsqueeze(0) if unbatched else input
    if x.shape[0]:
        _check_kernel(input, weight, n, dilation, True)
    line = n == 1  # torch sees a line as a plane of height 1
    if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation)):
        fields = ("output_padding", (*(0,) * line, *output_padding)), ("stride", (*(1,) * line, *stride)), ("dilation", (*(1,) * line, *dilation))
        said = " ".join(f"{name}_{axis}: {value}" for name, values in fields for axis, value in zip(_AXES[-max(n, 2):], values))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {said}")
    sizes = _conv_transpose_shape(x, weight, None, stride, padding, output_padding, dilation, groups)[0][2:]
    if min(sizes) < 1:
        said = lambda v: "(" + " x ".join(map(str, (*(1,) * line, *v))) + ")"  # noqa: E731
        raise RuntimeError(f"Given input size per channel: {said(x.shape[2:])}. Calculated output size per channel: {said(sizes)}. Output size is too small")
    bias = _check_kinds(input, weight, bias, n, True)
    return _finish(apply(CONV_TRANSPOSE, (x, weight, bias), (stride, padding, output_padding, dilation, int(groups))), x, weight, n, unbatched)


def conv_transpose1d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """The transpose of conv1d; weight is (C, O / groups, K)."""
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


def conv_transpose2d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """The transpose of conv2d; weight is (C, O / groups, KH, KW)."""
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


def conv_transpose3d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """The transpose of conv3d; weight is (C, O / groups, KD, KH, KW)."""
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution over time, batch and channels in that order: (T, B, C) * (K, C, O) to (T', B, O)."""
    for t, name in ((input, "Input"), (weight, "Weight")):
        if t.ndim != 3:
            raise RuntimeError(f"{name} must have 3 dims: {'time, batch, in_channel' if name == 'Input' else 'kernel_width, in_channels, out_channels'}.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError(f"Input dim 2 (input channels) is not == dim 1 in the weight tensor. Got {input.shape[2]} and {weight.shape[1]}")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1).contiguous()
