"""Orders of arguments that PyTorch still takes with a warning: factors as numbers before the tensors they scale, `p.add_(-lr, grad)`."""
from __future__ import annotations

import warnings

from ._core import history
from ._tensor import Tensor

# function -> what the numbers among the positional arguments are
FACTORS = {"add": ("alpha",), "sub": ("alpha",), "addcmul": ("value",), "addcdiv": ("value",),
           **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha"))}
OPERANDS = {"add": ("other",), "sub": ("other",), "addcmul": ("tensor1", "tensor2"), "addcdiv": ("tensor1", "tensor2"), "addmm": ("mat1", "mat2"),
            "addmv": ("mat", "vec"), "addr": ("vec1", "vec2"), "addbmm": ("batch1", "batch2"), "baddbmm": ("batch1", "batch2")}
_warned: list[str] = []


def newer(name: str, args: tuple, kwargs: dict, shown: str | None = None, method: bool = False) -> tuple[tuple, dict] | None:
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
        places = [i for i, x in enumerate(args) if not isinstance(x, Tensor)]
        allowed = [1, 2] if method else [0, 2] if len(names) > 1 else [1]
        if not numbers or places != allowed[:len(names)][:len(numbers)] or len(tensors) != 3 or not all(isinstance(x, number) for x in numbers):
            return None
    if history.warnings_always or not _warned:
        _warned.append(name)
        warnings.warn(_warning(name, shown or name, len(numbers), method), stacklevel=history.outside())
    return tuple(tensors), {**kwargs, **dict(zip(names, numbers))}


def _warning(name: str, shown: str, given: int, method: bool) -> str:
    """torch's words: the form that was called, with so many factors, and today's."""
    factors, operands = [f"Number {n}" for n in FACTORS[name]], [f"Tensor {n}" for n in OPERANDS[name]]
    first, out = ([], []) if method else (["Tensor input"], ["Tensor out = None"])
    before, between = (factors[:given], []) if method else (factors[:1], factors[1:given]) if len(factors) > 1 else ([], factors)
    today = ["*", *(f"{f} = 1" for f in factors), *out]
    kinds = [[], ["torch.dtype out_dtype"]] if name in ("addmm", "baddbmm") and not method else [[]]
    form = lambda parts: f"\n\t{shown}({', '.join(parts)})"  # noqa: E731
    return (f"This overload of {shown} is deprecated:{form([*before, *first, *between, *operands, *(['*', *out] if out else [])])}"
            "\nConsider using one of the following signatures instead:" + "".join(form([*first, *operands, *kind, *today]) for kind in kinds))
