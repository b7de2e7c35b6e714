"""Tensor methods that start or steer differentiation."""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable

from .._core import dtype as dt
from .._core.errors import class_name
from .._core.grad_mode import mode
from .._core.graph import AccumulateGrad, _handle
from .._core.hook_handles import RemovableHandle
from .._public import public
from .._tensor import Tensor
from ..autograd import anomaly_mode, engine


@public(function=False)
def backward(self, gradient=None, retain_graph=None, create_graph: bool = False, inputs=None) -> None:
    """The gradient of self with respect to the leaves, added to their `.grad`."""
    engine.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@public(function=False)
def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    """Set requires_grad in place."""
    if not isinstance(requires_grad, bool):
        raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {class_name(requires_grad)}")
    if requires_grad and self.dtype.category < dt.FLOAT:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    self.requires_grad = requires_grad
    return self


@public(function=False)
def register_hook(self, hook: Callable) -> RemovableHandle:
    """hook(grad) -> None or a replacement; runs when this tensor's gradient is ready."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    self._current()
    return self._edge.add_tensor_hook(self._out, hook)


@public(function=False)
def register_post_accumulate_grad_hook(self, hook: Callable) -> RemovableHandle:
    """hook(tensor), after a gradient was added into `tensor.grad`; leaves only."""
    if not isinstance(self._edge, AccumulateGrad):
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors" if self._edge is not None else
                           "cannot register a hook on a tensor that doesn't require gradient")
    if self._edge.post_accumulate is None:
        self._edge.post_accumulate = OrderedDict()
    return _handle(self._edge.post_accumulate, hook)


@public(function=False)
def retain_grad(self) -> None:
    """Keep this non-leaf's gradient in `.grad`."""
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    self._current()
    if not isinstance(self._edge, AccumulateGrad):
        self._edge._hooks().retain[self._out] = weakref.ref(self)


def _retains_grad(self) -> bool:
    edge = self._edge
    return edge is not None and not isinstance(edge, AccumulateGrad) and edge.hooks is not None and self._out in edge.hooks.retain


Tensor.retains_grad = property(_retains_grad)


def _backward_hooks(self) -> OrderedDict | None:
    """What `register_hook` has registered, by number; None where that is nothing. What it is set to is registered in its place, and what is put
    there later; on a tensor that requires no gradient, for when it does."""
    if self._sparse:
        return self._entries._backward_hooks if self.layout.name != "strided" else None
    self._current()
    edge = self._edge or self._idle
    return None if edge is None or edge.hooks is None else edge.hooks.tensor.get(self._out)


def _set_backward_hooks(self, hooks: OrderedDict | None) -> None:
    if self._sparse:
        self._entries._backward_hooks = hooks
        return
    self._current()
    if self._edge is None and self._idle is None and hooks is not None:
        self._idle = AccumulateGrad(self)
    edge = self._edge or self._idle
    if hooks is not None:
        edge._hooks().tensor[self._out] = hooks
    elif edge is not None and edge.hooks is not None:
        edge.hooks.tensor.pop(self._out, None)


Tensor._backward_hooks = property(_backward_hooks, _set_backward_hooks)


def _is_view(self) -> bool:
    """Whether this is a view that gradients go through."""
    return self._base is not None


Tensor._is_view = _is_view


@public(method=False)
def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return mode.anomaly


@public(method=False)
def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection fails on NaN."""
    return anomaly_mode.check_nan[0]
