"""Which functions of torch.nn.functional are written in TorchScript (`functional.py`), and which are operators under another name."""
from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from .values import VARIES, Value

_MAX, _AVG = "input kernel_size stride padding dilation ceil_mode return_indices", "input kernel_size stride padding ceil_mode count_include_pad divisor_override"
_DIRECT: dict[str, tuple[str, str]] = {  # the operator, and the function's arguments; None is what the operator does without
    **{f"max_pool{n}d{also}": (f"max_pool{n}d{also}", _MAX) for n in (1, 2, 3) for also in ("", "_with_indices")},
    **{f"adaptive_max_pool{n}d{also}": (f"adaptive_max_pool{n}d", "input output_size return_indices") for n in (1, 2, 3) for also in ("", "_with_indices")},
    **{f"adaptive_avg_pool{n}d": (f"adaptive_avg_pool{n}d", "input output_size") for n in (2, 3)},
    "norm": ("norm", "input p dim keepdim"),
    "fold": ("col2im", "input output_size kernel_size dilation padding stride"), "unfold": ("im2col", "input kernel_size dilation padding stride")}
_ALWAYS = {"fold": {"dilation": 1, "padding": 0, "stride": 1}, "unfold": {"dilation": 1, "padding": 0, "stride": 1}}


@functools.cache
def _written() -> dict[str, FunctionType]:
    from . import attention, functional, losses
    found: dict[str, FunctionType] = {}
    for module in (attention, functional, losses):
        found |= {name: f for name, f in vars(module).items() if isinstance(f, FunctionType) and f.__globals__ is vars(module)}
    return found


@functools.cache
def replacements() -> dict[FunctionType, FunctionType]:
    """What is compiled in place of which method or function of torchlike's."""
    from . import attention, layers, recurrent
    return {**layers.methods(), **recurrent.methods(), **attention.methods()}


def replacement(f: FunctionType, m: Any) -> FunctionType:
    """What is compiled in place of a function of torchlike's, or of a method of this module."""
    from ... import nn
    from . import recurrent
    if isinstance(m, nn.LSTM) and f.__name__ in recurrent.LSTM:
        return recurrent.LSTM[f.__name__]
    return replacements().get(f, f)


def written(name: str) -> FunctionType | None:
    """The source of a function of torch.nn.functional."""
    return _written().get(name)


def knows(name: str) -> bool:
    return name in _DIRECT or name in _written()


def direct(name: str, args: list[Any], named: dict[str, Any]) -> tuple[str, dict[str, Any], bool] | None:
    """The operator that a function of torch.nn.functional is, its arguments, and whether only the first of its results is wanted."""
    if name not in _DIRECT:
        return None
    operator, words = _DIRECT[name]
    given = {**_ALWAYS.get(name, {})} | dict(zip(words.split(), args)) | named
    with_indices = name.endswith("_with_indices")
    flag = given.pop("return_indices", None)
    if flag is not None and getattr(flag, "constant", getattr(flag, "value", None)) is True:
        with_indices = True
    if with_indices and operator.startswith("max_pool") and not operator.endswith("_with_indices"):
        operator += "_with_indices"
    if name == "norm" and (p := given.get("p", VARIES)) is not VARIES and getattr(p, "constant", "fro") in ("fro", None):
        given["p"] = 2
    elif name == "norm":
        given.setdefault("p", 2)
    given = {"self" if k == "input" else k: x for k, x in given.items() if not (isinstance(x, Value) and x.known and x.constant is None)}
    return operator, given, operator.startswith("adaptive_max") and not with_indices
