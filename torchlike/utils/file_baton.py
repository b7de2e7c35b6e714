"""A lock that processes hand on: a file that exists while somebody holds it."""
from __future__ import annotations

import os
import time
import warnings


class FileBaton:
    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Until the file is gone."""
        start, silent = time.monotonic(), self.warn_after_seconds is None
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if not silent and time.monotonic() - start > self.warn_after_seconds:
                warnings.warn(f"Waiting on lock file {self.lock_file_path} for {self.warn_after_seconds} seconds", stacklevel=2)
                silent = True

    def release(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
        os.remove(self.lock_file_path)
