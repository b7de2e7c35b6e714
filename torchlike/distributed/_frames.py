"""Messages of several pieces of bytes, as they go through sockets and lie in files."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence


def packed(parts: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("!I", len(p)) + p for p in parts)


def pieces(data: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(data):
        n = struct.unpack_from("!I", data, at)[0]
        parts.append(data[at + 4:at + 4 + n])
        at += 4 + n
    return parts


def unpacked(data: bytes) -> dict[bytes, bytes]:
    parts = pieces(data)
    return dict(zip(parts[::2], parts[1::2]))


def send_frame(connection: socket.socket, parts: Sequence[bytes]) -> None:
    """One message: some pieces of bytes."""
    data = packed(parts)
    connection.sendall(struct.pack("!Q", len(data)) + data)


def receive_exactly(connection: socket.socket, n: int) -> bytearray:
    """n bytes; EOFError where the other side closed the connection."""
    data = bytearray(n)
    view, at = memoryview(data), 0
    while at < n:
        got = connection.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return data


def receive_frame(connection: socket.socket) -> list[bytes]:
    return pieces(bytes(receive_exactly(connection, struct.unpack("!Q", receive_exactly(connection, 8))[0])))
