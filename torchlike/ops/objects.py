"""Tensors as Python objects: copying, pickling, subclassing (printing is in `_tensor_str`)."""
from __future__ import annotations

import copy
import copyreg
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .._arguments import are_sizes, constructor_arguments, need_sequence
from .._core import dtype as dt
from .._core.errors import class_name
from .._core.layout import Layout
from .._fields import ask, give, has
from .._storage import through
from .._tensor import Size, Tensor, instance
from .aliases import alias, refuse_second_class


def _deepcopy(self, memo: dict) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
                           "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
                           "https://github.com/pytorch/pytorch/pull/103001")
    if self._storage is None or self._sparse:
        made = self.detach().clone()
    else:  # others may show the same memory
        from .storages import copied
        st = copied(self._storage, memo)
        made = self._alias()
        made._storage, made._of_data = st, None
        made._value, made._seen = through(st.value, made._chain), st.version
    if type(self) is not Tensor:
        made = instance(made, type(self))
    memo[id(self)] = made
    made.requires_grad = self.requires_grad
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    for name, value in vars(self).items():
        give(made, name, copy.deepcopy(value, memo))
    for name in _slots(self):
        give(made, name, copy.deepcopy(ask(self, name), memo))
    return made


def _slots(t: Tensor) -> list[str]:
    """The names in a subclass's `__slots__` that are set."""
    return [name for name in copyreg._slotnames(type(t)) if has(t, name)]


def _copy(self) -> Tensor:
    """A leaf that shares self's memory."""
    if type(self).__reduce_ex__ is not _reduce:  # made of parts, which it shares
        make, args = self.__reduce_ex__(2)[:2]
        return make(*args)
    made = self._alias()
    if type(self) is not Tensor:
        made = instance(made, type(self))
    made.requires_grad = self.requires_grad
    vars(made).update(vars(self))
    for name in _slots(self):
        give(made, name, ask(self, name))
    return made


class _Files(threading.local):
    apart: Callable | None = None  # how the file that this thread is writing (torch.save) takes a tensor apart


in_files = _Files()


def _reduce(self, protocol) -> Any:
    if in_files.apart is not None:  # asked by a subclass's own `__reduce_ex__`
        return in_files.apart(self)
    where = str(self.device)
    data = (tuple(self.shape), self.dtype.np) if where == "meta" else np.asarray(self.detach()._host_array(), order="C")
    return _rebuild, (None if type(self) is Tensor else type(self), data, self._layout, self.requires_grad, dict(vars(self)), where)


def _rebuild(cls, data, layout, requires_grad, attributes, device="cpu"):
    from .._core.device import canonical, device_count
    from .from_data import place
    if device == "meta":
        shape, dtype = data
        data = np.broadcast_to(np.zeros((), dtype), shape)
    kind = device.partition(":")[0]
    if kind in ("cuda", "tpu") and not device_count(kind):
        from .._serialization.locations import NOT_THERE
        raise RuntimeError(NOT_THERE.format(kind.upper(), kind))
    t = place(data, canonical(device))
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
def _make_subclass(cls, data: Tensor, require_grad: bool = False, *, dispatch_sizes_strides_policy=None, dispatch_device: bool = False,
                   dispatch_layout: bool = False) -> Tensor:
    """data's storage as an instance of a subclass."""
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {class_name(data)}")
    if require_grad.__class__ is not bool:
        raise TypeError(f"_make_subclass(): argument 'require_grad' (position 3) must be bool, not {class_name(require_grad)}")
    if require_grad and data.dtype.category < dt.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made = data._alias()
    refuse_second_class(made, cls)
    made = instance(made, cls)
    if require_grad:
        Tensor.requires_grad.fset(made, True)  # a class that takes functions over is not asked
    return _answering(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)


def _answering(made: Tensor, policy: str | None, device: bool, layout: bool) -> Tensor:
    """made, whose class answers what it is told to answer."""
    if policy is None and not device and not layout:
        return made
    from .._dispatch.questions import answers
    return answers(made, policy, device, layout)


@staticmethod
def _make_wrapper_subclass(cls, size, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=None, device=None, pin_memory: bool = False,
                           requires_grad: bool = False, dispatch_sizes_strides_policy=None, dispatch_device: bool = False, dispatch_layout: bool = False,
                           _extra_dispatch_keys=None, storage_size=None) -> Tensor:
    """An instance of a subclass with `__torch_dispatch__` that has these facts and no data."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not cls._dispatches:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    from .._dispatch.held import make_wrapper, named_device
    if requires_grad and (dtype or dt.get_default_dtype()).category < dt.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made = make_wrapper(cls, size, dtype or dt.get_default_dtype(), named_device(device), strides, storage_offset or 0, requires_grad)
    return _answering(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)


def _as_subclass(self, cls) -> Tensor:
    """A view of the whole tensor as an instance of a subclass; attributes that the user gave it stay behind."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError("Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class inherits from "
                        "Tensor.")
    return alias(self, cls)


def _tensor_new(cls, *args, **kwargs):
    """torch.Tensor(...): sizes make an uninitialised tensor, a sequence becomes float data; another tensor, or an array of floats, is shared."""
    from .._core import device as dev
    from .creation import constant, sized, written
    from .from_data import legacy
    given = kwargs.pop("device", None)
    device = dev.resolve("cpu" if given is None else dev.of_kind(given, "cpu"))  # also where another device is the default
    args = constructor_arguments(args, kwargs)
    kind = dt.get_default_dtype()
    if len(args) == 1 and isinstance(args[0], Tensor):
        if given is not None:
            raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
                               "Use torch.tensor(...) or torch.as_tensor(...) instead.")
        return alias(args[0], cls)  # of any dtype, unlike torch.FloatTensor(x)
    elif not args:
        made = constant((0,), 0, kind, device)
    elif are_sizes(args):
        made = sized(args, kind, device)
    elif isinstance(args[0], Size):
        made = constant(tuple(args[0]), written(None, kind), kind, device)
    elif hasattr(args[0], "untyped"):
        from .storages import stored
        if getattr(args[0], "dtype", kind) is not kind:
            raise RuntimeError(f"Expected a Storage of type {kind.short} or an UntypedStorage, but got {args[0].dtype.short}")
        made = stored(args[0], kind, 0, (args[0].nbytes() // kind.itemsize,), None).detach()
    else:
        need_sequence(args[0])
        made = legacy(args[0], kind, device)
    return made if cls is Tensor else instance(made, cls)


def _dir(self):
    return sorted(set(dir(type(self))) | set(vars(self)))


Tensor.__new__ = _tensor_new
Tensor.__copy__, Tensor.__deepcopy__ = _copy, _deepcopy
Tensor.__reduce_ex__ = _reduce
Tensor.__dir__ = _dir
Tensor._make_subclass = _make_subclass
Tensor._make_wrapper_subclass = _make_wrapper_subclass
Tensor.as_subclass = _as_subclass
