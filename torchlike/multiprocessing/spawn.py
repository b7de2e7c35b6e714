"""Running one function in several processes, and raising here what failed there."""
from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "spawn", "start_processes"]


class ProcessException(Exception):
    """One of the processes failed: which (`error_index`), its process id, and why (`msg`)."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = pid

    @property
    def pid(self) -> int:
        return self.error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception; `msg` holds its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """The process ended with an exit code, or by a signal (`signal_name`)."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn: Callable, index: int, args: tuple, errors: Connection) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent got it as well
    except Exception:
        errors.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run together: when one fails, the others are ended."""

    def __init__(self, processes: list, errors: list[Connection]) -> None:
        self.processes = processes
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}  # of those not joined yet
        self.errors = {e: i for i, e in enumerate(errors)}  # of those that may still say what failed
        self.texts: dict[int, str] = {}

    def pids(self) -> list[int]:
        """The process ids."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, at most `timeout` seconds; whether all have ended.

        Raises ProcessRaisedException or ProcessExitedException for the first that failed, after the others were
        ended: by SIGTERM, and after `grace_period` seconds by SIGKILL.
        """
        if not self.sentinels:
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        ended: list[int] = []
        while not ended:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            ready = wait([*self.errors, *self.sentinels], left)
            if not ready:
                return False
            for source in ready:
                if source in self.errors:
                    self._read(source)
                else:
                    ended.append(self.sentinels.pop(source))
        for index in ended:
            self.processes[index].join()
        failed = next((i for i in ended if self.processes[i].exitcode != 0), None)
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        for source in list(self.errors):
            if self.errors[source] == failed:
                self._read(source)
        self._raise(failed)

    def _read(self, source: Connection) -> None:
        index = self.errors.pop(source)
        with contextlib.suppress(EOFError):  # it ended, and nothing was wrong, or nothing could be said
            self.texts[index] = source.recv()

    def _end_all(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + (30 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(deadline - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
            process.join()

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        code = process.exitcode
        if index in self.texts:
            text = f"\n\n-- Process {index} terminated with the following error:\n{self.texts[index]}"
            raise ProcessRaisedException(text, index, process.pid)
        if code < 0:
            name = signal.Signals(-code).name
            text = f"process {index} terminated with signal {name}"
            raise ProcessExitedException(text, index, process.pid, code, name)
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> ProcessContext | None:
    """Run `fn(i, *args)` for i in range(nprocs), each in a process of its own; wait for them if `join`."""
    context = multiprocessing.get_context(start_method)
    processes: list[Any] = []
    errors = []
    for index in range(nprocs):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, theirs), daemon=daemon)
        process.start()
        theirs.close()
        processes.append(process)
        errors.append(ours)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> ProcessContext | None:
    """`start_processes`, in fresh interpreters, each of which can use JAX for itself."""
    return start_processes(fn, args, nprocs, join, daemon, start_method=start_method)
