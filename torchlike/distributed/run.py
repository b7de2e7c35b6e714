"""Starts a program in several processes, with the environment by which `init_process_group` finds them together: torchrun.

    python -m torchlike.distributed.run --nproc-per-node=4 SCRIPT ARGS...
    python -m torchlike.run -m torch.distributed.run --nproc-per-node=4 SCRIPT ARGS...

The launcher serves the store. When a process fails the others are stopped, and all start again up to `--max-restarts` times.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from urllib.parse import urlparse

from .store import DistNetworkError
from .tcp_store import TCPStore

_GRACE = 15.0  # seconds that processes have after SIGTERM


def get_args_parser() -> argparse.ArgumentParser:
    """torchrun's options, with dashes or underscores."""
    p = argparse.ArgumentParser("torchrun", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def option(name: str, **settings) -> None:
        names = {f"--{name}", "--" + name.replace("-", "_")}
        p.add_argument(*sorted(names), dest=name.replace("-", "_"), **settings)
    option("nnodes", default="1", help="how many nodes; of MIN:MAX, MIN")
    option("nproc-per-node", default="1", help="processes on each node: a number, cpu, gpu or auto")
    option("rdzv-backend", default="static")
    option("rdzv-endpoint", default="", help="HOST:PORT of the store")
    option("rdzv-id", default="none")
    option("rdzv-conf", default="")
    option("standalone", action="store_true", help="one node, on a free port")
    option("max-restarts", type=int, default=0)
    option("monitor-interval", type=float, default=0.1)
    option("start-method", default="spawn", choices=("spawn", "fork", "forkserver"))
    option("role", default="default")
    option("no-python", action="store_true", help="SCRIPT is a program to run as it is")
    option("log-dir", default=None)
    option("redirects", default="0")
    option("tee", default="0")
    option("local-addr", default=None)
    option("node-rank", type=int, default=-1)
    option("master-addr", default="127.0.0.1")
    option("master-port", type=int, default=None, help="29500 unless this is the only node, which then takes a free port")
    p.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module")
    p.add_argument("training_script")
    p.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return p


def _count(given: str) -> int:
    if given in ("auto", "gpu"):
        from .. import cuda
        found = cuda.device_count()
        if found or given == "gpu":
            if not found:
                raise ValueError("Cuda is not available.")
            return found
        given = "cpu"
    if given == "cpu":
        return os.cpu_count() or 1
    try:
        return int(given)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {given}") from None


def _meet(options: argparse.Namespace) -> tuple[TCPStore, int, str]:
    """The store, this node's rank, and the host that has the store. The first to listen at the endpoint serves it."""
    nodes = int(options.nnodes.split(":")[0])
    endpoint = urlparse("//" + options.rdzv_endpoint)
    if options.rdzv_endpoint:
        host, port = endpoint.hostname, 29400 if endpoint.port is None else endpoint.port
    elif options.standalone or nodes == 1 and options.rdzv_backend == "static" and options.master_port is None:
        host, port = "localhost", 0  # two programs on one machine meet without knowing of each other
    else:
        host, port = options.master_addr, 0 if options.rdzv_backend == "c10d" else 29500 if options.master_port is None else options.master_port
    if nodes == 1 or options.node_rank >= 0:
        node = max(options.node_rank, 0)
        return TCPStore(host, port, is_master=node == 0, wait_for_workers=False), node, host
    try:
        store = TCPStore(host, port, is_master=host in ("localhost", "127.0.0.1", platform.node()), wait_for_workers=False)
    except DistNetworkError:
        store = TCPStore(host, port)
    return store, store.add(f"nodes/{options.rdzv_id}", 1) - 1, host


def _command(options: argparse.Namespace, extra: list[str]) -> list[str]:
    script, arguments = options.training_script, [*extra, *options.training_script_args]
    if options.no_python:
        return [script, *arguments]
    return [sys.executable, "-u", "-m", "torchlike.run", *(["-m"] if options.module else []), script, *arguments]


def _environment(options: argparse.Namespace, node: int, local: int, count: int, nodes: int, host: str, port: int, restarts: int, run_id: str) -> dict:
    made = dict(os.environ)
    if count > 1:
        made.setdefault("OMP_NUM_THREADS", "1")
    rank, size = node * count + local, nodes * count
    made |= {"RANK": str(rank), "LOCAL_RANK": str(local), "GROUP_RANK": str(node), "ROLE_RANK": str(rank), "ROLE_NAME": options.role,
             "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(count), "GROUP_WORLD_SIZE": str(nodes), "ROLE_WORLD_SIZE": str(size),
             "MASTER_ADDR": host, "MASTER_PORT": str(port), "TORCHELASTIC_RESTART_COUNT": str(restarts),
             "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts), "TORCHELASTIC_RUN_ID": run_id, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    return made


def _stop(processes: Sequence[subprocess.Popen]) -> None:
    for p in processes:
        if p.poll() is None:
            p.terminate()
    end = time.monotonic() + _GRACE
    for p in processes:
        try:
            p.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def _watch(processes: Sequence[subprocess.Popen], interval: float) -> subprocess.Popen | None:
    """Until all have ended well (None), or one has failed."""
    while True:
        for p in processes:
            if p.poll():
                return p
        if all(p.returncode == 0 for p in processes):
            return None
        time.sleep(interval)


def run(options: argparse.Namespace, local_rank_argument: bool = False) -> int:
    """Start the processes of this node and wait for them: the exit code. `local_rank_argument`: they get `--local-rank=N` too."""
    count, nodes = _count(options.nproc_per_node), int(options.nnodes.split(":")[0])
    store, node, host = _meet(options)
    run_id = options.rdzv_id if options.rdzv_id != "none" else str(uuid.uuid4()) if options.standalone else "none"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for restarts in range(options.max_restarts + 1):
        processes: list[subprocess.Popen] = []
        try:
            for local in range(count):
                extra = [f"--local-rank={local}"] if local_rank_argument else []
                processes.append(subprocess.Popen(_command(options, extra),
                                                  env=_environment(options, node, local, count, nodes, host, store.port, restarts, run_id)))
            failed = _watch(processes, options.monitor_interval)
        finally:
            _stop(processes)
        if failed is None:
            if nodes > 1:  # the node that serves the store stays until all are through
                store.add("ended", 1)
                while node == 0 and store.add("ended", 0) < nodes:
                    time.sleep(options.monitor_interval)
            store.close()
            return 0
        local = processes.index(failed)
        sys.stderr.write(f"torchrun: rank {node * count + local} (local rank {local}, pid {failed.pid}) failed with exit code {failed.returncode}; "
                         f"the other processes were stopped\n")
        for key in store.list_keys():  # the next try meets afresh
            store.delete_key(key)
    store.close()
    return 1


def main(args: Sequence[str] | None = None) -> None:
    sys.exit(run(get_args_parser().parse_args(args)))


if __name__ == "__main__":
    main()
