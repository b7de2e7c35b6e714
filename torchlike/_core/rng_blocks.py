"""Float32 normals in blocks of 16, as torch's vector code makes them: to the bit the single-precision logarithm, sine and cosine of
Moshier's Cephes library, evaluated with fused multiply-adds. In NumPy, and from XLA once a process has drawn many.

NumPy holds float32 values in doubles where a fused multiply-add is due: a double holds the product exactly.
"""

import math
from collections.abc import Callable

import jax
import numpy as np
from jax import numpy as jnp

from .kept_kernel import KeptKernel

BLOCK = 16
PIECE = 1 << 13  # words whose pairs of normals XLA makes at once
MIDDLE, LARGE = 1 << 14, 1 << 17  # normals of whole blocks that it makes at once
_SECONDS = 8e-8  # a normal in NumPy
_STARTING = 2e-8  # what starting XLA for so few at once costs a normal
_f4 = np.float32
_EIGHT = np.dtype((np.void, 32))  # eight words, which NumPy moves as one

# Coefficients are float32 numbers held in doubles.
_LOG = [float(_f4(c)) for c in (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                                -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)]  # fmt: skip
_LN2_HIGH, _LN2_LOW = 0.693359375, float(_f4(-2.12194440e-4))
_SQRT_HALF = float(_f4(0.707106781186547524))
_COS = [float(_f4(c)) for c in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)]
_SIN = [float(_f4(c)) for c in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)]
_4_PI, _2PI = float(_f4(4 / math.pi)), float(_f4(2 * math.pi))
# pi/4 in three parts, so that the reduction of the angle keeps its low bits.
_PI_4 = [float(_f4(c)) for c in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)]


def blocks32(words: np.ndarray) -> np.ndarray:
    """Standard normals from whole blocks of 16 words: elements j and j + 8 share a radius and an angle. (-0 as it comes.)"""
    halves = words.view(_EIGHT).reshape(-1, 2)
    radius, cosine, sine = (part.reshape(-1, 8) for part in _polar(*(halves[:, k].copy().view(np.uint32) for k in (0, 1))))
    out = np.empty((len(radius), 2, 8), np.float32)
    np.multiply(cosine, radius, out=out[:, 0])
    np.multiply(sine, radius, out=out[:, 1])
    return out.ravel()


def pairs32(words: np.ndarray) -> np.ndarray:
    """The two standard normals that each of the words gives with the one eight places after it, as two rows: what it is worth in any block."""
    out = np.empty((2, words.size - 8), np.float32)
    radius, cosine, sine = _polar(words[:-8], words[8:])
    np.multiply(cosine, radius, out=out[0])
    np.multiply(sine, radius, out=out[1])
    return out


def scaled(normals: np.ndarray, mean: float, std: float, out: np.ndarray) -> None:
    """Write into `out` what blocks or pairs gave, with this mean and standard deviation."""
    if mean != 0:
        out[...] = normals * np.float64(_f4(std)) + np.float64(_f4(mean))
        return
    if std != 1:
        normals = np.multiply(normals, _f4(std), out=out)
    np.add(normals, _f4(0), out=out)  # -0 becomes 0


_LOW24 = np.uint32(2**24 - 1)
_FIRST = np.array([[_LOG[7]], [_SIN[1]], [_COS[1]]])
_LAST = np.array([[_LOG[8]], [_SIN[2]], [_COS[2]]])
_SQRT_HALF_BITS = int(_f4(_SQRT_HALF).view(np.int32))


