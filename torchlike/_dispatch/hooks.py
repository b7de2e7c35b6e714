"""What functions do for tensors that dispatch where no operation of theirs is recorded: they ask for a number, or make tensors of a size.

Installed once, with the first class that dispatches. Each looks whether its first argument does, and hands the operator of its name on.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from .. import _leaves
from .._arguments import as_size
from .._aten_schemas import schemas
from .._exchange import exchange
from .._ops import aten, refresh
from .._plainly import dispatching
from .._public import FIRST, FUNCTIONS
from .._tensor import Tensor
from ..nn import functional
from . import backward, forms, functions, indexing, writes

_LIKE = "zeros_like ones_like empty_like full_like rand_like randn_like randint_like".split()
_NEW = "new_zeros new_ones new_empty new_full new_empty_strided".split()
_SAME = "nonzero equal allclose bincount".split()
_done: list[bool] = []


def _dispatching(x: Any) -> bool:
    return isinstance(x, Tensor) and x._dispatches and not dispatching.disabled


def _where_dispatching(f: Callable, handed: Callable, second: bool = False) -> Callable:
    """f, or `handed` where the first argument (or the second) dispatches."""
    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        if args and _dispatching(args[0]) or second and any(map(_dispatching, args[1] if args[1].__class__ is tuple else args[1:2])):
            return handed(*args, **kwargs)
        return f(*args, **kwargs)
    return run


def _made(func: Any, args: tuple, kwargs: dict) -> Tensor:
    """A tensor that a factory makes."""
    wants = kwargs.pop("requires_grad", False)
    given = {name: x for name, x in kwargs.items() if x is not None and not (name == "memory_format" and str(x) == "torch.preserve_format")}
    given.setdefault("pin_memory", False)
    made = _leaves.hand_on(func, *args, **given)
    return made.requires_grad_() if wants else made


def _like(name: str) -> Callable:
    def handed(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        overload = "low_dtype" if name == "randint_like" and len(args) > 1 else "default"
        if name == "full_like" and "fill_value" in kwargs:
            args = (*args, kwargs.pop("fill_value"))
        return _made(getattr(getattr(aten, name), overload), (input, *args), kwargs)
    return handed


def _new(name: str) -> Callable:
    def handed(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
        if "size" in kwargs:
            size = (kwargs.pop("size"), *size)
        if name in ("new_full", "new_empty_strided"):
            rest = (kwargs.pop("fill_value"),) if "fill_value" in kwargs else size[1:]
            given = (list(size[0]), *(list(x) if isinstance(x, tuple) else x for x in rest))
        else:
            given = (list(as_size(*size)),)
        return _made(getattr(aten, name).default, (self, *given), kwargs)
    return handed


def _same(name: str) -> Callable:
    def handed(*args: Any, **kwargs: Any) -> Any:
        if name == "nonzero" and kwargs.pop("as_tuple", False):
            return handed(*args).unbind(1)
        return _leaves.hand_on(getattr(aten, name).default, *args, **kwargs)
    return handed


def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    if dim is not None:
        raise NotImplementedError(f"torchlike: unique along a dimension of a {type(input).__name__}, whose class dispatches")
    given = (sorted, return_inverse, return_counts) if return_counts else (sorted, return_inverse) if return_inverse else () if sorted else (sorted,)
    made = _leaves.hand_on(aten._unique2.default, input, *given)
    wanted = [made[0], *([made[1]] if return_inverse else []), *([made[2]] if return_counts else [])]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def _new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any) -> Tensor:
    """Of numbers, a plain one, as in torch."""
    return FUNCTIONS["tensor"](data, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device, requires_grad=requires_grad)


def _item(self: Tensor) -> Any:
    if self._value.aval.numel != 1:
        raise RuntimeError(f"a Tensor with {self._value.aval.numel} elements cannot be converted to Scalar")
    found = _leaves.hand_on(aten._local_scalar_dense.default, self)
    return found.item() if isinstance(found, Tensor) else found


def _truth(self: Tensor) -> bool:
    n = self._value.aval.numel
    if n != 1:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if n == 0 else
                           "Boolean value of Tensor with more than one value is ambiguous")
    return bool(self.item())


def _refused(name: str, ending: Callable) -> Callable:
    def handed(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f".{name}() is not supported for tensor subclasses{ending(self)}")
    return handed


def _data_ptr(self: Tensor) -> int:
    data = self._storage.data
    return 0 if data is None else data.data_ptr()


def _untyped_storage(self: Tensor) -> Any:
    data = self._storage.data
    return (FUNCTIONS["empty"](self.shape, dtype=self.dtype, device="meta") if data is None else data).untyped_storage()


def _exchange_in(scopes: tuple, name: str, wrap: Callable) -> None:
    names = (name, *(n for n, first in FIRST.items() if first == name))
    for f in {id(f): f for f in (scope.get(n) for scope in scopes for n in names) if f is not None}.values():
        exchange(f, wrap, ("_hands_on",))


def _with_operators(*scopes: Mapping[str, Any]) -> list[tuple[str, FunctionType]]:
    """The functions that have operators of their names, and no form of their own here."""
    others = {*_LIKE, *_NEW, *_SAME, *functions.HANDED, "unique", "item"}
    found = {id(f): (name, f) for scope in scopes for name, f in scope.items() if f.__class__ is FunctionType and name[0] != "_" and name[-1] != "_"}
    return [(name, f) for name, f in found.values() if name not in others and (name == "linear" or schemas(name))]


def install() -> None:
    """Make functions look, once."""
    if _done:
        return
    _done.append(True)
    members, functions_of = vars(Tensor), (vars(sys.modules[__package__.partition(".")[0]]), FUNCTIONS)
    for name, made in {**{n: _like(n) for n in _LIKE}, **{n: _new(n) for n in _NEW}, **{n: _same(n) for n in _SAME},
                       "unique": _unique}.items():
        _exchange_in((*functions_of, members), name, lambda f, made=made: _where_dispatching(f, made))
    for name, made in {"item": _item, "new_tensor": _new_tensor, "data_ptr": _data_ptr, "untyped_storage": _untyped_storage,
                       "__bool__": _truth, "tolist": _refused("tolist", lambda t: f", got {type(t).__name__}"),
                       "numpy": _refused("numpy", lambda t: ".")}.items():
        _exchange_in((members,), name, lambda f, made=made: _where_dispatching(f, made))
    for name, made in functions.HANDED.items():
        _exchange_in((*functions_of, vars(functional), members), name, lambda f, made=made: functions.where_any_dispatches(f, made))
    for name, f in _with_operators(*functions_of, vars(functional), members):
        exchange(f, functools.partial(forms.otherwise, name))
    for symbol, name in forms.OPERATORS.items():
        exchange(members[f"__{symbol}__"], functools.partial(forms.otherwise, name))
    _exchange_in((members,), "__setitem__", lambda f: _where_dispatching(f, indexing.writing, second=True))
    _exchange_in((members,), "__getitem__", indexing.reading)
    writes.install(*functions_of)
    refresh()
    _leaves.stay()
    backward.install()
