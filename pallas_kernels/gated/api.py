"""`gated_linear`: argument checks and choice of implementation."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from pallas_kernels import _check, _dispatch
from pallas_kernels._dispatch import Device, Impl
from pallas_kernels._gradients import guarded
from pallas_kernels.gated import reference
from pallas_kernels.gated.reference import ACTIVATIONS, Case


def gated_linear(
    x: jax.Array,
    gate: jax.Array,
    up: jax.Array,
    *,
    gate_bias: jax.Array | None = None,
    up_bias: jax.Array | None = None,
    activation: str = "silu",
    impl: str | None = None,
) -> jax.Array:
    """activation(x @ gate^T + gate_bias) * (x @ up^T + up_bias) (Shazeer 2020): x (..., K), gate and up (N, K).

    activation is "silu" (SwiGLU), "gelu" (GeGLU, exact), "gelu_tanh", "relu" (ReGLU) or "sigmoid" (GLU). Products
    accumulate in float32; the backward pass recomputes them instead of keeping them.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"gated_linear: activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    _check.arrays("gated_linear", x=x, gate=gate, up=up)
    _check.optional("gated_linear", gate_bias=gate_bias, up_bias=up_bias)
    arrays = {"x": x, "gate": gate, "up": up, "gate_bias": gate_bias, "up_bias": up_bias}
    for name, array in arrays.items():
        if array is not None and (array.dtype != x.dtype or not jnp.issubdtype(x.dtype, jnp.floating)):
            raise TypeError(f"gated_linear: arrays must have one floating dtype, got {name} {array.dtype}, x {x.dtype}")
    if x.ndim < 1 or gate.ndim != 2 or gate.shape[1] != x.shape[-1] or up.shape != gate.shape:
        raise ValueError(
            f"gated_linear: gate and up must be (N, K) to fit x (..., K), got x {x.shape}, gate {gate.shape}, "
            f"up {up.shape}"
        )
    for name in ("gate_bias", "up_bias"):
        if arrays[name] is not None and arrays[name].shape != gate.shape[:1]:
            raise ValueError(f"gated_linear: {name} must have shape {gate.shape[:1]}, got {arrays[name].shape}")
    case = Case(math.prod(x.shape[:-1]), x.shape[-1], gate.shape[0], str(x.dtype), activation)
    flat = (x.reshape(case.rows, case.inner), gate, up, gate_bias, up_bias)
    choice = _dispatch.choose("gated_linear", IMPLEMENTATIONS, case, impl)
    if choice.impl is None or 0 in (case.rows, case.inner, case.columns):
        out = reference.gated(case, *flat)
    else:
        from pallas_kernels.gated import gpu

        case = replace(case, interpret=choice.interpret)
        out = guarded(partial(gpu.gated, case), partial(reference.gated, case), interpret=case.interpret)(*flat)
    return out.reshape(*x.shape[:-1], case.columns)


def _triton_supports(device: Device, case: Case) -> str | None:
    if case.dtype not in ("float32", "bfloat16", "float16"):
        return f"{case.dtype} is not supported"
    if device.platform == "cuda" and device.capability < 80:
        return f"compute capability {device.capability / 10} is under 8.0"
    size = max(case.rows * case.inner, case.rows * case.columns, case.inner * case.columns)
    return None if size <= 2**31 else f"an array of {size} elements is over 2**31"


def _triton_pays(device: Device, case: Case) -> str | None:
    if case.inner > 512:
        return f"inner size {case.inner} is over 512, where two library products are as quick"
    if case.rows < 1024:
        return f"{case.rows} rows are too few"
    return None


IMPLEMENTATIONS = (Impl("triton", ("cuda",), "pallas_kernels.gated.gpu:gated", _triton_supports, _triton_pays, True),)
