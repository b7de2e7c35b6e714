"""How the engine holds a tensor whose class dispatches: without data of its own.

Such a tensor has a `Seat` for its storage, which makes `apply` ask for `_current()`; that is a `Held`, a Value that knows the tensor. The
recorder takes no Held, so one that reaches it is an error and never a wrong result. `_leaves.record` finds Helds among an operation's
inputs and calls their classes.
"""
from __future__ import annotations

import copy
import sys
from typing import Any

from .. import _tensor
from .._core import device as dev
from .._core.aval import aval
from .._core.grad_mode import inference, mode
from .._core.layout import Layout, contiguous
from .._core.program import META_ARRAY
from .._core.value import Value
from .._fields import ENGINE, Shared, ask, fields, give, has
from .._plainly import dispatching
from .._plainly import state as overriding
from .._tensor import Tensor, instance

NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"


class Held(Value):
    """The Value of a dispatching tensor at one of its versions."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor._value.aval, META_ARRAY)
        self.tensor, self.version = tensor, tensor._storage.version

    def place(self, args: Any, out: Tensor) -> Tensor:
        """The tensor itself, with the place in the graph that `out` has, which `apply` made."""
        t, target = self.tensor, dispatching.target
        if any(t is a for a in args) and (target is None or target.tensor is not t):
            t = twin(t)
        if out._edge is not None:
            t._edge, t._out = out._edge, out._out
            made = getattr(out._edge, "made", None) if out._edge.plan is not None else None
            if made is not None:
                made(out._out, t)
        return t


    def apart(self) -> Tensor:
        """The tensor, whose writes are counted for itself from now on."""
        self.tensor._storage.writes = [0]
        return self.tensor

    def copied(self) -> Tensor:
        """Another tensor that shows the same, in the same place of the graph."""
        made = twin(self.tensor)
        made._edge, made._out = self.tensor._edge, self.tensor._out
        return made


class Nothing(Value):
    """What stands for None where a class returned that in a tensor's place."""

    __slots__ = ()

    def place(self, args: Any, out: Tensor) -> None:
        return None


class Outline(Value):
    """What a dispatching tensor has for `_value`: shape, dtype and device."""

    __slots__ = ()


class Seat:
    """Stands for a Storage: counts writes. `data` is the plain tensor that a class's instance was made of, where it was."""

    host = past = value = None
    unseen = 0
    answers: frozenset = frozenset()  # what the class is asked: see questions.py

    def __init__(self, data: Tensor | None = None) -> None:
        self.data, self.writes = data, [0]  # the list is one with that of views

    @property
    def version(self) -> int:
        return self.writes[0] + (0 if self.data is None else self.data._written)

    @version.setter
    def version(self, n: int) -> None:
        self.writes[0] += n - self.version


def twin(t: Tensor) -> Tensor:
    """Another tensor that shows the same, outside the graph."""
    made = object.__new__(type(t))
    fields(made).update({name: x for name, x in fields(t).items() if name not in ENGINE or name in ("_value", "_layout", "_storage", "_seen")})
    for name, x in attributes(t).items():
        give(made, name, x)
    return made


def shown(v: Value) -> Tensor:
    """A tensor of a Value: the one that it holds, or a plain one."""
    return v.tensor if v.__class__ is Held else Tensor._of(v)


def is_held(x: Any) -> bool:
    """Whether x is a tensor that dispatches, or stands for one."""
    return isinstance(x, Tensor) and (x._dispatches or not x._sparse and x._value.__class__ is Held)


def sit(t: Tensor, a: Any, layout: Layout | None, data: Tensor | None = None) -> Tensor:
    """Make t, of a class that dispatches, an instance of these facts."""
    for name in ("_chain", "_base", "_edge", "_out", "_former", "_several", "_unplaced", "_of_data", "_writes"):
        fields(t).pop(name, None)
    t._value, t._layout, t._storage = Outline(a, META_ARRAY), layout, Seat(data)
    t._seen = 0
    return t


