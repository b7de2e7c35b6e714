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
from types import FunctionType, ModuleType
from typing import Any

from . import _autocast
from ._core import dtype as dt
from ._core.aval import NUMBERS, broadcast_shapes, result_dtype
from ._core.grad_mode import mode
from ._core.layout import overlapping, partly_same
from ._core.registry import OPS
from ._exchange import copied
from ._older_orders import FACTORS, newer
from ._out import ALONG_DIM, BY_OUT, by_out, refuse_dtype, writer
from ._tensor import Tensor, _plain_copy, apply

FUNCTIONS: dict[str, Callable] = {}  # torch.*
SPARSE_FORMS: dict[str, Callable] = {}  # by torch's name: what runs where an argument is sparse; `torchlike.sparse` fills it
Tensors = Sequence[Tensor]


class Refused(NotImplementedError):
    """A sparse tensor was about to be read as if it were strided."""

    def __init__(self, name: str, backend: str):
        self.backend = backend
        super().__init__(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. This could be because the operator doesn't exist "
                         "for this backend, or because torchlike does not have it yet.")


Refused.__name__ = Refused.__qualname__ = "NotImplementedError"  # what users know


class _Missing:
    """The default of an argument for which torch refuses None."""

    def __repr__(self):
        return "<missing>"


MISSING: Any = _Missing()
EVERY_DIM = MISSING  # of a `dim`


def public(*, function: bool = True, method: bool = True, inplace: bool = False, out: bool = False,
           names: tuple[str, ...] = (), checked: bool = False, repeating: Callable | None = None) -> Callable:
    """Decorator: publishes a function written for Tensors under torch's names.

    function  `torch.<name>`; method `Tensor.<name>` (the first parameter is the tensor)
    inplace   also `Tensor.<name>_` and `torch.<name>_`, which write the result into the first argument
    out       `torch.<name>(..., out=t)` writes into t (a tuple of tensors for several results)
    names     aliases (`torch.concat` of `cat`)
    checked   f itself refuses what is no tensor, so that the method can be f and not a wrapper of it
    repeating the in-place form for a tensor whose elements are partly one place in memory (`expand`); without it that is an error
    """
    def register(f: Callable) -> Callable:
        f = _autocast.wrap(f)
        taken = with_out(f) if out else called(f)
        plain = f if not _numpy_words(f) and (checked or _only_self(f)) and f.__name__ not in FACTORS else called(f, method=True)
        for name in (f.__name__.removeprefix("_"), *names):
            if function:
                FUNCTIONS[name] = taken
            if method:
                setattr(Tensor, name, plain)
            if inplace:
                g = in_place(f, name + "_", repeating)
                setattr(Tensor, name + "_", g)
                FUNCTIONS[name + "_"] = copied(g)  # as in torch no method: classes take them over one by one
        return f
    return register


def importable(module: ModuleType) -> None:
    """Give a module's public functions the names by which they are found there, where their own lead elsewhere: pickle writes them down.

    One that is a method as well becomes a function of its own: `overrides` makes functions look at their arguments, and leaves methods alone.
    """
    methods = {id(x) for x in vars(Tensor).values()}
    for name, f in list(vars(module).items()):
        if f.__class__ is not FunctionType or name[0] == "_":
            continue
        if id(f) in methods:
            made = copied(f)
            setattr(module, name, made)
            if FUNCTIONS.get(name) is f:
                FUNCTIONS[name] = made
            f = made
        if getattr(sys.modules.get(f.__module__), f.__qualname__, None) is not f:
            f.__module__, f.__qualname__ = module.__name__, name


# -- a call from outside: NumPy's names of arguments, `out=`, and torch's error where an argument is of the wrong kind ------------


_signature = functools.cache(inspect.signature)  # each costs 50 us, and hundreds are asked for twice at import


def called(f: Callable, method: bool = False) -> Callable:
    """f as users call it: NumPy's names of arguments; torch's TypeError instead of what an argument of the wrong kind led to."""
    words = _numpy_words(f)
    if method and not words and list(_signature(f).parameters)[1:] == ["other"]:
        @functools.wraps(f)
        def run(self, other):  # loops call these often: no packing of arguments
            try:
                return f(self, other)
            except Exception as error:
                repeat = _mended(f, run, (self, other), {}, error, method)
                if repeat is None:
                    raise
            return repeat()
        return run

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
    return run


