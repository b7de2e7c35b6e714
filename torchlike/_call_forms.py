"""What PyTorch's parser of arguments says of a call that fits none of a function's forms: asked once a call has failed.

`_call_forms.txt` has the forms of functions with several, in the order in which they are tried; functions of one form have it from their schema.
"""
from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ._arguments import converts
from ._core import dtype as dt
from ._core.device import device
from ._core.errors import class_name
from ._core.rng import Generator
from ._tensor import Tensor

_TYPES = {"int": "int", "SymInt": "int", "float": "float", "Scalar": "Number", "bool": "bool", "str": "str", "Tensor": "Tensor", "ScalarType": "torch.dtype",
          "Layout": "torch.layout", "Device": "torch.device", "Generator": "torch.Generator", "MemoryFormat": "torch.memory_format", "Tensor[]": "tuple of Tensors"}
_ALWAYS_LISTS = frozenset("size shape dims repeats pad normalized_shape split_sizes sizes input_lengths target_lengths".split())  # names of lists for which no single number stands
_NUMPYS = {"axis": "dim", "keepdims": "keepdim", "a": "input", "x": "input", "x1": "input", "x2": "other"}
_MAY_BE_NONE = frozenset("generator rounding_mode dim output_size scale_factors".split())  # without being left out (a `dim` where it is a list)
_NAMED = {"int": ("int",), "float": ("float", "int")}  # types by whose names arguments are of a parameter's kind, beside that of the same name
_INDENT = " " * 6


class Parameter(NamedTuple):
    kind: str
    name: str
    optional: bool
    may_be_none: bool
    only_named: bool
    alone: bool  # a list of ints that one int stands for, too
    strict: bool  # an int for which no tensor with dimensions stands


class Form:
    """One way to call a function: its parameters, and how many arguments it takes."""

    def __init__(self, text: str, numbers_too: bool = False, alone: frozenset | None = None, strict: frozenset = frozenset(), out: bool = False) -> None:
        self.text, self.numbers_too, self.out, self.parameters, only_named = text, numbers_too, out, [], False
        for part in filter(None, text.split(", ")):
            if part == "*":
                only_named = True
                continue
            left, has_default, default = part.partition(" = ")
            kind, _, name = left.rpartition(" ")
            self.parameters.append(Parameter(kind, name, bool(has_default), default == "None" or name in _MAY_BE_NONE and (kind, name) != ("int", "dim"), only_named,
                                             name not in _ALWAYS_LISTS if alone is None else name in alone, name in strict))
        self.positional = sum(not p.only_named for p in self.parameters)
        self.least = sum(not p.optional for p in self.parameters)
        self.spreads = self.positional == 1 and self.parameters[0].kind == "tuple of ints"  # `f(2, 3)` for `f((2, 3))`

    def takes(self, count: int) -> bool:
        return self.least <= count <= len(self.parameters)

    def refusal(self, function: str, args: tuple, kwargs: dict) -> str | None:
        """torch's words about the first argument that does not fit; None where all do. TypeError for lists, which are looked through once they fit."""
        if len(args) > self.positional and not self.spreads:
            return self._too_many(function, len(args))
        used, at, unpacked = set(), 0, []
        for p in self.parameters:
            named = at >= len(args)
            if named:
                word = p.name if p.name in kwargs else next((w for w, name in _NUMPYS.items() if name == p.name and w in kwargs), None)
                if word is None:
                    if not p.optional:
                        return self._missing(function, at, kwargs)
                    continue
                used.add(word)
                x = kwargs[word]
            elif p.only_named:
                return self._too_many(function, len(args))
            else:
                x = args[at]
                at += 1
            if x is None and p.may_be_none or _fits(p, x) or self.numbers_too and p.kind == "Tensor" and _is_number(x):
                if p.kind == "tuple of ints" and isinstance(x, (tuple, list)):
                    unpacked.append((p, x))
                continue
            if self.spreads and at == 1 and not named and _is_int(x):
                unpacked.append((p, args))
                at = len(args)
                continue
            if not named and len(args) > self.positional:
                return self._too_many(function, len(args))
            return _wrong(function, p, None if named else at, x)
        unknown = next((name for name in kwargs if name not in used), None)
        if unknown is None or unknown == "out" and self.out:
            for p, items in unpacked:
                for place, x in enumerate(items, 1):
                    if not _is_int(x) and not isinstance(x, bool):
                        raise TypeError(f"{function}(): argument '{p.name}' failed to unpack the object at pos {place} with error \"type must be tuple of ints,"
                                        f"but got {class_name(x)}\"")
            return None
        twice = any(p.name == unknown for p in self.parameters)
        return f"{function}() got multiple values for argument '{unknown}'" if twice else f"{function}() got an unexpected keyword argument '{unknown}'"

    def _too_many(self, function: str, given: int) -> str:
        least, most = sum(not p.optional and not p.only_named for p in self.parameters), self.positional
        takes = f"{most} positional argument{'s' if most != 1 else ''}" if least == most else f"from {least} to {most} positional arguments"
        return f"{function}() takes {takes} but {given} {'was' if given == 1 else 'were'} given"

    def _missing(self, function: str, given: int, kwargs: dict) -> str:
        names = [p.name for p in self.parameters[given:] if not p.optional and p.name not in kwargs]
        return f"{function}() missing {len(names)} required positional argument{'s' if len(names) == 1 else ''}: " + ", ".join(f'"{n}"' for n in names)

    def described(self, args: tuple, kwargs: dict) -> str:
        """The form, with what is wrong in a call of as many arguments as it has parameters."""
        out, parts = f" * ({self.text})\n", self.text.split(", ")  # the star counts, and so does nothing
        if len(parts) != len(args) + len(kwargs):
            return out
        unknown = self.unknown(kwargs)
        if unknown:
            return out + f"{_INDENT}didn't match because some of the keywords were incorrect: {', '.join(unknown)}\n"
        return out + f"{_INDENT}didn't match because some of the arguments have invalid types: ({self.marked(args, kwargs)})\n"

    def unknown(self, kwargs: dict) -> list[str]:
        """The keywords that the form does not have among its last parts, as many as there are keywords: there the parser looks for them."""
        last = [_name(part) for part in self.text.split(", ")[-len(kwargs):]]
        return [name for name in reversed(kwargs) if name not in last]

    def marked(self, args: tuple, kwargs: dict) -> str:
        """The types of as many arguments as the form has parts, those that do not fit between exclamation marks."""
        names = {p.name: p for p in self.parameters}
        shown = [_shown(names.get(_name(part)), x) for part, x in zip(self.text.split(", "), args)]
        shown += [_shown(p, kwargs[name], f"{name}=") for name, p in names.items() if name in kwargs]
        return ", ".join(shown) + ", " * (not args)