def holding(made: Tensor, cls: type) -> Tensor:
    """A plain tensor's data as an instance of a class that dispatches; its place in the graph goes with it."""
    data = made if made.__class__ is Tensor else made._alias()
    plain = data if data._edge is None else _tensor._plain_copy(data) if data._storage is None else data._alias()
    plain._edge = None
    t = sit(object.__new__(cls), data._value.aval, data._layout, plain)
    t._edge, t._out = made._edge, made._out
    return t


_unavailable: dict[tuple, Any] = {}  # devices that this machine lacks: tensors without data may name them


def named_device(given: Any) -> Any:
    """The one object for a device, which need not be there."""
    try:
        return dev.resolve(given)
    except (AssertionError, RuntimeError):
        made = dev.device(given)
        return _unavailable.setdefault((made.type, made.index), made)


def make_wrapper(cls: type, shape: Any, dtype: Any, device: Any, strides: Any, offset: int, requires_grad: bool) -> Tensor:
    """An instance without data."""
    _tensor.heed(cls)
    shape = tuple(shape)
    plain = contiguous(shape)
    layout = plain if strides is None else Layout(shape, tuple(strides), offset)
    if strides is None and offset:
        layout = Layout(shape, plain.strides, offset)
    t = sit(object.__new__(cls), aval(shape, dtype, device), None if layout == plain else layout)
    if requires_grad:
        t.requires_grad = True
    return t


def take_facts(t: Tensor, other: Tensor) -> None:
    """`t.data = other`: shape, dtype, device and data; what programs stored on t stays."""
    if not t._dispatches or other._dispatches and (t._storage.data is None) != (other._storage.data is None):
        raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.")
    t._value, t._layout = Outline(other._value.aval, META_ARRAY), other._layout
    if t._storage.data is not None or not other._dispatches:  # of a plain tensor, one that had no data has some from now on
        t._storage.data = (other._storage.data if other._dispatches else other)._alias()
    if isinstance(t._edge, _tensor.AccumulateGrad):
        t._edge.aval = t._value.aval


# -- what a class that dispatches has in place of the engine's own methods: called on its instances, by the engine alone ------------


def _current(self: Tensor) -> Value:
    return Held(self)


def data_of(t: Tensor) -> Tensor:
    """The plain tensor that t was made of."""
    data = t._storage.data
    if data is None:
        raise RuntimeError(NO_STORAGE)
    return data


def _alias(self: Tensor) -> Tensor:
    if dispatching.disabled:
        return data_of(self)._alias()
    from .._leaves import detached
    made = detached(self)
    if made._dispatches:
        made._storage.writes = self._storage.writes
    return made


def _view(self: Tensor, op: Any, statics: tuple, *numbers: int) -> Tensor:
    if dispatching.disabled:
        return data_of(self)._view(op, statics, *numbers)
    made = Tensor._view(self, op, statics, *numbers)
    if made is not None and made._dispatches:
        made._storage.writes = self._storage.writes
    return made