def _mended(f: Callable, run: Callable, args: tuple, kwargs: dict, error: Exception, method: bool) -> Callable | None:
    """What to call instead of f, which failed with `error`; None where nothing is. Raises torch's error where an argument is of the wrong kind."""
    if error.__class__ is Refused:
        return functools.partial(sparse_form(f.__name__, error), *args, **kwargs)
    older = _older(f, args, kwargs, error)
    if older is not None:
        return functools.partial(f, *older[0], **older[1])
    if method:
        taken = taken_over(f.__name__, args, kwargs)
        if taken is not NotImplemented:
            return lambda: taken
    elif others_take_over(args, kwargs, error):
        return functools.partial(run, *args, **kwargs)
    blame(f, args, kwargs, error, 0 if method else 1)
    return None


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


def _calls_around() -> int:
    """How many public functions are under way here, each called by the one before."""
    codes = [c for f in (called, with_out) for c in f.__code__.co_consts if getattr(c, "co_name", "") == "run"]
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
    return overrides.handle_torch_function(getattr(owner, name), relevant, *args, **kwargs) if overrides.has_torch_function(relevant) else NotImplemented


def sparse_form(name: str, error: Refused) -> Callable:
    """What runs where a call of torch's function `name` came upon a sparse tensor."""
    found = SPARSE_FORMS.get(name)
    if found is None:
        raise error
    return found


ARRAY_WORDS = {"x": "input", "a": "input", "x1": "input", "x2": "other"}  # names by which NumPy has them, and torch takes them too


def _older(f: Callable, args: tuple, kwargs: dict, error: Exception) -> tuple[tuple, dict] | None:
    """The arguments of a failed call by today's names and in today's order, where they came by others that PyTorch still takes."""
    if not isinstance(error, TypeError):
        return None
    if not ARRAY_WORDS.keys().isdisjoint(kwargs):
        names = _signature(f).parameters
        found = {w: ARRAY_WORDS[w] for w in kwargs.keys() & ARRAY_WORDS.keys() if w not in names and ARRAY_WORDS[w] in names}
        if found and not kwargs.keys() & set(found.values()) and len(set(found.values())) == len(found):
            return args, {found.get(name, name): x for name, x in kwargs.items()}
    return newer(f.__name__, args, kwargs) if f.__name__ in FACTORS else None


def with_out(f: Callable) -> Callable:
    """`called(f)` with torch's `out=` argument."""
    words, name = _numpy_words(f), f.__name__

    @functools.wraps(f)
    def run(*args, out=None, **kwargs):
        try:
            if kwargs and words:
                _translate(words, kwargs, f)
            if out is None:
                return f(*args, **kwargs)
            if isinstance(out, Tensor):
                if out._storage is not None:
                    check_partly_same(out, args)
                if name in ALONG_DIM and len(args) < 2 and "dim" not in kwargs:
                    raise TypeError(f"{name}() received an invalid combination of arguments - got ({type(args[0]).__name__}, out=Tensor), but expected one of:")
                if name in BY_OUT:
                    by_out(name, out.dtype, kwargs)
            elif others_take_over((out,), {}):
                return run(*args, out=out, **kwargs)
            result = f(*args, **kwargs)
        except Exception as error:
            if error.__class__ is Refused:
                made = sparse_form(f.__name__, error)(*args, **kwargs)
                return made if out is None else _sparse_into(out, made, f.__name__, error)
            older = _older(f, args, kwargs, error)
            if older is None:
                if others_take_over((*args, out), kwargs, error):
                    return run(*args, **kwargs) if out is None else run(*args, out=out, **kwargs)
                blame(f, args, kwargs, error)
                raise
            return run(*older[0], out=out, **older[1])
        return fill_out(out, result, name=writer(name, args, kwargs)) if isinstance(result, Tensor) else fill_outs(out, result, name)
    return run


def _sparse_into(out: Tensor, made: Tensor, name: str, error: Refused) -> Tensor:
    """A sparse form's result in `out=`, which has to be as sparse."""
    if not isinstance(out, Tensor) or not isinstance(made, Tensor) or out._sparse != made._sparse:
        raise error
    return out.become(made, name) if made._sparse else fill_out(out, made, name=name)


