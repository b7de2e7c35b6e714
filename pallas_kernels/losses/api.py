"""`cross_entropy` on given logits, and `linear_cross_entropy` that never holds all logits."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import custom_vjp_primal_tree_values

from pallas_kernels import _check, _dispatch
from pallas_kernels._dispatch import Device, Impl
from pallas_kernels._gradients import guarded
from pallas_kernels.losses import reference
from pallas_kernels.losses.reference import Case

_CHUNK_ELEMENTS = 1 << 27  # logits made at a time on an accelerator (512 MB in float32)
_CHUNK_ELEMENTS_CPU = 1 << 22


def cross_entropy(
    logits: jax.Array,
    target: jax.Array,
    *,
    class_weight: jax.Array | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    impl: str | None = None,
) -> jax.Array:
    """-log softmax(logits)[target], classes last: logits (..., V), integer target (...).

    class_weight (V,) weighs rows by their target, rows whose target is ignore_index count 0, "mean" divides by the sum
    of weights. label_smoothing mixes in the uniform distribution (Szegedy et al. 2016). A target that is not a class
    gives NaN. The kernel reads the logits once.
    """
    _check.arrays("cross_entropy", logits=logits)
    if not logits.shape:
        raise ValueError("cross_entropy: logits must have at least one dimension, got shape ()")
    case, target, class_weight = _canonical(
        "cross_entropy", "logits", logits, logits.shape[-1:], target, class_weight, ignore_index, label_smoothing, reduction
    )
    flat = logits.reshape(case.rows, case.classes)
    choice = _dispatch.choose("cross_entropy", IMPLEMENTATIONS, case, impl)
    if choice.impl is None or logits.size == 0:
        stats = reference.statistics(case, flat, target, class_weight)
        loss = reference.losses(case, *stats, target, class_weight)
    else:
        loss = _losses(replace(case, interpret=choice.interpret), flat, target, class_weight)
    loss = reference.reduce(case, loss, reference.divisor(case, target, class_weight, loss.dtype))
    return loss.reshape(logits.shape[:-1] if reduction == "none" else ()).astype(case.dtype)


def linear_cross_entropy(
    x: jax.Array,
    weight: jax.Array,
    target: jax.Array,
    *,
    bias: jax.Array | None = None,
    class_weight: jax.Array | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    chunk: int | None = None,
) -> jax.Array:
    """cross_entropy(x @ weight^T + bias, target) with the logits made and used `chunk` rows at a time.

    x (..., H), weight (V, H), bias (V,), target (...). Gradients are made in the forward pass, three products in all
    ("none" recomputes the logits instead, because the gradient of each row's loss is only known later); a pass that
    nobody differentiates makes one. Products accumulate in float32.
    """
    _check.arrays("linear_cross_entropy", x=x, weight=weight)
    _check.floating("linear_cross_entropy", bias=bias)
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"linear_cross_entropy: weight must be (classes, {x.shape[-1] if x.ndim else '?'}) to fit x "
            f"{x.shape}, got {weight.shape}"
        )
    if weight.dtype != x.dtype:
        raise TypeError(f"linear_cross_entropy: weight must have the dtype of x, {x.dtype}, got {weight.dtype}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear_cross_entropy: bias must have shape {weight.shape[:1]}, got {bias.shape}")
    if chunk is not None and _check.integer("linear_cross_entropy", "chunk", chunk) < 1:
        raise ValueError(f"linear_cross_entropy: chunk must be positive, got {chunk}")
    case, target, class_weight = _canonical(
        "linear_cross_entropy", "x", x, weight.shape[:1], target, class_weight, ignore_index, label_smoothing, reduction
    )
    rows = x.reshape(case.rows, x.shape[-1])
    if chunk is None:
        limit = _CHUNK_ELEMENTS_CPU if _dispatch.device().platform == "cpu" else _CHUNK_ELEMENTS
        chunk = int(min(8192, max(128, 1 << (limit // max(case.classes, 1)).bit_length() - 1)))
    loss = _linear(case, max(1, min(chunk, case.rows)), rows, weight, bias, target, class_weight)
    return loss.reshape(x.shape[:-1] if reduction == "none" else ()).astype(case.dtype)


# --- given logits ---


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _losses(case: Case, logits, target, class_weight):
    return _losses_forward(case, logits, target, class_weight)[0]


def _losses_forward(case, logits, target, class_weight):
    from pallas_kernels.losses import gpu

    stats = guarded(partial(gpu.statistics, case), partial(reference.statistics, case), interpret=case.interpret)(
        logits, target, class_weight
    )
    return reference.losses(case, *stats, target, class_weight), (logits, stats[0], target, class_weight)


def _losses_backward(case, residuals, gradient):
    logits, lse, target, class_weight = residuals
    return (
        reference.logits_gradient(case, logits, lse, target, class_weight, gradient).astype(logits.dtype),
        None,
        None if class_weight is None else jnp.zeros_like(class_weight),
    )


_losses.defvjp(_losses_forward, _losses_backward)


# --- logits made here ---


def _product(a, b, contract, dtype):
    return lax.dot_general(
        a,
        b,
        (((contract[0],), (contract[1],)), ((), ())),
        precision=lax.Precision.HIGHEST,
        preferred_element_type=dtype,
    )


def _logits(x, weight, bias):
    wide = jnp.promote_types(x.dtype, jnp.float32)
    logits = _product(x, weight, (1, 1), wide)
    return logits if bias is None else logits + bias.astype(wide)


def _chunks(case: Case, chunk: int, *arrays):
    """Arrays of N rows as (n, chunk, ...); padding rows have target ignore_index (arrays[0] is the target)."""
    extra = -case.rows % chunk
    fill = lambda k, a: jnp.pad(
        a, ((0, extra), *((0, 0),) * (a.ndim - 1)), constant_values=0 if k else case.ignore_index
    )
    return [fill(k, a).reshape(-1, chunk, *a.shape[1:]) for k, a in enumerate(arrays)]


def _gradients(x, weight, change, wants_weight: bool):
    """Gradients of x, weight and bias from that of the logits; the last two in float32, None unless wanted."""
    wide, narrow = change.dtype, change.astype(x.dtype)
    dx = _product(narrow, weight, (1, 0), wide).astype(x.dtype)
    return dx, *((_product(narrow, x, (0, 0), wide), change.sum(0)) if wants_weight else (None, None))


def _scan(step, carry, pieces):
    if pieces[0].shape[0] == 1:
        carry, out = step(carry, [p[0] for p in pieces])
        return carry, jax.tree.map(lambda o: o[None], out)
    return lax.scan(step, carry, pieces)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _linear(case: Case, chunk: int, x, weight, bias, target, class_weight):
    def step(carry, piece):
        target, x = piece
        stats = reference.statistics(case, _logits(x, weight, bias), target, class_weight)
        loss = reference.losses(case, *stats, target, class_weight)
        return carry, (loss if case.reduction == "none" else loss.sum())

    _, loss = _scan(step, (), _chunks(case, chunk, target, x))
    if case.reduction == "none":
        return loss.reshape(-1)[: case.rows]
    return loss.sum() / reference.divisor(case, target, class_weight, loss.dtype)


def _linear_forward(case, chunk, x, weight, bias, target, class_weight):
    wanted = weight.perturbed or (bias is not None and bias.perturbed)
    x, weight, bias, target, class_weight = custom_vjp_primal_tree_values((x, weight, bias, target, class_weight))
    marker = () if wanted else None
    if case.reduction == "none":

        def row_step(carry, piece):
            target, x = piece
            stats = reference.statistics(case, _logits(x, weight, bias), target, class_weight)
            return carry, (reference.losses(case, *stats, target, class_weight), stats[0])

        _, (loss, lse) = _scan(row_step, (), _chunks(case, chunk, target, x))
        flat = lambda a: a.reshape(-1)[: case.rows]
        return flat(loss), ((x, weight, bias, target, class_weight, flat(lse)), marker)
    wide = jnp.promote_types(x.dtype, jnp.float32)
    denominator = reference.divisor(case, target, class_weight, wide)

    def step(carry, piece):
        target, x = piece
        logits = _logits(x, weight, bias)
        stats = reference.statistics(case, logits, target, class_weight)
        loss = reference.losses(case, *stats, target, class_weight).sum()
        change = reference.logits_gradient(case, logits, stats[0], target, class_weight, 1 / denominator)
        dx, dw, db = _gradients(x, weight, change, wanted)
        return (jax.tree.map(jnp.add, carry, (dw, db)) if wanted else carry), (loss, dx)

    carry = (jnp.zeros(weight.shape, wide), jnp.zeros(weight.shape[:1], wide)) if wanted else ()
    carry, (loss, dx) = _scan(step, carry, _chunks(case, chunk, target, x))
    dx = dx.reshape(-1, x.shape[1])[: case.rows]
    dw, db = carry if wanted else (None, None)
    if dw is not None:
        dw = dw.astype(weight.dtype)
    return loss.sum() / denominator, ((dx, dw, db, weight, bias, class_weight), marker)


def _linear_backward(case, chunk, residuals, gradient):
    residuals, marker = residuals
    if case.reduction == "none":
        return _recompute(case, chunk, residuals, gradient, marker is not None)
    dx, dw, db, weight, bias, class_weight = residuals
    scale = lambda g: (g.astype(gradient.dtype) * gradient).astype(g.dtype)
    dw = jnp.zeros_like(weight) if dw is None else scale(dw)
    db = None if bias is None else jnp.zeros_like(bias) if db is None else scale(db).astype(bias.dtype)
    return scale(dx), dw, db, None, None if class_weight is None else jnp.zeros_like(class_weight)


def _recompute(case, chunk, residuals, gradient, wanted):
    x, weight, bias, target, class_weight, lse = residuals
    wide = lse.dtype

    def step(carry, piece):
        target, x, lse, gradient = piece
        change = reference.logits_gradient(case, _logits(x, weight, bias), lse, target, class_weight, gradient)
        dx, dw, db = _gradients(x, weight, change, wanted)
        return (jax.tree.map(jnp.add, carry, (dw, db)) if wanted else carry), dx

    zeros = (jnp.zeros(weight.shape, wide), jnp.zeros(weight.shape[:1], wide))
    carry, dx = _scan(step, zeros if wanted else (), _chunks(case, chunk, target, x, lse, gradient.astype(wide)))
    dw, db = carry if wanted else zeros
    return (
        dx.reshape(-1, x.shape[1])[: case.rows],
        dw.astype(weight.dtype),
        None if bias is None else db.astype(bias.dtype),
        None,
        None if class_weight is None else jnp.zeros_like(class_weight),
    )


_linear.defvjp(_linear_forward, _linear_backward, symbolic_zeros=True)


# --- arguments and choice ---


def _canonical(op, name, rows, classes, target, class_weight, ignore_index, label_smoothing, reduction):
    _check.arrays(op, target=target)
    _check.integers(op, target=target)
    _check.floating(op, **{name: rows}, class_weight=class_weight)
    smoothing = _check.number(op, "label_smoothing", label_smoothing)
    if target.shape != rows.shape[:-1]:
        raise ValueError(f"{op}: target must have shape {rows.shape[:-1]} to fit {rows.shape}, got {target.shape}")
    if class_weight is not None and class_weight.shape != classes:
        raise ValueError(f"{op}: class_weight must have shape {classes}, got {class_weight.shape}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{op}: reduction must be mean, sum or none, got {reduction!r}")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"{op}: label_smoothing must be in [0, 1], got {smoothing}")
    case = Case(
        math.prod(target.shape),
        classes[0],
        str(rows.dtype),
        class_weight is not None,
        smoothing,
        _check.integer(op, "ignore_index", ignore_index),
        reduction,
    )
    return case, target.reshape(-1), class_weight


def _triton_supports(device: Device, case: Case) -> str | None:
    if case.dtype not in ("float32", "bfloat16", "float16"):
        return f"{case.dtype} is not supported"
    if device.platform == "cuda" and device.capability < 80:
        return f"compute capability {device.capability / 10} is under 8.0"
    size = case.rows * case.classes
    return None if size <= 2**31 else f"an array of {size} elements is over 2**31"


def _triton_pays(device: Device, case: Case) -> str | None:
    if case.classes < 1024:
        return f"{case.classes} classes are too few to fill a program"
    return None


IMPLEMENTATIONS = (
    Impl("triton", ("cuda",), "pallas_kernels.losses.gpu:statistics", _triton_supports, _triton_pays, True),
)
