"""torch.autograd: differentiation of recorded operations."""
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


def kineto_available() -> bool:
    """Whether torch.profiler is there."""
    return True


__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "grad_mode", "gradcheck", "gradgradcheck", "inference_mode",
           "no_grad", "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable"]
