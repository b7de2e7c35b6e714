"""Protocol-buffer fields and TFRecord frames, as bytes.

Encoding: https://protobuf.dev/programming-guides/encoding/. A record is its length, the length's checksum, the data,
and the data's checksum; checksums are CRC-32C (Castagnoli), rotated and offset.
"""
from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["bytes_field", "double_field", "doubles_field", "float_field", "int_field", "ints_field", "record"]


def _varint(n: int) -> bytes:
    n &= 0xFFFFFFFFFFFFFFFF  # negative numbers are written as their 64-bit complement
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def int_field(number: int, value: int) -> bytes:
    """An integer, bool or enum field; zero is left out, as the default."""
    return _varint(number << 3) + _varint(value) if value else b""


def double_field(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def float_field(number: int, value: float) -> bytes:
    return _varint(number << 3 | 5) + struct.pack("<f", value)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """A bytes, string or message field; it is written when empty, too."""
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def doubles_field(number: int, values: Iterable[float]) -> bytes:
    """A packed repeated double field."""
    values = list(values)
    return bytes_field(number, struct.pack(f"<{len(values)}d", *values))


def ints_field(number: int, values: Iterable[int]) -> bytes:
    """A packed repeated integer field."""
    return bytes_field(number, b"".join(map(_varint, values)))


def _table() -> list[int]:
    polynomial = 0x82F63B78
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (polynomial if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C of data."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """One framed record."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)
