"""Normal samples: Box-Muller one pair at a time (in double) below 16 elements, in blocks of 16 from there on.

Box and Muller, "A note on the generation of random normal deviates", 1958.
"""

import math
from collections.abc import Callable

import numpy as np

from .rng_blocks import BLOCK
from .rng_generator import Generator, as_doubles

_CHUNK = 1 << 14  # words; keeps a chunk's temporaries inside the second-level cache
_FEW_CALLS = 32  # numbers for which Python calls the C library more quickly


def libm(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """`function` of the C library on each element: NumPy's vector versions differ from it in the last bit."""
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def log(x: np.ndarray) -> np.ndarray:
    """The C library's logarithm of positive doubles."""
    if x.size <= _FEW_CALLS:
        return libm(math.log, x)
    from scipy.special import xlogy  # it calls the C library

    return xlogy(1.0, x)


def cos_sin(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The C library's cosine and sine, which NumPy's complex exponential takes from it."""
    if x.size <= _FEW_CALLS:
        return libm(math.cos, x), libm(math.sin, x)
    turned = np.exp(_complex(np.zeros_like(x), x))
    return turned.real, turned.imag


def exp(x: np.ndarray) -> np.ndarray:
    """The C library's exponential, in the same way."""
    if x.size <= _FEW_CALLS and (x < 700).all():  # math.exp refuses what is infinite
        return libm(math.exp, x)
    with np.errstate(over="ignore"):
        return np.exp(_complex(x, np.zeros_like(x))).real.copy()


def _complex(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    out = np.empty(real.shape, np.complex128)
    out.real, out.imag = real, imaginary
    return out


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


def _blocks64(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    """The same in double, from two words each."""
    u = as_doubles(words).reshape(-1, 2, 8)
    radius = np.sqrt(-2.0 * log(1.0 - u[:, 0]))
    cosine, sine = cos_sin(2.0 * math.pi * u[:, 1])
    u[:, 0] = radius * cosine
    u[:, 1] = radius * sine
    return fma64(u, std, mean).ravel()


def serial_normals(gen: Generator, n: int, mean: float, std: float) -> np.ndarray:
    """`n` float64 normals, one pair per two doubles; an odd one out waits in `gen.next_normal`."""
    if n <= 2 * _FEW_CALLS:
        samples = np.array(few_normals(gen, n), np.float64)
    else:
        with gen.lock:
            kept = [] if gen.next_normal is None else [gen.next_normal]
            samples = np.concatenate((kept, pairs(gen.doubles((n - len(kept) + 1) // 2 * 2))))
            gen.next_normal = float(samples[n]) if samples.size > n else None
        samples = samples[:n]
    return fma64(samples, std, mean) if mean or std != 1 else samples


def few_normals(gen: Generator, n: int) -> list[float]:
    """The same in Python's numbers, standard ones."""
    with gen.lock:
        kept = gen.next_normal
        made = [] if kept is None or not n else [kept]
        numbers = iter(gen.few_doubles((n - len(made) + 1) // 2 * 2))
        for turn, depth in zip(numbers, numbers, strict=True):
            radius, angle = math.sqrt(-2.0 * math.log1p(-depth)), 2.0 * math.pi * turn
            made += (radius * math.cos(angle), radius * math.sin(angle))
        if n:
            gen.next_normal = made.pop() if len(made) > n else None
    return made


def pairs(u: np.ndarray) -> np.ndarray:
    """Two normals from each two of the doubles u: an angle's and a radius's."""
    out = np.empty_like(u)
    radius = np.sqrt(-2.0 * libm(math.log1p, -u[1::2]))
    cosine, sine = cos_sin(2.0 * math.pi * u[0::2])
    np.multiply(radius, cosine, out=out[0::2])
    np.multiply(radius, sine, out=out[1::2])
    return out


def fill_normal(gen: Generator, out: np.ndarray, mean: float, std: float, blocks_allowed: bool = True) -> None:
    """Fill the flat float array `out` with normals of the given mean and standard deviation."""
    n = out.size
    if n < BLOCK or not blocks_allowed:
        samples = serial_normals(gen, n, mean, std)
        out[...] = samples.astype(np.float32) if out.itemsize < 4 else samples
        return
    whole = n - n % BLOCK
    # A ragged end costs a fresh last block. Only float and double first draw words for the ragged part too.
    gap = n - whole if out.itemsize > 2 else 0
    if out.dtype != np.float64:
        made = out if out.dtype == np.float32 else np.empty(n, np.float32)
        with gen.lock:
            gen.normals.fill(gen, made, gap, mean, std)
        if made is not out:
            out[...] = made
        return
    if whole != n <= _CHUNK:  # the ragged end's block with the others, as NumPy's calls cost more than a few blocks
        words = gen.words((whole + gap + BLOCK) * 2)
        made = _blocks64(np.concatenate((words[: whole * 2], words[(whole + gap) * 2 :])), mean, std)
        out[:whole] = made[:whole]
        out[n - BLOCK :] = made[whole:]
        return
    start = 0
    with gen.lock:
        while start < whole:
            stop = min(start + _CHUNK, whole)
            out[start:stop] = _blocks64(gen.words((stop - start) * 2), mean, std)
            start = stop
        if whole != n:
            out[n - BLOCK :] = _blocks64(gen.words((gap + BLOCK) * 2)[gap * 2 :], mean, std)