def _numpy_words(f: Callable) -> dict[str, str]:
    """NumPy's names of f's parameters, which torch takes as well: {"axis": "dim", "keepdims": "keepdim"}."""
    names = _signature(f).parameters
    return {word: name for word, name in (("axis", "dim"), ("keepdims", "keepdim")) if name in names and word not in names}


def _translate(words: dict[str, str], kwargs: dict, f: Callable) -> None:
    for word, name in words.items():
        if word in kwargs:
            if name in kwargs:
                raise TypeError(f"{f.__name__}() got multiple values for argument '{name}'")
            kwargs[name] = kwargs.pop(word)


def _kind(parameter: inspect.Parameter) -> str:
    """What a parameter takes: its annotation; a tensor where `input` has none."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        kind = _BY_NAME.get(parameter.name, "")
        return kind if kind != "Number" or parameter.kind is parameter.KEYWORD_ONLY or parameter.name == "fill_value" else ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


# parameters that are the same everywhere; a `value` that is no keyword may be a tensor
_BY_NAME = {"input": "Tensor", "self": "Tensor", "requires_grad": "bool", **dict.fromkeys(("alpha", "beta", "value", "fill_value"), "Number")}
_MAYBE_TENSORS = frozenset({"other", "exponent", "min", "max"})  # numbers or tensors, hence without an annotation
# functions of which torch has several forms: its error shows what was given
_OVERLOADED = frozenset("rand randn randint randperm rand_like randn_like randint_like arange linspace logspace eye normal addmm baddbmm rsub fill_".split())

_KINDS: dict[str, Callable[[object], bool]] = {
    "Tensor": lambda x: isinstance(x, Tensor),
    "Tensor | None": lambda x: x is None or isinstance(x, Tensor),
    "Tensors": lambda x: isinstance(x, (tuple, list)) and all(isinstance(y, Tensor) for y in x),
    "int": lambda x: _converts(operator.index, x),
    "int | None": lambda x: x is None or _converts(operator.index, x),
    "float": lambda x: not isinstance(x, str) and _converts(float, x),
    "float | None": lambda x: x is None or (not isinstance(x, str) and _converts(float, x)),
    "str": lambda x: isinstance(x, str),
    "bool": lambda x: x.__class__ is bool,
    "Number": lambda x: not isinstance(x, str) and _converts(complex, x),
    "dtype": lambda x: isinstance(x, dt.dtype),
}


def _converts(to: Callable, x) -> bool:
    try:
        to(x)
    except OverflowError:
        return True
    except Exception:  # whatever it is, x is no number
        return False
    return True


def _only_self(f: Callable) -> bool:
    """Whether f takes no tensor but its first argument."""
    return not any(_kind(p).startswith("Tensor") or p.name in _MAYBE_TENSORS for p in list(_signature(f).parameters.values())[1:])


def blame(f: Callable, args: tuple, kwargs: dict, error: Exception, first: int = 1, function: str = "") -> None:
    """Raise torch's TypeError if an argument is not of its parameter's kind, which then is what led to `error`.

    `first`: the number of the first argument in torch's words, where a method's own tensor does not count. `function`: its name, if not f's.
    """
    function = function or f.__name__
    signature = _signature(f)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return
    for place, (name, x) in enumerate(given.items(), first):
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            for word in x.keys() & _BY_NAME.keys():
                if not _KINDS[_BY_NAME[word]](x[word]):
                    if function in _OVERLOADED:
                        raise combination(function, args[1 - first:], kwargs) from None
                    raise _wrong(function, word, None, _BY_NAME[word], x[word], False) from None
            continue
        kind, several = _kind(parameter), parameter.kind is parameter.VAR_POSITIONAL
        fits = _KINDS.get(kind)
        if isinstance(error, AttributeError) and error.obj is x and not isinstance(x, Tensor) and kind != "Any":
            raise _wrong(function, name, None if name in kwargs else place, "Tensor", x, False) from None
        if fits is not None and x is not parameter.default and not (all(map(fits, x)) if several else fits(x)):
            if function in _OVERLOADED and kind in _BY_NAME.values() and kind != "Tensor":
                raise combination(function, args[1 - first:], kwargs) from None
            raise _wrong(function, name, None if name in kwargs else place, kind, x, several) from None


def combination(function: str, args: tuple, kwargs: dict) -> TypeError:
    """torch's error for arguments that no form of a function takes."""
    words = [type(x).__name__ for x in args] + [f"{name}={type(x).__name__}" for name, x in kwargs.items()]
    return TypeError(f"{function}() received an invalid combination of arguments - got ({', '.join(words)}), but expected one of:")


