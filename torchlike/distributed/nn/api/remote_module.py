"""A module that lives at another worker and is called from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.device import device as _device
from ...._tensor import Tensor
from ....futures import Future
from ....nn import Module
from ... import rpc
from ...remote_device import _remote_device

__all__ = ["RemoteModule"]

_KEPT = ("on", "device", "is_device_map_set", "is_scriptable", "module_rref")  # what another worker gets of it


def _create_module(module_cls: Callable, args: tuple, kwargs: dict, device: str) -> Module:
    made = module_cls(*args, **kwargs)
    if not isinstance(made, Module):
        raise ValueError("Expect `module_cls(*args, **kwargs)` returns an instance of <class nn.Module>, "
                         f"but it returns an instance of {type(made)}.")
    return made.to(device)


def _param_rrefs(module_rref: Any, recurse: bool) -> list:
    return [rpc.RRef(p) for p in module_rref.local_value().parameters(recurse)]


def _set_training(module_rref: Any, mode: bool) -> None:
    module_rref.local_value().train(mode)


def _moved(x: Any, where: str | _device) -> Any:
    """Tensors, also those in tuples, on a device."""
    if isinstance(x, (tuple, list)):
        moved = [_moved(y, where) for y in x]
        return type(x)(*moved) if hasattr(x, "_fields") else type(x)(moved)
    return x.to(where) if isinstance(x, Tensor) else x


def _remote_forward(module_rref: Any, device: str, is_device_map_set: bool, args: tuple, kwargs: dict) -> Any:
    """At the owner: the module's result. Of one on a GPU, tensors are brought there, and back unless a device map says where they go."""
    module, away = module_rref.local_value(), _device(device).type == "cuda"
    if away:
        args, kwargs = _moved(args, device), {k: _moved(x, device) for k, x in kwargs.items()}
    made = module(*args, **kwargs)
    return _moved(made, "cpu") if away and not is_device_map_set else made


class _RemoteModule(Module):
    """A module of another worker: `forward` runs there. Everything else that modules have raises ValueError, but `train` and `eval`."""

    def __init__(self, remote_device: str, module_cls: Callable, args: tuple | None = None, kwargs: dict[str, Any] | None = None,
                 _module_interface_cls: Any = None) -> None:
        super().__init__()
        self._place(remote_device)
        self.is_scriptable = _module_interface_cls is not None
        self.module_rref = rpc.remote(self.on, _create_module, (module_cls, args or (), kwargs or {}, self.device))

    def _place(self, remote_device: str) -> None:
        if not rpc._is_current_rpc_agent_set():
            raise AssertionError("RemoteModule only works in RPC.")
        where = _remote_device(remote_device)
        agent = rpc._get_current_rpc_agent()
        self.on = where.rank() if where.worker_name() is None else where.worker_name()
        self.device = str(where.device())
        self.is_device_map_set = bool(agent._get_device_map(agent.get_worker_info(self.on)))

    @staticmethod
    def init_from_module_rref(remote_device: str, module_rref: Any, _module_interface_cls: Any = None) -> RemoteModule:
        """One more for a module that has a reference already."""
        made = object.__new__(RemoteModule)
        Module.__init__(made)
        made._place(remote_device)
        made.is_scriptable, made.module_rref = _module_interface_cls is not None, module_rref
        return made

    def forward_async(self, *args: Any, **kwargs: Any) -> Future:
        """The future of the module's result."""
        return rpc.rpc_async(self.module_rref.owner(), _remote_forward, (self.module_rref, self.device, self.is_device_map_set, args, kwargs))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result. Gradients flow through it within a context of torch.distributed.autograd."""
        return self.forward_async(*args, **kwargs).wait()

    def remote_parameters(self, recurse: bool = True) -> list:
        """References to the module's parameters, as DistributedOptimizer takes them."""
        return rpc.rpc_sync(self.on, _param_rrefs, (self.module_rref, recurse))

    def get_module_rref(self) -> Any:
        """The reference to the module itself."""
        return self.module_rref

    def train(self, mode: bool = True) -> _RemoteModule:
        rpc.rpc_sync(self.module_rref.owner(), _set_training, (self.module_rref, mode))
        return self

    def eval(self) -> _RemoteModule:
        return self.train(False)

    def parameters(self, recurse: bool = True) -> Any:
        raise ValueError("Method ``parameters`` not supported for RemoteModule. Please use ``remote_parameters`` instead.")

    def __getstate__(self) -> Any:
        raise RuntimeError("Cannot pickle RemoteModule in python pickler. RemoteModule can only be pickled when using RPC")

    def __setstate__(self, state: Any) -> None:
        raise RuntimeError("Cannot unpickle RemoteModule in python pickler. RemoteModule can only be unpickled when using RPC")


def _refused(name: str) -> Callable:
    def method(self: _RemoteModule, *args: Any, **kwargs: Any) -> None:
        raise ValueError(f"Method ``{name}`` not supported for RemoteModule")
    method.__name__ = method.__qualname__ = name
    return method


for _name in ("register_buffer", "register_parameter", "add_module", "apply", "cuda", "ipu", "xpu", "cpu", "type", "float", "double", "half", "bfloat16", "to",
              "register_backward_hook", "register_forward_pre_hook", "register_forward_hook", "state_dict", "load_state_dict", "named_parameters", "buffers",
              "named_buffers", "children", "named_children", "modules", "named_modules", "requires_grad_", "zero_grad", "share_memory",
              "extra_repr"):
    setattr(_RemoteModule, _name, _refused(_name))


class RemoteModule(_RemoteModule):
    """`RemoteModule("worker1/cpu", module_cls, args, kwargs)` makes `module_cls(*args, **kwargs)` at a worker and on a device of it (`"rank:1"`,
    `"worker1"`: on its CPU); `forward` and `forward_async` run it there. It can be sent to other workers, without the module."""

    def __init__(self, remote_device: str, module_cls: Callable, args: tuple | None = None, kwargs: dict[str, Any] | None = None) -> None:
        super().__init__(remote_device, module_cls, args, kwargs)


def _received(*kept: Any) -> RemoteModule:
    made = object.__new__(RemoteModule)
    Module.__init__(made)
    made.__dict__.update(zip(_KEPT, kept))
    return made


rpc.internal._internal_rpc_pickler._register_reducer(RemoteModule, lambda module: (_received, tuple(getattr(module, name) for name in _KEPT)))
