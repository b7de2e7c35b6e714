"""PyTorch's CPU random functions on NumPy arrays: the same seed gives the same numbers and leaves the same state.

Every function takes the `Generator` first and holds its lock while it draws. Shapes are tuples; results are fresh,
contiguous arrays of NumPy (or ml_dtypes) dtype. Errors carry PyTorch's class and message.
"""

import math
from collections.abc import Callable

import numpy as np

from . import rng_integers, rng_multinomial
from .rng_dtypes import (
    DIGITS,
    INTEGERS,
    cpp_type,
    limits,
    narrow,
    not_implemented,
    real_parts,
    scalar_type,
)
from .rng_generator import DEFAULT_SEED, FEW, STATE_BYTES, Generator, checked_seed, default_generator
from .rng_normal import BLOCK, exp, few_normals, fill_normal, fma64, libm, log, serial_normals
from .rng_permutation import permutation
from .rng_uniform import LARGE, floats

__all__ = [
    "DEFAULT_SEED",
    "STATE_BYTES",
    "Generator",
    "base_seed",
    "bernoulli_scalar",
    "bernoulli_tensor",
    "cauchy",
    "checked_seed",
    "default_generator",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "normal_tensors",
    "numpy_worker_seed",
    "rand",
    "randint",
    "randn",
    "random_",
    "randperm",
    "uniform",
    "worker_seed",
]

Shape = tuple[int, ...]
_CHUNK = 1 << 15  # elements converted at a time, so that temporaries stay in the cache
_LOW24 = np.uint32(2**24 - 1)


def _filled(gen: Generator, shape: Shape, dtype: np.dtype, draw: Callable[[int], np.ndarray], chunk: int = _CHUNK) -> np.ndarray:
    """A new array of `draw(n)`'s values, chunk by chunk, cast to `dtype`."""
    size = math.prod(shape)
    if size <= _CHUNK:
        with gen.lock:
            return narrow(draw(size), dtype).reshape(shape)
    out = np.empty(shape, dtype)
    flat = out.reshape(-1)
    with gen.lock:
        for start in range(0, flat.size, chunk):
            n = min(chunk, flat.size - start)
            flat[start : start + n] = narrow(draw(n), dtype)
    return out


def _unit32(words: np.ndarray) -> np.ndarray:
    """Uniform float32 of [0, 1) from the low 24 bits of each word."""
    out = (words & _LOW24).astype(np.float32)
    out *= np.float32(2.0**-24)
    return out


