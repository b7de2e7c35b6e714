"""Which function runs for a call of a program's own operation: its kernels by dispatch key, from the layers above devices down."""
from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _autocast
from ._core.device import device
from ._dispatch_keys import AUTOGRAD, NAMES, DispatchKey, DispatchKeySet, excluded
from ._tensor import Tensor

_log = logging.getLogger(__name__)
# Kernels are kept by kind of device, "default" (what every device runs) and "composite" (made of other operations), all others by the key's name.
KEYS = {"CPU": "cpu", "CUDA": "cuda", "XPU": "xpu", "Meta": "meta", "CompositeExplicitAutograd": "default", "CompositeExplicitAutogradNonFunctional": "default",
        "CompositeImplicitAutograd": "composite", "": "composite"}
pending: dict[str, dict[str, Callable]] = {}  # kernels of operations that are not defined yet, by their names


def fallthrough_kernel() -> None:
    """Stands for a kernel, with `Library.impl`: the call goes on to the next layer as if none was registered. NotImplementedError when it is called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def known_key(name: str) -> str:
    """Under what a dispatch key's kernels are kept; RuntimeError for what is no key."""
    if name and name not in NAMES:
        raise RuntimeError(f"could not parse dispatch key: {name}")
    return KEYS.get(name, name)


def tensors(tree: Any) -> Iterator[Tensor]:
    """The tensors among arguments or results."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (list, tuple, dict)):
        for x in tree.values() if isinstance(tree, dict) else tree:
            yield from tensors(x)


def kind_of(args: tuple, kwargs: dict) -> str:
    """The kind of device of a call's tensors, else of a device among its arguments, "" without either."""
    for argument in (*args, *kwargs.values()):
        for x in argument if isinstance(argument, (list, tuple)) else (argument,):
            if isinstance(x, Tensor):
                return x.device.type
    return next((x.type for x in (*args, *kwargs.values()) if isinstance(x, device)), "")


def _layout(args: tuple, kwargs: dict) -> str:
    """How keys of tensors that are no plain ones begin."""
    for t in tensors((args, kwargs)):
        if t.is_quantized:
            return "Quantized"
        if t.is_sparse:
            return "Sparse"
        if t.is_sparse_csr:
            return "SparseCsr"
    return ""


class Kernels(dict):
    """The kernels of one operation, by what `known_key` says."""

    def __init__(self, given: dict[str, Callable]) -> None:
        super().__init__(given)
        self.layered = any(not key.islower() or key == "composite" for key in given)  # a call may have to run another kernel than its device's first
        self.disabled: set[str] = set()  # kinds of device whose kernel is passed over
        self.with_keys: set[str] = set()  # what is called with the keys of the call first

    def __setitem__(self, key: str, kernel: Callable) -> None:
        super().__setitem__(key, kernel)
        self.layered = self.layered or not key.islower() or key == "composite"

    def put(self, key: str, kernel: Callable, with_keyset: bool = False) -> None:
        """Register a kernel, in another's place."""
        self[key] = kernel
        (self.with_keys.add if with_keyset else self.with_keys.discard)(key)

    def _bound(self, key: str, kind: str) -> Callable:
        kernel = self[key]
        if key not in self.with_keys:
            return kernel
        keys = [DispatchKey[name] for name in (kind.upper(), f"Autograd{kind.upper()}") if name in DispatchKey.__members__]
        keys = DispatchKeySet(keys) - excluded.keys
        return lambda *args, **kwargs: kernel(keys, *args, **kwargs)

    def for_autocast(self, kind: str) -> Callable | None:
        """The kernel for tensors of this kind inside `torch.autocast`, where the operation has one."""
        key = f"Autocast{kind.upper()}"
        if key not in self or self[key] is fallthrough_kernel or not _autocast.state.enabled.get(kind) or excluded.keys.has(DispatchKey[key]):
            return None
        return self._bound(key, kind)

    def for_autograd(self, kind: str, args: tuple, kwargs: dict) -> Callable | None:
        """The kernel registered for autograd: for any tensors but those of inference mode, whether they require gradients or not."""
        key = next((key for key in (f"Autograd{kind.upper()}", "Autograd") if key in self), None)
        if key is None or self[key] is fallthrough_kernel or not (AUTOGRAD - excluded.keys)._keys:
            return None
        if kind and all(t.is_inference() for t in tensors((args, kwargs))):
            return None
        return self._bound(key, kind)

    def for_device(self, kind: str, args: tuple, kwargs: dict) -> Callable | None:
        """The kernel for a kind of device, else that of all devices; None where there is none."""
        key = kind
        if self.layered and any(name.startswith(("Quantized", "Sparse")) for name in self):
            layout = _layout(args, kwargs)
            key = f"{layout}{kind.upper()}" if layout else kind
        if not kind and "BackendSelect" in self:
            key = "BackendSelect"
        for found in (key, "default"):
            if found in self and found not in self.disabled and self[found] is not fallthrough_kernel:
                return self._bound(found, kind)
        return None

    @contextmanager
    def enabled(self, kind: str, on: bool, name: str) -> Iterator[None]:
        """A block in which the kernel for a kind of device runs, or is passed over."""
        was = kind not in self.disabled
        if not on and kind not in self:
            _log.warning("Attempted to disable kernel for %s but no kernel was registered for this device type.", kind)
        (self.disabled.discard if on else self.disabled.add)(kind)
        try:
            yield
        finally:
            (self.disabled.discard if was else self.disabled.add)(kind)


class SafeKernelFunction:
    """One kernel as `torch.library.get_kernel` returns it: stays what it is when another one is registered in its place."""

    def __init__(self, function: Callable, name: str) -> None:
        self._function, self._name = function, name

    def call_boxed(self, keyset: DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Run it on the arguments."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        made = inspect.unwrap(self._function)
        code = getattr(made, "__code__", None)
        where = f"registered at {code.co_filename}:{code.co_firstlineno}" if code is not None else f"of {self._name}"
        return f"SafeKernelFunction(debug='{where}')"
