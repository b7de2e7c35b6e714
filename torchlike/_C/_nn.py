"""torch._C._nn: the functions of torch.nn.functional that PyTorch keeps in its C++ part. Copies of torch.nn.functional call them, with reductions as
numbers (0, where none is given: none; 1 mean, 2 sum) and arguments in their own order."""
from __future__ import annotations

import inspect as _inspect
import sys as _sys
from collections.abc import Callable as _Callable
from typing import Any as _Any

from .._ops_windows import WINDOWS as _WINDOWS
from .._tensor import Tensor as _Tensor
from .._utils import _flatten_dense_tensors as flatten_dense_tensors  # noqa: F401
from .._utils import _unflatten_dense_tensors as unflatten_dense_tensors  # noqa: F401
from ..nn.modules.module import _parse_to  # noqa: F401

_ALIKE = """adaptive_avg_pool2d adaptive_avg_pool3d elu glu hardsigmoid hardswish hardtanh leaky_relu mish pad relu6 silu""".split()
_LOSSES = """binary_cross_entropy l1_loss mse_loss huber_loss smooth_l1_loss soft_margin_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss_nd
    nll_loss2d cross_entropy_loss""".split()
_OWN_NAMES = {"nll_loss_nd": "nll_loss", "nll_loss2d": "nll_loss", "cross_entropy_loss": "cross_entropy"}
# the arguments of losses, where they are not (input, target, reduction)
_ARGUMENTS = {"binary_cross_entropy": "input target weight reduction", "huber_loss": "input target reduction delta", "smooth_l1_loss": "input target reduction beta",
              "multi_margin_loss": "input target p margin weight reduction", "cross_entropy_loss": "input target weight reduction ignore_index label_smoothing",
              **dict.fromkeys(("nll_loss", "nll_loss_nd", "nll_loss2d"), "input target weight reduction ignore_index")}
_REDUCTIONS = ("none", "mean", "sum")


def __getattr__(name: str) -> _Any:
    from .._torch_names import NN

    F = _sys.modules["torchlike.nn.functional"]
    if name in NN:
        return getattr(F, NN[name])
    if name in _ALIKE:
        return getattr(F, name)
    if name in ("hardtanh_", "leaky_relu_", "elu_"):
        return getattr(F, name)
    if name[:-1] in ("silu", "mish", "hardsigmoid", "hardswish", "gelu", "relu6") and name[-1] == "_":
        return _in_place(getattr(F, name[:-1]), name)
    if name in _LOSSES:
        return _loss(getattr(F, _OWN_NAMES.get(name, name)), name)
    if name in _WINDOWS:
        return _WINDOWS[name]
    raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")


def _named(f: _Callable, name: str) -> _Callable:
    f.__name__ = f.__qualname__ = name
    return f


def _in_place(f: _Callable, name: str) -> _Callable:
    return _named(lambda input, *args, **kwargs: input.copy_(f(input, *args, **kwargs)), name)


def _loss(f: _Callable, name: str) -> _Callable:
    names = _ARGUMENTS.get(name, "input target reduction").split()
    signature = _inspect.Signature([_inspect.Parameter(n, _inspect.Parameter.POSITIONAL_OR_KEYWORD, default=_inspect.Parameter.empty if n in names[:2] else None)
                                    for n in names])

    def loss(*args: _Any, **kwargs: _Any) -> _Tensor:
        given = signature.bind(*args, **kwargs).arguments
        return f(**given | {"reduction": _REDUCTIONS[given.get("reduction") or 0]})
    return _named(loss, name)


def pad_sequence(sequences: list[_Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> _Tensor:
    """`torch.nn.utils.rnn.pad_sequence`."""
    from ..nn.utils.rnn import pad_sequence as padded
    return padded(sequences, batch_first, padding_value, padding_side)


def thnn_conv2d(input: _Tensor, weight: _Tensor, kernel_size: _Any, bias: _Tensor | None = None, stride: _Any = 1, padding: _Any = 0) -> _Tensor:
    """conv2d; the kernel's size is the weight's."""
    return _sys.modules["torchlike.nn.functional"].conv2d(input, weight, bias, stride, padding)


def slow_conv3d(input: _Tensor, weight: _Tensor, kernel_size: _Any, bias: _Tensor | None = None, stride: _Any = 1, padding: _Any = 0) -> _Tensor:
    """conv3d; the kernel's size is the weight's."""
    return _sys.modules["torchlike.nn.functional"].conv3d(input, weight, bias, stride, padding)