def _check_uniform(low: float, high: float, dtype: np.dtype) -> None:
    if dtype not in DIGITS:
        raise not_implemented("check_uniform_bounds", dtype)
    least, greatest = limits(dtype)
    for value, name in ((low, "from"), (high, "to")):
        if not least <= value <= greatest:
            raise RuntimeError(f"{name} is out of bounds for {cpp_type(dtype)}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > greatest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_type(dtype)}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )


def uniform(gen: Generator, shape: Shape, low: float, high: float, dtype: np.dtype) -> np.ndarray:
    """Uniform floats of [low, high); a value that rounds up to `high` becomes `low`. Complex: both parts."""
    if dtype.kind == "c":
        out = np.empty(shape, dtype)
        parts = real_parts(out.reshape(-1))
        parts[:] = uniform(gen, parts.shape, low, high, parts.dtype)
        return out
    low, high = float(low), float(high)
    if low != 0 or high != 1 or dtype not in DIGITS:
        _check_uniform(low, high, dtype)
    elif dtype == np.float32 and math.prod(shape) < LARGE:  # never rounded up
        return _filled(gen, shape, dtype, lambda n: _unit32(gen.words(n)))
    if dtype == np.float64:
        return _filled(gen, shape, dtype, lambda n: _below(fma64(gen.doubles(n), high - low, low), low, high))
    first, top = np.float32(low), np.float32(high)
    span = top - first
    edges = (first, top) if dtype == np.float32 else narrow(np.array([first, top]), dtype)
    chunk = LARGE if dtype == np.float32 and math.prod(shape) >= LARGE else _CHUNK

    def draw(n: int) -> np.ndarray:
        words = gen.words(n)
        if chunk == LARGE and (made := floats(words, first, top)) is not None:
            return made
        u = _unit32(words)
        if first != 0:
            # Exact product in double, then one rounding: the fused multiply-add of the original.
            u = (u * np.float64(span) + np.float64(first)).astype(np.float32)
        elif span != 1:
            u *= span
        return _below(narrow(u, dtype), edges[0], edges[1])

    return _filled(gen, shape, dtype, draw, chunk)


def _below(values: np.ndarray, low: np.generic | float, high: np.generic | float) -> np.ndarray:
    above = values >= high
    if above.any():
        values[above] = low
    return values


def rand(gen: Generator, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """Uniform floats (or complex numbers) of [0, 1)."""
    if dtype == np.float32 and (size := math.prod(shape)) <= _CHUNK:  # by far the most frequent
        made = np.array([(w & 0xFFFFFF) * 2.0**-24 for w in gen.few(size)], np.float32) if size <= FEW else _unit32(gen.words(size))
        return made.reshape(shape)
    return uniform(gen, shape, 0.0, 1.0, dtype)


def random_(
    gen: Generator, shape: Shape, dtype: np.dtype, low: int | None = None, high: int | None = None
) -> np.ndarray:
    """Tensor.random_: `dtype`'s default range, [low, its maximum], or [low, high) (`high` alone: from 0)."""
    dtype = np.dtype(dtype)
    if high is not None:
        return rng_integers.integers_between(gen, shape, low or 0, high, dtype)
    if low is not None:
        return rng_integers.integers_from(gen, shape, low, dtype)
    return rng_integers.integers_default(gen, shape, dtype)


def randint(gen: Generator, low: int, high: int, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """Integers of [low, high) in any integer or float dtype."""
    return rng_integers.integers_between(gen, shape, low, high, np.dtype(dtype))


def randperm(gen: Generator, n: int, dtype: np.dtype | type = np.int64) -> np.ndarray:
    """A random permutation of range(n)."""
    dtype = np.dtype(dtype)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype == np.bool_ or (dtype not in DIGITS and dtype not in INTEGERS):
        raise not_implemented("randperm", dtype)
    if dtype in INTEGERS and n - 1 > limits(dtype)[1]:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    if dtype in DIGITS and dtype.itemsize != 2 and n > 2 ** DIGITS[dtype] + 1:
        raise RuntimeError(f"n cannot be greater than 2^{DIGITS[dtype]}+1 for {scalar_type(dtype)} type.")
    if dtype == np.float16 and n > 2049:
        raise RuntimeError("n cannot be greater than 2049 for Half type.")
    return narrow(permutation(gen, n), dtype)


def normal(gen: Generator, shape: Shape, mean: float, std: float, dtype: np.dtype, blocks: bool = True) -> np.ndarray:
    """Normal floats; complex ones have `mean` in both parts and variance std**2/2 in each.

    `blocks`: in blocks of 16 where there are so many, as for contiguous memory.
    """
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if mean == 0 and std == 1 and dtype == np.float32 and (size := math.prod(shape)) < BLOCK:
        return np.array(few_normals(gen, size), dtype).reshape(shape)
    out = np.empty(shape, dtype)
    if not out.size:
        return out
    flat = real_parts(out.reshape(-1))
    if flat.dtype not in DIGITS:
        raise not_implemented("normal_kernel_cpu", flat.dtype)
    if mean == 0 and std == 1:
        fill_normal(gen, flat, 0.0, std / math.sqrt(2) if out.dtype.kind == "c" else 1.0, blocks)
        return out
    with np.errstate(over="ignore", invalid="ignore"):
        # A complex variable's variance is split between its parts; PyTorch adds the mean to both of them.
        fill_normal(gen, flat, mean, std / math.sqrt(2) if out.dtype.kind == "c" else std, blocks)
    return out


def randn(gen: Generator, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """Standard normal floats or complex numbers."""
    return normal(gen, shape, 0.0, 1.0, dtype)


def normal_tensors(gen: Generator, mean: np.ndarray | float, std: np.ndarray | float) -> np.ndarray:
    """torch.normal with at least one array: standard normals in the dtype of `mean` (or else `std`), scaled, shifted."""
    dtype = mean.dtype if isinstance(mean, np.ndarray) else std.dtype
    if isinstance(std, np.ndarray):
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.size and not std.min() >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    if not isinstance(std, np.ndarray):
        return narrow(normal(gen, shape, 0.0, std, dtype) + mean, dtype)
    scaled = narrow(normal(gen, shape, 0.0, 1.0, dtype) * std, dtype)
    return narrow(scaled + narrow(mean, dtype), dtype)


def bernoulli_scalar(gen: Generator, shape: Shape, p: float, dtype: np.dtype) -> np.ndarray:
    """Ones with probability `p`, zeros otherwise: the draw behind dropout masks. Two words an element."""
    dtype = np.dtype(dtype)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if dtype not in DIGITS and dtype not in INTEGERS:
        raise not_implemented("bernoulli_scalar_cpu_", dtype)
    # u < p for a 53-bit u is an integer comparison, which the 21 high bits almost always decide.
    limit_high, limit_low = divmod(math.ceil(p * 2.0**53), 2**32)
    limit_high, limit_low = np.uint32(limit_high), np.uint32(limit_low)

    def draw(n: int) -> np.ndarray:
        words = gen.words(2 * n)
        high = words[0::2] & np.uint32(2**21 - 1)
        ones = high < limit_high
        close = high == limit_high
        if close.any():
            ones[close] = words[1::2][close] < limit_low
        return ones

    return _filled(gen, shape, dtype, draw)


def bernoulli_tensor(gen: Generator, p: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Ones with probability p[i], in the shape of `p`, whose dtype chooses the width of the draws."""
    dtype = np.dtype(dtype)
    if dtype not in DIGITS and dtype not in INTEGERS:
        raise not_implemented("bernoulli_tensor_cpu_self_", dtype)
    if p.dtype not in DIGITS:
        raise not_implemented("bernoulli_tensor_cpu_p_", p.dtype)
    wide = p.dtype == np.float64
    flat = p.reshape(-1) if wide else p.reshape(-1).astype(np.float32)
    if not ((flat >= 0) & (flat <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )
    out = np.empty(p.shape, dtype)
    with gen.lock:
        for start in range(0, flat.size, _CHUNK):
            chunk = flat[start : start + _CHUNK]
            u = gen.doubles(chunk.size) if wide else _unit32(gen.words(chunk.size))
            out.reshape(-1)[start : start + _CHUNK] = u < chunk
    return out


def exponential(gen: Generator, shape: Shape, lambd: float, dtype: np.dtype) -> np.ndarray:
    """Exponential floats with rate `lambd`."""
    dtype = np.dtype(dtype)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if dtype.kind != "f" and dtype not in DIGITS and not dtype.name.startswith("float8"):
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {scalar_type(dtype)}"
        )
    if dtype not in DIGITS:
        raise not_implemented("exponential_cpu", dtype)
    scale = -1.0 / lambd

    def draw(n: int) -> np.ndarray:
        u = gen.doubles(n)
        # NumPy's last bit may differ from the C library's, which only a double result can show.
        return scale * (libm(math.log1p, -u) if dtype == np.float64 else np.log1p(-u))

    return _filled(gen, shape, dtype, draw)


def geometric(gen: Generator, shape: Shape, p: float, dtype: np.dtype) -> np.ndarray:
    """The number of trials up to the first success, each with probability `p`."""
    dtype = np.dtype(dtype)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if dtype == np.bool_ or (dtype not in DIGITS and dtype not in INTEGERS):
        raise not_implemented("geometric_cpu", dtype)
    scale = math.log1p(-p)

    def draw(n: int) -> np.ndarray:
        u = gen.doubles(n)
        # math.log refuses 0, whose logarithm here means the longest wait there is.
        logs = np.where(u > 0, log(np.where(u > 0, u, 1.0)), -np.inf)
        trials = np.ceil(logs / scale)
        return trials if dtype in DIGITS else _truncated(trials, dtype)

    return _filled(gen, shape, dtype, draw)


def _truncated(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Doubles to integers as x86 does it: too large for the conversion's register gives that register's minimum."""
    bits = max(8 * dtype.itemsize, 32)
    return np.where(values < 2.0 ** (bits - 1), values, -(2.0 ** (bits - 1))).astype(np.int64)


def log_normal(gen: Generator, shape: Shape, mean: float, std: float, dtype: np.dtype) -> np.ndarray:
    """exp of normal floats with the given mean and standard deviation."""
    dtype = np.dtype(dtype)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if dtype not in DIGITS:
        raise not_implemented("log_normal_cpu", dtype)

    return _filled(gen, shape, dtype, lambda n: exp(serial_normals(gen, n, mean, std)))


def cauchy(gen: Generator, shape: Shape, median: float, sigma: float, dtype: np.dtype) -> np.ndarray:
    """Cauchy floats around `median` with half width `sigma`."""
    dtype = np.dtype(dtype)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if dtype.kind != "f" and dtype not in DIGITS and not dtype.name.startswith("float8"):
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {cpp_type(dtype)}"
        )
    if dtype not in DIGITS:
        raise not_implemented("cauchy_cpu", dtype)
    return _filled(gen, shape, dtype, lambda n: fma64(libm(math.tan, math.pi * (gen.doubles(n) - 0.5)), sigma, median))


def multinomial(gen: Generator, probs: np.ndarray, num_samples: int, replacement: bool = False) -> np.ndarray:
    """int64 indices, (num_samples,) or (rows, num_samples), drawn in proportion to the weights of each row."""
    rng_multinomial.check_arguments(probs, num_samples, replacement)
    rows = np.atleast_2d(probs)
    if len(rows) == 0:
        return np.empty((0, num_samples), np.int64)
    with gen.lock:
        if replacement and num_samples > 1:
            out = rng_multinomial.with_replacement(gen, rows, num_samples)
        else:
            rng_multinomial.check_weights(rows)
            out = rng_multinomial.without_replacement(rows, exponential(gen, rows.shape, 1.0, rows.dtype), num_samples)
    return out[0] if probs.ndim == 1 else out


def base_seed(gen: Generator) -> int:
    """The int64 that a DataLoader draws for its workers, or a sampler for its own generator."""
    return int(random_(gen, (), np.dtype(np.int64)))


def worker_seed(base: int, worker_id: int) -> int:
    """The seed of the default generator (and of Python's) inside DataLoader worker `worker_id`."""
    return base + worker_id


def numpy_worker_seed(base: int, worker_id: int) -> list[int]:
    """The four words that seed NumPy's global generator inside that worker."""
    entropy = [worker_id, base & 0xFFFFFFFF, base >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()
