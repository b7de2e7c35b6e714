"""Elementwise kernels that JAX traces as calls with a name, so that NumPy's programs run NumPy's form of them in their place.

NumPy and XLA are best served by different formulas of tanh, erf, log1p, ... An operation picks by the array library that it is given, but a
traced function (of vmap, of a derivative) is traced for XLA and then run by NumPy while it is new (numpy_lax): XLA's formula would give it
other last bits there than the operation has alone. Transformations keep the names of calls and change what is in them; a batch of an
elementwise call is the same steps, a derivative is not: only what consists of the kernel's own steps is taken for it.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .jax_settings import engine_settings

_KERNELS: dict[str, Callable] = {}  # by the names of the calls: kernels `(xp, x)`
_PREFIX = "torchlike_"
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def named_call(name: str, kernel: Callable) -> Callable:
    """The elementwise kernel `(xp, x)`, as a call where JAX traces it with real numbers of 32 or 64 bits."""
    def formula(x):
        return kernel(jnp, x)
    formula.__name__ = formula.__qualname__ = _PREFIX + name
    _KERNELS[formula.__name__] = kernel
    traced = jax.jit(formula)

    def run(xp, x):
        return kernel(xp, x) if xp is np or x.dtype not in _DTYPES else traced(x)
    return run


def numpy_form(eqn, inner, steps_of: Callable) -> Callable | None:
    """The function of one array that stands for the call `eqn` of the jaxpr `inner`; None where it is not a kernel's, or no longer.
    `steps_of(jaxpr)` lists the names of its primitives."""
    name = eqn.params.get("name")
    kernel = _KERNELS.get(name) if name.__class__ is str and name.startswith(_PREFIX) else None
    if kernel is None or len(inner.invars) != 1 or len(inner.outvars) != 1:
        return None
    dtype = np.dtype(inner.invars[0].aval.dtype)
    if dtype not in _DTYPES or inner.outvars[0].aval.shape != inner.invars[0].aval.shape or steps_of(inner) != _steps(kernel, dtype, steps_of):
        return None
    return lambda x: (np.asarray(kernel(np, np.asarray(x)), dtype),)


@functools.lru_cache(256)
def _steps(kernel: Callable, dtype: np.dtype, steps_of: Callable) -> list[str]:
    with engine_settings():
        return steps_of(jax.make_jaxpr(functools.partial(kernel, jnp))(jax.ShapeDtypeStruct((), dtype)).jaxpr)
