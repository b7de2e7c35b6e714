"""Normal samples: Box-Muller one pair at a time (in double) below 16 elements, in blocks of 16 from there on.

Box and Muller, "A note on the generation of random normal deviates", 1958. Float32 blocks repeat, to the bit, the
single-precision logarithm, sine and cosine of Moshier's Cephes library as evaluated with fused multiply-adds.
"""

import functools
import math
from collections.abc import Callable

import jax
import numpy as np
from jax import numpy as jnp

from . import host
from .rng_generator import Generator

_BLOCK = 16
_CHUNK = 1 << 14  # words; keeps a chunk's temporaries inside the second-level cache
_LARGE = 1 << 18  # words that are made at once by XLA
_WORTH = 1 << 22  # words of large arrays after which compiling that pays
_drawn = 0  # words of large arrays so far
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


def _rounded(v):
    """Doubles rounded to float32. After one operation on float32 values, or a product and a sum, this gives what a
    float32 unit (with fused multiply-add) would: the double holds the product exactly."""
    return v.astype(np.float32).astype(np.float64)


def _polynomial(x, coefficients: list[float]):
    y = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        y = _rounded(y) * x + c
    return _rounded(y)


def _log32(x):
    """Natural logarithm of float32 x in (0, 1], in doubles that hold float32 values."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float64)
    m = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32).astype(np.float64)
    low = m < _SQRT_HALF
    exponent = exponent - low
    m = m + m * low - 1.0
    square = _rounded(m * m)
    y = _rounded(_polynomial(m, _LOG) * m)
    y = _rounded(y * square + _rounded(exponent * _LN2_LOW))
    y = _rounded(y - square * 0.5)
    return _rounded(_rounded(m + y) + exponent * _LN2_HIGH)


def _sincos32(xp, x) -> tuple:
    """Sine and cosine of x in [0, 2*pi]; float32 values in doubles."""
    octant = (_rounded(x * _4_PI).astype(np.int32) + 1) & ~1
    turns = octant.astype(np.float64)
    for part in _PI_4:
        x = _rounded(x + turns * part)
    square = _rounded(x * x)
    cosine = _rounded(_polynomial(square, _COS) * square)
    cosine = _rounded(_rounded(cosine * square - square * 0.5) + 1.0)
    sine = _rounded(_polynomial(square, _SIN) * square)
    sine = _rounded(sine * x + x)
    straight = (octant & 2) == 0
    return (xp.where(straight, sine, cosine) * (1.0 - 0.5 * (octant & 4)),
            xp.where(straight, cosine, sine) * (0.5 * ((octant - 2) & 4) - 1.0))


def _halves32(xp, words, mean, std) -> list:
    """Normals from whole blocks of 16 words: elements j and j + 8 share a radius and an angle."""
    u = (words & np.uint32(0xFFFFFF)).reshape(-1, 2, 8)
    depth = (2**24 - u[:, 0]).astype(np.float32) * _f4(2.0**-24)
    angle = u[:, 1].astype(np.float64) * (_2PI * 2.0**-24)
    radius = _rounded(xp.sqrt(_log32(depth) * -2.0))
    sine, cosine = _sincos32(xp, _rounded(angle))
    return [(_rounded(part * radius) * std + mean).astype(np.float32) for part in (cosine, sine)]


def _blocks32(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    made = _compiled() if words.size == _LARGE else functools.partial(_halves32, np)
    out = np.empty((words.size // _BLOCK, 2, 8), np.float32)
    for row, half in enumerate(made(words, float(_f4(mean)), float(_f4(std)))):
        out[:, row] = half
    return out.ravel()


@functools.cache
def _compiled() -> Callable:
    """`_halves32` of _LARGE words by XLA: the same bits, as every rounding is asked for, in a third of the time."""
    number = jax.ShapeDtypeStruct((), np.float64)
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        lowered = jax.jit(functools.partial(_halves32, jnp)).lower(jax.ShapeDtypeStruct((_LARGE,), np.uint32), number, number)
        call = lowered.compile(compiler_options={"xla_allow_excess_precision": False})

    def run(*arguments):
        with jax.enable_x64(True):
            return call(*arguments)
    return run


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


def _pays(n: int) -> bool:
    """Whether so many numbers were asked for in large arrays, with these n, that compiling pays. Workers compile nothing."""
    global _drawn
    _drawn += n
    return _drawn >= _WORTH and not host.options.numpy_only


def fill_normal(gen: Generator, out: np.ndarray, mean: float, std: float, blocks_allowed: bool = True) -> None:
    """Fill the flat float array `out` with normals of the given mean and standard deviation."""
    n = out.size
    if n < _BLOCK or not blocks_allowed:
        out[...] = serial_normals(gen, n, mean, std).astype(np.float32 if out.itemsize < 8 else np.float64)
        return
    wide = out.dtype == np.float64
    draw, blocks = (gen.words64, _blocks64) if wide else (gen.words, _blocks32)
    whole, start = n - n % _BLOCK, 0
    at_once = not wide and n >= _LARGE and _pays(n)
    with gen.lock:
        while start < whole:
            stop = min(start + (_LARGE if at_once and whole - start >= _LARGE else _CHUNK), whole)
            out[start:stop] = blocks(draw(stop - start), mean, std)
            start = stop
        if whole != n:
            # A ragged end costs a fresh last block. Only float and double first draw words for the ragged part too.
            if out.itemsize > 2:
                draw(n - whole)
            out[n - _BLOCK :] = blocks(draw(_BLOCK), mean, std)
