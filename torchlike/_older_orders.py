"""Orders of arguments that PyTorch still takes with a warning: factors as numbers before the tensors they scale, `p.add_(-lr, grad)`."""
from __future__ import annotations

import warnings

from ._core import history
from ._tensor import Tensor

# function -> what the numbers among the positional arguments are
FACTORS = {"add": ("alpha",), "sub": ("alpha",), "addcmul": ("value",), "addcdiv": ("value",),
           **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha"))}
_warned: list[str] = []


def newer(name: str, args: tuple, kwargs: dict, shown: str | None = None) -> tuple[tuple, dict] | None:
    """The arguments in today's order, where a call follows the older one; warns at the first such call. `shown`: the name that was called."""
    names, number = FACTORS[name], (int, float, complex)
    if kwargs.keys() & set(names):
        return None
    if names == ("alpha",):  # what is scaled may be a number too
        if len(args) != 3 or not isinstance(args[1], number):
            return None
        tensors, numbers = [args[0], args[2]], [args[1]]
    else:
        tensors, numbers = ([x for x in args if isinstance(x, Tensor) is kind] for kind in (True, False))
        if not 0 < len(numbers) <= len(names) or len(tensors) != 3 or not isinstance(args[-1], Tensor) or not all(isinstance(x, number) for x in numbers):
            return None
    if history.warnings_always or not _warned:
        _warned.append(name)
        factors = "".join(f", {n}" for n in names)
        shown = shown or name
        warnings.warn(f"This overload of {shown} is deprecated: {shown}(factors before tensors)\nConsider using {shown}(tensors, *{factors}) instead.", stacklevel=4)
    return tuple(tensors), {**kwargs, **dict(zip(names, numbers))}
