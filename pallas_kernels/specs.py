"""Named problems per operation: the one list that tests, the lowering gate and `benchmarks/gpu.py` read.

`SMALL` problems force several blocks and a tail with the tests' block sizes; `LARGE` ones are timed on a card.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np


@dataclass(frozen=True)
class Array:
    shape: tuple[int, ...]
    dtype: str
    kind: str = "normal"  # or mask (7 in 10 true), uniform, below:N, sorted:N, lengths:N (one 0, one N), sizes:N
    scale: float = 1.0


@dataclass(frozen=True)
class Spec:
    """Keyword arguments of one call: arrays, static values, and which arrays get gradients."""

    op: str
    name: str
    arrays: dict[str, Array]
    static: dict[str, Any] = field(default_factory=dict)
    gradients: tuple[str, ...] = ()
    flops: int = 0  # of the forward pass
    moved: int = 0  # bytes the forward pass must read and write
    backward_flops: int = 0
    backward_moved: int = 0
    impl: str = "triton"  # what the benchmark calls ours on a card; "": what is chosen by default

    def __str__(self) -> str:
        return self.name

    def shapes(self) -> dict[str, jax.ShapeDtypeStruct]:
        return {name: jax.ShapeDtypeStruct(a.shape, a.dtype) for name, a in self.arrays.items()}


_DRAWN = 4194301  # numbers drawn for one array; larger ones repeat them (a prime, so rows do not line up)


def inputs(spec: Spec, seed: int = 0) -> dict[str, np.ndarray]:
    """Host arrays for `spec`; bfloat16 through ml_dtypes."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, array in spec.arrays.items():
        kind, _, limit = array.kind.partition(":")
        if kind == "normal":
            base = rng.standard_normal(min(math.prod(array.shape), _DRAWN), np.float32) * np.float32(array.scale)
            value = np.resize(base, array.shape)
        elif kind == "mask":
            value = rng.random(array.shape) < 0.7
        elif kind == "below":
            value = rng.integers(0, int(limit), array.shape)
        elif kind == "sorted":
            value = np.sort(rng.integers(0, int(limit), array.shape), axis=-1)
        elif kind == "sizes":
            share = rng.random(array.shape) + 0.2
            share[1::4] = 0
            value = np.diff(np.floor(np.cumsum(np.append(0, share)) / share.sum() * int(limit) + 1e-6))
        elif kind == "uniform":
            value = rng.random(array.shape) + 0.5
        elif kind == "lengths":
            value = rng.integers(0, int(limit) + 1, array.shape)
            value[:2] = (0, int(limit))[-len(value) :]
        else:
            raise ValueError(f"unknown kind {array.kind!r}")
        made[name] = np.asarray(value).astype(jax.numpy.dtype(array.dtype))
    return made


