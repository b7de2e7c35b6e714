"""Messages between the processes of a program: a socket per pair, and a thread per socket that takes in what arrives.

A message has a key; it waits until somebody receives that key. So sending never waits for the receiver to ask, and several
collectives can be under way at once.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading
import time
from collections import deque

from ._frames import receive_exactly, receive_frame, send_frame
from .store import DistNetworkError, PrefixStore, Store
from .tcp_store import connected


class Transport:
    """Connections from `rank` to every other rank of the world; addresses go through the store."""

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.peers: dict[int, socket.socket] = {}
        self.locks = {r: threading.Lock() for r in range(size)}
        self.arrived = threading.Condition()
        self.messages: dict[bytes, deque[tuple[int, bytes, bytearray]]] = {}  # by key: who sent, what kind it is, the data
        self.gone: set[int] = set()  # ranks whose connection ended
        if size > 1:
            self._connect(PrefixStore("transport", store), store.timeout.total_seconds())

    def _connect(self, store: Store, seconds: float) -> None:
        """Each rank connects to those below it, and shows a token that only readers of the store know."""
        if self.rank == 0:
            store.set("token", secrets.token_hex(16))
        token = store.get("token")
        listening = socket.create_server(("", 0), backlog=self.size)
        listening.settimeout(seconds)
        store.set(f"{self.rank}", f"{_own_address(store)} {listening.getsockname()[1]}")
        for r in range(self.rank):
            host, port = store.get(f"{r}").decode().split()
            self.peers[r] = connected(host, int(port), seconds)
            introduce(self.peers[r], token, self.rank)
        while len(self.peers) < self.size - 1:
            try:
                connection = listening.accept()[0]
            except TimeoutError:
                missing = sorted(set(range(self.size)) - set(self.peers) - {self.rank})
                raise DistNetworkError(f"ranks {missing} did not connect to rank {self.rank} within {seconds:g} seconds") from None
            r = introduced(connection, token)
            if r is not None:
                self.peers[r] = connection
        listening.close()
        for r, connection in self.peers.items():
            threading.Thread(target=self._take_in, args=(r, connection), daemon=True, name=f"torchlike rank {r}").start()

    def _take_in(self, source: int, connection: socket.socket) -> None:
        try:
            while True:
                key_size, data_size = struct.unpack("!IQ", receive_exactly(connection, 12))
                key, _, kind = bytes(receive_exactly(connection, key_size)).partition(b"|")
                data = receive_exactly(connection, data_size)
                with self.arrived:
                    self.messages.setdefault(key, deque()).append((source, kind, data))
                    self.arrived.notify_all()
        except (OSError, EOFError):
            with self.arrived:
                self.gone.add(source)
                self.arrived.notify_all()

    def send(self, rank: int, key: bytes, kind: bytes, data: memoryview) -> None:
        """Hand over a message; it may still be on its way."""
        head = key + b"|" + kind
        try:
            with self.locks[rank]:
                self.peers[rank].sendall(struct.pack("!IQ", len(head), data.nbytes) + head)
                self.peers[rank].sendall(data)
        except OSError:
            raise DistNetworkError(f"Connection closed by peer: rank {rank}") from None

    def receive(self, ranks: set[int], key: bytes, seconds: float) -> tuple[int, bytes, bytearray]:
        """The next message under `key` from one of some ranks: (rank, kind, data)."""
        end = time.monotonic() + seconds
        with self.arrived:
            while True:
                waiting = self.messages.get(key, ())
                for i, (source, kind, data) in enumerate(waiting):
                    if source in ranks:
                        del waiting[i]
                        if not waiting:
                            del self.messages[key]
                        return source, kind, data
                if ranks <= self.gone:
                    raise DistNetworkError(f"Connection closed by peer: rank {min(ranks)}")
                if not self.arrived.wait(end - time.monotonic()):
                    raise DistNetworkError(f"Timed out waiting {int(seconds * 1000)}ms for rank {min(ranks)}")

    def close(self) -> None:
        for connection in self.peers.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)  # what is on its way still arrives


def introduce(connection: socket.socket, token: bytes, rank: int) -> None:
    """Show the process at the other end a token that only readers of the store know, and tell it this one's rank."""
    send_frame(connection, [token, b"%d" % rank])


def introduced(connection: socket.socket, token: bytes) -> int | None:
    """The rank of the process at the other end; None for one without the token, whose connection is closed."""
    given, rank = receive_frame(connection)
    if not hmac.compare_digest(given, token):
        connection.close()
        return None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return int(rank)


def _own_address(store: Store) -> str:
    """Where the other processes reach this one: by the interface that leads to the store, or this machine's own."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    connection = getattr(store, "_connection", None)
    return connection.getsockname()[0] if connection is not None else "127.0.0.1"
