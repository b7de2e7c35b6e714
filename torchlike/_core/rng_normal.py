"""Normal samples: Box-Muller one pair at a time (in double) below 16 elements, in blocks of 16 from there on.

Box and Muller, "A note on the generation of random normal deviates", 1958. Float32 blocks repeat, to the bit, the
single-precision logarithm, sine and cosine of Moshier's Cephes library as evaluated with fused multiply-adds.
"""

import math
from collections.abc import Callable

import numpy as np

from .rng_generator import Generator

_BLOCK = 16
_CHUNK_BLOCKS = 1024  # keeps a chunk's temporaries inside the second-level cache
_f4 = np.float32

# Coefficients are float32 numbers held in doubles, as all values of the emulation below.
_LOG = [float(_f4(c)) for c in (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                                -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)]  # fmt: skip
_LN2_HIGH, _LN2_LOW = 0.693359375, float(_f4(-2.12194440e-4))
_SQRT_HALF = float(_f4(0.707106781186547524))
_COS = [float(_f4(c)) for c in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)]
_SIN = [float(_f4(c)) for c in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)]
_4_PI, _2PI = float(_f4(4 / math.pi)), float(_f4(2 * math.pi))
# pi/4 in three parts, so that the reduction of the angle keeps its low bits.
_PI_4 = [float(_f4(c)) for c in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)]


def libm(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """`function` of the C library on each element: NumPy's vector versions differ from it in the last bit."""
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def fma64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """float64 a*b + c rounded once, from error-free transformations (Dekker 1971, Knuth's two-sum)."""
    product = a * b
    if c == 0:
        return product
    plain = product + c
    with np.errstate(over="ignore", invalid="ignore"):
        a_high = a * 134217729.0
        a_high = a_high - (a_high - a)
        a_low = a - a_high
        b_high = b * 134217729.0
        b_high = b_high - (b_high - b)
        b_low = b - b_high
        error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
        shift = plain - product
        out = plain + (((product - (plain - shift)) + (c - shift)) + error)
    # The splitting overflows for operands near the largest double, where the plain sum is the answer.
    return np.where(np.isfinite(out), out, plain)


def _rounded(v: np.ndarray) -> np.ndarray:
    """Round doubles to float32 in place. After one operation on float32 values, or a product and a sum, this gives
    what a float32 unit (with fused multiply-add) would: the double holds the product exactly."""
    v[...] = v.astype(np.float32)
    return v


def _polynomial(x: np.ndarray, coefficients: list[float]) -> np.ndarray:
    y = x * coefficients[0]
    y += coefficients[1]
    for c in coefficients[2:]:
        _rounded(y)
        y *= x
        y += c
    return _rounded(y)


def _log32(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of float32 x in (0, 1], in doubles that hold float32 values."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float64)
    m = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32).astype(np.float64)
    low = m < _SQRT_HALF
    exponent -= low
    m += m * low
    m -= 1.0
    square = _rounded(m * m)
    y = _polynomial(m, _LOG)
    y *= m
    _rounded(y)
    y *= square
    y += _rounded(exponent * _LN2_LOW)
    _rounded(y)
    square *= 0.5
    y -= square
    _rounded(y)
    m += y
    _rounded(m)
    exponent *= _LN2_HIGH
    m += exponent
    return _rounded(m)


def _sincos32(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of x in [0, 2*pi]; float32 values in doubles."""
    octant = _rounded(x * _4_PI).astype(np.int32)
    octant += 1
    octant &= ~1
    turns = octant.astype(np.float64)
    for part in _PI_4:
        x += turns * part
        _rounded(x)
    square = _rounded(x * x)
    cosine = _polynomial(square, _COS)
    cosine *= square
    _rounded(cosine)
    cosine *= square
    cosine -= square * 0.5
    _rounded(cosine)
    cosine += 1.0
    _rounded(cosine)
    sine = _polynomial(square, _SIN)
    sine *= square
    _rounded(sine)
    sine *= x
    sine += x
    _rounded(sine)
    straight = (octant & 2) == 0
    first, second = np.where(straight, sine, cosine), np.where(straight, cosine, sine)
    first *= 1.0 - 0.5 * (octant & 4)
    second *= 0.5 * ((octant - 2) & 4) - 1.0
    return first, second


def _blocks32(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Normals from whole blocks of 16 words: elements j and j + 8 share a radius and an angle."""
    u = (words & np.uint32(0xFFFFFF)).reshape(-1, 2, 8)
    depth = (2**24 - u[:, 0]).astype(np.float32) * _f4(2.0**-24)
    angle = u[:, 1] * (_2PI * 2.0**-24)
    radius = _log32(depth)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    _rounded(radius)
    sine, cosine = _sincos32(_rounded(angle))
    out = np.empty(u.shape, np.float32)
    plain = (mean, std) == (0, 1)
    for row, part in enumerate((cosine, sine)):
        part *= radius
        if not plain:
            _rounded(part)
            part *= float(_f4(std))
            part += float(_f4(mean))
        out[:, row] = part
    return out.ravel()


def _blocks64(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    """The same in double, from 64-bit words."""
    u = ((words & np.uint64(2**53 - 1)) * 2.0**-53).reshape(-1, 2, 8)
    radius = np.sqrt(-2.0 * libm(math.log, 1.0 - u[:, 0]))
    angle = 2.0 * math.pi * u[:, 1]
    u[:, 0] = radius * libm(math.cos, angle)
    u[:, 1] = radius * libm(math.sin, angle)
    return fma64(u, std, mean).ravel()


def serial_normals(gen: Generator, n: int, mean: float, std: float) -> np.ndarray:
    """`n` float64 normals, one pair per two doubles; an odd one out waits in `gen.next_normal`."""
    with gen.lock:
        samples = [] if gen.next_normal is None or not n else [gen.next_normal]
        if samples:
            gen.next_normal = None
        pairs = (n - len(samples) + 1) // 2
        u = ((gen.words64(2 * pairs) & np.uint64(2**53 - 1)) * 2.0**-53).tolist()
        for turn, depth in zip(u[0::2], u[1::2], strict=True):
            radius, angle = math.sqrt(-2.0 * math.log1p(-depth)), 2.0 * math.pi * turn
            samples += (radius * math.cos(angle), radius * math.sin(angle))
        if len(samples) > n:
            gen.next_normal = samples.pop()
    return fma64(np.array(samples, np.float64), std, mean)


def fill_normal(gen: Generator, out: np.ndarray, mean: float, std: float, blocks_allowed: bool = True) -> None:
    """Fill the flat float array `out` with normals of the given mean and standard deviation."""
    n = out.size
    if n < _BLOCK or not blocks_allowed:
        out[...] = serial_normals(gen, n, mean, std).astype(np.float32 if out.itemsize < 8 else np.float64)
        return
    wide = out.dtype == np.float64
    draw, blocks = (gen.words64, _blocks64) if wide else (gen.words, _blocks32)
    whole, step = n - n % _BLOCK, _BLOCK * _CHUNK_BLOCKS
    with gen.lock:
        for start in range(0, whole, step):
            stop = min(start + step, whole)
            out[start:stop] = blocks(draw(stop - start), mean, std)
        if whole != n:
            # A ragged end costs a fresh last block. Only float and double first draw words for the ragged part too.
            if out.itemsize > 2:
                draw(n - whole)
            out[n - _BLOCK :] = blocks(draw(_BLOCK), mean, std)
