"""Ctrl-C at a moment when stopping would lose what cannot be made again."""
from __future__ import annotations

import threading
from _signal import signal  # the signal module's own functions without its enums, which take ten times as long
from signal import SIGINT


class Uninterrupted:
    """Inside the block SIGINT waits; its handler runs at the end. Only the main thread is ever interrupted."""

    __slots__ = ("handler", "arrived")

    def __enter__(self) -> None:
        self.handler = self.arrived = None
        if threading.get_ident() == threading.main_thread().ident:
            handler = signal(SIGINT, self._note)
            if callable(handler):
                self.handler = handler
            elif handler is not None:  # ignored, or the system's default: the process ends
                signal(SIGINT, handler)

    def _note(self, number: int, frame) -> None:
        self.arrived = number, frame

    def __exit__(self, *exc) -> None:
        if self.handler is not None:
            signal(SIGINT, self.handler)
            if self.arrived is not None:
                self.handler(*self.arrived)
