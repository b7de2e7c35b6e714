"""What `benchmarks/gpu.py` races our kernels against: what a JAX user would write, and torch's own functions.

Every contender takes the arrays of a spec by name and gives what our operation gives, or raises.
"""

import functools
import importlib.util
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import pallas_kernels
from pallas_kernels import specs

HAVE_TORCH = importlib.util.find_spec("torch") is not None
Contenders = dict[str, Callable]


def jax_contenders(spec: specs.Spec, ours: str) -> Contenders:
    """`ours` is the implementation's name, "interpret" on a CPU; "" for the one chosen by default."""
    call = functools.partial(getattr(pallas_kernels, spec.op), **spec.static)
    made = {"ours": functools.partial(call, impl=ours) if ours else call}
    return made | _JAX[spec.op](spec, call)


def _attention(spec: specs.Spec, call: Callable) -> Contenders:
    static = spec.static

    def xla(query, key, value, bias=None, mask=None, query_segments=None, key_segments=None):
        heads = query.shape[1] // key.shape[1]
        key, value = jnp.repeat(key, heads, axis=1), jnp.repeat(value, heads, axis=1)
        scores = jnp.einsum(
            "bhtd,bhsd->bhts",
            query,
            key,
            preferred_element_type=jnp.float32,
            precision="highest" if query.dtype == jnp.float32 else None,
        )
        scores = scores * query.shape[-1] ** -0.5
        if bias is not None:
            scores += bias
        if mask is not None:
            scores = jnp.where(mask, scores, -jnp.inf)
        if query_segments is not None:
            same = query_segments[:, :, None] == key_segments[:, None]
            scores = jnp.where(same[:, None], scores, -jnp.inf)
        if static.get("causal"):
            scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
        weight = jax.nn.softmax(scores)
        if rate := static.get("dropout"):
            keep = jax.random.bernoulli(jax.random.key(0), 1 - rate, weight.shape)
            weight = jnp.where(keep, weight / (1 - rate), 0)
        return jnp.einsum(
            "bhts,bhsd->bhtd",
            weight.astype(value.dtype),
            value,
            precision="highest" if query.dtype == jnp.float32 else None,
        )

    return {"xla": xla, "cudnn": functools.partial(call, impl="cudnn")}


def _plain(function: Callable) -> Callable:
    """A contender list of one function of the arrays and static values."""
    return lambda spec, call: {"xla": functools.partial(function, **spec.static)}


def _normalised(x, weight, bias, residual, centred: bool, eps: float, axes: int = 1):
    total = x if residual is None else x + residual
    wide = total.astype(jnp.float32)
    over = tuple(range(-axes, 0))
    if centred:
        wide = wide - wide.mean(over, keepdims=True)
    y = wide * jax.lax.rsqrt((wide * wide).mean(over, keepdims=True) + eps)
    y = (y * weight + (0 if bias is None else bias)).astype(x.dtype)
    return y if residual is None else (y, total)


def _layer_norm(x, weight, bias, residual=None):
    return _normalised(x, weight, bias, residual, True, 1e-5)


def _rms_norm(x, weight, residual=None):
    return _normalised(x, weight, None, residual, False, 1e-6)


def _group_norm(x, weight, bias, groups):
    shape = (1, -1, *(1,) * (x.ndim - 2))
    y = _normalised(x.reshape(x.shape[0], groups, -1), 1, None, None, True, 1e-5).reshape(x.shape)
    return (y * weight.reshape(shape) + bias.reshape(shape)).astype(x.dtype)


def _cross_entropy(logits, target):
    logp = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(logp, target[:, None], 1).mean().astype(logits.dtype)


def _linear_cross_entropy(x, weight, target):
    logits = jnp.dot(
        x, weight.T, preferred_element_type=jnp.float32, precision="highest" if x.dtype == jnp.float32 else None
    )
    return _cross_entropy(logits, target).astype(x.dtype)


def _recurrent(mode, x, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse=False, lengths=None):
    """A scan that JAX differentiates, as a user would write it."""
    precise = functools.partial(jnp.dot, precision="highest")
    inputs = precise(x, w_ih.T) + b_ih

    def step(state, now):
        t, a = now
        h, c = state
        b = precise(h, w_hh.T) + b_hh
        if mode == "lstm":
            i, f, g, o = jnp.split(a + b, 4, -1)
            new_c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            new_h = jax.nn.sigmoid(o) * jnp.tanh(new_c)
        else:
            (ar, az, an), (br, bz, bn) = jnp.split(a, 3, -1), jnp.split(b, 3, -1)
            z = jax.nn.sigmoid(az + bz)
            new_h, new_c = (1 - z) * jnp.tanh(an + jax.nn.sigmoid(ar + br) * bn) + z * h, None
        if lengths is None:
            return (new_h, new_c), new_h
        alive = (t < lengths)[:, None]
        new_c = None if c is None else jnp.where(alive, new_c, c)
        return (jnp.where(alive, new_h, h), new_c), jnp.where(alive, new_h, 0)

    (h, c), y = jax.lax.scan(step, (h0, c0), (jnp.arange(len(x)), inputs), reverse=reverse)
    return (y, h, c) if mode == "lstm" else (y, h)


