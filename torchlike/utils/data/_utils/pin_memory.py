"""Batches in page-locked memory, from which an accelerator copies faster: each tensor by its own `pin_memory`."""
from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from ...._tensor import Tensor
from . import MP_STATUS_CHECK_INTERVAL
from .worker import ExceptionWrapper

__all__ = ["pin_memory"]


def _pin_memory_loop(in_queue: Any, out_queue: queue.Queue, device_id: Any, done_event: threading.Event, device: Any) -> None:
    """What a thread of a library's loader does until `done_event`: pin what comes as (number, data), and hand it on."""
    from ....accelerator import set_device_index
    from ....multiprocessing import _set_thread_name
    _set_thread_name("pt_data_pin")
    set_device_index(device_id)
    while not done_event.is_set():
        try:
            number, data = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        if done_event.is_set():
            return
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        while not done_event.is_set():
            try:
                out_queue.put((number, data), timeout=MP_STATUS_CHECK_INTERVAL)
                break
            except queue.Full:
                continue
        del data  # nothing of a batch is kept while the next is waited for


def pin_memory(data: Any, device: Any = None) -> Any:
    """`data` with every tensor in it, at any depth, pinned; what has a method `pin_memory` does it itself."""
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Mapping):
        return _like(data, {key: pin_memory(x, device) for key, x in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(x, device) for x in data))
    if isinstance(data, tuple):
        return type(data)(pin_memory(x, device) for x in data)
    if isinstance(data, Sequence):
        return _like(data, [pin_memory(x, device) for x in data])
    return data


def _like(data: Any, pinned: dict | list) -> Any:
    """`pinned` in a container like `data`: a copy keeps what a user's own class has besides; where neither works, as it is."""
    try:
        if isinstance(data, MutableMapping):
            made = copy.copy(data)
            made.update(pinned)
            return made
        if isinstance(data, MutableSequence):
            made = copy.copy(data)
            for i, x in enumerate(pinned):
                made[i] = x
            return made
        return type(data)(pinned)
    except TypeError:
        return pinned
