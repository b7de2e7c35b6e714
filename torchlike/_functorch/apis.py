"""vmap in a given number of pieces, beside the transforms that libraries look for here."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._public import FUNCTIONS
from ..func._transforms import grad, grad_and_value  # noqa: F401
from ..random import get_rng_state, set_rng_state
from ..utils._pytree import tree_flatten, tree_unflatten
from .vmap import _get_name, _out_dims, _process_batched_inputs, vmap


def chunk_vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2) -> Callable:
    """vmap that cuts the batch into `chunks` pieces and maps over one after the other. With `randomness` "same" all pieces draw
    the same numbers. ValueError where the batch has fewer examples than there shall be pieces."""
    each = vmap(func, in_dims=in_dims, out_dims=out_dims, randomness=randomness)
    if chunks == 1:
        return each

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        _, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
        pieces = [None if d is None else x.chunk(chunks, d) for x, d in zip(flat, dims)]
        count = min(len(p) for p in pieces if p is not None)
        state = get_rng_state() if randomness == "same" else None
        results = []
        for i in range(count):
            if state is not None:
                set_rng_state(state)
            results.append(each(*tree_unflatten([x if p is None else p[i] for x, p in zip(flat, pieces)], spec), **kwargs))
        leaves, out_spec = tree_flatten(results[0])
        places = _out_dims(_get_name(func), out_dims, leaves, out_spec)
        columns = zip(*(tree_flatten(r)[0] for r in results))
        return tree_unflatten([c[0] if d is None else FUNCTIONS["cat"](list(c), d) for c, d in zip(columns, places)], out_spec)
    return wrapped
