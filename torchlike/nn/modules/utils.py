"""Small helpers of the layer files: size tuples, type names, state-dict prefixes."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from torchlike._tensor import Tensor
from torchlike.nn import functional


class Named:
    """A class's function of nn.functional, looked up when it is called: functions begin to dispatch once a mode or a subclass asks for that."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, obj: Any, cls: type) -> Callable:
        return getattr(functional, self.name)


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """(a, b) -> (b, b, a, a) for n = 2: the order in which `F.pad` wants what a convolution calls padding."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> list[int]:
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size):])]


def typename(obj: Any) -> str:
    """The name error messages give to an object's type: `torch.FloatTensor`, `int`, `package.Class`."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    module = cls.__module__
    if module in ("builtins", None):
        return cls.__qualname__
    return f"{module.replace('torchlike', 'torch', 1) if module.startswith('torchlike') else module}.{cls.__qualname__}"


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove `prefix` from the keys of a state dict (and of its `_metadata`), in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix):]] = metadata.pop(key)