def _deepcopied(self: Tensor, memo: dict) -> Tensor:
    """A copy of a leaf without data: what its class makes of `clone`, with copies of what programs stored on it."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        return Tensor.__deepcopy__(self, memo)  # raises
    cls = type(self)
    if self._storage.data is not None:
        made = instance(copy.deepcopy(self._storage.data, memo), cls)
    else:
        before, mode.enabled = mode.enabled, False
        overriding.disabled += 1
        try:
            made = self.clone()
        finally:
            mode.enabled = before
            overriding.disabled -= 1
    if type(made) is not cls:
        raise RuntimeError("The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that properly implement clone() "
                           "and for which cloning returns another instance of the same subclass. You should either properly implement clone() for your "
                           "subclass or override __deepcopy__().")
    memo[id(self)] = made
    made.requires_grad = self.requires_grad
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    for name, x in attributes(self).items():
        give(made, name, copy.deepcopy(x, memo))
    return made


def _copied(self: Tensor) -> Tensor:
    """A leaf that shares what self holds."""
    if type(self).__reduce_ex__ is not _reduced:  # made of parts, which it shares
        make, args = self.__reduce_ex__(2)[:2]
        return make(*args)
    made = twin(self)
    made.requires_grad = self.requires_grad
    return made


def _reduced(self: Tensor, protocol: int) -> tuple:
    from .._serialization import tensors
    requires = self.requires_grad and self.is_leaf
    if self._storage.data is not None:
        return _with_data, (type(self), self._storage.data, requires, attributes(self))
    a, layout = self._value.aval, self._strided()
    facts = type(self), a.dtype, tuple(a.shape), tuple(layout.strides), layout.offset, self.layout, a.device, requires
    return tensors._rebuild_from_type_v2, (tensors._rebuild_wrapper_subclass, type(self), facts, attributes(self))


def _with_data(cls: type, data: Tensor, requires_grad: bool, stored: dict) -> Tensor:
    t = instance(data._alias(), cls)
    for name, x in stored.items():
        give(t, name, x)
    t.requires_grad = requires_grad
    return t


def attributes(t: Tensor) -> dict[str, Any]:
    """What programs stored on a tensor, in slots as well."""
    found = dict(vars(t))
    for cls in type(t).__mro__:
        names = cls.__dict__.get("__slots__", ())
        found.update({name: ask(t, name) for name in ((names,) if isinstance(names, str) else names)
                      if has(t, name) and name not in ("__dict__", "__weakref__")})
    return found


def _assign(self: Tensor, new: Tensor, repeats: bool = False) -> Tensor:
    from .writes import written
    return written(self, new)


def _check_write(self: Tensor, repeats: bool = False) -> None:
    if mode.enabled and self._edge.__class__ is _tensor.AccumulateGrad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    base = self._base
    if mode.enabled and base is not None and (base._edge is not None or self._edge is not None):
        raise NotImplementedError(f"torchlike: an in-place operation on a view of a {type(self).__name__} that requires grad. Write into the tensor "
                                  "itself, or use an operation that makes a new one.")


def _public_caller() -> str:
    """The function of torch's that a program called: the outermost by a name of torch's in this package."""
    frame, found = sys._getframe(2), "an operation"
    while frame is not None and frame.f_globals.get("__name__", "").startswith(__package__.partition(".")[0]):
        name = frame.f_code.co_name
        if name[0] not in "_<" and name not in ("run", "call", "write", "handed", "handle_torch_function"):  # wrappers
            found = name
        frame = frame.f_back
    return found


def _host_array(self: Tensor) -> Any:
    if self._storage.data is not None:
        return self._storage.data._host_array()
    raise NotImplementedError(f"torchlike: '{_public_caller()}' looks at the values of a tensor, and those of a {type(self).__name__} are known to its class only")


OVERRIDES = {
    "_current": _current,
    "_alias": _alias,
    "_assign": _assign,
    "_view": _view,
    "_check_write": _check_write,
    "_host_array": _host_array,
    "_known": lambda self: data_of(self)._known() if self._storage.data is not None else self._host_array(),
    "_ensure_storage": lambda self: self._storage if self._storage.data is None else self._storage.data._ensure_storage(),
    "_flagged": lambda self: None,
    "_root": lambda self: None,
}


OBJECT = {"__deepcopy__": _deepcopied, "__copy__": _copied, "__reduce_ex__": _reduced}


def prepare(cls: type) -> None:
    """A class of tensors was made that has `__torch_dispatch__`."""
    from .hooks import install
    install()
    cls._plain, cls._dispatches = False, True
    for name, f in OVERRIDES.items():
        if isinstance(shared := cls.__dict__.get(name), Shared):
            shared.ours = [f]
        else:
            setattr(cls, name, f)
    for name, f in OBJECT.items():
        if getattr(cls, name) is getattr(Tensor, name):
            setattr(cls, name, f)
    inference[0] |= 1 << 40  # from now on `apply` looks at what it made
