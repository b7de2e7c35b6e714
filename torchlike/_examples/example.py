"""A model and the arguments that show what it does."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .._tensor import Tensor
from ..nn import Module
from ..utils._pytree import tree_flatten, tree_unflatten


class Example:
    """A model and the arguments that show what it does."""

    def __init__(self, model: Module, args: tuple, kwargs: dict, ordered: bool = True, method: str = "forward") -> None:
        """ordered: keyword arguments in the order of their parameters, not as they are given. method: which one of the model's runs."""
        self.model, self.args, self.kwargs = model, args, kwargs
        self.run = model if method == "forward" else getattr(model, method)
        self.named = list(_named(getattr(model, method), args, kwargs))
        if not ordered:
            self.named[len(args):] = kwargs.items()
        leaves, self.structure = tree_flatten([x for _, x in self.named])
        self.leaves = leaves
        self.places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        self.tensors = [leaves[i] for i in self.places]
        self.names = [name for named in self.named for name in _names(*named)]

    def call(self, tensors: list[Tensor]) -> Any:
        """The model's results with these in place of the example's tensors."""
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors):
            leaves[i] = t
        values = iter(tree_unflatten(leaves, self.structure))
        args = [next(values) for _ in self.args]
        return self.run(*args, **dict(zip([name for name, _ in self.named[len(args):]], values)))


def _named(f: Callable, args: tuple, kwargs: dict) -> Iterator[tuple[str, Any]]:
    """Arguments with their parameters' names, positional ones first."""
    parameters = list(inspect.signature(f).parameters.values())
    several = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for i, x in enumerate(args):
        yield (plain[i] if i < len(plain) else f"{several}_{i - len(plain)}"), x
    order = {p.name: i for i, p in enumerate(parameters)}
    yield from sorted(kwargs.items(), key=lambda item: order.get(item[0], len(order)))


def _names(name: str, x: Any) -> Iterator[str]:
    """A name for each tensor in an argument: `x`, `pair_0`, `batch_key`."""
    if isinstance(x, Tensor):
        yield name
    elif isinstance(x, Mapping):
        for key in x:
            yield from _names(f"{name}_{key}", x[key])
    elif isinstance(x, (tuple, list)):
        for i, y in enumerate(x):
            yield from _names(f"{name}_{i}", y)
    else:
        for i, _ in enumerate(y for y in tree_flatten(x)[0] if isinstance(y, Tensor)):
            yield f"{name}_{i}"


# -- other tensors in the place of the example's ------------------------------------------------------------------------------


def resized(t: Tensor, shape: tuple) -> Tensor:
    """t with its contents repeated, or cut, to these sizes."""
    from .. import arange
    for d, n in enumerate(shape):
        if n != t.shape[d]:
            t = t.detach().index_select(d, arange(n, device=t.device) % t.shape[d])
    return t


def other(t: Tensor, k: int) -> Tensor:
    """Other data of the same kind, of which a mask chooses another number: the first half of t twice; or half of it, in zeros."""
    from .. import arange
    flat = t.detach().reshape(-1)
    at = arange(flat.numel(), device=t.device)
    made = flat[at // 2] if k == 1 else flat * (at % 3 == 0)
    return (made if k == 1 or not t.is_floating_point() else -made).to(t.dtype).reshape(t.shape)
