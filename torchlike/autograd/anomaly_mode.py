"""torch.autograd.set_detect_anomaly: name the forward line whose backward made a NaN."""
from __future__ import annotations

import traceback
import warnings

import numpy as np

from .._core.grad_mode import mode
from .._core.history import warn

__all__ = ["detect_anomaly", "set_detect_anomaly"]

check_nan = [True]


def remember(node, values) -> None:
    """Keep the forward call's stack with the node."""
    node.where = traceback.format_list(traceback.extract_stack()[:-3])


def _switch(enabled: bool) -> None:
    mode.anomaly = enabled
    others = tuple(w for w in mode.watchers if w is not remember)
    mode.watchers = (*others, remember) if enabled else others


def check(node, grads) -> None:
    """RuntimeError as torch raises it when a gradient is NaN; the forward stack goes out as a warning."""
    if not check_nan[0]:
        return
    for i, g in enumerate(grads):
        if g is not None and g.dtype.category >= 2 and np.isnan(g._host_array().astype(np.complex128)).any():
            where = getattr(node, "where", None)
            if where:
                warnings.warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
                              + "".join(where), stacklevel=2)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


class set_detect_anomaly:
    """Context manager or function: record forward stacks, and fail on NaN gradients."""

    def __init__(self, enabled: bool, check_nan: bool = True):
        from . import anomaly_mode
        self.before = mode.anomaly, anomaly_mode.check_nan[0]
        anomaly_mode.check_nan[0] = check_nan
        _switch(enabled)

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        from . import anomaly_mode
        enabled, anomaly_mode.check_nan[0] = self.before
        _switch(enabled)


class detect_anomaly(set_detect_anomaly):
    """`with torch.autograd.detect_anomaly():` ..."""

    def __init__(self, check_nan: bool = True):
        warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.")
        super().__init__(True, check_nan)