def _polar(radial: np.ndarray, angular: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Radii from words, and cosines and sines from as many. What needs no fused multiply-add is done in float32. The
    last steps of the three polynomials (of the logarithm, the sine, the cosine: the rows of the arrays below) are made together."""
    n = radial.size
    x, factor, term, y = np.empty((4, 3, n), np.float32)
    wide, product = np.empty((2, 3, n))

    # depth 1 - u = (1 + x) * 2**exponent, with 1 + x between sqrt(1/2) and sqrt(2)
    bits = (2**24 - (radial & _LOW24)).astype(np.float32).view(np.int32) - _SQRT_HALF_BITS
    exponent = ((bits >> 23) - 24).astype(np.float32)
    np.subtract(((bits & 0x7FFFFF) + _SQRT_HALF_BITS).view(np.float32), _f4(1), out=x[0])
    np.multiply(x[0], x[0], out=factor[0])
    np.multiply(exponent, _f4(_LN2_LOW), out=term[0])

    # the angle less a multiple of pi/4, which is an even number of octants
    angle = ((angular & _LOW24) * (_2PI * 2.0**-24)).astype(np.float32)
    octant = (angle * _f4(_4_PI)).astype(np.int32)
    octant += 1
    octant &= ~1
    turns = octant.astype(np.float32)
    angle += turns * _f4(_PI_4[0])  # these two products are exact
    angle += turns * _f4(_PI_4[1])
    factor[1] = octant * _PI_4[2] + angle
    term[1] = factor[1]
    np.multiply(factor[1], factor[1], out=factor[2])
    x[1:] = factor[2]
    np.multiply(factor[2], _f4(-0.5), out=term[2])

    wide[...] = x
    log, sine, cosine = y
    wide_log, product_log = wide[0], product[0]
    np.multiply(wide_log, _LOG[0], out=product_log)
    for c in _LOG[1:7]:
        product_log += c
        log[...] = product_log
        np.multiply(log, wide_log, out=product_log)
    sine.fill(_SIN[0])
    cosine.fill(_COS[0])
    np.multiply(y[1:], wide[1:], out=product[1:])
    product += _FIRST
    y[...] = product
    product[...] = y
    product *= wide
    product += _LAST
    y[...] = product
    y *= x
    product[...] = y
    wide[...] = factor
    product *= wide
    product += term
    y[...] = product

    log -= factor[0] * _f4(0.5)
    log += x[0]
    log += exponent * _f4(_LN2_HIGH)  # exact
    log *= _f4(-2)
    cosine += _f4(1)
    crossed = (octant & 2) != 0
    parts = np.where(crossed, sine, cosine), np.where(crossed, cosine, sine)
    for part, turned in zip(parts, (octant + 2, octant), strict=True):
        part.view(np.int32)[...] ^= (turned & 4) << 29  # the sign
    return np.sqrt(log), *parts


# -- for XLA, in float32 -----------------------------------------------------------------------------------------------------
# Its compiler makes one fused multiply-add of a product that meets a sum, as torch's vector code does, wherever the processor has
# them (x86-64 since AVX2). `_once` keeps apart what torch rounds twice. Whether it came out so is looked at once: `_is_exact`. Where it did
# not, NumPy makes the normals.


def _once(x, factor: float):
    """x * factor as a float32 by itself."""
    return (x.astype(np.float64) * factor).astype(np.float32)


def _polynomial(x, coefficients: list[float]):
    y = x * _f4(coefficients[0]) + _f4(coefficients[1])
    for c in coefficients[2:]:
        y = y * x + _f4(c)
    return y


def _log(x):
    """Natural logarithm of float32 x in (0, 1]."""
    bits = x.view(np.int32)
    m = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32)
    low = m < _f4(_SQRT_HALF)
    exponent = ((bits >> 23) - 126 - low).astype(np.float32)
    m = jnp.where(low, m + m, m) - _f4(1)
    square = m * m
    y = _polynomial(m, _LOG) * m
    y = y * square + _once(exponent, _LN2_LOW)
    y = y - square * _f4(0.5)
    return (m + y) + exponent * _f4(_LN2_HIGH)  # the product is exact


def _sincos(x) -> tuple:
    """Sine and cosine of float32 x in [0, 2*pi]."""
    octant = ((x * _f4(_4_PI)).astype(np.int32) + 1) & ~1
    turns = octant.astype(np.float32)
    for part in _PI_4:
        x = x + turns * _f4(part)
    square = x * x
    cosine = _polynomial(square, _COS) * square
    cosine = (cosine * square - _once(square, 0.5)) + _f4(1)
    sine = _polynomial(square, _SIN) * square
    sine = sine * x + x
    straight = (octant & 2) == 0
    return tuple((jnp.where(straight, *parts).view(np.int32) ^ ((turned & 4) << 29)).view(np.float32)
                 for parts, turned in (((sine, cosine), octant), ((cosine, sine), octant + 2)))


def _normals(radial, angular) -> tuple:
    """For XLA: two normals from each word of a radius and each of an angle."""
    depth, turn = ((part & _LOW24).astype(np.int32) for part in (radial, angular))
    radius = jnp.sqrt(_log((2**24 - depth).astype(np.float32) * _f4(2.0**-24)) * _f4(-2))
    return tuple(part * radius for part in reversed(_sincos(_once(turn, _2PI * 2.0**-24))))


def _blocks_xla(words):
    """`blocks32` for XLA."""
    halves = words.reshape(-1, 2, 8)
    return jnp.stack(_normals(halves[:, 0], halves[:, 1]), 1).reshape(-1)


def _pairs_xla(words):
    """`pairs32` for XLA."""
    return jnp.stack(_normals(words[:-8], words[8:]))


def _kernel(name: str, function: Callable, numpys: Callable, n: int) -> KeptKernel:
    """`function` of n words for XLA, where it comes to the bits of `numpys`, and so torch's."""
    def is_exact(call: Callable) -> bool:
        words = np.random.RandomState(0).randint(0, 1 << 32, n, np.uint32)
        words[:3] = words[24:27] = 0, 1, _LOW24  # in a radius and in an angle
        return np.array_equal(np.asarray(call(words)).view(np.int32), numpys(words).view(np.int32))
    return KeptKernel(name, function, [jax.ShapeDtypeStruct((n,), np.uint32)], {"xla_allow_excess_precision": False}, exact=is_exact)


PAIRS = _kernel("normal pairs", _pairs_xla, pairs32, PIECE + 8)
MIDDLE_BLOCKS = _kernel("normal blocks", _blocks_xla, blocks32, MIDDLE)
LARGE_BLOCKS = _kernel("normal blocks", _blocks_xla, blocks32, LARGE)


def made_by_numpy(kernel: KeptKernel, n: int) -> None:
    """Told how many normals NumPy makes: once they are many, XLA does."""
    kernel.spent(n * _SECONDS)


def made_in_steps(n: int) -> None:
    """Told how many normals XLA makes `MIDDLE` at a time: once they are many, it makes `LARGE` at a time."""
    LARGE_BLOCKS.spent(n * _STARTING)
