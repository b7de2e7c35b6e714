"""The exponential of matrices, many at once: its Taylor polynomial of degree 16, scaled and squared.

The polynomial takes six products (Paterson and Stockmeyer, 1973) and its coefficients are positive, so nothing cancels that does not in the series. A is halved until the
backward error is below a rounding (Al-Mohy and Higham, 2011); PyTorch does the same with other polynomials.
"""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from .._core.registry import Op
from .._public import public
from .._tensor import Tensor, apply
from . import cpu_products
from .linalg_common import adjoint, eye_like, need_float, need_square

_mm = cpu_products.matmul
_LARGEST = {4: 2.4782808775219713, 8: 0.7802874256626574}  # 1-norms up to which the polynomial is exact to float32, float64
_DEGREE, _USUAL = 16, 32  # and squarings that a compiled program has room for without a branch


def _exp(xp, a):
    if not a.size:
        return a
    wide = a.astype(np.float32) if a.dtype.itemsize == 2 else a
    if a.shape[-1] == 1:
        return xp.exp(wide).astype(a.dtype)
    real = wide.real.dtype
    norms = abs(wide).sum(-2).max(-1)
    if xp is np:
        norms = np.where(np.isfinite(norms), norms, 0)
    halvings = xp.maximum(xp.ceil(xp.log2(xp.maximum(norms, np.finfo(real).tiny) / real.type(_LARGEST[real.itemsize]))), 0).astype(np.int32)
    x = _polynomial(xp, wide * xp.ldexp(xp.ones_like(norms), -halvings)[..., None, None])
    return (_squared if xp is np else _squared_by_xla)(x, halvings).astype(a.dtype)


def _polynomial(xp, a):
    """Four coefficients at a time, by powers of a^4."""
    powers = [eye_like(xp, a, a.shape[-1]), a, _mm(xp, a, a)]
    powers.append(_mm(xp, powers[2], a))
    fourth = _mm(xp, powers[2], powers[2])

    def part(k):
        return sum(p * p.real.dtype.type(1 / math.factorial(k + i)) for i, p in enumerate(powers))
    out = part(12) + fourth * fourth.real.dtype.type(1 / math.factorial(_DEGREE))
    for k in (8, 4, 0):
        out = part(k) + _mm(xp, fourth, out)
    return out


def _squared(x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Each matrix squared so often."""
    with np.errstate(all="ignore"):
        for k in range(times.max()):
            again = times > k
            if again.all():
                x = x @ x
            else:
                x[again] = x[again] @ x[again]
    return x


def _squared_by_xla(x, times):
    """The same with a loop that has derivatives of both kinds: of fixed length, its steps left out where no matrix needs them."""
    def step(x, k):
        return jax.lax.cond((times > k).any(), lambda x: jnp.where((times > k)[..., None, None], _mm(jnp, x, x), x), lambda x: x, x), None
    most = int(np.finfo(x.real.dtype).maxexp) + 1
    x = jax.lax.scan(step, x, jnp.arange(_USUAL))[0]
    return jax.lax.cond((times > _USUAL).any(), lambda x: jax.lax.scan(step, x, jnp.arange(_USUAL, most))[0], lambda x: x, x)


def _exp_vjp(xp, g, a):
    """The exponential of [[A^H, G], [0, A^H]] has the derivative in direction G in its corner. Mathias, 1996."""
    h, n = adjoint(xp, a), a.shape[-1]
    top, low = xp.concatenate([h, g], axis=-1), xp.concatenate([xp.zeros_like(h), h], axis=-1)
    return _exp(xp, xp.concatenate([top, low], axis=-2))[..., :n, n:]


EXP = Op("linalg_matrix_exp", _exp, shape=lambda a: (a.shape, a.dtype), vjp=_exp_vjp)


def matrix_exp_(input) -> Tensor:
    """The exponential of square matrices."""
    need_square(input, "linalg.matrix_exp")
    need_float(input, "linalg.matrix_exp", low=True)
    return apply(EXP, (input,))


@public()
def matrix_exp(input) -> Tensor:
    """linalg.matrix_exp(input)."""
    return matrix_exp_(input)
