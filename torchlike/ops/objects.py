"""Tensors as Python objects: copying, pickling, subclassing (printing is in `_tensor_str`)."""
from __future__ import annotations

import copy

import numpy as np

from .._core import dtype as dt
from .._core.layout import Layout
from .._fields import ENGINE, fields
from .._tensor import Tensor, _new


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
                           "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
                           "https://github.com/pytorch/pytorch/pull/103001")
    made = self.detach().clone()
    if type(self) is not Tensor:
        made.__class__ = type(self)
    memo[id(self)] = made
    made.requires_grad = self.requires_grad
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    for name, value in vars(self).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def _reduce(self, protocol):
    return _rebuild, (None if type(self) is Tensor else type(self), np.asarray(self.detach()._host_array(), order="C"), self._layout, self.requires_grad and self.is_leaf,
                      dict(vars(self)))


def _rebuild(cls, array, layout, requires_grad, attributes):
    from .._core.device import CPU
    from .creation import place
    t = place(array, CPU)
    if layout is not None:
        from .._core.layout import like
        t._layout = like(Layout(*layout))
    if cls is not None:
        t.__class__ = cls
    if requires_grad:
        t.requires_grad = True
    t.__dict__.update(attributes)
    return t


@staticmethod
def _make_subclass(cls, data: Tensor, require_grad: bool = False) -> Tensor:
    """data's storage as an instance of a subclass."""
    if require_grad and data.dtype.category < dt.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made = data._alias()
    made.__class__ = cls
    if require_grad:
        made.requires_grad = True
    return made


def _as_subclass(self, cls) -> Tensor:
    """The same tensor, graph included, as an instance of a subclass; attributes that the user gave it stay behind."""
    made = _new(Tensor)
    fields(made).update({name: x for name, x in fields(self).items() if name in ENGINE})
    made.__class__ = cls
    return made


def _tensor_new(cls, *args, **kwargs):
    """torch.Tensor(...): sizes make an uninitialised tensor, a sequence becomes float data; another tensor is shared."""
    from .._core import device as dev
    from .creation import constant, from_data
    device = dev.resolve(kwargs.pop("device", None) or "cpu")  # also where another device is the default
    if kwargs.keys() - {"data"}:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if "data" in kwargs:
        args = (kwargs["data"],)
    kind = dt.get_default_dtype()
    if len(args) == 1 and isinstance(args[0], Tensor):
        made = args[0]._alias()
        if made.dtype is not kind:
            raise TypeError(f"expected {kind} (got {made.dtype})")
    elif not args:
        made = constant((0,), 0, kind, device)
    elif all(isinstance(a, int) for a in args):
        made = constant(tuple(args), 0, kind, device)
    elif len(args) == 1 and isinstance(args[0], tuple) and hasattr(args[0], "numel"):
        made = constant(tuple(args[0]), 0, kind, device)
    elif len(args) == 1:
        if not isinstance(args[0], (list, tuple, np.ndarray, range)):
            raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
        made = from_data(args[0], kind, device)
    else:
        raise TypeError(f"new() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)})")
    if cls is not Tensor:
        made.__class__ = cls
    return made


def _dir(self):
    return sorted(set(dir(type(self))) | set(vars(self)))


Tensor.__new__ = _tensor_new
Tensor.__deepcopy__ = _deepcopy
Tensor.__reduce_ex__ = _reduce
Tensor.__dir__ = _dir
Tensor._make_subclass = _make_subclass
Tensor.as_subclass = _as_subclass
