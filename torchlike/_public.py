"""From one Python function to torch's names for it: `torch.f`, `Tensor.f`, `Tensor.f_` / `torch.f_`, and `out=`."""
from __future__ import annotations

import functools
import importlib
import inspect
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from . import _autocast
from ._arguments import converts
from ._core.aval import broadcast_shapes
from ._core.layout import overlapping
from ._exchange import copied
from ._kinds import blame, combination, signature_of
from ._older_orders import FACTORS, newer
from ._out import ALONG_DIM, APART, BY_OUT, MADE_APART, OF_ALL_IF_BOOL, PARTLY, WRITES_APART, by_out, writer
from ._tensor import Tensor
from ._writing import check_apart, check_partly_same, fill_out, fill_outs, refuse_cast, write_into

FUNCTIONS: dict[str, Callable] = {}  # torch.*
FIRST: dict[str, str] = {}  # second names of functions (`arctan`, and `__name__` of what `torch.special` has), with the first ones, by which tables know them
SPARSE_FORMS: dict[str, Callable] = {}  # by torch's name: what runs where an argument is sparse; `torchlike.sparse` fills it
Tensors = Sequence[Tensor]


class Refused(NotImplementedError):
    """A tensor without a Value (`_valueless.py`) was about to be read as if it had one."""

    def __init__(self, name: str, backend: str, forms: dict[str, Callable] | None = None):
        self.backend, self.forms = backend, forms or {}
        super().__init__(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. This could be because the operator doesn't exist "
                         "for this backend, or because torchlike does not have it yet.")


Refused.__name__ = Refused.__qualname__ = "NotImplementedError"  # what users know


class _Missing:
    """The default of an argument for which torch refuses None."""

    def __repr__(self):
        return "<missing>"


SPREAD = frozenset({"squeeze", "broadcast_to", "count_nonzero"})  # their one argument is a list of ints, which methods take apart as well: `x.squeeze(0, 1)`
MISSING: Any = _Missing()
EVERY_DIM = MISSING  # of a `dim`


def public(*, function: bool = True, method: bool = True, inplace: bool = False, out: bool = False,
           names: tuple[str, ...] = (), repeating: Callable | None = None) -> Callable:
    """Decorator: publishes a function written for Tensors under torch's names.

    function  `torch.<name>`; method `Tensor.<name>` (the first parameter is the tensor)
    inplace   also `Tensor.<name>_` and `torch.<name>_`, which write the result into the first argument
    out       `torch.<name>(..., out=t)` writes into t (a tuple of tensors for several results)
    names     second names (`torch.concat` of `cat`), each of a function of its own, which says so
    repeating the in-place form for a tensor whose elements are partly one place in memory (`expand`); without it that is an error
    """
    def register(f: Callable) -> Callable:
        f = _autocast.wrap(f)
        first = f.__name__ = f.__name__.removeprefix("_")
        for name in (first, *names):
            if name != first:
                FIRST[name] = first
            if function:
                FUNCTIONS[name] = named_as(name, with_out(f) if out else called(f))
            if method:
                setattr(Tensor, name, f if name == first else named_as(name, copied(f)))
            if inplace:
                if name != first:
                    FIRST[name + "_"] = first + "_"
                setattr(Tensor, name + "_", in_place(f, name + "_", repeating))
                FUNCTIONS[name + "_"] = in_place(f, name + "_", repeating, first=1)  # as in torch no method: classes take them over one by one
        return f
    return register


def named_as(name: str, f: FunctionType) -> FunctionType:
    """f, which was made for this name and says so."""
    f.__name__ = f.__qualname__ = name
    return f


def first_name(f: Callable) -> str:
    """The name by which tables know a function of torch or a method: that of `torch.arctan` is `atan`."""
    name = f.__name__
    return FIRST.get(name, name)


def second(name: str, f: Callable) -> Callable:
    """A function of its own that does what the public function f does, and says that it is `name`."""
    FIRST[name] = first_name(f)
    inner = f.__wrapped__
    return named_as(name, with_out(inner) if "out" in (f.__kwdefaults__ or {}) else called(inner))


