"""An update rule in operations on tensors, for parameters whose class dispatches, or has `add_` and the like of its own: what the rule calls as `m`
and `xp`, on tensors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any

from .._core.grad_mode import mode
from .._public import FUNCTIONS as F
from .._tensor import Tensor

MATHS = SimpleNamespace(
    number=lambda xp, x, dtype: x,
    add=lambda xp, x, y, alpha: F["add"](x, y, alpha=alpha),
    plus=lambda xp, x, a: x + a,
    mul=lambda xp, x, a: x * a,
    div=lambda xp, x, a: x / a,
    over=lambda xp, a, x: a / x,
    sqrt=lambda xp, x: x.sqrt(),
    addcmul=lambda xp, x, a, b, value: F["addcmul"](x, a, b, value=value),
    addcdiv=lambda xp, x, a, b, value: F["addcdiv"](x, a, b, value=value),
    lerp=lambda xp, x, y, weight, small=None: F["lerp"](x, y, weight),
    like=lambda xp, x, p: x.to(p.dtype),
)
ARRAYS = SimpleNamespace(
    where=lambda c, x, y: (x if c else y) if c.__class__ is bool else F["where"](c, x, y), asarray=lambda x: x, clip=lambda x, least, most: F["clamp"](x, least, most),
    zeros=lambda shape, dtype: F["zeros"](shape, dtype=dtype), zeros_like=lambda x: F["zeros_like"](x), maximum=lambda x, y: F["maximum"](x, y),
    sqrt=lambda x: x.sqrt(), square=lambda x: x.square(), sign=lambda x: x.sign(), abs=lambda x: x.abs())


def _writing(p: Tensor) -> SimpleNamespace:
    """MATHS, where p is changed by its own methods."""
    def own(name: str) -> Callable:
        plain, method = getattr(MATHS, name), f"{name}_"

        def run(xp: Any, x: Any, *args: Any) -> Tensor:
            if x is not p:
                return plain(xp, x, *args)
            *operands, factor = args
            if operands:
                getattr(p, method)(*operands, **{"alpha" if name == "add" else "value": factor})
            else:
                getattr(p, method)(factor)
            return p
        return run
    return SimpleNamespace(**{**vars(MATHS), **{name: own(name) for name in ("add", "mul", "addcdiv", "addcmul")}})


def step(name: str, rule: Callable, params: Sequence[Tensor], grads: Sequence[Tensor], state: Sequence[Sequence[Tensor]], numbers: Sequence, flags: tuple) -> None:
    """One step of `rule` for each parameter, written in place."""
    before, mode.enabled = mode.enabled, False
    try:
        for i, (p, g) in enumerate(zip(params, grads)):
            mine = [column[i] for column in state]
            maths = MATHS if p._dispatches or g._dispatches else _writing(p)
            run = FunctionType(rule.__code__, {**rule.__globals__, "m": maths}, rule.__name__, rule.__defaults__, rule.__closure__)
            try:
                made: Any = run(ARRAYS, p, g, mine, numbers, flags)
            except AttributeError as error:
                raise NotImplementedError(f"torchlike: {name} of a {type(p).__name__}, whose class dispatches ({error})") from None
            for t, new in zip((p, *mine), made if isinstance(made, tuple) else (made,)):
                if new is not t:
                    t.copy_(new)
    finally:
        mode.enabled = before
