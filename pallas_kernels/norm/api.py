"""`layer_norm`, `rms_norm`, `group_norm`: argument checks, choice of implementation, gradient rule."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import custom_derivatives

from pallas_kernels import _check, _dispatch
from pallas_kernels._dispatch import Device, Impl
from pallas_kernels._gradients import dense, guarded
from pallas_kernels.norm import reference
from pallas_kernels.norm.reference import Case, Operands

_MAX_COLUMNS = 8192  # whole rows and their weight gradients live in registers


def layer_norm(
    x: jax.Array,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    *,
    axes: int = 1,
    eps: float = 1e-5,
    residual: jax.Array | None = None,
    impl: str | None = None,
):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last `axes` dimensions (Ba et al. 2016).

    weight and bias have the shape of those dimensions. With `residual` (the shape of x) the sum x + residual is
    normalised and returned too: (y, x + residual). Statistics are float32 for narrower inputs.
    """
    return _over_last("layer_norm", x, weight, bias, axes, eps, residual, True, impl)


def rms_norm(
    x: jax.Array,
    weight: jax.Array | None = None,
    *,
    axes: int = 1,
    eps: float = 1e-6,
    residual: jax.Array | None = None,
    impl: str | None = None,
):
    """x / sqrt(mean(x^2) + eps) * weight over the last `axes` dimensions (Zhang & Sennrich 2019); see `layer_norm`."""
    return _over_last("rms_norm", x, weight, None, axes, eps, residual, False, impl)