def _name(part: str) -> str:
    """A parameter's name in its part of a form's text."""
    return part.partition(" = ")[0].rpartition(" ")[2]


def _shown(p: Parameter | None, x: Any, word: str = "") -> str:
    """An argument's type, between exclamation marks where it is not by its name the parameter's. To torch no type is one of a parameter with a default."""
    name = class_name(x)
    if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
        kinds = [class_name(y) for y in x]
        name = f"empty {name}" if not x else f"list of [{', '.join(kinds)}]" if isinstance(x, list) else f"tuple of ({', '.join(kinds)}{',' * (len(x) == 1)})"
    return word + name if p is not None and not p.optional and class_name(x) in _NAMED.get(p.kind, (p.kind,)) else f"!{word}{name}!"


def _is_int(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.dtype.category < dt.FLOAT and x.numel() == 1
    return not isinstance(x, bool) and converts(operator.index, x)


def _is_float(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0 and not x.requires_grad and not x.dtype.is_complex
    return not isinstance(x, str) and converts(float, x)


def _is_number(x: Any) -> bool:
    return x.ndim == 0 and not x.requires_grad if isinstance(x, Tensor) else not isinstance(x, str) and converts(complex, x)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda x: isinstance(x, Tensor), "int": _is_int, "float": _is_float, "Number": _is_number, "str": lambda x: isinstance(x, str),
    "bool": lambda x: isinstance(x, bool) or type(x).__name__ in ("bool_", "bool"), "torch.dtype": lambda x: isinstance(x, dt.dtype),
    "torch.layout": lambda x: type(x).__name__ == "layout", "torch.device": lambda x: isinstance(x, (device, str)) or _is_int(x),
    "torch.Generator": lambda x: isinstance(x, Generator), "torch.memory_format": lambda x: type(x).__name__ == "memory_format"}
_NUMBERS_TOO = frozenset("copy add sub subtract mul multiply div divide true_divide floor_divide".split())  # whose tensors may be numbers


def _fits(p: Parameter, x: Any) -> bool:
    """Whether torch's parser goes on after an argument; of lists it looks at the first item."""
    if p.kind == "tuple of ints":
        if isinstance(x, (tuple, list)):
            return not x or _is_int(x[0])
        return p.alone and _is_int(x)
    if p.kind.startswith("tuple of "):
        return isinstance(x, (tuple, list)) or p.kind == "tuple of floats" and _is_float(x)
    check = _CHECKS.get(p.kind)
    return check is None or check(x) and not (p.strict and isinstance(x, Tensor) and x.ndim)


def _wrong(function: str, p: Parameter, place: int | None, x: Any) -> str:
    where = "" if place is None else f" (position {place})"
    if p.kind == "tuple of ints" and isinstance(x, (tuple, list)):
        return f"{function}(): argument '{p.name}'{where} must be tuple of ints, but found element of type {class_name(x[0])} at pos 0"
    return f"{function}(): argument '{p.name}'{where} must be {p.kind}, not {class_name(x)}"


# -- which forms a function has ------------------------------------------------------------------------------------------------


@functools.cache
def _written() -> dict[str, list[str]]:
    """The forms of functions with several: `Tensor.<name>` those of a method that are not the function's."""
    found: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "_call_forms.txt").read_text().splitlines():
        name, _, text = line.partition("(")
        found.setdefault(name, []).append(text[:-1])
    return found


