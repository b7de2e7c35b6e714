"""softmax, softmin, log_softmax as torch.nn.functional has them, and gumbel_softmax."""
from __future__ import annotations

from collections.abc import Callable

from ..._call_forms import refusal
from ..._core.history import warn
from ..._tensor import Tensor
from ...ops import softmax as plain


def _implicit_dim(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def _along(f: Callable, name: str, input: Tensor, dim, dtype) -> Tensor:
    """The method of that name, in its words where an argument is of the wrong kind."""
    try:
        return f(input, dim, dtype)
    except TypeError as error:
        raise refusal(name, (dim,), {} if dtype is None else {"dtype": dtype}, True) or error from None


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """exp(x_i) / sum_j exp(x_j) along dim."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim())
    return _along(plain.softmax, "softmax", input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """exp(-x_i) / sum_j exp(-x_j) along dim."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return _along(plain.softmax, "softmax", -input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """log of softmax along dim."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim())
    return _along(plain.log_softmax, "log_softmax", input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Samples of a relaxed categorical distribution; hard: one-hot samples with the relaxed gradient (Jang et al. 2017)."""
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -logits.detach().contiguous().clone().exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = soft.argmax(dim, keepdim=True)
    return soft.detach().clone().zero_().scatter_(dim, chosen, 1.0) - soft.detach() + soft