def group_norm(
    x: jax.Array,
    groups: int,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    *,
    eps: float = 1e-5,
    impl: str | None = None,
) -> jax.Array:
    """Each of `groups` groups of channels of x (N, C, ...) to mean 0 and variance 1 per sample (Wu & He 2018).

    weight and bias (C,) act per channel. groups = C is instance normalisation.
    """
    _check.arrays("group_norm", x=x)
    _check.floating("group_norm", x=x, weight=weight, bias=bias)
    groups, eps = _check.integer("group_norm", "groups", groups), _check.number("group_norm", "eps", eps)
    if x.ndim < 2:
        raise ValueError(f"group_norm: x must have at least 2 dimensions, got shape {x.shape}")
    channels = x.shape[1]
    if groups < 1 or channels % groups:
        raise ValueError(f"group_norm: the channels of x {x.shape} must be a multiple of groups, got {groups}")
    spatial = math.prod(x.shape[2:])
    rows, each = (groups, channels // groups * spatial)
    for name, array in (("weight", weight), ("bias", bias)):
        if array is not None and array.shape != (channels,):
            raise ValueError(f"group_norm: {name} must have shape {(channels,)}, got {array.shape}")
    spread = lambda a: None if a is None else jnp.repeat(a, spatial).reshape(rows, each)
    case = Case(x.shape[0], rows, each, str(x.dtype), True, eps, False, weight is not None, bias is not None)
    choice = _dispatch.choose("group_norm", IMPLEMENTATIONS, case, impl)
    if choice.impl is None or x.size == 0:
        return reference.group(x, groups, weight, bias, eps)
    operands = Operands(x.reshape(x.shape[0], rows, each), None, spread(weight), spread(bias))
    return _normalised(replace(case, interpret=choice.interpret), choice.forced, operands)[0].reshape(x.shape)


def norm_gradients(
    x: jax.Array,
    weight: jax.Array | None,
    gradient: jax.Array,
    *,
    bias: bool = False,
    axes: int = 1,
    eps: float = 1e-5,
    centred: bool = True,
    impl: str | None = None,
) -> tuple[jax.Array, jax.Array | None, jax.Array | None]:
    """Gradients of x, weight and (with `bias`) bias of `layer_norm`, or of `rms_norm` if not `centred`: for callers that
    differentiate by themselves. The statistics are XLA's, which a forward pass in the same program shares."""
    _check.arrays("norm_gradients", x=x, gradient=gradient)
    _check.floating("norm_gradients", x=x, weight=weight, gradient=gradient)
    axes, eps = _check.integer("norm_gradients", "axes", axes), _check.number("norm_gradients", "eps", eps)
    shape = x.shape[x.ndim - axes :]
    if not 1 <= axes <= x.ndim or gradient.shape != x.shape or (weight is not None and weight.shape != shape):
        raise ValueError(
            f"norm_gradients: gradient must have the shape of x {x.shape} and weight that of its last {axes} dimensions, "
            f"got {gradient.shape} and {None if weight is None else weight.shape}"
        )
    columns = math.prod(shape)
    flat = lambda a: a.reshape(-1, 1, columns) if columns else a.reshape(a.size, 1, 0)
    row = None if weight is None else weight.reshape(1, columns)
    case = Case(flat(x).shape[0], 1, columns, str(x.dtype), centred, eps, False, weight is not None, bias)
    choice = _dispatch.choose("norm_gradients", IMPLEMENTATIONS, case, impl)
    case = replace(case, interpret=choice.interpret)
    _, _, mean, inverse = reference.forward(case, Operands(flat(x), None, None, None))
    backward = partial(reference.backward, case)
    if choice.impl is not None and x.size:
        from pallas_kernels.norm import gpu

        backward = guarded(partial(gpu.backward, case), backward, interpret=case.interpret)
    dx, dweight, dbias = backward(flat(x), row, mean, inverse, flat(gradient), None)
    whole = lambda a: None if a is None else a.reshape(shape).astype(x.dtype)
    return dx.reshape(x.shape), whole(dweight), whole(dbias)


def _over_last(op, x, weight, bias, axes, eps, residual, centred, impl):
    _check.arrays(op, x=x)
    _check.floating(op, x=x, weight=weight, bias=bias, residual=residual)
    axes, eps = _check.integer(op, "axes", axes), _check.number(op, "eps", eps)
    if not 1 <= axes <= x.ndim:
        raise ValueError(f"{op}: axes must be between 1 and the dimensions of x {x.shape}, got {axes}")
    shape = x.shape[x.ndim - axes :]
    for name, array in (("weight", weight), ("bias", bias)):
        if array is not None and array.shape != shape:
            raise ValueError(
                f"{op}: {name} must have shape {shape} (the last {axes} of x {x.shape}), got {array.shape}"
            )
    if residual is not None and (residual.shape != x.shape or residual.dtype != x.dtype):
        raise ValueError(f"{op}: residual must be like x {x.dtype}{x.shape}, got {residual.dtype}{residual.shape}")
    columns = math.prod(shape)
    flat = lambda a: None if a is None else a.reshape(-1, 1, columns) if columns else a.reshape(a.size, 1, 0)
    row = lambda a: None if a is None else a.reshape(1, columns)
    operands = Operands(flat(x), flat(residual), row(weight), row(bias))
    case = Case(
        operands.x.shape[0],
        1,
        columns,
        str(x.dtype),
        centred,
        eps,
        residual is not None,
        weight is not None,
        bias is not None,
    )
    choice = _dispatch.choose(op, IMPLEMENTATIONS, case, impl)
    if choice.impl is None or x.size == 0:
        y, total = reference.forward(case, operands)[:2]
    else:
        y, total = _normalised(replace(case, interpret=choice.interpret), choice.forced, operands)
    y = y.reshape(x.shape)
    return y if residual is None else (y, total.reshape(x.shape))


def _forward(case: Case, operands: Operands):
    from pallas_kernels.norm import gpu

    return guarded(partial(gpu.forward, case), partial(reference.forward, case), interpret=case.interpret)(operands)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _normalised(case: Case, forced: bool, operands: Operands):
    # Without a gradient XLA's fusion already runs at the memory's speed, so the kernel is left to training.
    return (_forward if forced else reference.forward)(case, operands)[:2]


def _normalised_forward(case, forced, operands):
    operands = custom_derivatives.custom_vjp_primal_tree_values(operands)
    y, total, mean, inverse = _forward(case, operands)
    return (y, total), (operands, total, mean, inverse)


def _normalised_backward(case, forced, residuals, gradients):
    from pallas_kernels.norm import gpu

    operands, total, mean, inverse = residuals
    grad, grad_sum = gradients
    grad_sum = None if isinstance(grad_sum, custom_derivatives.SymbolicZero) else grad_sum
    backward = guarded(partial(gpu.backward, case), partial(reference.backward, case), interpret=case.interpret)
    dx, dweight, dbias = backward(total, operands.weight, mean, inverse, dense(grad, total), grad_sum)
    cast = lambda gradient, like: None if like is None else gradient.astype(like.dtype)
    return (Operands(dx, dx if case.residual else None, cast(dweight, operands.weight), cast(dbias, operands.bias)),)


_normalised.defvjp(_normalised_forward, _normalised_backward, symbolic_zeros=True)


def _triton_supports(device: Device, case: Case) -> str | None:
    if case.dtype not in ("float32", "bfloat16", "float16"):
        return f"{case.dtype} is not supported"
    if case.columns > _MAX_COLUMNS:
        return f"{case.columns} columns are over {_MAX_COLUMNS}"
    if device.platform == "cuda" and device.capability < 80:
        return f"compute capability {device.capability / 10} is under 8.0"
    size = case.repeats * case.rows * case.columns
    return None if size <= 2**31 else f"an array of {size} elements is over 2**31"


def _triton_pays(device: Device, case: Case) -> str | None:
    if case.repeats * case.rows < device.processors:
        return f"{case.repeats * case.rows} rows do not fill {device.processors} processors"
    return None


IMPLEMENTATIONS = (Impl("triton", ("cuda",), "pallas_kernels.norm.gpu:forward", _triton_supports, _triton_pays, True),)
