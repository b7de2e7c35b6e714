"""How precisely float32 products are computed on GPUs and TPUs, by torch's settings (`backends/_fp32_precision.py`). A plan takes them when it is made.

JAX's own default is one pass of the matrix units: TF32 on a GPU, bfloat16 on a TPU. torch's is float32 for matrix products and, on a
GPU, TF32 for what cuDNN computes there (convolutions and recurrent layers).
"""
from __future__ import annotations

from . import dtype as dt

_RELAXED = {"cuda": "default", "tpu": "high"}  # in the words of jax.default_matmul_precision; three passes of bfloat16 are about TF32
permitted = frozenset({"conv", "rnn"})  # where TF32 is allowed: in what cuDNN computes (`conv`, `rnn`), in the other products (`matmul`)


def set_permitted(what: str, on: bool) -> bool:
    """Allow TF32 for `matmul`, `conv` or `rnn`, or forbid it; whether that is a change. See program.permit_tf32."""
    global permitted
    before, permitted = permitted, permitted | {what} if on else permitted - {what}
    return before != permitted


def chosen(op, avals, device) -> str | None:
    """A value of jax.default_matmul_precision for an operation; None on the CPU, which has one precision, and where nothing is of 32 bits."""
    if device.type not in _RELAXED or not any(a is not None and a.dtype in (dt.float32, dt.complex64) for a in avals):
        return None
    return _RELAXED[device.type] if (op.cudnn or "matmul") in permitted else "highest"
