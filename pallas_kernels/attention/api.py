"""`attention`: argument checks, choice of implementation, and the gradient rule around the kernels."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values

from pallas_kernels import _check, _dispatch, _random
from pallas_kernels._dispatch import Device, Impl
from pallas_kernels._gradients import guarded
from pallas_kernels.attention import reference
from pallas_kernels.attention.case import Case, Operands

_DTYPES = ("float32", "bfloat16", "float16", "float64")
_MAX_ELEMENTS = 2**31  # Pallas-Triton addresses with 32 bits up to 2**32 elements, so the sign bit is in the way


def attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    bias: jax.Array | None = None,
    mask: jax.Array | None = None,
    causal: bool = False,
    causal_offset: int | jax.Array = 0,
    query_segments: jax.Array | None = None,
    key_segments: jax.Array | None = None,
    query_lengths: jax.Array | None = None,
    key_lengths: jax.Array | None = None,
    dropout: float = 0.0,
    seed=None,
    scale: float | None = None,
    return_logsumexp: bool = False,
    impl: str | None = None,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """softmax(scale * query @ key^T + bias, masked) @ value, per head (Vaswani et al. 2017; Dao 2023).

    query (..., H, T, D), key (..., K, S, D), value (..., K, S, E) give (..., H, T, E); H must be a multiple of K, and
    query head h reads key head h // (H / K). Without head or batch dimensions, (T, D) or (N, T, D) work too.

    bias (float) is added to the scores; mask (bool) is True where a query may see a key; both broadcast to
    (..., H, T, S). causal lets row i see columns up to i + causal_offset (0: torch's top-left alignment; S - T:
    decoding). Segment ids (..., T) and (..., S) confine rows to equal ids; lengths (...) hide what lies beyond them.
    Rows that see no key give 0. dropout zeroes probabilities with a mask that is a function of `seed` alone.
    scale defaults to 1 / sqrt(D). return_logsumexp adds a float32 (..., H, T) array, -inf for rows that see no key.

    Every float array is differentiable. Raises TypeError for unsupported dtypes, ValueError for shapes that do not fit,
    KernelUnavailable when `impl` names an implementation that cannot serve the call.
    """
    batch_shape, case, operands = _canonical(
        query,
        key,
        value,
        bias=bias,
        mask=mask,
        causal=causal,
        causal_offset=causal_offset,
        query_segments=query_segments,
        key_segments=key_segments,
        query_lengths=query_lengths,
        key_lengths=key_lengths,
        dropout=dropout,
        seed=seed,
        scale=scale,
        logsumexp=return_logsumexp,
    )
    if 0 in (case.batch, case.heads, case.queries, case.keys):
        out = jnp.zeros((case.batch, case.heads, case.queries, case.value_size), case.dtype)
        lse = jnp.full(out.shape[:3], -jnp.inf, jnp.promote_types(case.dtype, jnp.float32))
    else:
        choice = _dispatch.choose("attention", IMPLEMENTATIONS, case, impl)
        if choice.impl is None:
            out, lse = _plain(case, operands)
        elif choice.impl.name == "triton":
            out, lse = _flash(replace(case, interpret=choice.interpret), operands)
        else:
            serve = partial(choice.impl.function(), case)
            out = _dispatch.on_platforms(choice.impl.platforms, serve, lambda o: _plain(case, o)[0], operands)
            lse = None
    out = out.reshape(*batch_shape, case.queries, case.value_size)
    return (out, lse.reshape(*batch_shape, case.queries)) if return_logsumexp else out


def _plain(case: Case, operands: Operands):
    out, top, total = reference.attend(case, operands)
    return out, reference.logsumexp(top, total)


# --- the kernels' gradient rule: outside the choice of platform, so kernel and reference share residuals ---


def _forward(case: Case, operands: Operands):
    from pallas_kernels.attention import gpu  # imports Pallas, which a CPU program never needs

    return guarded(partial(gpu.forward, case), partial(reference.attend, case), interpret=case.interpret)(operands)


def _backward(case: Case, bias_gradient: bool, *arguments):
    from pallas_kernels.attention import gpu_backward

    kernel = partial(gpu_backward.backward, case, bias_gradient=bias_gradient)
    plain = partial(reference.attend_backward, case, bias_gradient=bias_gradient)
    return guarded(kernel, plain, interpret=case.interpret)(*arguments)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _flash(case: Case, operands: Operands):
    out, top, total = _forward(case, operands)
    return out, reference.logsumexp(top, total)


def _flash_forward(case, operands):
    # Only a bias that something differentiates pays for its gradient: presence of the marker says so.
    marker = () if operands.bias is not None and operands.bias.perturbed else None
    operands = custom_vjp_primal_tree_values(operands)
    out, top, total = _forward(case, operands)
    return (out, reference.logsumexp(top, total)), (operands, out, top, total, marker)


def _flash_backward(case, residuals, gradients):
    operands, out, top, total, marker = residuals
    grad, grad_lse = gradients
    delta = jnp.zeros(top.shape, top.dtype)
    if isinstance(grad, SymbolicZero):
        grad = jnp.zeros(out.shape, out.dtype)
    else:
        delta = (grad.astype(top.dtype) * out.astype(top.dtype)).sum(-1)
    if not isinstance(grad_lse, SymbolicZero):
        delta = delta - jnp.where(total > 0, grad_lse, 0)
    dq, dk, dv, dbias = _backward(case, marker is not None, operands, top, total, delta, grad)
    if operands.bias is not None and dbias is None:
        dbias = jnp.zeros_like(operands.bias)
    return (Operands(dq, dk, dv, dbias, *(None,) * 7),)


_flash.defvjp(_flash_forward, _flash_backward, symbolic_zeros=True)


# --- which implementation serves ---


def _triton_supports(device: Device, case: Case) -> str | None:
    if case.dtype == "float64":
        return "float64 is not supported"
    if max(case.head_size, case.value_size) > 256:
        return f"head size {max(case.head_size, case.value_size)} is over 256"
    if device.platform == "cuda" and device.capability < 80:
        return f"compute capability {device.capability / 10} is under 8.0"
    rows, cols = case.batch * case.heads * case.queries, case.batch * case.key_heads * case.keys
    largest = max(rows * case.head_size, rows * case.value_size, cols * case.head_size, cols * case.value_size)
    for shape in (case.bias, case.mask):
        largest = max(largest, math.prod(shape or ()))
    if case.bias and case.bias[2] > 1:
        largest = max(largest, rows * case.keys)  # its gradient
    return None if largest <= _MAX_ELEMENTS else f"an array of {largest} elements is over 2**31"


def _triton_pays(device: Device, case: Case) -> str | None:
    if case.queries < 16:
        return f"{case.queries} query rows are too few to fill a tile"
    return None


def _cudnn_supports(device: Device, case: Case) -> str | None:
    if case.dtype not in ("bfloat16", "float16"):
        return f"{case.dtype} is not supported"
    limit = 256 if device.capability >= 90 else 128
    if case.head_size % 8 or case.head_size > limit or case.value_size != case.head_size:
        return f"head sizes {case.head_size} and {case.value_size} must be equal, a multiple of 8 and at most {limit}"
    if device.platform == "cuda" and device.capability < 80:
        return f"compute capability {device.capability / 10} is under 8.0"
    for name, used in (
        ("dropout", case.dropout > 0),
        ("segment ids", case.segments),
        ("the log-sum-exp", case.logsumexp),
        ("lengths", case.query_lengths or case.key_lengths),
        ("a causal offset", case.causal and case.offset != 0),
        ("a bias over an odd length", case.bias is not None and (case.queries % 2 or case.keys % 2)),
    ):
        if used:
            return f"{name} is not supported"
    return None


def _cudnn_pays(device: Device, case: Case) -> str | None:
    if case.bias is not None or case.mask is not None:
        return "a bias or mask is expanded to (B, H, T, S) in memory"
    return _triton_pays(device, case)


def _tpu_supports(device: Device, case: Case) -> str | None:
    if case.dtype not in ("float32", "bfloat16"):
        return f"{case.dtype} is not supported"
    if case.value_size != case.head_size:
        return f"head sizes {case.head_size} and {case.value_size} differ"
    for name, used in (
        ("dropout", case.dropout > 0),
        ("the log-sum-exp", case.logsumexp),
        ("a mask", case.mask is not None),
        ("a bias with scale 0", case.bias is not None and case.scale == 0),
        ("a causal offset", case.causal and case.offset != 0),
    ):
        if used:
            return f"{name} is not supported"
    return None


def _tpu_pays(device: Device, case: Case) -> str | None:
    if case.queries < 128 or case.keys < 128:
        return f"{case.queries} queries and {case.keys} keys do not fill blocks of 128"
    return None


IMPLEMENTATIONS = (
    Impl("cudnn", ("cuda",), "pallas_kernels.attention.cudnn:attend", _cudnn_supports, _cudnn_pays),
    Impl("triton", ("cuda",), "pallas_kernels.attention.gpu:forward", _triton_supports, _triton_pays, True),
    Impl("tpu", ("tpu",), "pallas_kernels.attention.tpu:attend", _tpu_supports, _tpu_pays),
)


# --- arguments ---


def _canonical(
    query,
    key,
    value,
    *,
    bias,
    mask,
    causal,
    causal_offset,
    query_segments,
    key_segments,
    query_lengths,
    key_lengths,
    dropout,
    seed,
    scale,
    logsumexp,
) -> tuple[tuple[int, ...], Case, Operands]:
    """Shape in front of (T, E) in the result, the case, and operands with one batch and one head dimension."""
    _check.arrays("attention", query=query, key=key, value=value)
    _check.integers(
        "attention",
        query_segments=query_segments,
        key_segments=key_segments,
        query_lengths=query_lengths,
        key_lengths=key_lengths,
    )
    _check.floating("attention", bias=bias)
    _check.optional("attention", mask=mask)
    causal = _check.flag("attention", "causal", causal)
    dropout = _check.dropout("attention", dropout, seed)
    scale = None if scale is None else _check.number("attention", "scale", scale)
    shapes = f"query {query.shape}, key {key.shape}, value {value.shape}"
    for name, array in (("query", query), ("key", key), ("value", value)):
        if str(array.dtype) not in _DTYPES:
            raise TypeError(f"{name} must be one of {', '.join(_DTYPES)}, got {array.dtype}")
        if array.dtype != query.dtype:
            raise TypeError(f"query, key and value must have one dtype, got {query.dtype}, {key.dtype}, {value.dtype}")
        if array.ndim < 2 or array.ndim != query.ndim:
            raise ValueError(f"query, key and value must have the same number of dimensions, at least 2, got {shapes}")
    lead = query.shape[:-3]
    heads, key_heads = (1, 1) if query.ndim == 2 else (query.shape[-3], key.shape[-3])
    if key.shape[:-3] != lead or value.shape[:-3] != lead:
        raise ValueError(f"query, key and value must agree in their batch dimensions, got {shapes}")
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(f"key and value must agree in heads and length, got {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must agree in head size, got {shapes}")
    if key_heads == 0 or heads % key_heads:
        raise ValueError(f"the query's heads must be a multiple of the key's, got {heads} and {key_heads} ({shapes})")
    if query.shape[-1] == 0:
        raise ValueError(f"the head size must not be 0, got {shapes}")
    queries, keys, batch = query.shape[-2], key.shape[-2], math.prod(lead)
    if scale is not None and scale < 0:
        raise ValueError(f"scale must not be negative (negate the query), got {scale} for {shapes}")
    if (query_segments is None) != (key_segments is None):
        raise ValueError("query_segments and key_segments must be given together")
    static = not hasattr(causal_offset, "dtype")
    if static:
        causal_offset = _check.integer("attention", "causal_offset", causal_offset)
    else:
        _check.integers("attention", causal_offset=causal_offset)
        if causal_offset.shape:
            raise ValueError(f"causal_offset must be a scalar, got shape {causal_offset.shape}")
    full = (*query.shape[:-2], queries, keys)
    if mask is not None and mask.dtype != jnp.bool_:
        raise TypeError(f"mask must be boolean, got {mask.dtype}")
    bias = _scores_operand("bias", bias, full, heads)
    mask = _scores_operand("mask", mask, full, heads)
    flat = lambda x, h: x.reshape(batch, h, *x.shape[-2:])
    operands = Operands(
        flat(query, heads),
        flat(key, key_heads),
        flat(value, key_heads),
        bias,
        mask,
        _integers("query_segments", query_segments, (*lead, queries), (batch, queries)),
        _integers("key_segments", key_segments, (*lead, keys), (batch, keys)),
        _integers("query_lengths", query_lengths, lead, (batch,)),
        _integers("key_lengths", key_lengths, lead, (batch,)),
        jnp.asarray(causal_offset, jnp.int32) if causal else None,
        _random.seed_words(seed) if dropout else None,
    )
    case = Case(
        batch,
        heads,
        key_heads,
        queries,
        keys,
        query.shape[-1],
        value.shape[-1],
        str(query.dtype),
        causal,
        causal_offset if static else None,
        None if bias is None else bias.shape,
        None if mask is None else mask.shape,
        query_segments is not None,
        query_lengths is not None,
        key_lengths is not None,
        dropout,
        query.shape[-1] ** -0.5 if scale is None else scale,
        logsumexp,
    )
    return query.shape[:-2], case, operands


def _scores_operand(name: str, array, full: tuple[int, ...], heads: int):
    """Bias or mask as (B|1, H|1, T|1, S|1); broadcast dimensions stay 1."""
    if array is None:
        return None
    shape = (1,) * (len(full) - array.ndim) + tuple(array.shape)
    if len(shape) != len(full) or any(n not in (1, want) for n, want in zip(shape, full, strict=True)):
        raise ValueError(f"{name} of shape {tuple(array.shape)} does not broadcast to {full}")
    array = array.reshape(shape)
    lead, full_lead = shape[:-3], full[:-3]
    if len(full) == 2:
        return array[None, None]
    if lead != full_lead and any(n != 1 for n in lead):
        array = jnp.broadcast_to(array, (*full_lead, *shape[-3:]))
    return array.reshape(-1 if any(n != 1 for n in array.shape[:-3]) else 1, *shape[-3:])


def _integers(name: str, array, want: tuple[int, ...], flat: tuple[int, ...]):
    if array is None:
        return None
    if tuple(array.shape) != want:
        raise ValueError(f"{name} must have shape {want}, got {tuple(array.shape)}")
    return array.astype(jnp.int32).reshape(flat)
