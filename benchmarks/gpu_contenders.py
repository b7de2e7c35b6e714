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
    """`ours` is the implementation's name, "interpret" on a CPU."""
    call = functools.partial(getattr(pallas_kernels, spec.op), **spec.static)
    made = {"ours": functools.partial(call, impl=ours)}
    return made | _JAX[spec.op](spec, call)


def _attention(spec: specs.Spec, call: Callable) -> Contenders:
    static = spec.static

    def xla(query, key, value, bias=None, mask=None, query_segments=None, key_segments=None):
        heads = query.shape[1] // key.shape[1]
        key, value = jnp.repeat(key, heads, axis=1), jnp.repeat(value, heads, axis=1)
        scores = jnp.einsum("bhtd,bhsd->bhts", query, key, preferred_element_type=jnp.float32,
                            precision="highest" if query.dtype == jnp.float32 else None)
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
        return jnp.einsum("bhts,bhsd->bhtd", weight.astype(value.dtype), value,
                          precision="highest" if query.dtype == jnp.float32 else None)

    return {"xla": xla, "cudnn": functools.partial(call, impl="cudnn")}


_JAX = {"attention": _attention}


# --- torch ---

def torch_contenders(spec: specs.Spec) -> Contenders:
    """Functions of torch tensors by name; none without torch."""
    return _TORCH[spec.op](spec) if HAVE_TORCH and spec.op in _TORCH else {}


def to_torch(array: np.ndarray, device: str):
    import torch

    if array.dtype == jnp.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).to(device)
    return torch.from_numpy(array.copy()).to(device)


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
                query, key, value, attn_mask, dropout_p=spec.static.get("dropout", 0.0), is_causal=causal,
                enable_gqa=query.shape[1] != key.shape[1])

    names = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
             "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
    return {f"torch {name}": functools.partial(run, backend) for name, backend in names.items()}


_TORCH = {"attention": _torch_attention}


# --- what --tune tries: (kernel, configurations, table key of a spec, mode to time) ---

def _attention_key(kernel: str) -> Callable:
    from pallas_kernels.attention import gpu

    def key(spec: specs.Spec) -> str:
        query, key_, value = (spec.arrays[n].shape for n in ("query", "key", "value"))
        flags = [n for n in ("bias", "mask") if n in spec.arrays]
        flags += [n for n in ("causal", "dropout") if spec.static.get(n)]
        return gpu.tuning_key_of(kernel, spec.arrays["query"].dtype, query[2], key_[2], max(query[3], value[3]), flags)

    return key


def _tunable() -> dict[str, list[tuple]]:
    from pallas_kernels.attention import gpu, gpu_backward

    return {"attention": [
        ("attention_forward", gpu.CANDIDATES, _attention_key("attention_forward"), "forward"),
        ("attention_backward", gpu_backward.CANDIDATES, _attention_key("attention_backward"), "training")]}


TUNABLE = _tunable()