def _wrong(function: str, name: str, place: int | None, kind: str, x, several: bool) -> TypeError:
    if several or (kind == "Tensors" and isinstance(x, (tuple, list))):
        kind = kind.removesuffix("s")
        i, bad = next((i, y) for i, y in enumerate(x) if not _KINDS[kind](y))
        return TypeError(f"expected {kind} as element {i} in argument {(place or 1) - 1}, but got {type(bad).__name__}")
    where = "" if place is None else f" (position {place})"
    words = "tuple of Tensors" if kind == "Tensors" else kind.removesuffix(" | None")
    return TypeError(f"{function}(): argument '{name}'{where} must be {words}, not {type(x).__name__}")


def in_place(f: Callable, name: str, repeating: Callable | None = None) -> Callable:
    """f_ : write f's result into the first argument; or call `repeating` where several of its elements are one place in memory."""
    words = _numpy_words(f)
    *_, last = _signature(f).parameters.values()
    # a value to fill with is looked at before anything is written
    reads = slice(None, -1 if last.name == "value" and last.kind is last.POSITIONAL_OR_KEYWORD else None)

    @functools.wraps(f)
    def write(self, *args, **kwargs):
        try:
            if repeating is not None and overlapping(self._layout):
                f(self, *args, **kwargs)  # checks the arguments
                warnings.warn(f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation.",
                              stacklevel=2)
                return repeating(self, *args, **kwargs)
            self._check_write()
            if self._storage is not None:
                check_partly_same(self, args[reads])
            if kwargs and words:
                _translate(words, kwargs, f)
            result = f(self, *args, **kwargs)
        except Refused as error:
            return sparse_form(name, error)(self, *args, **kwargs)
        except NotImplementedError:
            _refuse_cast(self, args)  # torch asks first whether the result could be stored
            raise
        except Exception as error:
            older = _older(f, (self, *args), kwargs, error)
            if older is None:
                taken = taken_over(name, (self, *args), kwargs)
                if taken is not NotImplemented:
                    return taken
                blame(f, (self, *args), kwargs, error, 0, name)
                raise
            return write(*older[0], **older[1])
        return write_into(self, result, stays)
    write.__name__ = write.__qualname__ = name
    stays = name.startswith("logical_")
    return write


def _refuse_cast(self: Tensor, args: tuple) -> None:
    """torch's error when the common type of an in-place operation's operands does not fit into self."""
    avals = [a._value.aval if isinstance(a, Tensor) else NUMBERS.get(type(a)) for a in (self, *args)]
    _same_shape(self, broadcast_shapes(*(a.shape for a in avals if a is not None)))
    common = result_dtype(*avals)
    if not dt.can_cast(common, self.dtype):
        raise RuntimeError(f"result type {common.short} can't be cast to the desired output type {self.dtype.short}") from None


def _same_shape(written: Tensor, shape: tuple) -> None:
    if written._value.aval.shape != shape:
        raise RuntimeError(f"output with shape {list(written.shape)} doesn't match the broadcast shape {list(shape)}")


def write_into(self: Tensor, result: Tensor, stays: bool = False) -> Tensor:
    """In-place assignment with torch's checks of shape and dtype. A result without a derivative ends the gradient, or, as after torch's
    logical functions, leaves self where it `stays` in the graph."""
    mine, new = self._value.aval, result._value.aval
    if mine.shape != new.shape:
        _same_shape(self, broadcast_shapes(mine.shape, new.shape))
        result = result.expand(mine.shape)
    if mine.dtype is not new.dtype:
        if not dt.can_cast(new.dtype, mine.dtype):
            raise RuntimeError(f"result type {new.dtype.short} can't be cast to the desired output type {mine.dtype.short}")
        result = result.to(mine.dtype)
    if result._edge is None and self._edge is not None and mode.enabled:
        result = _plain_copy(result) if stays else apply(OPS["overwrite"], (self, result))
        if stays:
            result._edge, result._out = self._edge, self._out
    return self._assign(_plain_copy(result) if result is self else result)


