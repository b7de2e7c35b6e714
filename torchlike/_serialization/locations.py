"""Where storages go: the tag a file gives each of them, ``map_location``, and the rules that turn tags to devices."""

from collections.abc import Callable
from typing import Any

from .._core.device import canonical, cuda_available, device, device_count, tpu_available

_Tagger = Callable[[Any], str | None]
_Deserializer = Callable[[Any, str], Any]
_packages: list[tuple[int, _Tagger, _Deserializer]] = []


def register_package(priority: int, tagger: _Tagger, deserializer: _Deserializer) -> None:
    """Add rules for devices of your own, tried in the order of ``priority`` (torch's own are at 10, 20, ...).

    ``tagger(storage)`` gives the tag to write (None: not mine); ``deserializer(storage, tag)`` gives the storage on its
    device (None: not mine). A storage here is anything with a ``device``.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda rule: rule[0])


def tag(storage: Any) -> str:
    """The location to write for a tensor's or a storage's device."""
    return next(found for _, tagger, _ in _packages if (found := tagger(storage)) is not None)


def placement(map_location: Any) -> Callable[[Any, str], device]:
    """``place(storage, tag) -> device`` for a ``map_location``; TypeError for what torch cannot call."""
    if map_location is None:
        return _restore
    if isinstance(map_location, dict):
        return lambda storage, location: _restore(storage, map_location.get(location, location))
    if isinstance(map_location, (str, device)):
        return lambda storage, location: _restore(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(f"'{type(map_location).__name__}' object is not callable")

    def place(storage: Any, location: str) -> device:
        here = FileStorage(location)
        moved = map_location(here, location)
        return _restore(storage, location) if moved is None else _device_of(moved)

    return place


class FileStorage:
    """What a ``map_location`` function sees: a storage still on the CPU that can say where it wants to go."""

    def __init__(self, location: str, where: device | None = None) -> None:
        self.location, self.device = location, where or canonical("cpu")

    def to(self, device: Any) -> "FileStorage":
        return FileStorage(self.location, canonical(device))

    def cpu(self) -> "FileStorage":
        return self.to("cpu")

    def cuda(self, device: Any = None) -> "FileStorage":
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)


def _device_of(storage: Any) -> device:
    if not hasattr(storage, "device"):
        raise TypeError(f"map_location must return a storage or None, not {type(storage).__name__}")
    return canonical(storage.device)


def _restore(storage: Any, location: str) -> device:
    for _, _, deserializer in _packages:
        found = deserializer(storage, location)
        if found is not None:
            return found if isinstance(found, device) else _device_of(found)
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
    )


NOT_THERE = (
    "Attempting to deserialize object on a {} device but torch.{}.is_available() is False. If you are running on a "
    "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
)


def _accelerator(kind: str, available: Callable[[], bool]) -> tuple[_Tagger, _Deserializer]:
    def deserialize(storage: Any, location: str) -> device | None:
        if location != kind and not location.startswith(f"{kind}:"):
            return None
        wanted = device(location)
        if not available():
            raise RuntimeError(NOT_THERE.format(kind.upper(), kind))
        count = device_count(kind)
        if (wanted.index or 0) >= count:
            raise RuntimeError(
                f"Attempting to deserialize object on {kind.upper()} device {wanted.index} but "
                f"torch.{kind}.device_count() is {count}. Please use torch.load with map_location to map your storages "
                "to an existing device."
            )
        return canonical(wanted)

    return lambda storage: str(storage.device) if storage.device.type == kind else None, deserialize


def _named(kind: str) -> tuple[_Tagger, _Deserializer]:
    return (
        lambda storage: kind if storage.device.type == kind else None,
        lambda storage, location: canonical(kind) if location == kind else None,
    )


register_package(10, *_named("cpu"))
register_package(20, *_accelerator("cuda", cuda_available))
register_package(22, *_named("meta"))
register_package(25, *_accelerator("tpu", tpu_available))
