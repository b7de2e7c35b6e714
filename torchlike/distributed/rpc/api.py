"""torch.distributed.rpc: calls of functions at other workers, references to what they return, and the end of it all."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, TypeVar

from ...futures import Future, wait_all
from ..autograd import _pass as autograd
from ._agent import TensorPipeAgent, agent, current
from ._calls import Calls
from ._references import References
from ._worker import WorkerInfo
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from .internal import PythonUDF, _internal_rpc_pickler
from .rref import PyRRef, references, serve

__all__ = ["RRef", "get_worker_info", "remote", "rpc_async", "rpc_sync", "shutdown"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
_Worker = str | int | WorkerInfo

_ignore_rref_leak = True  # whether shutdown() puts up with references that others still hold
_default_pickler: Any = _internal_rpc_pickler
_thread_local_var = threading.local()
_gathered: Counter[str] = Counter()  # how often workers of these names gathered
_lock = threading.Lock()


class RRef(PyRRef, Generic[T]):
    """`RRef(value)`: a reference to a value of this worker, for others. `RRef[T]` is for annotations."""


def _require_initialized(func: Callable) -> Callable:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not current:
            raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
        return func(*args, **kwargs)
    return wrapper


def _is_current_rpc_agent_set() -> bool:
    return bool(current)


_get_current_rpc_agent = agent


def start(made: TensorPipeAgent) -> None:
    """This process's agent serves from now on."""
    here = References(made)
    Calls(made, here)
    serve(here)
    autograd.serve(made.info.id, made.request, made.handlers)
    references[:], current[:] = [here], [made]


def get_rpc_timeout() -> float:
    """Seconds after which a call fails that was given no timeout."""
    return agent().timeout


def _set_rpc_timeout(seconds: float) -> None:
    agent().timeout = float(seconds)


@_require_initialized
def get_worker_info(worker_name: str | int | None = None) -> WorkerInfo:
    """The worker of a name, or this one; RuntimeError where there is none."""
    return agent().get_worker_info(worker_name)


def _to_worker_info(to: _Worker) -> WorkerInfo:
    if isinstance(to, WorkerInfo):
        return to
    if isinstance(to, (str, int)):
        return agent().get_worker_info(to)
    raise ValueError(f"Cannot get WorkerInfo from name {to}")


def _called(to: _Worker, func: Callable, args: tuple | None, kwargs: dict | None, timeout: float) -> Future:
    if not callable(func):
        raise TypeError("function should be callable.")
    return agent().request(_to_worker_info(to).id, "call", PythonUDF(func, tuple(args or ()), kwargs or {}), timeout, pickler=_default_pickler, tracked=True)


@_require_initialized
def rpc_sync(to: _Worker, func: Callable, args: tuple | None = None, kwargs: dict | None = None, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
    """Run `func(*args, **kwargs)` at worker `to` (its name, number or WorkerInfo): the result.

    Functions travel by name, everything else by pickle; tensors are copied. What the function raises is raised here: as ValueError or TypeError if it
    is one, else as RuntimeError, with where it happened in its text. RuntimeError after `timeout` seconds (0: never).
    """
    return _called(to, func, args, kwargs, timeout).wait()


@_require_initialized
def rpc_async(to: _Worker, func: Callable, args: tuple | None = None, kwargs: dict | None = None, timeout: float = UNSET_RPC_TIMEOUT) -> Future:
    """The future of what rpc_sync() returns. Tensors are read now."""
    future = _called(to, func, args, kwargs, timeout)
    if hasattr(_thread_local_var, "future_list"):
        _thread_local_var.future_list.append(future)
    return future


@_require_initialized
def remote(to: _Worker, func: Callable, args: tuple | None = None, kwargs: dict | None = None, timeout: float = UNSET_RPC_TIMEOUT) -> PyRRef:
    """Run `func(*args, **kwargs)` at worker `to`, where the result stays: a reference to it, at once.

    What goes wrong is raised where the value is asked for.
    """
    owner, here = _to_worker_info(to), references[0]
    call = PythonUDF(func, tuple(args or ()), kwargs or {})
    ref = here.number()
    if owner == here.agent.info:
        fork = ref
        owned = here.at_owner(ref)
        here.add(owned, fork)
        made = PyRRef._owning(owned)
    else:
        fork = here.number()
        made = PyRRef._using(owner, ref, fork)
    try:
        made._created = here.agent.request(owner.id, "remote", call, timeout, pickler=_default_pickler, tracked=True, note=(ref, fork))
    except BaseException:
        made._deleted = True  # the owner never heard of it
        here.drop(ref, fork)
        raise
    if owner != here.agent.info:
        here.wait_for(made, made._created)
    return made


@contextlib.contextmanager
def _use_rpc_pickler(rpc_pickler: Any) -> Iterator[None]:
    """Inside the block calls are pickled by another pickler."""
    global _default_pickler
    _default_pickler = rpc_pickler
    try:
        yield
    finally:
        _default_pickler = _internal_rpc_pickler


@contextlib.contextmanager
def _wait_all() -> Iterator[None]:
    """At its end the block waits for what this thread called by rpc_async() inside of it."""
    _thread_local_var.future_list = []
    try:
        yield
    finally:
        try:
            wait_all(_thread_local_var.future_list)
        finally:
            del _thread_local_var.future_list


@_require_initialized
def _all_gather(obj: Any, worker_names: Collection[str] | None = None, timeout: float = UNSET_RPC_TIMEOUT) -> dict[str, Any]:
    """What every worker (of some) gave, by its name."""
    here = agent()
    infos = here.get_worker_infos() if not worker_names else [here.get_worker_info(name) for name in worker_names]
    names = {info.id: info.name for info in infos}
    joined = " ".join(sorted(names.values()))
    with _lock:
        key = f"{joined} {_gathered[joined]}"
        _gathered[joined] += 1
    leader = min(infos, key=lambda info: info.name)
    timeout = 0 if timeout == UNSET_RPC_TIMEOUT else timeout  # workers may come as late as they like
    try:
        found = here.gather(key, sorted(names), obj, timeout, leader.id)
    except RuntimeError as error:
        if leader != here.info:
            raise
        raise RuntimeError(f"Followers {sorted(set(names.values()) - {leader.name})} timed out in _all_gather after {timeout:.2f} seconds. "
                           f"The first exception is {error}") from error
    return {names[rank]: found[rank] for rank in found}


@_require_initialized
def _barrier(worker_names: Collection[str]) -> None:
    """Until all of these workers are here."""
    try:
        _all_gather(None, set(worker_names))
    except RuntimeError:
        logger.exception("Failed to complete barrier")


@_require_initialized
def _wait_all_workers(timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Until all workers are here."""
    try:
        _all_gather(None, timeout=timeout)
    except RuntimeError:
        logger.exception("Failed to respond to 'Shutdown Proceed' in time")
        raise


def _delete_all_user_and_unforked_owner_rrefs() -> None:
    references[0].delete_users()


@_require_initialized
def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """The end of RPC in this process: once all workers are here and nothing is under way anywhere, or at once (`graceful=False`).

    RuntimeError where that takes more than `timeout` seconds (0: however long), or a worker is gone.
    """
    here = agent()
    try:
        if graceful:
            if here.is_static_group:
                _wait_all_workers(timeout)
                _delete_all_user_and_unforked_owner_rrefs()
            here.join(timeout)
        leaks = [] if _ignore_rref_leak else references[0].leaks()
        if leaks:
            raise RuntimeError("Leaking RRefs: " + ", ".join(f"Leaking RRef {ref}" for ref in leaks))
    finally:
        here.shutdown()
        current.clear()
        _gathered.clear()
