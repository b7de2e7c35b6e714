"""Rounding float32 to float16 in compiled programs on processors that compute in float16 themselves.

There LLVM makes float16 operations of float32 ones whose result is rounded, and of a product and a sum of those one operation that rounds once;
torch, and other processors, round after each.
"""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import processor

_HALVES = {"avx512_fp16", "asimdhp"}  # flags of processors: x86-64, Arm
_EXPONENT, _SIGN = np.int32(0x7F800000), np.int32(-0x80000000)
_LEAST, _MOST = np.float32(2.0 ** -14), np.float32(2.0 ** 17)  # exponents of float16's normal numbers, and beyond


def needed() -> bool:
    """Whether this machine has such a processor."""
    return not _HALVES.isdisjoint(processor.flags())


@jax.custom_jvp
def rounded(x):
    """float32 x as float16."""
    return lax.platform_dependent(x, cpu=_on_cpu, default=lambda x: x.astype(jnp.float16))


@rounded.defjvp
def _rounded_jvp(primals, tangents):
    return rounded(*primals), tangents[0].astype(jnp.float16)


def _on_cpu(x):
    """A power of two whose last place is float16's is added to |x| and taken away again: what is left is a float16, and LLVM cannot see that."""
    bits = lax.bitcast_convert_type(x, np.int32)
    unit = lax.clamp(_LEAST, lax.bitcast_convert_type(bits & _EXPONENT, np.float32), _MOST) * np.float32(2.0 ** 13)
    unit = lax.bitcast_convert_type(lax.bitcast_convert_type(unit, np.int32) | bits & _SIGN, np.float32)
    return ((x + unit) - unit).astype(jnp.float16)
