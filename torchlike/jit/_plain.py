"""What the operators of TorchScript's text do with Python's numbers, strings, lists and dictionaries."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any


def _format(text: str, *values: Any) -> str:
    for v in values:
        text = text.replace("{}", str(v), 1)
    return text


def _appended(items: list, x: Any) -> list:
    items.append(x)
    return items


def _unwrapped(x: Any) -> Any:
    if x is None:
        raise RuntimeError("Unwrapping null optional")
    return x


def _divided(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    return a / b if rounding_mode is None else math.floor(a / b) if rounding_mode == "floor" else math.trunc(a / b)


PLAIN: dict[str, Callable] = {
    "add": operator.add, "add_": operator.iadd, "sub": operator.sub, "mul": operator.mul, "div": _divided, "floordiv": operator.floordiv, "pow": math.pow,
    "remainder": operator.mod, "fmod": math.fmod, "neg": operator.neg, "abs": abs, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__not__": operator.not_,
    "bitwise_not": operator.invert, "__lshift__": operator.lshift, "__rshift__": operator.rshift, "__is__": operator.is_, "__isnot__": operator.is_not,
    "floor": math.floor, "ceil": math.ceil, "round": lambda x: float(round(x)), "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos,
    "__getitem__": operator.getitem, "__contains__": operator.contains, "__delitem__": operator.delitem, "_set_item": operator.setitem, "append": _appended,
    "extend": list.extend, "insert": list.insert, "pop": lambda d, *k: d.pop(*k), "clear": lambda d: d.clear(), "reverse": list.reverse,
    "sort": lambda items, reverse=False: items.sort(reverse=reverse), "sorted": sorted, "copy": lambda d: d.copy(), "index": lambda d, x: d.index(x),
    "count": lambda d, x: d.count(x), "list": list, "dict": dict, "keys": lambda d: list(d.keys()), "values": lambda d: list(d.values()),
    "items": lambda d: list(d.items()), "get": dict.get, "setdefault": dict.setdefault, "update": dict.update, "sum": sum, "any": any, "all": all,
    "__range_length": lambda low, high, step: len(range(low, high, step)), "__derive_index": lambda i, low, step: low + i * step,
    "format": _format,
    "percentFormat": lambda text, *values: text % (values[0] if len(values) == 1 else values),
    "str": str, "ord": ord, "chr": chr, "slice": lambda d, a=None, b=None, step=1: d[a:b:step],
    **{name: getattr(str, name) for name in ("lower", "upper", "strip", "lstrip", "rstrip", "split", "join", "replace", "startswith", "endswith", "find",
                                            "capitalize", "center", "expandtabs", "isalnum", "isalpha", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric",
                                            "isprintable", "isspace", "istitle", "isupper", "ljust", "partition", "rfind", "rindex", "rjust", "rpartition", "rsplit",
                                            "splitlines", "swapcase", "title", "zfill")},
    **{name: getattr(math, name) for name in ("degrees", "radians", "fabs", "factorial", "gamma", "lgamma", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tan",
                                              "tanh", "asinh", "acosh", "atanh", "log1p", "log10", "expm1", "erf", "erfc", "copysign", "ldexp", "gcd", "isnan", "isinf",
                                              "isfinite")},
    "Delete": operator.delitem, "remove": list.remove, "popitem": dict.popitem, "divmod": divmod, "mathremainder": math.remainder, "bin": bin, "hex": hex, "oct": oct,
    "modf": math.modf, "frexp": math.frexp, "_unwrap_optional": _unwrapped, "trunc": math.trunc,
}
ANY_VALUE = {"percentFormat", "__is__", "__isnot__", "append", "_set_item", "__contains__", "insert", "str", "format", "get", "setdefault", "len", "__getitem__",
             "_unwrap_optional", "remove", "Delete"}