def finish_methods() -> None:
    """Make methods with arguments tell of wrong ones, each say what it is called, and those of two names be two functions."""
    known: dict[int, str] = {}
    for name, f in [*vars(Tensor).items()]:
        if f.__class__ is not FunctionType or name[0] == "_" and not name.startswith("__"):
            continue
        made = f
        if known.get(id(f), name) != name or f.__name__ != name and getattr(Tensor, f.__name__, None) is f:
            FIRST.setdefault(name, known.get(id(f), f.__name__))
            made = copied(f)
        known[id(f)] = name
        if name in _IN_PYTHON:
            made = copied(made)
            made.__qualname__ = f"Tensor.{name}"
        if name[0] != "_" and not is_wrapped(f) and _takes_more(f):
            made = called(made, method=True)
            made._counts = name not in _IN_PYTHON
        if made is not f:
            setattr(Tensor, name, made)
        made.__name__ = _SHOWN.get(name, name)


def _takes_more(f: FunctionType) -> bool:
    """Whether f has parameters beside its first: read off its code, as a signature takes 50 us and hundreds of methods are asked."""
    code = inspect.unwrap(f).__code__
    return code.co_argcount + code.co_kwonlyargcount > 1 or bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


_copies: dict[int, Callable] = {}  # of methods, as functions
# methods that PyTorch has in Python, which counts their arguments and tells their class
_IN_PYTHON = frozenset("""backward dim_order is_shared istft lu module_load norm register_hook register_post_accumulate_grad_hook resize resize_as share_memory_
    split stft storage storage_type to_sparse_coo unflatten unique unique_consecutive""".split())
# operators that say that they are another method
_SHOWN = {"__abs__": "abs", "__neg__": "neg", "__pos__": "positive", "__pow__": "pow", "__ipow__": "pow_", "__rtruediv__": "__rdiv__", "__itruediv__": "__idiv__"}


def importable(module: ModuleType, prefix: str = "") -> None:
    """Give a module's public functions the names by which they are found there, where their own lead elsewhere: pickle writes them down.
    What they say they are called (`__name__`) begins with `prefix`.

    One that is a method as well becomes a function of its own: `overrides` makes functions look at their arguments, and leaves methods alone.
    """
    methods = {id(x) for x in vars(Tensor).values()}
    for name, f in list(vars(module).items()):
        if f.__class__ is not FunctionType or name[0] == "_":
            continue
        if id(f) in methods:
            made = _copies.get(id(f))
            if made is None:
                made = _copies[id(f)] = copied(f)
            setattr(module, name, made)
            if FUNCTIONS.get(name) is f:
                FUNCTIONS[name] = made
            f = made
        if f.__name__[0] == "_":
            f.__name__ = name
        if not f.__name__.startswith(prefix):
            FIRST[prefix + name], f.__name__ = f.__name__, prefix + name
        if getattr(sys.modules.get(f.__module__), f.__qualname__, None) is not f:
            f.__module__, f.__qualname__ = module.__name__, name


# -- a call from outside: NumPy's names of arguments, `out=`, and torch's error where an argument is of the wrong kind ------------


def called(f: Callable, method: bool = False) -> Callable:
    """f as users call it: NumPy's names of arguments; torch's TypeError instead of what an argument of the wrong kind led to."""
    words = _numpy_words(f)

    @functools.wraps(f)
    def run(*args, **kwargs):
        try:
            if kwargs and words:
                _translate(words, kwargs, f)
            return f(*args, **kwargs)
        except Exception as error:
            repeat = _mended(f, run, args, kwargs, error, method)
            if repeat is None:
                raise
        return repeat()

    if method and not words and list(signature_of(f).parameters)[1:] == ["other"]:
        packed = run

        @functools.wraps(f)
        def run(self, other=MISSING, *more, **named):  # loops call these often: no packing of arguments
            if other is MISSING or more or named:
                return packed(self, *((other, *more) if other is not MISSING else ()), **named)
            try:
                return f(self, other)
            except Exception as error:
                repeat = _mended(f, run, (self, other), {}, error, method)
                if repeat is None:
                    raise
            return repeat()
    return run


def looking(f: Callable) -> Callable:
    """f, which tells of wrong arguments itself, and has other forms for tensors without a Value."""
    @functools.wraps(f)
    def run(*args, **kwargs):
        try:
            return f(*args, **kwargs)
        except Exception as error:
            form = _form_for(f.__name__, args, kwargs, error)
            if form is None:
                raise
        return form(*args, **kwargs)
    return run


