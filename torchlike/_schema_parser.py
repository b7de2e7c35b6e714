"""Schemas as programs write them: checked with torch's errors, and written as torch prints them."""
from __future__ import annotations

import ast
import re
from typing import NamedTuple

from ._core.device import device

_TOKENS = re.compile(r"\s*(?:(?P<ident>[^\W\d]\w*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<string_literal>'[^']*'|\"[^\"]*\")|(?P<arrow>->)"
                     r"|(?P<sign>\.\.\.|[()\[\],=?*!|:.-])|(?P<unknown>\S))")
_NUMBERS = {"int", "SymInt", "float", "bool", "Scalar", "complex", "ScalarType", "Layout", "MemoryFormat", "Device"}
_KINDS = _NUMBERS | {"Tensor", "str", "Generator", "Stream", "Storage", "QScheme", "SymBool", "Any", "NoneType", "Capsule", "AnyClassType", "AnyEnumType", "DeviceIndex"}
_OF_OTHERS = {"Dict", "Future", "Await", "RRef", "Union"}
_CONSTANTS = {"True": "True", "False": "False", "None": "None", "Mean": "1", "strided": "0", "contiguous_format": "0", "long": "4", "float": "6"}
_SCALAR_TYPES = {  # dtypes by the numbers that C++ has for them
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex32": 8, "complex64": 9, "complex128": 10,
    "bool": 11, "qint8": 12, "quint8": 13, "qint32": 14, "bfloat16": 15, "float8_e5m2": 23, "float8_e4m3fn": 24, "float8_e5m2fnuz": 25,
    "float8_e4m3fnuz": 26, "uint16": 27, "uint32": 28, "uint64": 29, "float8_e8m0fnu": 44, "float4_e2m1fn_x2": 45,
    "quint4x2": 16, "quint2x4": 17, "bits1x8": 18, "bits2x4": 19, "bits4x2": 20, "bits8": 21, "bits16": 22,
    **{f"uint{n}": 29 + n for n in range(1, 8)}, **{f"int{n}": 36 + n for n in range(1, 8)},
    "short": 2, "int": 3, "long": 4, "half": 5, "float": 6, "double": 7, "chalf": 8, "cfloat": 9, "cdouble": 10}
_OF_CPP = {
    "int64_t": "\nUse `SymInt` or `int` instead of `int64_t` in an operator's schema string. `SymInt` corresponds to c10::SymInt in C++ while `int` in schema "
               "corresponds to the int64_t type in C++.",
    "double": "\nUse `float` instead of `double` in an operator's schema string. `float` in schema corresponds to the double type in C++"}
_UNKNOWN_KIND = ("\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full list, please see "
                 "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func ")


class _Token(NamedTuple):
    kind: str  # `ident`, `number`, `string_literal`, `arrow`, `eof`, or the sign itself
    text: str
    start: int


