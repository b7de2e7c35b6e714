"""associative_scan: x0, x0 x1, x0 x1 x2, ... of an associative function, in as many rounds as the logarithm of their number."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._arguments import as_dim
from .._functorch.vmap import vmap
from .._tensor import Tensor
from ..ops.joining import cat, stack
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten

_MODES = ("pointwise", "generic")


def associative_scan(combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """Results of combine_fn along dim, of one tensor or of trees of tensors. It is called with many pairs at once: in the mode
    `generic` through vmap, in `pointwise` (on GPUs only, as in PyTorch) as it is."""
    leaves, spec = tree_flatten(xs)
    if leaves and isinstance(leaves[0], Tensor):
        dim = as_dim(dim, leaves[0].ndim)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    if combine_mode == "generic":
        combine_fn = vmap(combine_fn)

    def combine(left: list, right: list) -> list:
        made = tree_leaves(combine_fn(tree_unflatten(left, spec), tree_unflatten(right, spec)))
        if len(made) != len(left):
            raise RuntimeError(f"The number of leaves of the pytree of the new carry should match that of xs: got {len(made)}, expected {len(left)}")
        return made
    moved = [x.movedim(dim, 0) for x in leaves]
    found = _scanned(combine, [x.flip(0) for x in moved] if reverse else moved)
    return tree_unflatten([(x.flip(0) if reverse else x).movedim(0, dim) for x in found], spec)


def _check(combine_fn: Any, leaves: list, dim: Any, reverse: Any, combine_mode: str) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in _MODES:
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise" and not all(x.device.type in ("cuda", "xpu") for x in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if any(x.ndim <= dim or x.shape[dim] == 0 for x in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")


def _scanned(combine: Callable, xs: list) -> list:
    """Along the first dimension: neighbours are combined and scanned, which gives every second result; one step more gives the others."""
    n = xs[0].shape[0]
    if n < 2:
        return xs
    odd = _scanned(combine, combine([x[:-1:2] for x in xs], [x[1::2] for x in xs]))
    even = [x[:1] for x in xs]
    if n > 2:
        rest = combine([x[:(n - 1) // 2] for x in odd], [x[2::2] for x in xs])
        even = [cat([first, more]) for first, more in zip(even, rest)]
    half = n // 2
    return [cat([stack([e[:half], o], 1).flatten(0, 1), e[half:]]) for e, o in zip(even, odd)]
