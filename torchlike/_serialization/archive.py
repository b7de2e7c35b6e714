"""torch's container since 1.6: an uncompressed zip whose entries start at multiples of 64 bytes (`storage_alignment`)."""

import hashlib
import io
import struct
import sys
import zipfile
import zlib
from typing import IO

import numpy as np

from .options import get_crc32_options, settings, skips_data

_LOCAL_HEADER = 30  # bytes before the name in a zip local file header
_PAD_ID = b"FB"  # the extra field that torch pads with
_MAX32 = 0xFFFFFFFF  # what a 32-bit field says when the true number stands in a zip64 field
_LARGE = _MAX32  # numbers from here on stand there
_ENCRYPTED = 1
_PIECE = 1 << 30  # bytes asked for at once: Linux reads less than 2 GB in a call
_VERSION, _UTF8, _DATE = 45, 0x800, 0x21  # zip64 readers; names are UTF-8; 1 January 1980


class ArchiveWriter:
    """Writes entries ``name/record`` to a stream that needs nothing but ``write``; :meth:`close` ends the archive."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name, self._position = stream, name, 0
        self._alignment = settings().save.storage_alignment
        self._directory = bytearray()
        self._count = 0
        self._digest = hashlib.blake2b(digest_size=20)

    def write(self, record: str, data: bytes | np.ndarray, checksum: bool = True) -> None:
        name = f"{self._name}/{record}".encode()
        data = memoryview(data).cast("B")
        start, crc = self._position, zlib.crc32(data) if checksum and get_crc32_options() else 0
        large = data.nbytes >= _LARGE
        size = _MAX32 if large else data.nbytes
        wide = struct.pack("<HHQQ", 1, 16, data.nbytes, data.nbytes) if large else b""
        fields = (_VERSION, _UTF8, 0, 0, _DATE, crc, size, size, len(name))
        padding = -(start + _LOCAL_HEADER + len(name) + len(wide) + 4) % self._alignment
        extra = wide + _PAD_ID + struct.pack("<H", padding) + b"Z" * padding
        self._put(struct.pack("<4s5H3L2H", b"PK\3\4", *fields, len(extra)) + name + extra)
        self._put(data)
        numbers = [data.nbytes, data.nbytes] if large else []
        if start >= _LARGE:
            numbers.append(start)
        wide = struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
        offset = _MAX32 if start >= _LARGE else start
        self._directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", _VERSION, *fields, len(wide), 0, 0, 0, 0, offset)
        self._directory += name + wide
        self._count += 1
        self._digest.update(f"{record}:{crc}".encode())

    def _put(self, data: bytes | memoryview) -> None:
        self._stream.write(data)
        self._position += len(data)

    def write_header(self, pickled: bytes, byteorder: bool = True) -> None:
        """The records that come before the storages."""
        self.write("data.pkl", pickled)
        self.write(".format_version", b"1")
        self.write(".storage_alignment", str(self._alignment).encode())
        if byteorder:
            self.write("byteorder", sys.byteorder.encode())

    def close(self, version: int = 3) -> None:
        """The records that every archive ends with, and the directory. TorchScript reads an operator as it was in `version` of the format."""
        self.write("version", f"{version}\n".encode())
        self.write(".data/serialization_id", str(int(self._digest.hexdigest(), 16) % 10**40).zfill(40).encode())
        start, size, count = self._position, len(self._directory), self._count
        self._put(bytes(self._directory))
        if start + size >= _LARGE or count >= 0xFFFF:
            end = self._position
            self._put(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, _VERSION, _VERSION, 0, 0, count, count, size, start))
            self._put(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
            start, size, count = _MAX32, _MAX32, 0xFFFF
        self._put(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, start, 0))


class ArchiveReader:
    """Reads the records of an archive; what is wrong with it is a RuntimeError that names the file."""

    def __init__(self, stream: IO[bytes], file_name: str, mmap_path: str | None = None) -> None:
        self._file_name, self._mmap_path, self._stream = file_name, mmap_path, stream
        try:
            self._zip = zipfile.ZipFile(stream)
            for entry in self._zip.infolist():
                entry.CRC = entry.CRC or None  # zero: written without checksums; zipfile does not compare None
            names = self._zip.namelist()
        except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: failed finding central directory. {file_name} is "
                f"truncated or corrupted: it was not saved or transferred whole ({error})"
            ) from None
        if not names or "/" not in names[0]:
            raise RuntimeError(
                f"{file_name} is a zip file but not a checkpoint: file in archive is not in a subdirectory: {names[:1]}"
            )
        self._prefix = names[0].split("/", 1)[0] + "/"
        self._entries = {name[len(self._prefix) :] for name in names if name.startswith(self._prefix)}

    def __contains__(self, record: str) -> bool:
        return record in self._entries

    def names(self) -> list[str]:
        return [name[len(self._prefix) :] for name in self._zip.namelist() if name.startswith(self._prefix)]

    def read(self, record: str) -> bytes:
        if record not in self._entries:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {record}: file not found in {self._file_name}"
            )
        try:
            return self._zip.read(self._prefix + record)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading file {record} of {self._file_name}: it is corrupted ({error})"
            ) from None

    def offset(self, record: str) -> int:
        """Where a record's bytes begin in the file."""
        if record not in self._entries:
            raise RuntimeError(f"PytorchStreamReader failed locating file {record}: file not found in {self._file_name}")
        return self._start(self._zip.getinfo(self._prefix + record))

    def read_array(self, record: str) -> np.ndarray:
        """The record as uint8; with an ``mmap_path``, pages of the file that are read when they are used."""
        if record not in self._entries:
            return np.frombuffer(self.read(record), dtype=np.uint8)
        entry = self._zip.getinfo(self._prefix + record)
        if skips_data():
            return np.zeros(entry.file_size, np.uint8)
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & _ENCRYPTED:
            return np.frombuffer(self.read(record), dtype=np.uint8)
        if not entry.file_size:
            return np.empty(0, dtype=np.uint8)
        start = self._start(entry)
        try:
            if self._mmap_path is not None:
                # Copy on write: a tensor may be edited, the file stays as it is.
                return np.asarray(np.memmap(self._mmap_path, dtype=np.uint8, mode="c", offset=start, shape=(entry.file_size,)))
            data = read_bytes(self._stream, entry.file_size)
            if entry.CRC is not None and zlib.crc32(data) != entry.CRC:
                raise ValueError(f"Bad CRC-32 for file {entry.filename!r}")
            return data
        except (ValueError, EOFError) as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading file {record} of {self._file_name}: it is corrupted ({error})"
            ) from None

    def _start(self, entry: zipfile.ZipInfo) -> int:
        """Where an entry's bytes begin; the stream is there afterwards."""
        self._stream.seek(entry.header_offset)
        header = self._stream.read(_LOCAL_HEADER)
        if header[:4] != b"PK\3\4":
            raise RuntimeError(f"PytorchStreamReader failed reading file {entry.filename} of {self._file_name}: it is corrupted (no header)")
        start = entry.header_offset + _LOCAL_HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        self._stream.seek(start)
        return start


def read_bytes(stream: IO[bytes], count: int) -> np.ndarray:
    """The next `count` bytes as uint8, read where they stay if the stream has `readinto`; EOFError if there are less.

    What is left is asked for first: a damaged file may name any number, and memory for it is no error of the program's.
    """
    here = stream.tell()
    stream.seek(0, io.SEEK_END)
    left = stream.tell() - here
    stream.seek(here)
    if not 0 <= count <= left:
        raise EOFError(f"there are {left} bytes, not {count}")
    data = np.empty(count, np.uint8)
    room, filled = memoryview(data), 0
    into = getattr(stream, "readinto", None)
    while filled < count:
        part = room[filled : filled + _PIECE]
        if into is not None:
            read = into(part)
        else:
            piece = stream.read(len(part))
            read = len(piece)
            part[:read] = piece
        if not read:
            raise EOFError(f"{count - filled} of {count} bytes are missing")
        filled += read
    return data