class _Parser:
    """One pass over a schema's text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, re.match(r"[\w:.]*", text).end()
        self.name, self.unnamed = text[:self.at], 0
        self.advance()

    def advance(self) -> _Token:
        """The token we stand on, which is left behind."""
        before = getattr(self, "token", None)
        found = _TOKENS.match(self.text, self.at)
        if found is None:
            self.token = _Token("eof", "", len(self.text))
        else:
            kind, text = found.lastgroup, found[found.lastgroup]
            self.at, self.token = found.end(), _Token(text if kind == "sign" else kind, text, found.start(kind))
            if kind == "unknown":
                raise self.error(f"expected a valid token but found '{text}' here")
        return before

    def error(self, words: str, token: _Token | None = None) -> RuntimeError:
        """An error that shows where it is."""
        token = token or self.token
        if token.kind == "eof":
            return RuntimeError(f"{words}:\n{self.text}")
        return RuntimeError(f"{words}:\n{self.text}\n{' ' * token.start}{'~' * len(token.text)} <--- HERE\n")

    def expect(self, kind: str) -> str:
        if self.token.kind != kind:
            raise self.error(f"expected {kind} but found '{self.token.kind}' here")
        return self.advance().text

    def took(self, kind: str) -> bool:
        found = self.token.kind == kind
        if found:
            self.advance()
        return found

    def list_of(self, item, close: str) -> list[str]:
        """Items between commas, up to the sign that closes them."""
        items = []
        if self.token.kind != close:
            items.append(item())
            while self.took(","):
                items.append(item())
        self.expect(close)
        return items

    def memory(self) -> str:
        """`(a!)`: which memory a tensor is; a mere `!`: some that is written."""
        if self.took("!"):
            self.unnamed += 1
            return f"(${self.unnamed - 1}! -> )"
        if not self.took("("):
            return ""
        found = ""
        while self.token.kind in ("ident", "|", "!", "*", "arrow"):
            found += " -> " if self.token.kind == "arrow" else self.token.text
            self.advance()
        self.expect(")")
        return f"({found})"

    def kind(self) -> str:
        """A type."""
        start = self.token
        found = self.expect("ident")
        if found in _OF_OTHERS:
            self.expect("(")
            found += f"({', '.join(self.list_of(self.kind, ')'))})"
        elif found == "__torch__":
            while self.took("."):
                found += "." + self.expect("ident")
        elif found not in _KINDS:
            raise self.error(_OF_CPP.get(found, _UNKNOWN_KIND), start)
        found += self.memory()
        while self.token.kind in ("[", "?"):
            if self.took("?"):
                found += "?"
                continue
            self.advance()
            found += f"[{self.advance().text if self.token.kind == 'number' else ''}]"
            self.expect("]")
            found += self.memory()
        return found

    def value(self, kind: str) -> str:
        """The default of a parameter of this kind."""
        if kind.endswith("?"):
            return "None" if self.token.text == "None" and self.advance() else self.value(kind[:-1])
        listed = re.fullmatch(r"(.*)\[(\d*)\]", kind)
        if listed:
            if listed[2] and self.token.kind != "[":  # one number for all of so many
                return self.value(listed[1])
            self.expect("[")
            return f"[{', '.join(self.list_of(lambda: self.value(listed[1]), ']'))}]"
        if kind == "Device":
            return str(device(self.expect("string_literal")[1:-1]))
        if kind == "str":
            return '"' + self.expect("string_literal")[1:-1] + '"'
        if kind.split("(")[0] not in _NUMBERS:
            if self.token.text != "None":
                raise self.error(f"expected None but found '{self.token.kind}' here")
            return self.advance().text
        sign = "-" if self.took("-") else ""
        if not sign and self.token.kind == "ident":
            name = self.advance().text
            if kind == "ScalarType" and name in _SCALAR_TYPES:
                return str(_SCALAR_TYPES[name])
            if name not in _CONSTANTS:
                raise self.error("\ninvalid numeric default value")
            return _CONSTANTS[name]
        return _printed(sign + self.expect("number"), kind)

    def argument(self) -> tuple[str, str, str | None]:
        """Kind, name and default; the kind is a sign where it is `*` or `...`."""
        if self.token.kind in ("*", "..."):
            return self.advance().text, "", None
        kind = self.kind()
        name = self.expect("ident")
        return kind, name, self.value(kind) if self.took("=") else None

    def result(self) -> str:
        if self.token.kind == "...":
            return self.advance().text
        kind = self.kind()
        return f"{kind} {self.advance().text}" if self.token.kind == "ident" else kind

    def schema(self) -> str:
        if self.token.kind == "eof":
            raise RuntimeError("Tried to parse a function schema but only the operator name was given")
        if not self.took("("):
            raise self.error(f"expected eof but found '{self.token.kind}' here")
        arguments = self.list_of(self.argument, ")")
        self.expect("arrow")
        results = self.list_of(self.result, ")") if self.took("(") else [self.result()]
        if self.token.kind != "eof":
            raise self.error(f"expected eof but found '{self.token.kind}' here")
        stars = [i for i, (kind, _, _) in enumerate(arguments) if kind == "*"]
        shown = [f"{kind} {name}".rstrip() + ("" if default is None else f"={default}") for i, (kind, name, default) in enumerate(arguments)
                 if kind != "*" or i == stars[0] and stars[-1] < len(arguments) - 1]
        text = f"{self.name}({', '.join(shown)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"
        optional = False
        for kind, name, default in arguments[:stars[0]] if stars else arguments:
            if optional and default is None and kind != "..." and not kind.endswith("]"):
                raise RuntimeError(f"Non-default positional argument follows default argument. Parameter {name} in {text}")
            optional = default is not None
        return text


def _printed(number: str, kind: str) -> str:
    """A number as torch prints it in a parameter of this kind."""
    found = ast.literal_eval(number.lstrip("-").lstrip("0") or "0") * (-1 if number.startswith("-") else 1)
    if kind == "float":
        found = float(found)
    if isinstance(found, int):
        return str(found)
    text = f"{found:.17g}"
    return text if re.search(r"[.e]", text) else text + "."


def canonical(text: str) -> str:
    """`f(Tensor x, int n = 3)->Tensor` as `f(Tensor x, int n=3) -> Tensor`; RuntimeError for what is no schema."""
    return _Parser(text).schema()
