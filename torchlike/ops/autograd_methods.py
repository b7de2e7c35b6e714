"""Tensor methods that start or steer differentiation."""
from __future__ import annotations

from .._core.grad_mode import mode
from .._public import public
from .._tensor import Tensor
from ..autograd import anomaly, engine


@public(function=False)
def backward(self, gradient=None, retain_graph=None, create_graph: bool = False, inputs=None) -> None:
    """The gradient of self with respect to the leaves, added to their `.grad`."""
    engine.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@public(function=False)
def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    """Set requires_grad in place."""
    if not isinstance(requires_grad, bool):
        raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}")
    self.requires_grad = requires_grad
    return self


@public(method=False)
def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return mode.anomaly


@public(method=False)
def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection fails on NaN."""
    return anomaly.check_nan[0]
