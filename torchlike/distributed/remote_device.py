"""The name of a device of some worker."""

from __future__ import annotations

from .._core.device import device

_FORMS = "Could not parse remote_device: {}. The valid format is '<workername>/<device>' or 'rank:<rank>/<device>' or '<device>'"


class _remote_device:  # noqa: N801  (torch's name)
    """`"worker1/cuda:0"`, `"rank:1/cpu"`, `"worker1"` (its CPU), `"cuda:0"` (of this worker). ValueError for other text."""

    def __init__(self, remote_device: str | device) -> None:
        self._worker_name: str | None = None
        self._rank: int | None = None
        if isinstance(remote_device, device):
            self._device = remote_device
            return
        if not isinstance(remote_device, str):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        *worker, where = remote_device.split("/")
        if not worker and not _is_device(where):
            worker, where = [where], "cpu"
        if len(worker) > 1 or worker == [""]:
            raise ValueError(_FORMS.format(remote_device))
        self._device = device(where)
        if worker:
            kind, *numbers = worker[0].split(":")
            if not numbers:
                self._worker_name = kind
            elif kind == "rank" and len(numbers) == 1 and numbers[0].isdigit():
                self._rank = int(numbers[0])
            else:
                raise ValueError(_FORMS.format(remote_device))

    def worker_name(self) -> str | None:
        return self._worker_name

    def rank(self) -> int | None:
        return self._rank

    def device(self) -> device:
        return self._device

    def __repr__(self) -> str:
        worker = self._worker_name if self._rank is None else f"rank:{self._rank}"
        return str(self._device) if worker is None else f"{worker}/{self._device}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _remote_device) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def _is_device(text: str) -> bool:
    try:
        device(text)
    except (RuntimeError, ValueError):
        return False
    return True
