"""map: a function of one row after another, results stacked."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..ops.joining import stack
from ..utils._pytree import tree_flatten, tree_unflatten


def map(f: Callable, xs: Any, *args: Any) -> Any:  # noqa: A001 (torch's name)
    """f(row, *args) for the rows of `xs`, a tensor or a tree of tensors whose first dimensions agree."""
    leaves, spec = tree_flatten(xs)
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    if any(not x.ndim or x.shape[0] != leaves[0].shape[0] for x in leaves):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {[x.shape for x in leaves]}.")
    if not leaves or leaves[0].shape[0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    rows = [f(tree_unflatten(list(row), spec), *args) for row in zip(*leaves)]
    columns = zip(*(tree_flatten(r)[0] for r in rows))
    return tree_unflatten([None if c[0] is None else stack(list(c)) for c in columns], tree_flatten(rows[0])[1])