def check_partly_same(written: Tensor, sources) -> None:
    """torch's error for a write that would change what it still has to read."""
    st = written._storage
    for x in sources:
        if isinstance(x, Tensor) and x._storage is st and x is not written and x.dtype is written.dtype and partly_same(written._strided(), x._strided()):
            raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                               "Please clone() the tensor before performing the operation.")


def fill_out(out: Tensor, result: Tensor, said: bool = True, name: str = "", place: int = 0) -> Tensor:
    """Write result number `place` of function `name` into an `out=` tensor, resizing it as torch does; that is said, as torch says it, unless
    a factory does it."""
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if out._sparse and result._sparse:
        return out.become(result, name)
    if mode.enabled and (out.requires_grad or result.requires_grad):
        whose = f"{name.removesuffix('_of_all')}(): " if name else ""
        raise RuntimeError(f"{whose}functions with out=... arguments don't support automatic differentiation, but one of the "
                           "arguments requires grad.")
    have, new = out._value.aval, result._value.aval
    if have.dtype is not new.dtype:
        refuse_dtype(name, place, new.dtype, have.dtype)
        result = result.to(have.dtype)
    if have.shape != new.shape:
        if have.numel and said:
            warnings.warn(f"An output with one or more elements was resized since it had shape {list(have.shape)}, which does "
                          f"not match the required output shape {list(new.shape)}. This behavior is deprecated, and in a future PyTorch release "
                          "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, "
                          "to zero elements with t.resize_(0).", stacklevel=3)
        from ._resize import keep_place, resize
        out._check_write()
        layout = result._layout if result._storage is None else None
        if out._storage is None:
            out._value, out._layout, out._writes = result._current(), layout, out._writes + 1
            keep_place(out)
            return out
        resize(out, new.shape, None if layout is None else layout.strides)
    return out._assign(result)


def fill_outs(outs: Sequence[Tensor], results: tuple, name: str) -> tuple | None:
    """`fill_out` of several results; the outputs, in torch's type for them. What copies views has none."""
    targets = tuple(outs)
    if len(targets) != len(results):
        raise TypeError(f"{name}(): expected {len(results)} tensors in out, got {len(targets)}")
    for place, (out, result) in enumerate(zip(targets, results)):
        fill_out(out, result, name=name, place=place)
    if not hasattr(results, "_fields"):
        return None if name.endswith("_copy") else targets
    return getattr(type(results), "into_out", type(results))(*targets)


# -- arguments -----------------------------------------------------------------------------------------------------------


def as_dim(dim, ndim: int) -> int:
    """A dimension as 0 <= dim < ndim; IndexError as torch raises it (0-dim tensors count as one dimension)."""
    if dim.__class__ is not int:
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
        dim = dim.__index__()
    n = ndim or 1
    if not -0x8000000000000000 <= dim <= 0x7FFFFFFFFFFFFFFF:
        raise ValueError("Overflow when unpacking long long")
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def flag(x) -> bool:
    """x, where it is True or False: the wrapper says which argument is not."""
    if x.__class__ is not bool:
        raise TypeError(f"expected a bool, not {type(x).__name__}")
    return x


