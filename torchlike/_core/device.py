"""torch.device, and which JAX device each one is."""
from __future__ import annotations

import functools
import re
import threading

import jax

from .shown import Shown

_TYPES = ("cpu", "cuda", "tpu", "meta")
_KNOWN = ("cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia privateuseone tpu").split()
_TEXT = re.compile(r"([A-Za-z_]+)(?::(0|[1-9][0-9]*))?")
_PLATFORM = {"cpu": "cpu", "cuda": "cuda", "tpu": "tpu"}


class device(metaclass=Shown):
    """torch.device: `device('cuda:0')`, `device('cuda', 0)`, `device(0)`; also a context manager that sets the default."""

    __slots__ = ("type", "index", "_entered", "_hash")
    __module__ = "torch"
    type: str
    index: int | None

    def __init__(self, type=None, index: int | None = None, **named):
        if named:
            type = _by_name(type, index, named)
        if index is not None:
            if index.__class__ is bool or not hasattr(index, "__index__"):
                raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
            index = index.__index__()
        if type is None:
            raise TypeError("device() received an invalid combination of arguments - got (), but expected one of:")
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        elif isinstance(type, int) and not isinstance(type, bool):
            if type < 0:
                raise RuntimeError("Device index must not be negative")
            if not (cuda_available() or tpu_available()):
                raise RuntimeError("Cannot access accelerator device when none is available.")
            type, index = "cuda" if cuda_available() else "tpu", type
        elif not isinstance(type, str):
            raise TypeError(f"device() received an invalid combination of arguments - got ({type.__class__.__name__}), but expected one of:")
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        if ":" in type and index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
        if type not in _KNOWN:
            if not type:
                raise RuntimeError("Device string must not be empty")
            parts = _TEXT.fullmatch(type)
            if parts is None:
                raise RuntimeError(f"Invalid device string: '{type}'")
            type, index = parts[1], index if parts[2] is None else int(parts[2])
        if index is not None and index < -1:
            raise RuntimeError("Device index must not be negative")
        if type not in _KNOWN:
            raise RuntimeError(f"Expected one of {', '.join(_KNOWN)} device type at start of device string: {type}")
        self.type, self.index, self._entered, self._hash = type, index, [], hash((type, index))

    def __repr__(self):
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self):
        return self._hash

    def __reduce__(self):
        return (_made, (self.type, self.index))

    def __enter__(self):
        self._entered.append(_defaults.device)
        _defaults.device = canonical(self)
        return self

    def __exit__(self, *exc):
        _defaults.device = self._entered.pop()


DeviceLike = device | str | int


def _by_name(type, index: int | None, named: dict):
    """The argument of `device(device=...)`, which is the name in torch's form of one argument."""
    if type is not None or index is not None or named.keys() != {"device"} or named["device"] is None:
        given = {name: x for name, x in (("type", type), ("index", index)) if x is not None} | named
        said = "".join(f"{name}={x.__class__.__name__}, " for name, x in given.items())
        raise TypeError(f"device() received an invalid combination of arguments - got ({said}), but expected one of:")
    return named["device"]


def _made(type: str, index: int | None) -> device:
    """For pickling: classes that call themselves torch's cannot be pickled by name."""
    return device(type, index)


class _Defaults(threading.local):
    device = None  # of a `with device:`
    lasting = None  # of set_default_device


_defaults = _Defaults()
_canonical: dict = {}


@functools.cache
def _jax_devices(kind: str) -> tuple:
    try:
        return tuple(jax.local_devices(backend=_PLATFORM[kind]))
    except RuntimeError:  # JAX has no such platform here
        return ()


def cuda_available() -> bool:
    return bool(_jax_devices("cuda"))


def tpu_available() -> bool:
    return bool(_jax_devices("tpu"))


def device_count(kind: str) -> int:
    return len(_jax_devices(kind)) if kind in _PLATFORM else 0


def canonical(d) -> device:
    """The one object for a device that can hold tensors: 'cuda' is cuda:0, 'cpu:0' stays as said. Errors are torch's."""
    found = _canonical.get(d)
    if found is not None:
        return found
    made = device(d)
    if made.type == "cuda" and not cuda_available():
        raise AssertionError("Torch not compiled with CUDA enabled")
    if made.type == "tpu" and not tpu_available():
        raise RuntimeError("No TPU is available to JAX in this process")
    if made.type not in _TYPES:
        raise RuntimeError(f"torchlike has no '{made.type}' device (it has cpu, cuda, tpu and meta)")
    if made.type in ("cuda", "tpu"):
        index = 0 if made.index is None else made.index
        if index >= device_count(made.type):
            from .errors import AcceleratorError
            raise AcceleratorError(f"{made.type.upper()} error: invalid device ordinal")
        made = _canonical.setdefault(("made", made.type, index), device(made.type, index))
    elif made.type == "cpu":
        made = CPU
    else:
        made = META
    _canonical[d] = made
    return made


def of_kind(d, kind: str) -> device:
    """The device given to a legacy constructor, which makes tensors of one kind."""
    given = device(d)
    if given.type != kind:
        raise RuntimeError(f"legacy constructor expects device type: {kind} but device type: {given.type} was passed")
    return given


CPU, META = device("cpu"), device("meta")
_canonical["cpu"] = _canonical[CPU] = CPU
_canonical["meta"] = _canonical[META] = META


def default_device() -> device:
    return _defaults.device or _defaults.lasting or CPU


def set_default_device(d) -> None:
    """torch.set_default_device, of this thread as in PyTorch; None restores the CPU."""
    _defaults.lasting = None if d is None else canonical(d)


def resolve(d) -> device:
    return default_device() if d is None else canonical(d)


def jax_device(d: device):
    """The JAX device that holds tensors of `d`."""
    return _jax_devices(d.type)[d.index or 0]


def of_jax_device(jd) -> device:
    kind = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "cuda", "tpu": "tpu"}[jd.platform]
    return CPU if kind == "cpu" else canonical(device(kind, _jax_devices(kind).index(jd)))
