"""Ctrl-C, or a timer, at a moment when stopping would lose what cannot be made again."""
from __future__ import annotations

import os
import signal as signals
import threading
from _signal import getsignal, signal  # the signal module's own functions without its enums, which take ten times as long
from threading import get_ident

# What a handler in Python may make an exception of: Ctrl-C, and a time limit (pytest's, or a program's own).
_NUMBERS = tuple(int(getattr(signals, name)) for name in ("SIGINT", "SIGALRM") if hasattr(signals, name))


_main_thread = [threading.main_thread().ident]
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _main_thread.__setitem__(0, get_ident()))


class Uninterrupted:
    """Inside the block SIGINT and SIGALRM wait; their handlers run at the end. Only the main thread is ever interrupted."""

    __slots__ = ("arrived", "handlers")

    def __enter__(self) -> None:
        self.handlers, self.arrived = [], {}
        if get_ident() != _main_thread[0]:
            return
        try:
            for number in _NUMBERS:
                handler = getsignal(number)
                if callable(handler):  # else ignored, or the system's default: the process ends
                    self.handlers.append((number, handler))
                    signal(number, self._note)
        except BaseException:  # of a handler that was not yet replaced
            self._put_back()
            raise

    def _note(self, number: int, frame) -> None:
        self.arrived[number] = frame

    def _put_back(self) -> None:
        for number, handler in self.handlers:
            signal(number, handler)

    def __exit__(self, *exc) -> None:
        try:
            for number, handler in self.handlers:
                signal(number, handler)
        except BaseException:  # of one that is there again
            self._put_back()
            raise
        if self.arrived:
            for number, handler in self.handlers:
                if number in self.arrived:
                    handler(number, self.arrived[number])
