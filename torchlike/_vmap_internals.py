"""torch._vmap_internals: the vmap that came before torch.func, under the name that libraries (torchmin) import."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._functorch.vmap import vmap as _newer
from .utils._pytree import tree_flatten, tree_unflatten

in_dims_t = out_dims_t = int | tuple


def _vmap(func: Callable, in_dims: in_dims_t = 0, out_dims: out_dims_t = 0, allow_none_pass_through: bool = False) -> Callable:
    """torch.vmap; with `allow_none_pass_through` func may return None among tensors, which stays None."""
    if not allow_none_pass_through:
        return _newer(func, in_dims, out_dims)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        spec, present = None, []

        def tensors_only(*examples: Any) -> tuple:
            nonlocal spec
            leaves, spec = tree_flatten(func(*examples))
            present[:] = [x is not None for x in leaves]
            return tuple([x for x in leaves if x is not None])
        found = iter(_newer(tensors_only, in_dims, out_dims)(*args))
        return tree_unflatten([next(found) if there else None for there in present], spec)
    return wrapped


vmap = _vmap
