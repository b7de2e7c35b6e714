"""The store that one process serves and others reach over TCP."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import time
import weakref
from datetime import timedelta

from ._frames import receive_frame, send_frame
from .store import TIMEOUT, DistNetworkError, DistStoreError, Store, Table

__all__ = ["TCPStore"]


def connected(host: str, port: int, seconds: float) -> socket.socket:
    """A connection to a server that may start later than this process; DistNetworkError after some seconds."""
    end = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(1.0, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() > end:
                raise DistNetworkError(f"The client socket has timed out after {int(seconds * 1000)}ms while trying to connect to ({host}, {port}).") from error
            time.sleep(0.05)
            continue
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class _Server:
    """Answers for a table, one thread per connection. `listening`: a socket's number that is bound already."""

    shared: dict[int, _Server] = {}  # by port, those of several stores of this process
    lock = threading.RLock()  # held again where a collection of garbage closes a store meanwhile

    def __init__(self, port: int, listening: int | None = None) -> None:
        self.table, self.joined, self.users = Table(), threading.Semaphore(0), 1
        try:
            if listening is None:
                self.socket = socket.create_server(("", port), backlog=2048)
            else:
                self.socket = socket.socket(fileno=listening)
                self.socket.listen(2048)
        except OSError as error:
            raise DistNetworkError("The server socket has failed to listen on any local network address. "
                                   f"port: {port}, useIpv6: false, code: -{error.errno}, name: {errno.errorcode.get(error.errno)}, "
                                   f"message: {os.strerror(error.errno).lower()}") from None
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True, name="torchlike store").start()

    @classmethod
    def for_several(cls, port: int) -> _Server:
        """That of another store of this process at the same port, if there is one."""
        with cls.lock:
            found = cls.shared.get(port)
            if found is None:
                found = cls(port)
                cls.shared[found.port] = found
            else:
                found.users += 1
            return found

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection = self.socket.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.joined.release()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, EOFError):
            while True:
                command, seconds, *arguments = receive_frame(connection)
                try:
                    made = self.table.call(command.decode(), arguments, float(seconds))
                except ValueError as error:  # a number was added to what is none
                    send_frame(connection, [b"error", str(error).encode()])
                else:
                    send_frame(connection, [b"late"] if made is None else [b"ok", *made])

    def close(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users:
                return
            if self.shared.get(self.port) is self:
                del self.shared[self.port]
        with contextlib.suppress(OSError):  # macOS: not connected
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread in `accept`, which held the port open
        self.socket.close()


def _closed(connection: socket.socket, server: _Server | None, process: int) -> None:
    if os.getpid() != process:  # of a process forked from it, which has the same sockets
        return
    connection.close()
    if server is not None:
        server.close()


class TCPStore(Store):
    """A store that one process serves (`is_master`) and the others reach over TCP. Port 0 lets the system choose one. With `multi_tenant` several stores
    of a process serve the same keys at one port."""

    _extended = True

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False, timeout: timedelta = TIMEOUT,
                 wait_for_workers: bool = True, multi_tenant: bool = False, master_listen_fd: int | None = None, use_libuv: bool = True) -> None:
        super().__init__(timeout)
        server = None
        if is_master:
            server = _Server.for_several(port) if multi_tenant and master_listen_fd is None else _Server(port, master_listen_fd)
        self._host, self._port, self._libuv = host_name, server.port if is_master else port, use_libuv
        self._connection, self._server = None, server
        try:
            self._connection = connected(host_name, self._port, timeout.total_seconds())
        except DistNetworkError:
            if server is not None:
                server.close()
            raise
        self._lock = threading.Lock()
        self.close = weakref.finalize(self, _closed, self._connection, server, os.getpid())  # called, or as the store is forgotten
        self._counts = wait_for_workers and world_size is not None  # the workers that came are a key of the store's own, which num_keys counts
        if is_master and self._counts:
            end = time.monotonic() + timeout.total_seconds()
            for i in range(world_size):
                if not server.joined.acquire(timeout=max(0.0, end - time.monotonic())):
                    raise DistStoreError(f"Timed out after {int(timeout.total_seconds()) + 1} seconds waiting for clients. {i}/{world_size} clients joined.")

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """What `use_libuv` said. Threads serve in either case."""
        return self._libuv

    def num_keys(self) -> int:
        return super().num_keys() + self._counts

    def clone(self) -> TCPStore:
        made = TCPStore(self._host, self._port, timeout=self.timeout, wait_for_workers=False, use_libuv=self._libuv)
        made._counts = self._counts
        return made

    def _call(self, command, arguments, seconds):
        with self._lock:
            try:
                send_frame(self._connection, [command.encode(), repr(seconds).encode(), *arguments])
                answer, *made = receive_frame(self._connection)
            except (OSError, EOFError):
                raise DistNetworkError(f"the store at {self._host}:{self._port} closed the connection") from None
        if answer == b"error":
            raise ValueError(made[0].decode())
        return None if answer == b"late" else made
