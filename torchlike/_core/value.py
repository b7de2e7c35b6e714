"""Value: one immutable result of an operation, concrete or still pending in a program."""
from __future__ import annotations

import numpy as np
from jax.core import Tracer

from . import device as _device
from . import dtype as dt
from .aval import Aval, aval


class Unread:
    """The epoch of a Value whose elements lie in memory that the user may write: they are read when somebody first looks."""

    __slots__ = ("memory",)

    def __init__(self, memory: np.ndarray):
        self.memory = memory

    def read(self, v: Value) -> None:
        v.array, v.epoch = np.array(self.memory, order="C"), None


class Value:
    """`array` is a jax.Array, a host np.ndarray (never written again), a JAX tracer, or None while pending.

    `epoch` is the Program that knows this value, and `ref` its number there: i >= 0 is result i, -1-k is input k; or an Unread.
    """

    __slots__ = ("array", "aval", "epoch", "ref", "shared", "bounds", "__weakref__")

    def __init__(self, aval: Aval, array=None, epoch=None, ref=None):
        self.aval, self.array, self.epoch, self.ref = aval, array, epoch, ref
        self.shared = False  # its buffer is visible outside: never donated
        self.bounds = None  # (min, max) of an index tensor, once looked up

    def __repr__(self):
        return f"Value({self.aval}, {'pending' if self.array is None else type(self.array).__name__})"


def of_array(array, device=None) -> Value:
    """The Value of an np.ndarray, a jax.Array or a tracer; the array must not be written afterwards."""
    if array.__class__ is np.ndarray and device is None:
        return Value(aval(array.shape, dt.from_numpy_dtype(array.dtype)), array)
    if isinstance(array, np.ndarray):
        where = _device.CPU if device is None else device
    elif isinstance(array, Tracer) or device is not None:
        where = device or _device.CPU
    else:
        where = _device.of_jax_device(next(iter(array.devices())))
    return Value(aval(array.shape, dt.from_numpy_dtype(array.dtype), where), array)


def is_tracer(array) -> bool:
    return isinstance(array, Tracer)
