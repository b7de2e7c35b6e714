"""Writing a file so that whoever looks, at any moment, finds the old content or the new one, whole."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def atomic_write(path: str) -> Iterator[IO[bytes]]:
    """A stream into a temporary file beside ``path`` that takes its place when the block ends without an exception.

    Links are followed, the mode of an existing file is kept, and devices and pipes are written directly.
    """
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as stream:
            yield stream
        return
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".torchlike-{secrets.token_hex(8)}.tmp")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Make the new name durable, where the system lets folders be synchronised (Windows does not)."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