def _as_method(text: str) -> str:
    """A function's form without the tensor that a method is called on, and without `out`."""
    text = re.sub(r"^Tensor (input|self)(, |$)", "", re.sub(r", (Tensor|tuple of Tensors) out = None", "", text))
    return re.sub(r"(, |^)\*$", "", text)


def _of_schema(schema: Any, method: bool) -> str | None:
    """The form of a function that has one schema; None where a part of it has no name here."""
    parts, only_named = [], False
    for i, a in enumerate(schema.arguments):
        kind = a.kind.removesuffix("?")
        listed = re.fullmatch(r"(int|SymInt|float|bool)\[\d*\]", kind)
        said = f"tuple of {listed[1].replace('SymInt', 'int')}s" if listed else _TYPES.get(re.sub(r"\[\d*\]", "[]", kind))
        if said is None or kind != a.kind and a.default is not None:  # (what may be None and has another default)
            return None
        if a.only_named and not only_named:
            parts.append("*")
            only_named = True
        required = isinstance(a.default, object) and a.default.__class__ is object
        if method and not i:
            continue
        name = "input" if a.name == "self" and said == "Tensor" else a.name
        parts.append(f"{said} {name}" + ("" if required else f" = {a.default}".replace(", ", ",")))
    if any(a.name == "pin_memory" for a in schema.arguments):  # the parser knows it of all factories, the dispatcher of none
        parts.append("bool requires_grad = False")
    return ", ".join(parts)


# methods whose parser has one form, and the dispatcher two
_ALONE = {"size": "int dim = None", "stride": "int dim = None", "mul": "Tensor other", "mul_": "Tensor other", "polygamma": "int n",
          "is_contiguous": "*, torch.memory_format memory_format = torch.contiguous_format"}


@functools.lru_cache(512)
def forms(function: str, method: bool) -> tuple[tuple[Form, ...], bool]:
    """A function's forms, and whether torch chooses between several of them (of which it may not name those that are deprecated)."""
    from ._aten_schemas import schemas
    if method and function in _ALONE:
        return (Form(_ALONE[function], "mul" in function),), False
    written = _written()
    texts = written.get(f"Tensor.{function}") if method else None
    if texts is None and function in written:
        texts = list(dict.fromkeys(map(_as_method, written[function]))) if method else written[function]
    if texts is not None:
        return tuple([Form(text, function.rstrip("_") in _NUMBERS_TOO, out=not method) for text in texts]), True
    if function == "nonzero":  # whose schema says nothing of `as_tuple`
        return (), False
    found = [s for s in schemas(function) if not any(name.startswith("out") for name in s.names)]
    text = _of_schema(found[0], method) if len(found) == 1 else None
    if text is None:
        return (), False
    arguments = found[0].arguments
    return (Form(text, alone=frozenset(a.name for a in arguments if re.search(r"\[\d+\]", a.kind)),
                 strict=frozenset(a.name for a in arguments if a.kind in ("int", "int?")), out=not method),), False


def refusal(function: str, args: tuple, kwargs: dict, method: bool) -> TypeError | None:
    """torch's error for a call (of a method without the tensor that it is called on) that fits no form of the function; None where one fits."""
    found, several = forms(function, method)
    said = []
    for form in found:
        try:
            said.append(form.refusal(function, args, kwargs))
        except TypeError as error:
            return error
        if said[-1] is None:
            return None
    if not found:
        return None
    likely = [text for form, text in zip(found, said) if form.takes(len(args) + len(kwargs))]
    if not several or len(likely) == 1:
        return TypeError(likely[0] if several else said[0])
    return TypeError(combination(function, args, kwargs, found))


def combination(function: str, args: tuple, kwargs: dict, found: tuple[Form, ...]) -> str:
    words = ", ".join(map(class_name, args))
    for name, x in reversed(kwargs.items()):  # the parser has them in a hash table, whose last entry comes first
        words += f", {name}={class_name(x)}" if args else f"{name}={class_name(x)}, "
    start = f"{function}() received an invalid combination of arguments - got "
    if len(found) != 1:
        return start + f"({words}), but expected one of:\n" + "".join(form.described(args, kwargs) for form in found)
    form, unknown = found[0], found[0].unknown(kwargs)
    if unknown:
        return start + "unrecognized keyword arguments: " + ", ".join(unknown)
    if len(form.text.split(", ")) == len(args) + len(kwargs):
        words = form.marked(args, kwargs)
    return start + f"({words}), but expected ({form.text})"