def asking(f: Callable) -> Callable:
    """f, which is called once more where it failed for an argument whose class takes functions over."""
    @functools.wraps(f)
    def run(*args, **kwargs):
        try:
            return f(*args, **kwargs)
        except Exception as error:
            if not others_take_over(args, kwargs, error):
                raise
        return _outermost(run)(*args, **kwargs)
    return run


def _mended(f: Callable, run: Callable, args: tuple, kwargs: dict, error: Exception, method: bool) -> Callable | None:
    """What to call instead of f, which failed with `error`; None where nothing is. Raises torch's error where an argument is of the wrong kind."""
    form = _form_for(f.__name__, args, kwargs, error)
    if form is not None:
        return functools.partial(form, *args, **kwargs)
    if _is_of_class(f, args):
        return functools.partial(run, *args[1:], **kwargs)
    older = _older(f, args, kwargs, error, method=method)
    if older is not None:
        return functools.partial(f, *older[0], **older[1])
    if method:
        if f.__name__ in SPREAD and len(args) > 2 and isinstance(error, TypeError) and not kwargs and all(converts(operator.index, n) for n in args[1:]):
            return functools.partial(f, args[0], args[1:])
        taken = taken_over(run.__name__, args, kwargs)
        if taken is not NotImplemented:
            return lambda: taken
    elif others_take_over(args, kwargs, error):
        return functools.partial(_outermost(run), *args, **kwargs)
    blame(f, args, kwargs, error, 0 if method else 1, run.__name__, getattr(run, "_counts", True))
    return None


def _is_of_class(f: Callable, args: tuple) -> bool:
    """Whether a failed call came by an instance whose class has f for an attribute (`activation = torch.relu`): PyTorch's functions are
    built in, so that they do not become methods there."""
    if not args or isinstance(args[0], (Tensor, type)):
        return False
    inner = inspect.unwrap(f)
    return any(x.__class__ is FunctionType and inspect.unwrap(x) is inner for c in type(args[0]).__mro__ for x in vars(c).values())


def _of_others(args: Iterable, inside: bool = False) -> bool:
    """Whether an argument, or what a list of tensors among them holds, is no tensor, and its class takes functions over."""
    return any(not inside and _of_others(x, True) if x.__class__ in (list, tuple) else hasattr(x, "__torch_function__") and not isinstance(x, (Tensor, type))
               for x in args)


class _Begun(Exception):
    """Functions began to look at their arguments inside of a function that calls others: that one is called again."""


def others_take_over(args: tuple, kwargs: dict, error: Exception | None = None) -> bool:
    """Whether a call of a function failed for an argument whose class takes functions over, and functions begin to look at their arguments now."""
    if error.__class__ is not _Begun and f"{__package__}.overrides" in sys.modules:
        return False
    if not _of_others((*args, *kwargs.values())):
        return False
    importlib.import_module(f"{__package__}.overrides")
    if _calls_around() > 1:
        raise _Begun from None
    return True


def _outermost(run: Callable) -> Callable:
    """What users call, of which `run` is a part, once functions look at their arguments."""
    return sys.modules[f"{__package__}.overrides"].outermost(run)


def _calls_around() -> int:
    """How many public functions are under way here, each called by the one before."""
    codes = [c for f in (called, with_out, asking) for c in f.__code__.co_consts if getattr(c, "co_name", "") == "run"]
    package, frame, count = os.path.dirname(__file__) + os.sep, sys._getframe(1), 0
    while frame is not None and frame.f_code.co_filename.startswith(package):
        count += frame.f_code in codes
        frame = frame.f_back
    return count


def taken_over(name: str, args: tuple, kwargs: dict) -> Any:
    """What the class of an argument that is no tensor makes of a failed call of a method (or its namesake in torch); NotImplemented where nobody takes it over."""
    relevant = (*args, *kwargs.values())
    if not _of_others(relevant):
        return NotImplemented
    overrides = importlib.import_module(f"{__package__}.overrides")
    owner = Tensor if isinstance(args[0], Tensor) else sys.modules[__package__]
    return overrides.handed_over(getattr(owner, name), relevant, *args, **kwargs) if overrides.has_torch_function(relevant) else NotImplemented


def _form_for(name: str, args: tuple, kwargs: dict, error: Exception) -> Callable | None:
    """What runs instead of torch's function `name`, whose call failed with `error`, for the tensors without a Value that it was given."""
    return sparse_form(name, error) if error.__class__ is Refused else _quantized_form(name, args, kwargs)


