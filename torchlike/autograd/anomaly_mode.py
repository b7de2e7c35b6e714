"""torch.autograd.set_detect_anomaly: name the forward line whose backward made a NaN."""
from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence

import numpy as np

from .._core import dtype as dt
from .._core.grad_mode import mode
from .._core.graph import Node
from .._core.history import warn
from .._tensor import Tensor
from .._tracebacks import in_c

__all__ = ["detect_anomaly", "set_detect_anomaly"]

check_nan = [True]
TRACE, PARENT = "traceback_", "parent_"  # torch's keys in a node's `metadata`


class _Running(threading.local):
    node: Node | None = None  # whose backward this thread is in: what is recorded there comes of it


_running = _Running()


def remember(node: Node, values: Sequence) -> None:
    """Keep the forward call's stack with the node, and in which node's backward it was made."""
    frames = [(frame, line) for frame, line in traceback.walk_stack(sys._getframe(1)) if not in_c(frame)]
    node.metadata[TRACE] = traceback.format_list(traceback.StackSummary.extract(reversed(frames)))
    if _running.node is not None:
        node.metadata[PARENT] = _running.node


def _switch(enabled: bool) -> None:
    mode.anomaly = enabled
    others = tuple(w for w in mode.watchers if w is not remember)
    mode.watchers = (*others, remember) if enabled else others


def watched(run: Callable[..., list], node: Node, *args) -> list:
    """run(node, *args), a node's backward. What it raises, and NaN in what it makes, is told with the forward calls that it comes of."""
    before, _running.node = _running.node, node
    try:
        made = run(node, *args)
        for i, g in enumerate(made if check_nan[0] else ()):
            if isinstance(g, Tensor) and g.dtype.category >= dt.FLOAT and np.isnan(g._host_array().astype(np.complex128)).any():
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
        return made
    except Exception:
        _tell(node)
        raise
    finally:
        _running.node = before


def _tell(node: Node) -> None:
    """Warn of where a node was made, and those in whose backward it was."""
    words = "Error detected in {}. Traceback of forward call that caused the error:\n{}"
    while node is not None:
        stack = node.metadata.get(TRACE)
        if stack is None:
            text = f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for more information."
        else:
            text = words.format(node.name(), "".join(stack))
        try:
            warn(text)
        except Warning:  # somebody wants warnings to be errors, but there is one already
            sys.stderr.write(f"Warning: {text}\n")
        words = "\n\nPrevious calculation was induced by {}. Traceback of forward call that induced the previous calculation:\n{}"
        node = node.metadata.get(PARENT)


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
