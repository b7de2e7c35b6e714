"""Of which kind each parameter of a function is, and torch's TypeError for an argument of another kind."""
from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable

import jax

from ._arguments import converts
from ._core import dtype as dt
from ._core.errors import class_name
from ._core.rng import Generator
from ._tensor import Tensor

signature_of = functools.cache(inspect.signature)  # each costs 50 us, and hundreds are asked for twice at import


def _kind(parameter: inspect.Parameter) -> str:
    """What a parameter takes: its annotation; a tensor where `input` has none."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        kind = _BY_NAME.get(parameter.name, "")
        return kind if kind != "Number" or parameter.kind is parameter.KEYWORD_ONLY or parameter.name == "fill_value" else ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


# parameters that are the same everywhere; a `value` that is no keyword may be a tensor
_BY_NAME = {"input": "Tensor", "self": "Tensor", "requires_grad": "bool", "generator": "Generator", **dict.fromkeys(("alpha", "beta", "value", "fill_value"), "Number")}

_MAYBE_TENSORS = frozenset({"other", "exponent", "min", "max"})  # numbers or tensors, hence without an annotation

# functions of which torch has several forms: its error shows what was given
_OVERLOADED = frozenset("rand randn randint randperm rand_like randn_like randint_like bernoulli arange linspace logspace eye normal addmm baddbmm rsub fill_".split())

_KINDS: dict[str, Callable[[object], bool]] = {
    "Tensor": lambda x: isinstance(x, Tensor),
    "Tensor | None": lambda x: x is None or isinstance(x, Tensor),
    "Tensors": lambda x: isinstance(x, (tuple, list)) and all(isinstance(y, Tensor) for y in x),
    "int": lambda x: converts(operator.index, x),
    "int | None": lambda x: x is None or converts(operator.index, x),
    "float": lambda x: not isinstance(x, str) and converts(float, x),
    "float | None": lambda x: x is None or (not isinstance(x, str) and converts(float, x)),
    "str": lambda x: isinstance(x, str),
    "bool": lambda x: x.__class__ is bool,
    "bool | None": lambda x: x is None or x.__class__ is bool,
    "Number": lambda x: not (x.ndim or x.requires_grad) if isinstance(x, Tensor) else not isinstance(x, str) and converts(complex, x),
    "dtype": lambda x: isinstance(x, dt.dtype),
    "Generator": lambda x: x is None or isinstance(x, Generator),
}


def only_self(f: Callable) -> bool:
    """Whether f takes no tensor but its first argument."""
    return not any(_kind(p).startswith("Tensor") or p.name in _MAYBE_TENSORS for p in list(signature_of(f).parameters.values())[1:])


def blame(f: Callable, args: tuple, kwargs: dict, error: Exception, first: int = 1, function: str = "", counts: bool = True) -> None:
    """Raise torch's TypeError if an argument is not of its parameter's kind, which then is what led to `error`.

    `first`: the number of the first argument in torch's words, where a method's own tensor does not count. `function`: its name, if not f's.
    `counts`: whether it is torch, and not Python, that tells of arguments which are too many or too few.
    """
    if isinstance(error, jax.errors.JAXTypeError):  # JAX traces: it tells that a value is not known
        return
    function = function or f.__name__
    if counts or not first and _binds(f, args, kwargs):  # (what a method in Python hands on)
        from ._call_forms import refusal
        from ._torch_names import IN_PYTHON
        refused = None if function in IN_PYTHON else refusal(function, args[1 - first:], kwargs, first == 0)
        if refused is not None:
            if str(refused) == str(error):  # f's own may be of a class of its own
                return
            raise refused from None
    signature = signature_of(f)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as mismatch:
        if counts and isinstance(error, (AttributeError, TypeError)):  # it may have been looked at before Python counted the arguments
            _count(function, list(signature.parameters.values()), args, kwargs, 1 - first)
        if isinstance(error, AttributeError):
            raise TypeError(f"{function}() {mismatch}") from None
        return
    for place, (name, x) in enumerate(given.items(), first):
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            for word in x.keys() & _BY_NAME.keys():
                if not _KINDS[_BY_NAME[word]](x[word]):
                    if function in _OVERLOADED:
                        raise combination(function, args[1 - first:], kwargs, first == 0) from None
                    raise _wrong(function, word, None, _BY_NAME[word], x[word], False) from None
            continue
        kind, several = _kind(parameter), parameter.kind is parameter.VAR_POSITIONAL
        fits = _KINDS.get(kind)
        if isinstance(error, AttributeError) and error.obj is x and not isinstance(x, Tensor) and kind != "Any":
            raise _wrong(function, name, None if name in kwargs else place, "dtype" if kind == "dtype" else "Tensor", x, False) from None
        if fits is not None and x is not parameter.default and not (all(map(fits, x)) if several else fits(x)):
            if function in _OVERLOADED and kind in _BY_NAME.values() and kind != "Tensor":
                raise combination(function, args[1 - first:], kwargs, first == 0) from None
            raise _wrong(function, name, None if name in kwargs else place, kind, x, several) from None
    if isinstance(error, TypeError):
        _name(function, f.__name__, given, args[1 - first:], kwargs, error, first)


def _binds(f: Callable, args: tuple, kwargs: dict) -> bool:
    try:
        signature_of(f).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


_UNNAMED = re.compile(r"(?:(\w+)\(\): )?argument (?:'(\w+)' )?(?:\(position \d+\) )?must be (.*), (?:but found .*|not (.*))")


def _name(function: str, own: str, given: dict, args: tuple, kwargs: dict, error: TypeError, first: int) -> None:
    """Raise the error of a conversion, which did not know whose argument it had, or knew another name of the function, as torch's."""
    found = _UNNAMED.fullmatch(str(error))
    if found is None or found[1] not in (None, own):
        return
    name, kind, wrong = found[2], found[3], found[4]
    if name is None:
        name = next((n for n, x in given.items() if class_name(x) == wrong and n != "self"), None)
    if name not in given:
        return
    if found[1] is None and _several_forms(function):
        raise combination(function, args, kwargs) from None
    where = "" if name in kwargs else f" (position {list(given).index(name) + first})"
    raise TypeError(f"{function}(): argument '{name}'{where} must be {kind}, " + str(error).rpartition(f" must be {kind}, ")[2]) from None


