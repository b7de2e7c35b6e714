"""torch._vmap_internals: vmap as it was called before `torch.vmap`; libraries of that time take Jacobians with it."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ._public import FUNCTIONS
from .func import vmap as _vmap_of_func

in_dims_t, out_dims_t = int | tuple, int | tuple[int, ...]


def vmap(func: Callable, in_dims: in_dims_t = 0, out_dims: out_dims_t = 0) -> Callable:
    """`torch.vmap(func, in_dims, out_dims)`."""
    warnings.warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2)
    return _vmap_of_func(func, in_dims, out_dims)


def _vmap(func: Callable, in_dims: in_dims_t = 0, out_dims: out_dims_t = 0, allow_none_pass_through: bool = False) -> Callable:
    """The same without the warning; with `allow_none_pass_through` results that are None stay so."""
    if not allow_none_pass_through:
        return _vmap_of_func(func, in_dims, out_dims)

    def mapped(*args: Any) -> Any:
        missing: list[bool] = []

        def with_places(*inner: Any) -> Any:
            results = func(*inner)
            if not isinstance(results, tuple):
                return results
            missing[:] = [r is None for r in results]
            return tuple([FUNCTIONS["zeros"]((1,) * 8) if r is None else r for r in results])  # has any dimension that out_dims may name
        found = _vmap_of_func(with_places, in_dims, out_dims)(*args)
        return tuple([None if m else r for m, r in zip(missing, found)]) if missing else found
    mapped.__name__ = getattr(func, "__name__", "mapped")
    return mapped