def as_dims(dim, ndim: int) -> tuple[int, ...]:
    """`dim` of a reduction (None, an int, a sequence) as a tuple of distinct dimensions; None and () mean all."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        dims = distinct(listed_dims(dim, ndim)) or tuple(range(ndim))
        return dims if ndim else ()
    d = as_dim(dim, ndim)
    return (d,) if ndim else ()


def listed_dims(dims: Iterable, ndim: int) -> tuple[int, ...]:
    """The dimensions of a list; a number that no int64 holds is then an argument of the wrong type, as in torch."""
    try:
        return tuple([as_dim(d, ndim) for d in dims])
    except ValueError as error:
        raise TypeError(f"argument 'dim' failed to unpack: {error}") from None


def distinct(dims: tuple[int, ...]) -> tuple[int, ...]:
    """dims, none of them twice."""
    if len(set(dims)) != len(dims):
        twice = next(d for i, d in enumerate(dims) if d in dims[:i])
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return dims


def as_size(*size) -> tuple[int, ...]:
    """`f(2, 3)`, `f((2, 3))`, `f(torch.Size)` as a tuple of ints."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    elif not size:
        raise TypeError("missing 1 required positional arguments: \"size\"")
    try:
        return tuple([s if s.__class__ is int else _index(s) for s in size])
    except TypeError:
        bad = next((s for s in size if not _converts(operator.index, s)), None)
        raise TypeError(f"argument 'size' must be tuple of ints, but found element of type {type(bad).__name__}") from None


def factory_size(function: str, size: tuple, position: int = 1) -> tuple[int, ...]:
    """as_size(*size) with the errors of a factory, whose argument at `position` it is."""
    try:
        return as_size(*size)
    except TypeError:
        if not size:
            raise
        packed = isinstance(size[0], (tuple, list))
        given = size[0] if packed and len(size) == 1 else size
        at, bad = next((i, s) for i, s in enumerate(given) if not _converts(operator.index, s))
        kind = type(bad).__name__
        if at:
            said = f"(): argument 'size' failed to unpack the object at pos {at + 1} with error \"type must be tuple of ints,but got {kind}\""
        elif len(size) > 1:
            said = f"() takes {position} positional argument but {len(size)} were given"
        else:
            said = f"(): argument 'size' (position {position}) must be tuple of ints, " + (f"but found element of type {kind} at pos 0" if packed else f"not {kind}")
        raise TypeError(function + said) from None


def as_list(x, function: str, name: str) -> tuple | list:
    """A second argument that torch declares as a list of ints and never as numbers one by one."""
    if not isinstance(x, (tuple, list)):
        raise TypeError(f"{function}(): argument '{name}' (position 2) must be tuple of ints, not {type(x).__name__}")
    return x


def refuse_huge(sizes: Iterable[int]) -> None:
    """torch's error for sizes that no int64 holds; asked once they turned out to be wrong."""
    if any(not -0x8000000000000000 <= n <= 0x7FFFFFFFFFFFFFFF for n in sizes):
        raise TypeError("argument 'size' failed to unpack: Overflow when unpacking long long")


def refuse_long(x: int) -> None:
    """torch's error for one number that no int64 holds; asked once it turned out to be wrong."""
    if not -0x8000000000000000 <= x <= 0x7FFFFFFFFFFFFFFF:
        raise ValueError("Overflow when unpacking long long")


def as_int(x, name: str, function: str = "", position: str = "") -> int:
    """An argument that torch declares as int: a 0-dim tensor of integers too."""
    if x.__class__ is not int:
        if isinstance(x, bool) or not hasattr(x, "__index__"):
            raise TypeError(f"{function}argument '{name}'{position} must be int, not {type(x).__name__}")
        x = x.__index__()
    refuse_long(x)
    return x


def _index(s) -> int:
    return int(s) if isinstance(s, bool) else operator.index(s)


def need_tensor(x, name: str, position: str) -> Tensor:
    """x, or torch's TypeError naming the argument."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument {position} must be Tensor, not {type(x).__name__}")
    return x


def named(out: Tensor, name: str) -> Tensor:
    """out, whose node is shown under the name that torch's own function has; only for a result that was just recorded."""
    node = out._edge
    if node is not None and node.plan is not None:
        node.shown_as(name)
    return out


def number(x):
    """A Python number from NumPy's scalars and JAX's; others pass. Fractions and SymPy's numbers do: their own operators take a Tensor."""
    import numpy as np
    if isinstance(x, np.generic):
        return x.item()
    if hasattr(x, "__float__") and hasattr(x, "__array__") and not isinstance(x, (Tensor, np.ndarray)):
        return float(x)
    return x


__all__ = ["public", "apply", "Tensor", "FUNCTIONS", "as_dim", "as_dims", "as_size", "named", "need_tensor", "number", "write_into",
           "in_place", "with_out", "fill_out", "fill_outs"]
