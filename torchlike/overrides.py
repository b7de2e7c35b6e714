"""torch.overrides: classes that take over functions by `__torch_function__`.

Plain tensors pay nothing for it. A Tensor subclass with its own `__torch_function__` gets dispatching methods when the
class is made, and the functions of `torch` and `torch.nn.functional` begin to look at their arguments then. Importing
this module does the same for classes that are no Tensors.
"""
from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import types as _types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _overridable
from ._core.grad_mode import mode
from ._exchange import exchange, lend, take_back
from ._kinds import only_self
from ._plainly import DisableTorchFunction, DisableTorchFunctionSubclass, _disabled_torch_function_impl, plain_function  # noqa: F401
from ._plainly import state as _state
from ._public import FUNCTIONS
from ._tensor import Tensor, instance

__all__ = ["enable_reentrant_dispatch", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
           "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function"]

_OPERATORS = {"__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul", "__rmul__": "mul",
              "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__matmul__": "matmul", "__neg__": "neg", "__abs__": "abs",
              "__ifloordiv__": "floor_divide_", "__mod__": "remainder", "__imod__": "remainder_", "__pos__": "positive", "__ne__": "ne", "__lt__": "lt",
              "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor"}
_IN_PLACE = frozenset(f"__i{name}__" for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split())
_DUNDERS = (*_OPERATORS, *sorted(_IN_PLACE - _OPERATORS.keys()), "__pow__", "__rsub__", "__rtruediv__", "__rmatmul__", "__rpow__", "__floordiv__",
            "__rfloordiv__", "__mod__", "__rmod__", "__eq__", "__ne__",
            "__lt__", "__le__", "__gt__", "__ge__", "__and__", "__or__", "__xor__", "__invert__", "__getitem__", "__setitem__", "__len__", "__bool__",
            "__float__", "__int__", "__index__", "__contains__", "__repr__", "__format__", "__lshift__", "__rshift__", "__rlshift__", "__rrshift__",
            "__complex__", "__reversed__", "__array__")
