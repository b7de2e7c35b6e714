"""A request or an answer as the parts of a frame, and back."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._core.device import device
from ..._tensor import Tensor
from ..autograd._context import Tracked
from ._wire import Part
from .internal import _internal_rpc_pickler
from .options import _DeviceMap

CPU_ONLY = ("TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU before sending them over RPC, or call "
            "`set_device_map` on `TensorPipeRpcBackendOptions` to explicitly configure device mapping. {what} device mapping is not available for "
            "destination {to}, but found tensor on device: {device}")


class Message(NamedTuple):
    what: str
    data: bytes | bytearray  # a pickle
    tensors: list[Tensor]
    tracked: Tracked | None = None
    note: Any = None  # plain facts that can be read though the pickle cannot

    def load(self) -> Any:
        """The object."""
        return _internal_rpc_pickler.deserialize(self.data, self.tensors)


def packed(message: Message, placed: Callable[[device], device]) -> list[Part]:
    """The parts; tensors are read now, and what the caller makes of them later is not seen. `placed` says where one of a device will go."""
    buffers: list[pickle.PickleBuffer] = []
    places = [None if t.device.type in ("cpu", "meta") else str(placed(t.device)) for t in message.tensors]
    plain = [t.detach() if place is None else t.detach().cpu() for t, place in zip(message.tensors, places)]
    table = pickle.dumps(plain, 5, buffer_callback=buffers.append)
    head = pickle.dumps((message.what, message.tracked, message.note, [t.requires_grad for t in message.tensors], places))
    return [head, message.data, table, *(b.raw() for b in buffers)]


def unpacked(parts: list[Any]) -> Message:
    """A message of parts that nobody else writes to; its tensors are leaves."""
    head, data, table, *buffers = parts
    what, tracked, note, needs, places = pickle.loads(head)
    tensors = pickle.loads(table, buffers=buffers)
    for i, (need, place) in enumerate(zip(needs, places)):
        if place is not None:
            tensors[i] = tensors[i].to(place)
        if need:
            tensors[i].requires_grad_()
    return Message(what, data, tensors, tracked, note)


def mapped(maps: dict[str, _DeviceMap], to: str, what: str) -> Callable[[device], device]:
    """Where tensors of a device go at worker `to`; RuntimeError where nobody said."""
    def placed(where: device) -> device:
        try:
            return maps[to][where]
        except KeyError:
            raise RuntimeError(CPU_ONLY.format(what=what, to=to, device=where)) from None
    return placed
