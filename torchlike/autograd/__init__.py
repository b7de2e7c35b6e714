"""torch.autograd: differentiation of recorded operations."""
from .._core.grad_mode import mode as _mode
from . import engine, forward_ad, function, grad_mode, graph, profiler  # noqa: F401
from .anomaly_mode import detect_anomaly, set_detect_anomaly  # noqa: F401
from .engine import backward, grad  # noqa: F401
from .function import Function  # noqa: F401
from .grad_mode import (  # noqa: F401
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .variable import Variable  # noqa: F401

from . import functional  # noqa: F401  isort: skip
from .gradcheck import GradcheckError, gradcheck, gradgradcheck  # noqa: F401  isort: skip


def _profiler_enabled() -> bool:
    """Whether a profiler runs."""
    return profiler.is_running()


def _is_checkpoint_valid() -> bool:
    """Whether the backward that runs, if one does, is for all leaves: a checkpoint with `use_reentrant=True` needs that."""
    return _mode.walk is None or _mode.walk[1] is None


def kineto_available() -> bool:
    """Whether torch.profiler is there."""
    return True


__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "grad_mode", "gradcheck", "gradgradcheck", "inference_mode",
           "no_grad", "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable"]