_JAX = {
    "attention": _attention,
    "layer_norm": _plain(_layer_norm),
    "rms_norm": _plain(_rms_norm),
    "group_norm": _plain(_group_norm),
    "cross_entropy": _plain(_cross_entropy),
    "linear_cross_entropy": _plain(_linear_cross_entropy),
    "grouped_mm": _plain(lambda x, weight, group_sizes: jax.lax.ragged_dot(x, weight, group_sizes)),
    "recurrent_layer": _plain(_recurrent),
}


# --- torch ---


def torch_contenders(spec: specs.Spec) -> Contenders:
    """Functions of torch tensors by name; none without torch."""
    return _TORCH[spec.op](spec) if HAVE_TORCH and spec.op in _TORCH else {}


def to_torch(array: jax.Array, device: str):
    """Over the same memory; masks, which not every version exchanges, are copied."""
    import torch

    if array.dtype == bool:
        return torch.from_numpy(np.array(array)).to(device)
    return torch.from_dlpack(array)


def _torch_attention(spec: specs.Spec) -> Contenders:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run(backend, query, key, value, bias=None, mask=None, query_segments=None, key_segments=None):
        attn_mask = bias
        if mask is not None:
            attn_mask = mask if bias is None else torch.where(mask, bias, float("-inf"))
        causal = spec.static.get("causal", False)
        if query_segments is not None:
            attn_mask = (query_segments[:, :, None] == key_segments[:, None])[:, None]
            if causal:
                attn_mask, causal = attn_mask.tril(), False
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask,
                dropout_p=spec.static.get("dropout", 0.0),
                is_causal=causal,
                enable_gqa=query.shape[1] != key.shape[1],
            )

    names = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "math": SDPBackend.MATH,
    }
    return {f"torch {name}": functools.partial(run, backend) for name, backend in names.items()}


def _torch_plain(make: Callable) -> Callable:
    """`make(torch.nn.functional, spec.static, arrays)` as the contender "torch"."""

    def contenders(spec: specs.Spec) -> Contenders:
        import torch

        return {"torch": lambda **arrays: make(torch.nn.functional, spec.static, **arrays)}

    return contenders


def _torch_layer_norm(functional, static, x, weight, bias, residual=None):
    total = x if residual is None else x + residual
    y = functional.layer_norm(total, total.shape[-1:], weight, bias)
    return y if residual is None else (y, total)


def _torch_rms_norm(functional, static, x, weight, residual=None):
    total = x if residual is None else x + residual
    y = functional.rms_norm(total, total.shape[-1:], weight, 1e-6)
    return y if residual is None else (y, total)


def _torch_group_norm(functional, static, x, weight, bias):
    return functional.group_norm(x, static["groups"], weight, bias)


def _torch_cross_entropy(functional, static, logits, target):
    return functional.cross_entropy(logits, target.long())


def _torch_linear_cross_entropy(functional, static, x, weight, target):
    fused = getattr(functional, "linear_cross_entropy", None)
    if fused is not None:
        return fused(x, weight, target.long())
    return functional.cross_entropy(functional.linear(x, weight), target.long())


def _torch_grouped_mm(functional, static, x, weight, group_sizes):
    return functional.grouped_mm(x, weight, offs=group_sizes.cumsum(0).int())


def _torch_recurrent(functional, static, x, h0, w_ih, w_hh, b_ih, b_hh, c0=None, lengths=None):
    import torch

    if lengths is not None:
        raise ValueError("packed sequences of length 0 are refused by torch")
    flat = [w_ih, w_hh, b_ih, b_hh]
    options = (True, 1, 0.0, True, False, False)  # biases, layers, dropout, training, bidirectional, batch first
    if static["mode"] == "lstm":
        y, h, c = torch.lstm(x, (h0[None], c0[None]), flat, *options)
        return y, h[0], c[0]
    y, h = torch.gru(x, h0[None], flat, *options)
    return y, h[0]


_TORCH = {"attention": _torch_attention} | {
    op: _torch_plain(make)
    for op, make in {
        "layer_norm": _torch_layer_norm,
        "rms_norm": _torch_rms_norm,
        "group_norm": _torch_group_norm,
        "cross_entropy": _torch_cross_entropy,
        "linear_cross_entropy": _torch_linear_cross_entropy,
        "grouped_mm": _torch_grouped_mm,
        "recurrent_layer": _torch_recurrent,
    }.items()
}
