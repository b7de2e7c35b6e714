"""What travels between workers: pickles, with their tensors apart, so that gradients can find them.

Pickles run code when they are read: workers of an RPC group trust each other, as those of PyTorch do.
"""

from __future__ import annotations

import enum
import io
import pickle
import sys
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from ..._tensor import Tensor

__all__ = ["PythonUDF", "RPCExecMode", "RemoteException", "deserialize", "serialize"]

_NOT_THERE = " Default RPC pickler does not serialize\n            function code. Ensure that UDFs are defined on both caller and\n            callee modules."


class RPCExecMode(enum.Enum):
    SYNC = "sync"
    ASYNC = "async"
    ASYNC_JIT = "async_jit"
    REMOTE = "remote"


class PythonUDF(NamedTuple):
    """A call."""

    func: Callable
    args: tuple
    kwargs: dict


class RemoteException(NamedTuple):
    """What a call raised: where and how, as text, and the exception's class."""

    msg: str
    exception_type: type


class _Tables(threading.local):
    """The tensors of the pickle that this thread reads."""

    tensors: list[Tensor] = []  # noqa: RUF012


_reading = _Tables()


def _tensor(place: int) -> Tensor:
    return _reading.tensors[place]


def _torchs(name: str) -> Any:
    return getattr(sys.modules["torchlike"], name)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, reducers: dict[type, Callable], tensors: list[Tensor]) -> None:
        super().__init__(file, 5)
        self.reducers, self.tensors = reducers, tensors

    def reducer_override(self, x: Any) -> Any:
        cls = type(x)
        if cls is Tensor:
            self.tensors.append(x)
            return _tensor, (len(self.tensors) - 1,)
        if isinstance(x, Tensor) and x._sparse:  # its values are what gradients flow through
            return x.apart(x._entries, False)
        for base in cls.__mro__:
            if base in self.reducers:
                return self.reducers[base](x)
        if cls is type and x.__module__ == "torch" and getattr(sys.modules["torchlike"], x.__name__, None) is x:  # named as torch's, which is not there
            return _torchs, (x.__name__,)
        if cls is FunctionType and getattr(Tensor, x.__name__, None) is x:  # a method, which is a plain function of a module of ours
            return getattr, (Tensor, x.__name__)
        return NotImplemented


class _InternalRPCPickler:
    """Objects as bytes and a list of their tensors, and back. A class may have a function of its own that takes its instances apart."""

    def __init__(self) -> None:
        self._class_reducer_dict: dict[type, Callable] = {}

    def _register_reducer(self, obj_class: type, reducer: Callable) -> None:
        self._class_reducer_dict.setdefault(obj_class, reducer)

    def serialize(self, obj: Any) -> tuple[bytes, list[Tensor]]:
        """What is in memory of `obj` as bytes, and its tensors."""
        file, tensors = io.BytesIO(), []
        _Pickler(file, self._class_reducer_dict, tensors).dump(obj)
        return file.getvalue(), tensors

    def deserialize(self, binary_data: bytes | bytearray, tensor_table: list[Tensor]) -> Any:
        """The object; AttributeError where it names something that this process lacks."""
        before, _reading.tensors = _reading.tensors, tensor_table
        try:
            return pickle.loads(binary_data)
        except AttributeError as error:
            raise AttributeError(f"{error}{_NOT_THERE}") from error
        finally:
            _reading.tensors = before


_internal_rpc_pickler = _InternalRPCPickler()


def serialize(obj: Any) -> tuple[bytes, list[Tensor]]:
    return _internal_rpc_pickler.serialize(obj)


def deserialize(binary_data: bytes | bytearray, tensor_table: list[Tensor]) -> Any:
    return _internal_rpc_pickler.deserialize(binary_data, tensor_table)
