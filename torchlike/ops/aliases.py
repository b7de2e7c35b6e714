"""A tensor's memory as another object: an instance of another class, in the same place of the graph."""
from __future__ import annotations

from jax import lax

from .._core import dtype as dt
from .._core.device import device
from .._core.registry import View
from .._core.traces import unseen
from .._fields import ENGINE, fields
from .._plainly import state as overriding
from .._tensor import Tensor, _new, instance

# the detached part of a tensor in a trace of JAX's, whose derivatives end here as autograd's do
View("detached", lambda xp, x: lax.stop_gradient(x), put=lambda xp, base, new: unseen(base, new), layout=lambda a: a, torch_name="AliasBackward0")
ALIAS = View("alias", lambda xp, x: x, put=lambda xp, base, new: new, layout=lambda a: a, torch_name="AliasBackward0")


def of_its_class(t: Tensor, made: Tensor) -> Tensor:
    """What is made like t is of t's class, unless that takes functions over itself."""
    return made if t.__class__._plain or overriding.disabled else instance(made, t.__class__)


def alias(t: Tensor, cls: type) -> Tensor:
    """A view of all of t as an instance of a class; attributes that the user gave t stay behind."""
    if t._sparse:
        made = _new(Tensor)
        fields(made).update({name: x for name, x in fields(t).items() if name in ENGINE})
    else:
        made = t._view(ALIAS, ())
        refuse_second_class(made, cls)
    return instance(made, cls)


def shared(t: Tensor, dtype: dt.dtype, device: device) -> Tensor:
    """What the legacy constructors make of a tensor: a view of all of it. TypeError for one of another dtype or device."""
    if t.dtype is not dtype or t.device != device:
        wanted, got = (f"TensorOptions(dtype={d.c_name}, device={where}, layout=Strided, requires_grad=false (default), pinned_memory=false (default), "
                       "memory_format=(nullopt))" for d, where in ((dtype, device), (t.dtype, t.device)))
        raise TypeError(f"expected {wanted} (got {got})")
    return alias(t, Tensor)


def refuse_second_class(t: Tensor, cls: type) -> None:
    """torch's error where what a class with `__torch_dispatch__` returned, which is an instance of one, is to become an instance of another."""
    if t._dispatches:
        raise RuntimeError(f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python object of type "
                           f"{type(t).__name__}")
