"""elastic_launch: a function or a program in several processes, which `init_process_group` joins; what each returned, or why one failed."""
from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from .. import run as torchrun
from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

_ERRORS = "TORCHELASTIC_ERROR_FILE"


@dataclass
class LaunchConfig:
    """How many processes there are, on how many nodes, and where these meet.

    `min_nodes` nodes of `nproc_per_node` processes; `rdzv_endpoint` is HOST:PORT of the store, by default a free port of this machine;
    `start_method` of multiprocessing for functions ("spawn", "fork", "forkserver"); the processes start again up to `max_restarts` times.
    `max_nodes` changes nothing, as no nodes join later, nor do settings of logs, metrics, events and NUMA.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        elif self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")


class elastic_launch:  # noqa: N801  (PyTorch's name)
    """elastic_launch(config, entrypoint)(*args): what each process returned, by its rank; ChildFailedError where one failed.

    `entrypoint` is a function, which gets the arguments, or the name of a program, whose processes return None.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable | str | None, health_check_server: Any = None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Callable | str | None, args: list[Any], health_check_server: Any = None) -> dict[int, Any]:
    """`elastic_launch(config, entrypoint)(*args)`."""
    name = getattr(entrypoint, "__name__", entrypoint) or ""
    options = torchrun.get_args_parser().parse_args([
        f"--nnodes={config.min_nodes}", f"--nproc-per-node={config.nproc_per_node}", f"--role={config.role}", f"--max-restarts={config.max_restarts}",
        f"--rdzv-id={config.run_id or uuid.uuid4()}", f"--rdzv-endpoint={config.rdzv_endpoint}", f"--rdzv-backend={config.rdzv_backend}", "program"])
    options.standalone = config.min_nodes == 1 and not config.rdzv_endpoint
    store, node, host = torchrun._meet(options)
    count = config.nproc_per_node
    try:
        for restarts in range(config.max_restarts + 1):
            with tempfile.TemporaryDirectory(prefix="torchelastic_") as folder:
                workers = []
                try:
                    for local in range(count):
                        environment = torchrun._environment(options, node, local, count, config.min_nodes, host, store.port, restarts, options.rdzv_id)
                        environment[_ERRORS] = os.path.join(folder, f"{local}.json")
                        workers.append((_Program if isinstance(entrypoint, str) else _Function)(entrypoint, args, environment, config.start_method))
                    failed = _ended(workers, config.monitor_interval)
                finally:
                    _stop(workers, config.shutdown_timeout)
                if not failed:
                    _all_nodes(store, config, node)
                    return {node * count + local: w.result for local, w in enumerate(workers)}
                failures = {node * count + i: ProcessFailure(i, workers[i].pid, workers[i].code(), os.path.join(folder, f"{i}.json")) for i in failed}
            for key in store.list_keys():  # the next try meets afresh
                store.delete_key(key)
        raise ChildFailedError(name, failures)
    finally:
        store.close()


def _all_nodes(store: Any, config: LaunchConfig, node: int) -> None:
    """The node that serves the store stays until all are through."""
    if config.min_nodes > 1:
        store.add("ended", 1)
        while node == 0 and store.add("ended", 0) < config.min_nodes:
            time.sleep(config.monitor_interval)


def _ended(workers: list, interval: float) -> list[int]:
    """Until all have ended well (no numbers), or some have failed: which."""
    while True:
        codes = [w.code() for w in workers]
        failed = [i for i, code in enumerate(codes) if code]
        if failed or all(code == 0 for code in codes):
            return failed
        time.sleep(interval)


def _stop(workers: list, grace: float) -> None:
    for w in workers:
        if w.code() is None:
            w.process.terminate()
    end = time.monotonic() + grace
    for w in workers:
        while w.code() is None and time.monotonic() < end:
            time.sleep(0.02)
        if w.code() is None:
            w.process.kill()
            w.wait()


class _Program:
    """A program in a process of its own."""

    result = None

    def __init__(self, program: str, args: list, environment: dict[str, str], start_method: str) -> None:
        self.process = subprocess.Popen([program, *map(str, args)], env=environment)
        self.pid = self.process.pid

    def code(self) -> int | None:
        """The exit code, once it has ended."""
        return self.process.poll()

    def wait(self) -> None:
        """Until it has ended."""
        self.process.wait()


class _Function:
    """A function in a process of its own, which sends what it returned."""

    def __init__(self, function: Callable, args: list, environment: dict[str, str], start_method: str) -> None:
        context = multiprocessing.get_context(start_method)
        self._results, theirs = context.Pipe(duplex=False)
        self.result: Any = None
        self._sent = False
        self.process = context.Process(target=_call, args=(function, args, environment, theirs))
        self.process.start()
        theirs.close()
        self.pid = self.process.pid

    def code(self) -> int | None:
        """The exit code, once it has ended and its result is here."""
        if not self._sent and self._results.poll():
            try:
                self.result = self._results.recv()
            except EOFError:
                pass
            self._sent = True
        return self.process.exitcode if self._sent or self.process.exitcode else None

    def wait(self) -> None:
        """Until it has ended."""
        self.process.join()


def _call(function: Callable, args: list, environment: dict[str, str], results: Connection) -> None:
    os.environ.update(environment)
    results.send(record(function)(*args))
    results.close()
