"""Connections between workers: a worker's requests to another one, and the answers to them, travel over a socket that it opens with the first.

A frame is a number, a kind and some parts. A thread per socket takes in what arrives and hands it on; it never sends, so nobody waits for it.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Sequence

from .._frames import receive_exactly
from ..store import DistNetworkError, Store
from ..transport import _own_address, introduce, introduced

REQUEST, ANSWER, FAILURE = range(3)
_HEAD = struct.Struct("!QBI")

Part = bytes | bytearray | memoryview


class Connection:
    """One socket: `send` may be called by any thread."""

    def __init__(self, socket: socket.socket, peer: int) -> None:
        self.socket, self.peer = socket, peer
        self.lock = threading.Lock()

    def send(self, number: int, kind: int, parts: Sequence[Part]) -> None:
        """A frame; DistNetworkError where the other side is gone."""
        sizes = [memoryview(p).nbytes for p in parts]
        head = _HEAD.pack(number, kind, len(parts)) + struct.pack(f"!{len(parts)}Q", *sizes)
        small = sum(sizes) < 65536
        try:
            with self.lock:
                self.socket.sendall(b"".join([head, *parts]) if small else head)
                for part in () if small else parts:
                    self.socket.sendall(part)
        except OSError as error:
            raise DistNetworkError(f"the connection to worker {self.peer} is closed: {error}") from None

    def frames(self, handle: Callable[[int, int, list[bytearray]], None]) -> None:
        """`handle(number, kind, parts)` for each frame until the other side closes."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                number, kind, count = _HEAD.unpack(receive_exactly(self.socket, _HEAD.size))
                sizes = struct.unpack(f"!{count}Q", receive_exactly(self.socket, 8 * count))
                handle(number, kind, [receive_exactly(self.socket, n) for n in sizes])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)  # what is on its way still arrives


class Wire:
    """The sockets of worker `me`. What arrives goes to `handle(connection, number, kind, parts)`, and `lost(worker, asked)` says that a
    connection ended: one to which this worker sent requests (`asked`), or one of a worker that sent it requests."""

    def __init__(self, store: Store, me: int, handle: Callable, lost: Callable[[int, bool], None]) -> None:
        self.store, self.me, self.handle, self.lost = store, me, handle, lost
        self.token = store.compare_set("token", "", secrets.token_hex(16))  # known to who reads the store alone
        self.opened: dict[int, Connection] = {}
        self.accepted: list[Connection] = []
        self.lock, self.opening = threading.Lock(), threading.Lock()  # requests to other workers go on while one connects
        self.listening = socket.create_server(("", 0), backlog=128)
        self.address = f"{_own_address(store)} {self.listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True, name="torchlike rpc accepts").start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                threading.Thread(target=self._serve, args=(self.listening.accept()[0],), daemon=True, name="torchlike rpc requests").start()

    def _serve(self, accepted: socket.socket) -> None:
        with accepted, contextlib.suppress(OSError, EOFError):
            peer = introduced(accepted, self.token)
            if peer is None:
                return
            connection = Connection(accepted, peer)
            with self.lock:
                self.accepted.append(connection)
            connection.frames(lambda *frame: self.handle(connection, *frame))
            with self.lock:
                self.accepted.remove(connection)
            self.lost(connection.peer, False)

    def to(self, worker: int, address: str) -> Connection:
        """The connection for requests to a worker, whose address is known."""
        found = self.opened.get(worker)
        if found is None:
            with self.opening:
                found = self.opened.get(worker) or self._open(worker, address)
        return found

    def _open(self, worker: int, address: str) -> Connection:
        host, port = address.split()
        try:  # a worker listens before its address can be known
            opened = socket.create_connection((host, int(port)), timeout=self.store.timeout.total_seconds())
            opened.settimeout(None)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            introduce(opened, self.token, self.me)
        except OSError as error:
            raise DistNetworkError(f"worker {worker} cannot be reached: {error}") from None
        connection = Connection(opened, worker)
        with self.lock:
            self.opened[worker] = connection
        threading.Thread(target=self._answers, args=(connection,), daemon=True, name="torchlike rpc answers").start()
        return connection

    def _answers(self, connection: Connection) -> None:
        with connection.socket:
            connection.frames(lambda *frame: self.handle(connection, *frame))
        with self.lock:
            if self.opened.get(connection.peer) is connection:
                del self.opened[connection.peer]
        self.lost(connection.peer, True)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self.listening.close()
        with self.lock:
            connections = [*self.opened.values(), *self.accepted]
        for connection in connections:
            connection.close()