def sparse_form(name: str, error: Refused) -> Callable:
    """What runs where a call of torch's function `name` came upon a tensor without a Value."""
    found = error.forms.get(name)
    if found is None:
        raise error
    return found


def _quantized_form(name: str, args: tuple, kwargs: dict) -> Callable | None:
    """What runs for a quantized argument, where something else of it was asked first: its type is none that kernels know."""
    return next((a.forms.get(name) for a in (*args, *kwargs.values()) if isinstance(a, Tensor) and a._sparse and a.is_quantized), None)


ARRAY_WORDS = {"x": "input", "a": "input", "x1": "input", "x2": "other"}  # names by which NumPy has them, and torch takes them too


def _older(f: Callable, args: tuple, kwargs: dict, error: Exception, shown: str | None = None, method: bool = False) -> tuple[tuple, dict] | None:
    """The arguments of a failed call by today's names and in today's order, where they came by others that PyTorch still takes."""
    if not isinstance(error, TypeError):
        return None
    if not ARRAY_WORDS.keys().isdisjoint(kwargs):
        names = signature_of(f).parameters
        found = {w: ARRAY_WORDS[w] for w in kwargs.keys() & ARRAY_WORDS.keys() if w not in names and ARRAY_WORDS[w] in names}
        if found and not kwargs.keys() & set(found.values()) and len(set(found.values())) == len(found):
            return args, {found.get(name, name): x for name, x in kwargs.items()}
    return newer(f.__name__, args, kwargs, shown, method) if f.__name__ in FACTORS else None


def with_out(f: Callable) -> Callable:
    """`called(f)` with torch's `out=` argument."""
    f = _autocast.wrap(f)
    words, name = _numpy_words(f), f.__name__
    plain = f.__wrapped__ if hasattr(f, "__autocast__") else f  # with `out`, functions do not follow autocast

    @functools.wraps(f)
    def run(*args, out=None, **kwargs):
        try:
            if kwargs and words:
                _translate(words, kwargs, f)
            if out is None:
                return f(*args, **kwargs)
            if isinstance(out, Tensor):
                if name in APART:
                    check_apart(out, args)
                elif out._storage is not None and name not in MADE_APART:
                    check_partly_same(out, args)
                if name in ALONG_DIM and len(args) < 2 and "dim" not in kwargs or name in OF_ALL_IF_BOOL and _of_all(args, kwargs):
                    raise combination(name, args, {"out": out, **kwargs})
                if name in BY_OUT:
                    by_out(name, out.dtype, kwargs)
            elif others_take_over((out,), {}):
                return _outermost(run)(*args, out=out, **kwargs)
            elif name in APART:
                check_apart(out[0], args)
            elif name in PARTLY and out[0]._storage is not None:
                check_partly_same(out[0], args)
            result = plain(*args, **kwargs)
        except Exception as error:
            if error.__class__ is Refused:
                made = sparse_form(f.__name__, error)(*args, **kwargs)
                return made if out is None else _sparse_into(out, made, f.__name__, error)
            form = _quantized_form(name, args, kwargs) if out is None else None
            if form is not None:
                return form(*args, **kwargs)
            if _is_of_class(f, args):
                return run(*args[1:], out=out, **kwargs)
            older = _older(f, args, kwargs, error)
            if older is None:
                if others_take_over((*args, out), kwargs, error):
                    return _outermost(run)(*args, **kwargs) if out is None else _outermost(run)(*args, out=out, **kwargs)
                blame(f, args, kwargs, error, 1, run.__name__)
                raise
            return run(*older[0], out=out, **older[1])
        return fill_out(out, result, name=writer(name, args, kwargs)) if isinstance(result, Tensor) else fill_outs(out, result, name)
    return run


def _of_all(args: tuple, kwargs: dict) -> bool:
    """Whether `unbiased` is given without a dimension."""
    return args[1].__class__ is bool if len(args) > 1 else kwargs.get("unbiased") is not None and "dim" not in kwargs


def _sparse_into(out: Tensor, made: Tensor, name: str, error: Refused) -> Tensor:
    """A sparse form's result in `out=`, which has to be as sparse."""
    if not isinstance(out, Tensor) or not isinstance(made, Tensor) or out._sparse != made._sparse:
        raise error
    return out.become(made, name) if made._sparse else fill_out(out, made, name=name)


