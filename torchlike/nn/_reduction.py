"""How a loss is reduced: the `reduction` string, and the two older arguments it replaced."""
from __future__ import annotations

import warnings

_CODES = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """0, 1, 2 for 'none', 'mean', 'sum'. Raises ValueError for anything else."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    if reduction not in _CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _CODES[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The `reduction` that the older `size_average` and `reduce` stand for; None counts as True."""
    averages = size_average is None or bool(size_average)  # of a tensor (`CrossEntropyLoss(logits, targets)`) the error of its truth
    reduces = reduce is None or bool(reduce)
    reduction = "none" if not reduces else "mean" if averages else "sum"
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
                      stacklevel=2)
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """`get_enum` of `legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