_OF_TWO = frozenset(f"__{prefix}{name}__" for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split() for prefix in ("", "r", "i")) | {
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
_COMPARISONS = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_SYMBOLS = {f"__{name}__": symbol for name, symbol in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "** or pow()",
                                                        "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}.items()}
_REFLECTED = frozenset(f"__r{name[2:]}" for name in _SYMBOLS)
# methods that take tensors beside their own, where their signatures do not show it
_OF_SEVERAL = frozenset("bernoulli bernoulli_ fill_ istft nanquantile narrow quantile repeat_interleave set_ stft tensor_split to where __contains__".split()) | _IN_PLACE
_FACTS = frozenset("""__bool__ __float__ __format__ __index__ __int__ __len__ __repr__ dim element_size is_complex is_conj is_contiguous is_floating_point is_neg nelement
    ndimension numel size storage_offset stride""".split())
# asked of any object, or no function of tensors: nobody takes them over
_QUESTIONS = frozenset("""from_numpy get_rng_state handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic initial_seed
    is_storage is_tensor manual_seed seed set_rng_state typename""".split())
_CONVERSIONS = frozenset({"as_tensor", "tensor"})  # modes see them, classes do not
_BY_THEIR_PARTS = frozenset({"lobpcg", "pca_lowrank", "svd_lowrank"})  # of plain tensors: modes see what these call
_PACKAGE = os.path.dirname(__file__)
_SHELL = exchange.__code__.co_filename  # functions that were exchanged call from there
_IN_C = tuple(os.path.join(_PACKAGE, name) for name in ("_", "ops", "autograd", os.path.join("nn", "_functional"), "overrides.py"))  # it is C++ in PyTorch
_MODULES = ("nn.functional", "linalg", "fft", "special")
_INITIALIZERS = ("constant_", "kaiming_uniform_", "normal_", "uniform_")  # those of nn.init that are asked for, by their arguments' names
_COMPOSED = (f"{__package__}.nn._functional.multi_head",)  # functions that are written in Python in PyTorch as well: what they call is asked for, too


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside `__torch_dispatch__`, where nothing is differentiated: a block in which it is."""
    before, mode.enabled = mode.enabled, True
    try:
        yield
    finally:
        mode.enabled = before


def _own(cls: type) -> bool:
    f = getattr(cls, "__torch_function__", None)
    return f is not None and f is not _disabled_torch_function_impl and getattr(f, "__func__", f) is not Tensor.__torch_function__.__func__


def _any(cls: type) -> bool:
    """Whether a class is one that handlers are told of: it may keep Tensor's own `__torch_function__`. Kinds without a Value are plain tensors to torch."""
    return getattr(cls, "__torch_function__", _disabled_torch_function_impl) is not _disabled_torch_function_impl and not getattr(cls, "_sparse", False)


def _overloaded(args: Iterable, takes_over: Callable[[type], bool] = _own, depth: int = 4) -> list:
    """The arguments whose classes take over, one per class, subclasses before their bases. Lists may hold themselves."""
    found: list = []
    for x in args:
        cls = x.__class__
        if cls is Tensor:
            continue
        if cls is list or cls is tuple:
            inner = _overloaded(x, takes_over, depth - 1) if depth else []
        elif takes_over(cls):
            inner = [x]
        else:
            continue
        for y in inner:
            if any(type(y) is type(z) for z in found):
                continue
            place = next((i for i, z in enumerate(found) if issubclass(type(y), type(z))), len(found))
            found.insert(place, y)
    return found


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument's class has its own `__torch_function__`, or a mode is on."""
    if not isinstance(relevant_args, Iterable):
        raise TypeError("expected a sequence")
    if _state.passed_over:
        _state.passed_over = False
        return False
    return bool(_state.modes) or (not _state.disabled and bool(_overloaded(relevant_args, _any)))


def has_torch_function_unary(arg: Any) -> bool:
    """has_torch_function((arg,))."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function(args)."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Ask the mode, then the arguments' classes in turn; TypeError when all return NotImplemented."""
    result = _asked(public_api, relevant_args, args, kwargs)
    if result is not NotImplemented:
        return result
    found = [type(x) for x in _overloaded(relevant_args, _any)]
    nor = f" nor in mode {_state.modes[-1]}" if _state.modes else ""
    raise TypeError(f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that implement __torch_function__: {found}{nor}")


def handed_over(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """handle_torch_function of what is C++ in PyTorch, where the error of nobody taking over has other words."""
    result = _asked(public_api, relevant_args, args, kwargs)
    if result is not NotImplemented:
        return result
    handlers = [*(f"  - mode object {m!r}\n" for m in _state.modes[-1:]), *(f"  - tensor subclass {type(x)}\n" for x in _overloaded(relevant_args, _any))]
    raise TypeError(f"Multiple dispatch failed for '{resolve_name(public_api) or public_api}'; all __torch_function__ handlers returned "
                    f"NotImplemented:\n\n{''.join(handlers)}\nFor more information, try re-running with TORCH_LOGS=not_implemented")


def _asked(public_api: Callable, relevant_args: Iterable[Any], args: tuple, kwargs: dict) -> Any:
    """What the mode, or the first of the arguments' classes that takes over, makes of the call; NotImplemented where none does."""
    overloaded = [] if _state.disabled else _overloaded(relevant_args, _any)
    types = tuple(type(x) for x in overloaded)
    if _state.modes:
        before, _state.modes = _state.modes, _state.modes[:-1]
        try:
            handler = before[-1].__torch_function__
            if isinstance(getattr(handler, "__self__", None), type):
                raise RuntimeError("Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method")
            result = handler(public_api, types, args, kwargs)
        finally:
            _state.modes = before
        if result is not NotImplemented:
            return result
    for x in overloaded:
        handler = x.__torch_function__
        if getattr(handler, "__self__", None) is x and handler is not _disabled_torch_function_impl:
            warnings.warn("Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define it as a "
                          "classmethod.", UserWarning, stacklevel=4)
        result = handler(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def redispatch_function(func: Callable, types: Any, args: tuple, kwargs: dict | None) -> Any:
    """From within a `__torch_function__`: func itself, which nobody is asked to take over, while everything that it calls is asked for."""
    kwargs = kwargs or {}
    if hasattr(func, "_dispatches") or isinstance(func, _types.MethodWrapperType) or getattr(func, "__module__", None) is not None and _is_ours(func):
        with DisableTorchFunction():  # what is C++ in PyTorch calls nothing that could be taken over
            return plain_function(func)(*args, **kwargs)
    before, _state.passed_over = _state.passed_over, True
    try:
        return func(*args, **kwargs)
    finally:
        _state.passed_over = before


def default_torch_function(cls: type, func: Callable, types: Any, args: tuple, kwargs: dict | None) -> Any:
    """What Tensor.__torch_function__ does: the ordinary function, its tensors made `cls`."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if getattr(func, "__self__", None) is Tensor.grad else _converted(result, cls)


def _converted(x: Any, cls: type, holders: int = 3) -> Any:
    if isinstance(x, Tensor):
        if isinstance(x, cls):
            return x
        return instance(x, cls) if sys.getrefcount(x) <= holders and x._plain else x.as_subclass(cls)  # held by nobody but our callers: as it is
    if isinstance(x, (tuple, list)):
        made = [_converted(y, cls, 4) for y in x]
        return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
    return x


# -- dispatching forms ---------------------------------------------------------------------------------------------------


def _dispatching(f: Callable, api: Callable | None = None) -> Callable:
    """f, which first asks its arguments' classes and the modes; `api` is what they are told was called."""
    @functools.wraps(f)
    def call(*args, **kwargs):
        relevant = (*args, *kwargs.values()) if kwargs else args
        if _state.modes or (not _state.disabled and _overloaded(relevant)):
            if _state.passed_over:
                _state.passed_over = False
                with DisableTorchFunction():
                    return f(*args, **kwargs)
            return _hand_on(api or call, relevant, args, kwargs)
        return f(*args, **kwargs)
    call._dispatches = True
    return call


def _hand_on(api: Callable, relevant: tuple, args: tuple, kwargs: dict) -> Any:
    """handed_over, in the form in which torch's own function hands the call on. Classes of this library read arguments as they were given."""
    if not any(map(_of_this_library, (type(_state.modes[-1]),) if _state.modes else map(type, _overloaded(relevant)))):
        from ._torch_names import handed
        api, args, kwargs = handed(api, args, kwargs)
    return handed_over(api, relevant, *args, **kwargs)


def call_operator(operator: Callable, function: Callable, args: tuple, kwargs: dict) -> Any:
    """function(*args, **kwargs), which an operator of `torch.ops` does. Classes of a program's own that take over are told of the operator, this library's
    of the public function, which they know."""
    relevant = (*args, *kwargs.values()) if kwargs else args
    if _state.disabled or not (found := _overloaded(relevant)):
        return function(*args, **kwargs)
    if _state.passed_over:
        _state.passed_over = False
        with DisableTorchFunction():
            return function(*args, **kwargs)
    if not any(_of_this_library(type(x)) for x in found):
        return handed_over(operator, relevant, *args, **kwargs)
    if operator.__module__ != "torch._ops.aten":
        if any(qualified_name(operator) in getattr(type(x), "_operators", ()) for x in found):
            return handed_over(operator, relevant, *args, **kwargs)
        return function(*args, **kwargs)
    name = operator.__name__.partition(".")[0]
    return (getattr(sys.modules[__package__], name, None) or getattr(Tensor, name, None) or function)(*args, **kwargs)


def qualified_name(operator: Callable) -> str:
    """`namespace::name` of an operator or of one of its overloads."""
    return getattr(operator, "_overloadpacket", operator)._qualified_op_name


def _of_this_library(cls: type) -> bool:
    handler = cls.__torch_function__
    return getattr(getattr(handler, "__func__", handler), "__globals__", {}).get("__name__", "").startswith(f"{__package__}.")


def _dispatching_to_modes(f: Callable, api: Callable) -> Callable:
    """`_dispatching`, where classes are not asked."""
    def call(*args, **kwargs):
        return handle_torch_function(api, (), *args, **kwargs) if _state.modes else f(*args, **kwargs)
    return call


def _dispatching_with_others(f: Callable, api: Callable) -> Callable:
    """`_dispatching`, where plain tensors alone are not asked for."""
    asking = _dispatching(f, api)

    def call(*args, **kwargs):
        plain = all(x.__class__ is Tensor or not hasattr(x, "__torch_function__") for x in (*args, *kwargs.values()))
        return (f if plain else asking)(*args, **kwargs)
    return call


def _dispatching_by_name(f: Callable, api: Callable) -> Callable:
    """`_dispatching`, where handlers get every argument by its name."""
    signature = inspect.signature(f)

    def call(*args, **kwargs):
        if _state.modes or (not _state.disabled and _overloaded((*args, *kwargs.values()))):
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            return handle_torch_function(api, (given.arguments["tensor"],), **given.arguments)
        return f(*args, **kwargs)
    return call


def _begin_to_dispatch(f: _types.FunctionType, dispatching: Callable = _dispatching) -> _types.FunctionType:
    """Make f itself look at its arguments, and return a copy of what it was."""
    return exchange(f, lambda plain: dispatching(plain, f), ("_dispatches",))


def _members() -> dict[str, Any]:
    """Tensor's public methods, operators and properties, without those that a program added (fastai's)."""
    return {n: x for n, x in vars(Tensor).items()
            if (n in _DUNDERS or not n.startswith("_")) and n != "as_subclass" and isinstance(x, (_types.FunctionType, property)) and _is_ours(x)}


def _is_ours(member: _types.FunctionType | property) -> bool:
    code = getattr(member.fget if isinstance(member, property) else member, "__code__", None)
    return code is None or code.co_filename.startswith(_PACKAGE)


def _dispatching_member(name: str, x: Any) -> Any:
    if isinstance(x, property):
        getter = _to_programs(lambda self: x.__get__(self), x.__get__)
        setter = None if x.fset is None else _to_programs(lambda self, value: x.__set__(self, value), x.__set__)
        return property(getter, setter, x.fdel)
    return _reflected(x, name) if name in _REFLECTED else _made_member(x, name, reported(name))


def reported(name: str) -> Callable:
    """What classes are told was called where a method or an operator is."""
    return getattr(Tensor, _OPERATORS.get(name, name))


def _made_member(f: Callable, name: str, api: Callable) -> Callable:
    made = _dispatching(f, api)
    return _as_operator(made, name) if name in _OF_TWO else made


def _asking_self(f: Callable, name: str, api: Callable) -> Callable:
    """`_made_member` of a method that takes no tensor but its own."""
    asking = _made_member(f, name, api)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:  # the tensor is in kwargs where torch's function of this name, which has asked, was given it by name
        return (asking if args and args[0].__class__ is not Tensor else f)(*args, **kwargs)
    call._dispatches = True
    return call


def _as_operator(f: Callable, name: str) -> Callable:
    """f, which returns NotImplemented where nobody took over, or a handler raised TypeError: Python asks the other operand then."""
    @functools.wraps(f)
    def call(self: Any, other: Any) -> Any:
        try:
            return f(self, other)
        except TypeError:
            return _refused(name, self, other) if _asks_nobody(other) and name not in _IN_PLACE else NotImplemented
    return call


def _asks_nobody(x: Any) -> bool:
    """Whether x is a tensor whose operators, of which Python would ask next, are those of plain tensors, which do not look at the other operand's class."""
    return isinstance(x, Tensor) and not hasattr(type(x).__add__, "_dispatches")


def _refused(name: str, left: Any, right: Any) -> Any:
    """What Python makes of an operator that both operands' classes answer NotImplemented."""
    if name in ("__eq__", "__ne__"):
        return (left is right) == (name == "__eq__")
    types = f"{type(left).__name__!r} and {type(right).__name__!r}"
    if name in _COMPARISONS:
        raise TypeError(f"{_COMPARISONS[name]!r} not supported between instances of {types}")
    raise TypeError(f"unsupported operand type(s) for {_SYMBOLS[name]}: {types}")


def _reflected(f: Callable, name: str) -> Callable:
    """A subclass's operator for the right operand. Python asks it before the left one's, where that is a plain tensor; PyTorch's classes have none of their own."""
    made, forward = _dispatching(f, reported(name)), "__" + name[3:]
    ahead = _dispatching(getattr(Tensor, forward), reported(forward))

    @functools.wraps(f)
    def call(self: Any, other: Any) -> Any:
        result = _answer(ahead, other, self) if isinstance(other, Tensor) else NotImplemented
        if result is NotImplemented:
            result = _answer(made, self, other)
        return _refused(forward, other, self) if result is NotImplemented and _asks_nobody(other) else result
    call._dispatches = True
    return call


def _answer(f: Callable, left: Any, right: Any) -> Any:
    try:
        return f(left, right)
    except TypeError:
        return NotImplemented


def override(cls: type) -> None:
    """Make the methods of a Tensor subclass that has its own `__torch_function__` dispatch, and Tensor's own, for `super().neg()` and `Tensor.neg(x)`."""
    install()
    _begin_in_methods(cls)
    for name, x in _members().items():
        if hasattr(x, "_dispatches"):
            continue
        own = getattr(cls, name, None)
        if own is x or (isinstance(x, property) and name not in cls.__dict__):
            setattr(cls, name, _dispatching_member(name, x))


def _begin_in_methods(cls: type) -> None:
    """Make Tensor's methods look at their arguments, once. Operators of two operands, which loops call often, and what only asks for a fact, as everything
    does, begin to once a class has its own of that name, which may call them."""
    plain: dict[int, Callable] = {}
    for name, x in _members().items():
        if isinstance(x, _types.FunctionType) and not hasattr(x, "_looks_in_methods") and (
                name in _OF_SEVERAL or name not in _FACTS and name not in _OF_TWO or name in vars(cls)):
            several = name in _OF_SEVERAL or name[:2] != "__" and not only_self(x)
            wrap = functools.partial(_made_member if several else _asking_self, name=name, api=reported(name))
            # an operator stays one that subclasses have of their own: Python asks those first, where they are the right operand's
            before = exchange(x, wrap, ("_looks_in_methods",) if name in _OF_TWO - _OF_SEVERAL else ("_dispatches", "_looks_in_methods"))
            if several:
                plain[id(x)] = before
    if plain:
        _keep_plain(plain)


def install() -> None:
    """Make torch's functions dispatch, once. What torchlike itself calls by its private modules stays plain."""
    root = sys.modules[__package__]
    modules = [sys.modules[name] for name in (f"{__package__}.{name}" for name in _MODULES) if name in sys.modules]
    plain: dict[int, Callable] = {}  # by the id of the function that dispatches
    for scope, names in ((vars(root), FUNCTIONS), *((vars(m), [n for n in vars(m) if n[0] != "_"]) for m in modules)):
        for name in names:
            f = scope.get(name)
            if isinstance(f, _types.FunctionType) and not hasattr(f, "_dispatches") and name not in _QUESTIONS:
                asks = _dispatching_to_modes if name in _CONVERSIONS else _dispatching_with_others if name in _BY_THEIR_PARTS else _dispatching
                plain[id(f)] = _begin_to_dispatch(f, asks)
                f.__module__, f.__qualname__ = scope["__name__"], name  # where pickle finds it
    init = sys.modules.get(f"{__package__}.nn.init")
    for name in _INITIALIZERS if init is not None else ():
        f = getattr(init, name)
        if not hasattr(f, "_dispatches"):
            plain[id(f)] = _begin_to_dispatch(f, _dispatching_by_name)
    if plain:
        _keep_plain(plain)
    for module in [sys.modules[name] for name in _COMPOSED if name in sys.modules]:
        for name, f in [(n, f) for n, f in vars(module).items() if n[0] != "_" and isinstance(f, _types.FunctionType) and not hasattr(f, "_dispatches")]:
            public = getattr(root, name, None)
            setattr(module, name, _dispatching(f, public if inspect.unwrap(public or f) is inspect.unwrap(f) else None))


def _keep_plain(plain: dict[int, Callable]) -> None:
    """In torchlike's private modules, the functions as they were."""
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if name.startswith((f"{__package__}._", f"{__package__}.ops", f"{__package__}.nn._")) and name not in _COMPOSED:
            for word, f in list(vars(module).items()):
                if id(f) in plain:
                    setattr(module, word, plain[id(f)])
    FUNCTIONS.update({name: plain[id(f)] for name, f in FUNCTIONS.items() if id(f) in plain})


def dispatching_form(f: Any) -> Any:
    """What a public function of torch, taken before functions began to dispatch, has become; anything else as it is."""
    if not isinstance(f, _types.FunctionType) or hasattr(f, "_dispatches"):
        return f
    return _forms().get(f, f)


@functools.cache
def _forms() -> dict[Callable, Callable]:
    return {f.__wrapped__: f for f in _dispatching_functions()}


def _dispatching_functions() -> Iterator[_types.FunctionType]:
    scopes = [__package__, *(f"{__package__}.{name}" for name in _MODULES)]
    for scope in [sys.modules[name] for name in scopes if name in sys.modules]:
        yield from [f for f in vars(scope).values() if isinstance(f, _types.FunctionType) and hasattr(f, "_dispatches")]


def outermost(f: Callable) -> Callable:
    """The public function that f is a part of, as what runs inside of autocast's form of it; f itself where there is none."""
    for public in _dispatching_functions():
        inner = public
        while inner is not None:
            if inner is f:
                return public
            inner = getattr(inner, "__wrapped__", None)
    return f


_users = 0  # blocks in which Tensor's own methods dispatch, of all threads


@contextmanager
def dispatching_methods() -> Iterator[None]:
    """Inside the block a plain tensor's methods, too, look for arguments whose classes take over."""
    install()
    _install_methods()
    try:
        yield
    finally:
        _remove_methods()


def _install_methods() -> None:
    """Tensor's own methods dispatch while a mode is on. A mode's handler may enter it again, and leave it, while it is on."""
    global _users
    _users += 1
    if _users > 1:
        return
    for name, x in _members().items():
        if isinstance(x, property):
            for f, api in ((x.fget, x.__get__), (x.fset, x.__set__), (x.fdel, x.__delete__)):
                if f is not None:
                    lend(f, functools.partial(_to_programs, api=api), {"_dispatches": True})
        else:
            lend(x, functools.partial(_made_member, name=name, api=reported(name)), {"_dispatches": True})


def _to_programs(plain: Callable, api: Callable) -> Callable:
    """A property's getter, setter or deleter that is plain to torchlike's own functions, which are C++ in PyTorch."""
    asking = _dispatching(plain, api)

    def access(*args):
        frame = sys._getframe(1)
        if frame.f_code.co_filename == _SHELL:
            frame = frame.f_back
        return (plain if frame.f_code.co_filename.startswith(_IN_C) else asking)(*args)
    return access


def _remove_methods() -> None:
    global _users
    _users -= 1
    if _users:
        return
    for x in _members().values():
        for f in (x.fget, x.fset, x.fdel) if isinstance(x, property) else (x,):
            take_back(f)


class TorchFunctionMode:
    """Inside the block, `__torch_function__(self, func, types, args, kwargs)` stands before every call."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        install()
        _install_methods()
        _state.modes = (*_state.modes, self)
        return self

    def __exit__(self, *exc) -> None:
        _state.modes = _state.modes[:-1]
        _remove_methods()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls what was called."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


# -- questions -----------------------------------------------------------------------------------------------------------


def is_tensor_like(inp: Any) -> bool:
    """Whether inp is a Tensor or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether func is a method of Tensor, or a getter of one of its properties."""
    if getattr(func, "__name__", "") == "__get__":
        return isinstance(getattr(func, "__self__", None), property)
    return any(x is func for x in vars(Tensor).values())


def _module(name: str) -> Any:
    return importlib.import_module(f".{name}" if name else __package__, __package__)


def get_default_nowrap_functions() -> set[Callable]:
    """Getters of tensors that a tensor holds: their results stay what they are where a subclass lets the default handler compute."""
    return {Tensor.grad.__get__}


def get_ignored_functions() -> set[Callable]:
    """Public functions and methods that no class can take over."""
    return _overridable.ignored(_module)


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Functions and methods that classes can take over, by where they are found; a property's getter by the property."""
    return _overridable.listed(_scopes(), get_ignored_functions())


def _scopes() -> dict[Any, Iterable[tuple[str, Any]]]:
    root = _module("")
    names = FUNCTIONS.keys() | set(_overridable.IGNORED[""])
    return {root: [(n, x) for n, x in vars(root).items() if n in names], **{m: list(vars(m).items()) for m in map(_module, (*_MODULES, "nn.init"))},
            Tensor: _members().items()}


def get_testing_overrides() -> dict[Callable, Callable]:
    """For each function that classes can take over one that has its signature and returns -1."""
    return {f: _overridable.stand_in(f) for functions in get_overridable_functions().values() for f in functions}


def resolve_name(f: Callable) -> str | None:
    """`torch.add` for the function, `torch.Tensor.add` for the method; None where nothing is known of it."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, property):
        name = next((n for n, x in vars(Tensor).items() if x is owner), None)
        return None if name is None or f.__name__ == "__delete__" else f"torch.Tensor.{name}.{f.__name__}"
    from ._torch_names import torch_name
    known = torch_name(f)
    if known is not None and known.startswith(("torch.functional.", "torch.nn.functional.")):
        return known
    for scope, functions in reversed(_overridable.listed(_scopes(), set()).items()):
        if any(x == f for x in functions):
            names = sorted((n for n, x in vars(scope).items() if x is f), key=lambda n: n.startswith("_"))
            place = "torch.Tensor" if scope is Tensor else ".".join(["torch", *scope.__name__.split(".")[1:]])  # it may be under torch's name
            return f"{place}.{f.__name__ if f.__name__ in names or not names else names[0]}"
    return None


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorator: the function dispatches on the arguments that `dispatcher(*args, **kwargs)` returns."""
    def wrap(f):
        @functools.wraps(f)
        def call(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return f(*args, **kwargs)
        return call
    return wrap


install()
