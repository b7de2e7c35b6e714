"""Independent float64 NumPy definitions (dense, no code shared with the package but dropout's bits), and comparison."""

import functools

import jax
import numpy as np

from pallas_kernels import _random

LIMITS = {"float32": 2e-6, "bfloat16": 8e-3, "float16": 1e-3, "float64": 1e-12}


@functools.cache
def _options() -> dict:
    # Tests compile programs that run once: without XLA's fusion emitters that takes a third of the time, in one piece
    # another sixth less.
    options = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}

    def known(option):
        try:
            jax.jit(lambda x: x + 1, compiler_options=dict([option]))(1.0)
        except Exception:  # another jaxlib, without it
            return False
        return True

    return dict(filter(known, options.items()))


def jit(function):
    return jax.jit(function, compiler_options=_options())


def error(got, want) -> float:
    """||got - want|| / ||want||; NaN counts as infinite, and zeros must be matched to 1e-30."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if not np.isfinite(got).all():
        return np.inf
    return float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30))


def attention_weights(
    query,
    key,
    bias=None,
    mask=None,
    causal=False,
    causal_offset=0,
    query_segments=None,
    key_segments=None,
    query_lengths=None,
    key_lengths=None,
    scale=None,
    **_,
):
    """(B, H, T, S) probabilities in float64 (0 in rows that see nothing), and the log-sum-exp."""
    b, h, t, d = query.shape
    s = key.shape[2]
    key = np.repeat(key, h // key.shape[1], axis=1)
    scores = np.einsum("bhtd,bhsd->bhts", query, key) * (d**-0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    seen = np.ones((b, h, t, s), bool)
    i, j = np.arange(t)[:, None], np.arange(s)[None]
    if mask is not None:
        seen &= mask
    if causal:
        seen &= j <= i + int(causal_offset)
    if query_segments is not None:
        seen &= (query_segments[:, :, None] == key_segments[:, None])[:, None]
    if query_lengths is not None:
        seen &= (i[None] < query_lengths[:, None, None])[:, None]
    if key_lengths is not None:
        seen &= (j[None] < key_lengths[:, None, None])[:, None]
    with np.errstate(all="ignore"):
        top = np.where(seen, scores, -np.inf).max(-1, keepdims=True)
        weight = np.where(seen, np.exp(scores - top), 0)
        total = weight.sum(-1, keepdims=True)
        lse = (top + np.log(total))[..., 0]
        return np.where(total > 0, weight / total, 0), np.where(total[..., 0] > 0, lse, -np.inf)


@functools.cache
def attention_kept(shape, dropout: float, seed: int) -> np.ndarray:
    b, h, t, s = shape

    @jit
    def keep(rows, columns):
        words = _random.seed_words(seed)
        w0, w1 = _random.row_keys(words[0], words[1], rows)
        return _random.keep(w0[..., None], w1[..., None], columns, dropout)

    rows = np.arange(b * h * t, dtype=np.uint32).reshape(b, h, t)
    return np.asarray(keep(rows, np.arange(s, dtype=np.uint32))) / (1 - dropout)


def attention(arrays: dict, static: dict, grad, grad_lse):
    """Output, log-sum-exp, and gradients by name for the cotangents `grad` and `grad_lse`."""
    wide = {
        k: np.asarray(v, np.float64) if str(v.dtype)[0] in "fb" and v.dtype != bool else np.asarray(v)
        for k, v in arrays.items()
    }
    query, key, value = wide["query"], wide["key"], wide["value"]
    b, h, _t, d = query.shape
    group = h // key.shape[1]
    weight, lse = attention_weights(**wide, **static)
    rate = static.get("dropout", 0.0)
    kept = attention_kept(weight.shape, rate, static["seed"]) if rate else 1.0
    spread = lambda x: np.repeat(x, group, axis=1)
    out = np.einsum("bhts,bhse->bhte", weight * kept, spread(value))
    reached = np.einsum("bhte,bhse->bhts", grad, spread(value)) * kept
    inner = (reached * weight).sum(-1, keepdims=True)
    change = weight * (reached - inner + np.where(np.isfinite(lse), grad_lse, 0)[..., None])
    scale = static.get("scale") or d**-0.5
    fold = lambda x: x.reshape(b, h // group, group, *x.shape[2:]).sum(2)
    grads = {
        "query": np.einsum("bhts,bhsd->bhtd", change, spread(key)) * scale,
        "key": fold(np.einsum("bhts,bhtd->bhsd", change, query)) * scale,
        "value": fold(np.einsum("bhts,bhte->bhse", weight * kept, grad)),
    }
    if "bias" in arrays:
        axes = tuple(a for a in range(4) if arrays["bias"].shape[a] == 1)
        grads["bias"] = change.sum(axes, keepdims=True)
    return out, lse, grads
