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

_LOG = [_f4(c) for c in (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                         -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)]  # fmt: skip
_LN2_HIGH, _LN2_LOW = _f4(0.693359375), _f4(-2.12194440e-4)
_COS = [_f4(c) for c in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)]
_SIN = [_f4(c) for c in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)]
# pi/4 in three parts, so that the reduction of the angle keeps its low bits.
_PI_4 = [_f4(c) for c in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)]


def libm(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """`function` of the C library on each element: NumPy's vector versions differ from it in the last bit."""
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def fma32(a: np.ndarray, b: np.ndarray | np.float32, c: np.ndarray | np.float32) -> np.ndarray:
    """float32 a*b + c rounded once: the product is exact in double."""
    out = np.multiply(a, b, dtype=np.float64)
    out += c
    return out.astype(np.float32)


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


def _log32(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of float32 x in (0, 1]."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float32)
    x = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32)
    low = x < _f4(0.707106781186547524)
    exponent -= low
    x = (x - _f4(1)) + x * low
    square = x * x
    wide = x.astype(np.float64)
    y = _f4(0) * x + _LOG[0]
    for c in _LOG[1:]:
        y = fma32(y, wide, c)
    y *= x
    y = fma32(y, square, exponent * _LN2_LOW)
    y = fma32(square, _f4(-0.5), y)
    return fma32(exponent, _LN2_HIGH, x + y)


def _sincos32(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of float32 x in [0, 2*pi]."""
    octant = (x * _f4(1.27323954473516)).astype(np.int32)
    octant += 1
    octant &= ~1
    wide = octant.astype(np.float64)
    for part in _PI_4:
        x = fma32(wide, part, x)
    square = x * x
    wide = square.astype(np.float64)
    cosine = fma32(wide, _COS[0], _COS[1])
    cosine = fma32(cosine, wide, _COS[2]) * square
    cosine = fma32(cosine, wide, square * _f4(-0.5)) + _f4(1)
    sine = fma32(wide, _SIN[0], _SIN[1])
    sine = fma32(sine, wide, _SIN[2]) * square
    sine = fma32(sine, x, x)
    straight = (octant & 2) == 0
    sine_sign = ((octant & 4) << 29).view(np.uint32)
    cosine_sign = ((~(octant - 2) & 4) << 29).view(np.uint32)
    first, second = np.where(straight, sine, cosine), np.where(straight, cosine, sine)
    first.view(np.uint32)[...] ^= sine_sign
    second.view(np.uint32)[...] ^= cosine_sign
    return first, second


def _blocks32(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Normals from whole blocks of 16 words: elements j and j + 8 share a radius and an angle."""
    u = (words & np.uint32(0xFFFFFF)).astype(np.float32)
    u *= _f4(2.0**-24)
    u = u.reshape(-1, 2, 8)
    radius = np.sqrt(_f4(-2) * _log32(_f4(1) - u[:, 0]))
    sine, cosine = _sincos32(_f4(2 * math.pi) * u[:, 1])
    u[:, 0] = radius * cosine
    u[:, 1] = radius * sine
    if (mean, std) != (0, 1):
        u = fma32(u, _f4(std), _f4(mean))
    return u.ravel()


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


def fill_normal(gen: Generator, out: np.ndarray, mean: float, std: float) -> None:
    """Fill the flat float array `out` with normals of the given mean and standard deviation."""
    n = out.size
    if n < _BLOCK:
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
