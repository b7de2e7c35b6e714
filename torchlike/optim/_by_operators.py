"""An update rule in operations on tensors, for parameters whose class dispatches: what the rule calls as `m` and `xp`, on tensors."""
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
)
ARRAYS = SimpleNamespace(where=lambda c, x, y: F["where"](c, x, y), maximum=lambda x, y: F["maximum"](x, y), sqrt=lambda x: x.sqrt(), square=lambda x: x.square(),
                         sign=lambda x: x.sign(), abs=lambda x: x.abs(), zeros_like=lambda x: F["zeros_like"](x))


def step(name: str, rule: Callable, params: Sequence[Tensor], grads: Sequence[Tensor], state: Sequence[Sequence[Tensor]], numbers: Sequence, flags: tuple) -> None:
    """One step of `rule` for each parameter, written in place."""
    run = FunctionType(rule.__code__, {**rule.__globals__, "m": MATHS}, rule.__name__, rule.__defaults__, rule.__closure__)
    before, mode.enabled = mode.enabled, False
    try:
        for i, (p, g) in enumerate(zip(params, grads)):
            mine = [column[i] for column in state]
            try:
                made: Any = run(ARRAYS, p, g, mine, numbers, flags)
            except AttributeError as error:
                raise NotImplementedError(f"torchlike: {name} of a {type(p).__name__}, whose class dispatches ({error})") from None
            for t, new in zip((p, *mine), made if isinstance(made, tuple) else (made,)):
                t.copy_(new)
    finally:
        mode.enabled = before
