"""The names of PyTorch's C++ part that Python programs ask for. Nothing of torchlike itself is here."""
from __future__ import annotations

import os
import sys

from ..__config__ import show as _show_config  # noqa: F401
from .._core.device import device  # noqa: F401
from .._core.dtype import dtype  # noqa: F401
from .._core.errors import AcceleratorError, OutOfMemoryError  # noqa: F401
from .._core.grad_mode import mode as _mode
from .._core.graph import AccumulateGrad as _AccumulateGrad
from .._dispatch_keys import DispatchKey, DispatchKeySet, _after_autograd_keyset, _AutoDispatchBelowAutograd, _ExcludeDispatchKeyGuard  # noqa: F401
from .._exporting import state as _exporting
from .._pickled import _VariableFunctionsClass  # noqa: F401
from .._plainly import (  # noqa: F401
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _disabled_torch_dispatch_impl,
    _disabled_torch_function_impl,
    _DisableTorchDispatch,
)
from .._plainly import state as _state
from .._size import Size  # noqa: F401
from .._tags import Tag  # noqa: F401
from .._tensor import Tensor
from ..accelerator import current_accelerator
from ..futures import Future  # noqa: F401
from ..jit._graph import Graph, Node, Value  # noqa: F401  (snntorch, transformers' SEW-D, fvcore)
from ..jit._graph import Made as _Made
from ..jit._graph import Scopes as _Scopes
from ..jit.script import is_tracing as _is_tracing  # noqa: F401  (asteroid)
from ..jit.strategies import switches as _switches
from ..mps import is_available as _mps_is_available  # noqa: F401  (tests of pytorch-forecasting turn it off)
from ..ops.linalg_common import LinAlgError as _LinAlgError  # noqa: F401  (botorch)
from ..ops.random import Generator  # noqa: F401
from ..ops.storages import StorageBase  # noqa: F401
from . import _autograd, _cpu, _fft, _functorch, _linalg, _nn, _special  # noqa: F401

_TensorMeta = type(Tensor)
_TensorBase = TensorBase = Tensor  # what all tensors are instances of
_used: set[str] = set()
globals().update(_switches())  # speechbrain turns profiling off

has_lapack = True
_has_xpu = _has_mps = _has_magma = _has_cusparselt = False  # what this is built without, wherever it runs (bitsandbytes asks)


def _get_tracing_state() -> _Scopes | None:
    """The state of `torch.jit._get_trace_graph`. None otherwise: `torch.jit.trace` and `torch.onnx.export` run functions as they are, with Python's ints
    for sizes."""
    return _exporting.scopes


class _functions:
    """The kinds of nodes of the graph that programs look for (Megatron-LM, torchviz's copies)."""

    AccumulateGrad = _AccumulateGrad


def is_grad_enabled() -> bool:
    """`torch.is_grad_enabled()` (DeepSpeed)."""
    return _mode.enabled


def _current_graph_task_id() -> int:
    """The number of the backward that runs, -1 where none does: tells what runs again inside of one (activation checkpoints)."""
    return -1 if _mode.walk is None else _mode.walk[2]


def _are_functorch_transforms_active() -> bool:
    """Whether a function runs under one of torch.func's transforms."""
    level = sys.modules.get("torchlike.func._level")
    return level is not None and level.transforming()


def _is_torch_function_mode_enabled() -> bool:
    """Whether a TorchFunctionMode is on. A default device needs none here."""
    return bool(_state.modes)


def _is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors show one memory."""
    return a is b or (a._storage is not None and a._storage is b._storage)


def _get_accelerator(check: bool = False) -> device:
    """The kind of accelerator, the CPU where there is none."""
    return current_accelerator() or device("cpu")


def _get_privateuse1_backend_name() -> str:
    """The name of the device that a user's own backend may bring: none has."""
    return "privateuseone"


def _get_default_device() -> str:
    """The device of the default tensor type, which `set_default_device` leaves alone."""
    return "cpu"


def _log_api_usage_once(event: str) -> None:
    """Where PYTORCH_API_USAGE_STDERR is set, one line for each event."""
    if "PYTORCH_API_USAGE_STDERR" in os.environ and event not in _used:
        _used.add(event)
        sys.stderr.write(f"PYTORCH_API_USAGE {event}\n")


class Type(_Made):
    """A type that TorchScript knows. Each kind is a class with one object; programs name the class in annotations."""

    __module__ = "torch"
    _shown = ""

    def __repr__(self) -> str:
        return self._shown

    @classmethod
    def get(cls) -> Type:
        """The one object."""
        if "_only" not in vars(cls):
            cls._only = object.__new__(cls)
        return cls._only


# The kinds without parts, and how they are written; open_clip names TensorType, pytorch_forecasting DeviceObjType, torchrl FloatType.
SIMPLE_TYPES = {"AnyType": "Any", "BoolType": "bool", "ComplexType": "complex", "DeviceObjType": "Device", "FloatType": "float", "IntType": "int",
                "NoneType": "NoneType", "NumberType": "number", "StreamObjType": "Stream", "StringType": "str", "TensorType": "Tensor"}
globals().update({name: type(name, (Type,), {"__module__": "torch", "_shown": shown}) for name, shown in SIMPLE_TYPES.items()})


def _loaded_rpc(name: str):
    """A module of torch.distributed.rpc, None while no program asked for that."""
    return sys.modules.get(f"torchlike.distributed.rpc.{name}")


class _Reference(type):
    def __instancecheck__(cls, x: object) -> bool:
        rref = _loaded_rpc("rref")
        return rref is not None and isinstance(x, rref.PyRRef)


class _distributed_rpc:
    """What libraries ask of torch.distributed.rpc without loading it (torchrl)."""

    class PyRRef(_Made, metaclass=_Reference):
        """A reference to another process's object: what `rpc.remote` returned or another worker sent is one."""

    @staticmethod
    def _is_current_rpc_agent_set() -> bool:
        """Whether this process is a worker, between init_rpc() and shutdown()."""
        agent = _loaded_rpc("_agent")
        return agent is not None and bool(agent.current)


class ScriptMethod(_Made):
    """A compiled method (torchview)."""

    __module__ = "torch"
