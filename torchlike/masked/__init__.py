"""torch.masked: reductions of what a mask keeps, and tensors with a mask."""
import functools
from collections.abc import Callable
from typing import Any

from . import _ops
from ._ops import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from .maskedtensor.core import MaskedTensor, is_masked_tensor
from .maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor", "log_softmax", "logaddexp",
           "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]


def _with_own_mask(f: Callable) -> Callable:
    """f, which takes a masked tensor as its data, and its mask where no other is given; the result is a plain tensor."""
    @functools.wraps(f)
    def run(input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:  # noqa: A002
        if is_masked_tensor(input):
            input, mask = input.get_data(), input.get_mask() if mask is None else mask
        return f(input, *args, mask=mask, **kwargs)
    return run


globals().update({name: _with_own_mask(getattr(_ops, name)) for name in __all__ if hasattr(_ops, name) and name != "logaddexp"})
