"""How the processes of a program find the store where they meet: env://, tcp:// and file://."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlparse

from .constants import default_pg_timeout
from .store import FileStore, Store
from .tcp_store import TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

_handlers: dict[str, Callable] = {}


def register_rendezvous_handler(scheme: str, handler: Callable) -> None:
    """`handler(url, **options)` yields (store, rank, world size) for URLs `scheme://`."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **options) -> Iterator[tuple[Store, int, int]]:
    """(store, rank, world size); rank and size may also stand in the URL's query. Size 0: nobody knows how many processes there will be."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parsed = urlparse(url)
    query = {k: int(v[0]) for k, v in parse_qs(parsed.query).items() if k in ("rank", "world_size")}
    if query and (rank != -1 or world_size != -1):
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    if parsed.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parsed.scheme}://")
    rank, world_size = query.get("rank", rank), query.get("world_size", world_size)
    return _handlers[parsed.scheme](parsed, rank=rank, world_size=world_size, **options)


def _needed(scheme: str, rank: int, world_size: int) -> None:
    if rank < 0:
        raise ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: rank parameter missing")
    if world_size < 0:
        raise ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: world size parameter missing")


def _file(url, rank: int, world_size: int, timeout: timedelta = default_pg_timeout):
    if not url.path:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
    _needed("file", rank, world_size)
    yield FileStore(url.path, world_size), rank, world_size


def _tcp(url, rank: int, world_size: int, timeout: timedelta = default_pg_timeout):
    if not url.port:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    _needed("tcp", rank, world_size)
    yield _served(url, url.hostname, url.port, rank, world_size, timeout), rank, world_size


def _env(url, rank: int, world_size: int, timeout: timedelta = default_pg_timeout):
    rank, world_size = _variable("RANK", rank), _variable("WORLD_SIZE", world_size)
    host, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    yield _served(url, host, port, rank, world_size, timeout), rank, world_size


def _variable(name: str, given: int = -1) -> int | str:
    if given >= 0:
        return given
    if name not in os.environ:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
            "but not set"
        )
    return os.environ[name] if name == "MASTER_ADDR" else int(os.environ[name])


def _served(url, host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    """The store at rank 0, or at the launcher where that serves it. Groups and RPC may meet at one port."""
    launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    libuv = parse_qs(url.query).get("use_libuv", [os.environ.get("USE_LIBUV", "1")])[0] == "1"
    return TCPStore(host, port, world_size, is_master=rank == 0 and not launcher, timeout=timeout, wait_for_workers=not launcher, multi_tenant=True, use_libuv=libuv)


for _scheme, _handler in (("env", _env), ("tcp", _tcp), ("file", _file)):
    register_rendezvous_handler(_scheme, _handler)