def _attention(
    name: str,
    b: int,
    h: int,
    t: int,
    d: int,
    dtype: str = "float32",
    *,
    s: int | None = None,
    kv: int | None = None,
    e: int | None = None,
    bias: tuple[int, ...] | None = None,
    mask: tuple[int, ...] | None = None,
    segments: bool = False,
    query_lengths: bool = False,
    key_lengths: bool = False,
    scale_inputs: float = 1.0,
    bias_gradient: bool = True,
    **static,
) -> Spec:
    """bias and mask say which of (B, H, T, S) they have (1) and broadcast (0)."""
    s, kv, e = s or t, kv or h, e or d
    full = (b, h, t, s)
    cut = lambda which: tuple(n if on else 1 for n, on in zip(full, which, strict=True))
    arrays = {
        "query": Array((b, h, t, d), dtype, scale=scale_inputs),
        "key": Array((b, kv, s, d), dtype, scale=scale_inputs),
        "value": Array((b, kv, s, e), dtype),
    }
    if bias:
        arrays["bias"] = Array(cut(bias), dtype)
    if mask:
        arrays["mask"] = Array(cut(mask), "bool", "mask")
    if segments:
        arrays |= {
            "query_segments": Array((b, t), "int32", "sorted:3"),
            "key_segments": Array((b, s), "int32", "sorted:3"),
        }
    if query_lengths:
        arrays["query_lengths"] = Array((b,), "int32", f"lengths:{t}")
    if key_lengths:
        arrays["key_lengths"] = Array((b,), "int32", f"lengths:{s}")
    gradients = ("query", "key", "value") + (("bias",) if bias and bias_gradient else ())
    size = np.dtype(jax.numpy.dtype(dtype)).itemsize
    flops = 2 * b * h * t * s * (d + e) // (2 if static.get("causal") else 1)
    extra = sum(int(np.prod(arrays[n].shape)) * (1 if n == "mask" else size) for n in ("bias", "mask") if n in arrays)
    moved = size * b * (h * t * (d + e) + kv * s * (d + e)) + extra
    return Spec("attention", name, arrays, static, gradients, flops, moved, flops * 5 // 2, 3 * moved)


def _norm(
    op: str,
    name: str,
    shape: tuple[int, ...],
    dtype: str = "float32",
    *,
    weight: bool = True,
    bias: bool = False,
    residual: bool = False,
    **static,
) -> Spec:
    wide = (shape[1],) if op == "group_norm" else shape[len(shape) - static.get("axes", 1) :]
    arrays = {"x": Array(shape, dtype)}
    arrays |= {n: Array(wide, dtype) for n, on in (("weight", weight), ("bias", bias)) if on}
    arrays |= {"residual": Array(shape, dtype)} if residual else {}
    moved = math.prod(shape) * np.dtype(jax.numpy.dtype(dtype)).itemsize * (4 if residual else 2)
    return Spec(op, name, arrays, static, tuple(arrays), 0, moved, 0, moved * 3 // 2)


def _cross_entropy(
    name: str,
    rows: int,
    classes: int,
    dtype: str = "float32",
    *,
    hidden: int = 0,
    weighted: bool = False,
    bias: bool = False,
    **static,
) -> Spec:
    """With `hidden`, the linear layer is part of the operation."""
    arrays = (
        {"x": Array((rows, hidden), dtype), "weight": Array((classes, hidden), dtype, scale=hidden**-0.5)}
        if hidden
        else {"logits": Array((rows, classes), dtype)}
    )
    arrays |= {"bias": Array((classes,), dtype)} if bias else {}
    gradients = tuple(arrays)
    arrays["target"] = Array((rows,), "int32", f"below:{classes}")
    arrays |= {"class_weight": Array((classes,), "float32", "uniform")} if weighted else {}
    size = np.dtype(jax.numpy.dtype(dtype)).itemsize
    flops = 2 * rows * classes * hidden
    moved = size * (rows * hidden + classes * hidden) if hidden else size * rows * classes
    op = "linear_cross_entropy" if hidden else "cross_entropy"
    return Spec(op, name, arrays, static, gradients, flops, moved, 2 * flops, 2 * moved, "" if hidden else "triton")


def _grouped(
    name: str, rows: int, inner: int, columns: int, groups: int, dtype: str = "float32", used: float = 1.0
) -> Spec:
    """Group sizes add up to `used` of the rows; every fourth group is empty."""
    arrays = {
        "x": Array((rows, inner), dtype),
        "weight": Array((groups, inner, columns), dtype, scale=inner**-0.5),
        "group_sizes": Array((groups,), "int32", f"sizes:{int(rows * used)}"),
    }
    flops = int(2 * rows * used * inner * columns)
    size = np.dtype(jax.numpy.dtype(dtype)).itemsize
    moved = size * (rows * inner + groups * inner * columns + rows * columns)
    return Spec("grouped_mm", name, arrays, {}, ("x", "weight"), flops, moved, 2 * flops, 2 * moved)


def _recurrent(
    name: str,
    mode: str,
    steps: int,
    batch: int,
    size: int,
    hidden: int,
    *,
    lengths: bool = False,
    bias: bool = True,
    reverse: bool = False,
    impl: str = "triton",
) -> Spec:
    rows = {"lstm": 4, "gru": 3}.get(mode, 1) * hidden
    arrays = {
        "x": Array((steps, batch, size), "float32"),
        "h0": Array((batch, hidden), "float32"),
        "w_ih": Array((rows, size), "float32", scale=hidden**-0.5),
        "w_hh": Array((rows, hidden), "float32", scale=hidden**-0.5),
    }
    arrays |= {"c0": Array((batch, hidden), "float32")} if mode == "lstm" else {}
    arrays |= {n: Array((rows,), "float32", scale=hidden**-0.5) for n in ("b_ih", "b_hh")} if bias else {}
    gradients = tuple(arrays)
    arrays |= {"lengths": Array((batch,), "int32", f"lengths:{steps}")} if lengths else {}
    flops = 2 * steps * batch * rows * (size + hidden)
    moved = 4 * (steps * batch * (size + hidden) + rows * (size + hidden))
    static = {"mode": mode, "reverse": reverse} | ({} if mode == "lstm" else {"c0": None})
    return Spec("recurrent_layer", name, arrays, static, gradients, flops, moved, 2 * flops, 2 * moved, impl)


SMALL: dict[str, tuple[Spec, ...]] = {
    "attention": (
        _attention("exact", 1, 2, 32, 16, s=48),
        _attention("one_row", 2, 1, 1, 8, "float16", s=33, scale=0.5),
        _attention("causal", 1, 2, 40, 16, s=40, causal=True),
        _attention("causal_wide", 1, 1, 19, 16, s=50, causal=True, causal_offset=33),
        _attention("causal_blind", 1, 2, 50, 16, s=21, causal=True, causal_offset=-9),
        _attention("grouped", 2, 6, 21, 16, s=35, kv=2, causal=True),
        _attention("mask", 2, 2, 37, 16, s=41, mask=(1, 0, 1, 1)),
        _attention("bias_full", 2, 2, 21, 16, s=37, bias=(0, 1, 1, 1)),
        _attention("bias_columns", 2, 4, 37, 16, s=21, kv=2, bias=(1, 1, 0, 1)),
        _attention("bias_rows_bf16", 2, 2, 37, 16, "bfloat16", s=21, bias=(1, 0, 1, 0)),
        _attention("segments", 2, 2, 37, 16, s=37, segments=True),
        _attention("lengths", 3, 2, 35, 16, s=40, query_lengths=True, key_lengths=True),
        _attention("dropout", 2, 2, 37, 16, s=41, dropout=0.3, seed=2**40 + 7),
        _attention("tail_bf16", 1, 2, 37, 40, "bfloat16", s=53, e=16, causal=True),
        _attention("huge", 1, 2, 33, 16, s=33, causal=True, scale_inputs=100.0),
        _attention(
            "everything",
            2,
            4,
            37,
            24,
            s=41,
            kv=2,
            bias=(1, 1, 1, 1),
            mask=(0, 0, 1, 1),
            segments=True,
            key_lengths=True,
            causal=True,
            causal_offset=3,
            dropout=0.2,
            seed=3,
        ),
    ),
    "layer_norm": (
        _norm("layer_norm", "tail", (37, 50), bias=True),
        _norm("layer_norm", "axes_bf16", (3, 7, 6, 8), "bfloat16", axes=2),
        _norm("layer_norm", "residual", (21, 24), bias=True, residual=True),
        _norm("layer_norm", "bare", (1, 1, 33), weight=False),
    ),
    "rms_norm": (
        _norm("rms_norm", "tail", (5, 7, 40), eps=1e-3),
        _norm("rms_norm", "residual_bf16", (19, 64), "bfloat16", residual=True),
    ),
    "group_norm": (
        _norm("group_norm", "groups", (6, 8, 3, 5), bias=True, groups=4),
        _norm("group_norm", "instance", (5, 3, 18), bias=True, groups=3),
    ),
    "cross_entropy": (
        _cross_entropy("mean", 21, 75, weighted=True, label_smoothing=0.1, ignore_index=3),
        _cross_entropy("sum_bf16", 9, 50, "bfloat16", reduction="sum"),
        _cross_entropy("none", 7, 100, reduction="none", ignore_index=5),
    ),
    "linear_cross_entropy": (
        _cross_entropy(
            "mean", 21, 75, hidden=16, weighted=True, bias=True, label_smoothing=0.1, ignore_index=3, chunk=8
        ),
        _cross_entropy("sum_bf16", 16, 50, "bfloat16", hidden=24, reduction="sum", chunk=4),
        _cross_entropy("none", 9, 40, hidden=8, bias=True, reduction="none", chunk=4),
        _cross_entropy("one_chunk", 9, 40, hidden=8, label_smoothing=0.2),
    ),
    "grouped_mm": (
        _grouped("tails", 70, 24, 37, 5, used=0.8),
        _grouped("bf16", 64, 40, 16, 3, "bfloat16"),
        _grouped("one_group", 17, 16, 33, 1),
    ),
    "recurrent_layer": (
        _recurrent("lstm_lengths", "lstm", 5, 19, 7, 12, lengths=True),
        _recurrent("lstm_reverse", "lstm", 3, 4, 5, 17, reverse=True, bias=False),
        _recurrent("gru", "gru", 4, 18, 6, 20),
        _recurrent("gru_reverse_lengths", "gru", 5, 5, 6, 8, lengths=True, reverse=True),
        _recurrent("rnn_tanh", "rnn_tanh", 4, 3, 6, 16, reverse=True),
        _recurrent("rnn_relu_lengths", "rnn_relu", 6, 6, 6, 10, lengths=True),
    ),
}

LARGE: dict[str, tuple[Spec, ...]] = {
    "attention": (
        _attention("causal_d128", 2, 16, 8192, 128, "bfloat16", causal=True),
        _attention("causal_d128_short", 16, 16, 1024, 128, "bfloat16", causal=True),
        _attention("causal_d64", 4, 32, 4096, 64, "bfloat16", causal=True),
        _attention("causal_d256", 2, 8, 8192, 256, "bfloat16", causal=True),
        _attention("bias_mask_d64", 8, 16, 2048, 64, "bfloat16", bias=(0, 1, 1, 1), mask=(1, 0, 0, 1)),
        _attention("bias_mask_d32", 128, 4, 2048, 32, "bfloat16", bias=(0, 1, 1, 1), mask=(1, 0, 0, 1)),
        _attention("mask_d128", 4, 16, 4096, 128, "bfloat16", mask=(1, 0, 1, 1)),
        _attention("float32_d128", 2, 32, 4096, 128, "float32", causal=True),
        _attention("dropout_d64", 8, 16, 2048, 64, "bfloat16", causal=True, dropout=0.1, seed=1),
        _attention("grouped_d128", 4, 32, 4096, 128, "bfloat16", kv=8, causal=True),
        _attention("segments_d64", 4, 16, 4096, 64, "bfloat16", segments=True, causal=True),
    ),
    "layer_norm": (
        _norm("layer_norm", "d768", (32768, 768), "bfloat16", bias=True),
        _norm("layer_norm", "d4096_residual", (16384, 4096), "bfloat16", bias=True, residual=True),
    ),
    "rms_norm": (
        _norm("rms_norm", "d128", (589824, 128), "bfloat16"),
        _norm("rms_norm", "d4096", (16384, 4096), "bfloat16"),
        _norm("rms_norm", "d4096_residual", (16384, 4096), "bfloat16", residual=True),
    ),
    "group_norm": (
        _norm("group_norm", "instance_56", (64, 64, 56, 56), "bfloat16", bias=True, groups=64),
        _norm("group_norm", "groups_16", (64, 512, 16, 16), "bfloat16", bias=True, groups=32),
    ),
    "cross_entropy": (
        _cross_entropy("gpt2", 16384, 50257, "bfloat16"),
        _cross_entropy("llama", 8192, 128256, "bfloat16"),
    ),
    "linear_cross_entropy": (
        _cross_entropy("gpt2", 16384, 50257, "bfloat16", hidden=768),
        _cross_entropy("llama", 16384, 128256, "bfloat16", hidden=4096),
    ),
    "grouped_mm": (
        _grouped("mixtral", 8192, 4096, 14336, 8, "bfloat16"),
        _grouped("many_experts", 32768, 2048, 1408, 64, "bfloat16"),
    ),
    "recurrent_layer": (
        _recurrent("lstm_h256", "lstm", 512, 64, 256, 256, impl=""),
        _recurrent("gru_h128", "gru", 512, 64, 128, 128, impl=""),
        _recurrent("gru_h64", "gru", 512, 256, 64, 64),
        _recurrent("lstm_h64_lengths", "lstm", 512, 256, 64, 64, lengths=True),
    ),
}

# What `benchmarks/gpu.py --tiny` runs on a CPU in place of LARGE.
TINY: dict[str, tuple[Spec, ...]] = {
    "attention": (_attention("bias_mask", 1, 2, 48, 16, bias=(0, 1, 1, 1), mask=(1, 0, 0, 1)),),
    "layer_norm": (_norm("layer_norm", "d32", (64, 32), bias=True),),
    "rms_norm": (_norm("rms_norm", "d32_residual", (64, 32), "bfloat16", residual=True),),
    "group_norm": (_norm("group_norm", "groups", (4, 8, 4, 4), bias=True, groups=2),),
    "cross_entropy": (_cross_entropy("v300", 32, 300),),
    "linear_cross_entropy": (_cross_entropy("v300", 32, 300, hidden=16),),
    "grouped_mm": (_grouped("g4", 96, 32, 48, 4),),
    "recurrent_layer": (_recurrent("gru", "gru", 8, 8, 16, 16),),
}


def small(op: str, name: str) -> Spec:
    return next(spec for spec in SMALL[op] if spec.name == name)
