"""record: the error with which a program ends, in the file that TORCHELASTIC_ERROR_FILE names."""
from __future__ import annotations

import faulthandler
import functools
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any

__all__ = ["ChildFailedError", "ProcessFailure", "record"]


def record(fn: Callable, error_handler: Any = None) -> Callable:
    """Decorator for a program's main function: an exception that ends it is written to the file before it goes on."""
    @functools.wraps(fn)
    def main(*args: Any, **kwargs: Any) -> Any:
        if error_handler is not None:
            error_handler.initialize()
        elif not faulthandler.is_enabled():
            faulthandler.enable(all_threads=True)
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except Exception as error:
            if error_handler is not None:
                error_handler.record_exception(error)
            else:
                _write(error)
            raise
    return main


def _write(error: Exception) -> None:
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path:
        about = {"message": f"{type(error).__name__}: {error}",
                 "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}
        with open(path, "w") as stream:
            json.dump({"message": about}, stream)


class ProcessFailure:
    """A process that failed: `local_rank`, `pid`, `exitcode`, and `message` and `timestamp` (seconds) by what it wrote into its error file."""

    def __init__(self, local_rank: int, pid: int, exitcode: int, error_file: str) -> None:
        self.local_rank, self.pid, self.exitcode, self.error_file = local_rank, pid, exitcode, error_file
        self.error_file_data: dict[str, Any] = {"message": "<NONE>"}
        self.message: Any = f"Signal {-exitcode} ({self.signal_name()}) received by PID {pid}" if exitcode < 0 else \
            "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        self.timestamp = int(time.time())
        if os.path.isfile(error_file):
            with open(error_file) as stream:
                self.error_file_data = json.load(stream)
            self.message = self.error_file_data["message"]
            if isinstance(self.message, dict):
                self.timestamp = int(self.message["extraInfo"]["timestamp"])
        else:
            self.error_file = "<N/A>"

    def signal_name(self) -> str:
        """The signal that ended it."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"
        except ValueError:
            return "<N/A>"

    def timestamp_isoformat(self) -> str:
        """When it failed: YYYY-MM-DD_HH:MM:SS."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Processes that were started together failed: `failures`, by their ranks."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and its failure."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """Of each failure: when, where, and what it said; the first comes first."""
        first = self.get_first_failure()[0]
        lines = [f"{self.name} FAILED"]
        for rank in sorted(self.failures, key=lambda r: (r != first, r)):
            f = self.failures[rank]
            said = f.message["extraInfo"].get("py_callstack", f.message.get("message", "")) if isinstance(f.message, dict) else f.message
            lines.append(f"  time: {f.timestamp_isoformat()}\n  rank: {rank} (local_rank: {f.local_rank})\n  exitcode: {f.exitcode} (pid: {f.pid})\n"
                         f"  error_file: {f.error_file}\n  traceback: {said}")
        return "\n".join(lines)