def _count(function: str, parameters: list[inspect.Parameter], args: tuple, kwargs: dict, apart: int) -> None:
    """Raise torch's TypeError for arguments that are too many or too few, or have no name of a parameter; the first `apart` are not counted."""
    from ._torch_names import IN_PYTHON
    if function in IN_PYTHON or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    parameters, args = parameters[apart:], args[apart:]
    names = [p.name for p in parameters]
    unknown = [name for name in kwargs if name not in names]
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    needed, most = sum(p.default is p.empty for p in positional), len(positional)
    if len(args) > most:
        takes = f"{most} positional argument{'s' if most != 1 else ''}" if needed == most else f"from {needed} to {most} positional arguments"
        raise TypeError(f"{function}() takes {takes} but {len(args)} {'was' if len(args) == 1 else 'were'} given") from None
    given = {**dict(zip(names, args)), **kwargs}
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in given]
    for place, p in enumerate(parameters, 1):
        if p.name in missing:
            raise TypeError(f"{function}() missing {len(missing)} required positional argument{'s' if len(missing) == 1 else ''}: "
                            + ", ".join(f'"{name}"' for name in missing)) from None  # torch's plural
        fits = _KINDS.get(_kind(p))
        if fits is not None and p.name in given and given[p.name] is not p.default and not fits(given[p.name]):
            raise _wrong(function, p.name, None if p.name in kwargs else place, _kind(p), given[p.name], False) from None
    if unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument '{unknown[0]}'") from None


# of several forms, which are not all operators
_SEVERAL = frozenset("addmm baddbmm bmm bucketize mm quantize_per_tensor repeat_interleave searchsorted".split())


def _several_forms(function: str) -> bool:
    """Whether torch's function chooses between forms by its arguments."""
    from ._aten_schemas import schemas
    return function in _SEVERAL or sum(not any(name.startswith("out") or name == "values_out" for name in s.names) for s in schemas(function)) > 1


def combination(function: str, args: tuple, kwargs: dict, method: bool = False) -> TypeError:
    """torch's error for arguments that no form of a function takes; `args` of a method without the tensor that it is called on."""
    from . import _call_forms
    found = next((found for found, several in (_call_forms.forms(function, kind) for kind in (method, not method)) if several), ())
    return TypeError(_call_forms.combination(function, args, kwargs, found))


def _wrong(function: str, name: str, place: int | None, kind: str, x, several: bool) -> TypeError:
    if several or (kind == "Tensors" and isinstance(x, (tuple, list))):
        kind = kind.removesuffix("s")
        i, bad = next((i, y) for i, y in enumerate(x) if not _KINDS[kind](y))
        return TypeError(f"expected {kind} as element {i} in argument {(place or 1) - 1}, but got {class_name(bad)}")
    where = "" if place is None else f" (position {place})"
    words = {"Tensors": "tuple of Tensors", "dtype": "torch.dtype", "Generator": "torch.Generator"}.get(kind) or kind.removesuffix(" | None")
    return TypeError(f"{function}(): argument '{name}'{where} must be {words}, not {class_name(x)}")