def _numpy_words(f: Callable) -> dict[str, str]:
    """NumPy's names of f's parameters, which torch takes as well: {"axis": "dim", "keepdims": "keepdim"}."""
    names = signature_of(f).parameters
    return {word: name for word, name in (("axis", "dim"), ("keepdims", "keepdim")) if name in names and word not in names}


def _translate(words: dict[str, str], kwargs: dict, f: Callable) -> None:
    for word, name in words.items():
        if word in kwargs:
            if name in kwargs:
                raise TypeError(f"{f.__name__}() got multiple values for argument '{name}'")
            kwargs[name] = kwargs.pop(word)


def _name_own_size_first(self: Any, args: tuple, error: Exception) -> None:
    """Raise the error of shapes that do not fit with the written tensor's size named first, as PyTorch does whatever the function's order."""
    if error.__class__ is RuntimeError and str(error).startswith("The size of tensor a ("):
        broadcast_shapes(*[tuple(x.shape) for x in (self, *args) if isinstance(x, Tensor)])


def in_place(f: Callable, name: str, repeating: Callable | None = None, first: int = 0) -> Callable:
    """f_ : write f's result into the first argument; or call `repeating` where several of its elements are one place in memory.

    `first`: the number of the first argument in torch's words, 1 for a function, where it may come by its name.
    """
    words = _numpy_words(f)
    *_, last = signature_of(f).parameters.values()
    # a value to fill with is looked at before anything is written
    reads = slice(None, -1 if last.name == "value" and last.kind is last.POSITIONAL_OR_KEYWORD else None)

    @functools.wraps(f)
    def write(self=MISSING, /, *args, **kwargs):
        if self is MISSING:
            if "input" not in kwargs:
                blame(f, (), kwargs, TypeError(), 1, name)
            return write(kwargs.pop("input"), **kwargs)
        try:
            if repeating is not None and overlapping(self._layout):
                f(self, *args, **kwargs)  # checks the arguments
                warnings.warn(f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation.",
                              stacklevel=2)
                return repeating(self, *args, **kwargs)
            if not self._is_alone():
                self._check_write()
                if self._storage is not None and not apart:
                    check_partly_same(self, args[reads])
            if apart:
                check_apart(self, (*args, *kwargs.values()))
            if kwargs and words:
                _translate(words, kwargs, f)
            result = f(self, *args, **kwargs)
        except Refused as error:
            if self._sparse or name in error.forms:
                return sparse_form(name, error)(self, *args, **kwargs)
            result = sparse_form(f.__name__, error)(self, *args, **kwargs)
            if result._sparse:
                raise
        except NotImplementedError:
            refuse_cast(self, args)  # torch asks first whether the result could be stored
            raise
        except Exception as error:
            older = _older(f, (self, *args), kwargs, error, name, method=True)
            if older is None:
                taken = taken_over(name, (self, *args), kwargs)
                if taken is not NotImplemented:
                    return taken
                _name_own_size_first(self, args, error)
                blame(f, (self, *args), kwargs, error, first if isinstance(self, Tensor) else 1, name)
                raise
            return write(*older[0], **older[1])
        try:
            return write_into(self, result, stays)
        except Refused as error:  # of a kind that f itself has a form for
            if not self._sparse:
                raise
            form = sparse_form(name, error)
        return form(self, *args, **kwargs)
    write.__name__ = write.__qualname__ = name
    stays, apart = name.startswith("logical_"), name in WRITES_APART
    return write


_WRAPPERS = {code for f in (called, with_out, in_place) for code in f.__code__.co_consts if code.__class__ is CodeType}


def is_wrapped(f: FunctionType) -> bool:
    """Whether f handles calls of wrong arguments, and of tensors without a Value, already."""
    return f.__code__ in _WRAPPERS


def named(out: Tensor, name: str, *inputs: Tensor) -> Tensor:
    """out, whose node is shown under the name that torch's own function has; only for a result that was just recorded. With `inputs`, of a
    function that takes several operations here, they are shown as what comes before it."""
    node = out._edge
    if node is not None and node.plan is not None:
        node.shown_as(name, [None if t._edge is None else (t._edge, t._out) for t in inputs])
    return out
