"""PyTorch's dispatch keys, as far as a call of an operation of torch.library goes by them: layers (autocast, autograd) above kinds of device."""
from __future__ import annotations

import enum
import threading
from collections.abc import Iterable

from ._core.grad_mode import mode

_KINDS = ("CPU", "CUDA", "XPU")


class DispatchKey(enum.Enum):
    """A layer of PyTorch's dispatcher that kernels are registered for."""

    CPU, CUDA, XPU, Meta = "CPU", "CUDA", "XPU", "Meta"
    QuantizedCPU, QuantizedCUDA, QuantizedXPU = "QuantizedCPU", "QuantizedCUDA", "QuantizedXPU"
    SparseCPU, SparseCUDA, SparseXPU = "SparseCPU", "SparseCUDA", "SparseXPU"
    SparseCsrCPU, SparseCsrCUDA, SparseCsrXPU = "SparseCsrCPU", "SparseCsrCUDA", "SparseCsrXPU"
    BackendSelect = "BackendSelect"
    AutogradOther, AutogradCPU, AutogradCUDA, AutogradXPU, AutogradMeta = "AutogradOther", "AutogradCPU", "AutogradCUDA", "AutogradXPU", "AutogradMeta"
    AutocastCPU, AutocastCUDA, AutocastXPU = "AutocastCPU", "AutocastCUDA", "AutocastXPU"
    Autograd = "Autograd"
    CompositeImplicitAutograd, CompositeExplicitAutograd = "CompositeImplicitAutograd", "CompositeExplicitAutograd"


_ORDER = {key: i for i, key in enumerate(DispatchKey)}
# What PyTorch knows besides, for whose kernels nothing asks here.
_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
NAMES = frozenset([*(f"{layer}{backend}" for layer in ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd", "Autocast") for backend in _BACKENDS),
                   *"Autograd AutogradOther AutogradNestedTensor BackendSelect ADInplaceOrView CompositeImplicitAutograd CompositeExplicitAutograd Python".split(),
                   *"CompositeExplicitAutogradNonFunctional CompositeImplicitAutogradNestedTensor Functionalize FuncTorchBatched Conjugate Negative".split(),
                   *"ZeroTensor FuncTorchVmapMode FuncTorchGradWrapper FuncTorchBatchedDecomposition PythonDispatcher PreDispatch".split()])


class DispatchKeySet:
    """A set of dispatch keys; `a | b` joins two, `a & b` is what they share, `a - b` what only a has."""

    def __init__(self, keys: DispatchKey | Iterable[DispatchKey]) -> None:
        self._keys = frozenset([keys] if isinstance(keys, DispatchKey) else keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.value for key in sorted(self._keys, key=_ORDER.get))})"

    def has(self, key: DispatchKey) -> bool:
        """Whether the key is in the set."""
        return key in self._keys


AUTOGRAD = DispatchKeySet([key for key in DispatchKey if key.value.startswith("Autograd")])
_after_autograd_keyset = DispatchKeySet(DispatchKey) - AUTOGRAD - DispatchKeySet([key for key in DispatchKey if key.value.startswith(("Autocast", "Composite"))])


class _Excluded(threading.local):
    keys: DispatchKeySet = DispatchKeySet(())


excluded = _Excluded()


class _ExcludeDispatchKeyGuard:
    """Context manager: in this thread, kernels of these keys are passed over."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._mine = keys

    def __enter__(self) -> None:
        self._before = excluded.keys
        excluded.keys = self._before | self._mine

    def __exit__(self, *error: object) -> None:
        excluded.keys = self._before


class _AutoDispatchBelowAutograd:
    """From when it is made until a `with` block of it ends, or it does: kernels for autograd are passed over, and no operation is differentiated."""

    def __init__(self) -> None:
        self._before = excluded.keys, mode.enabled
        excluded.keys, mode.enabled = excluded.keys | AUTOGRAD, False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            (excluded.keys, mode.enabled), self._before = self._before, None

    def __del__(self) -> None:
        self.__exit__()
