"""Threads that run what they are given. They never keep a process alive, as those of concurrent.futures do."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Pool:
    """At most `size` threads, started when there is work for them."""

    def __init__(self, size: int, name: str) -> None:
        self.size, self.name = size, name
        self.work: deque[Callable[[], None]] = deque()
        self.changed = threading.Condition()  # whose lock a thread may take twice: a garbage collection may give work at any moment
        self.threads = self.idle = 0
        self.closed = False

    def run(self, work: Callable[[], None]) -> None:
        """Run `work()`, which raises nothing, in some thread, soon."""
        with self.changed:
            self.work.append(work)
            if self.idle >= len(self.work):
                self.changed.notify()
            elif self.threads < self.size:
                self.threads += 1
                threading.Thread(target=self._serve, daemon=True, name=self.name).start()

    def _serve(self) -> None:
        while True:
            with self.changed:
                while not self.work:
                    if self.closed:
                        return
                    self.idle += 1
                    self.changed.wait()
                    self.idle -= 1
                work = self.work.popleft()
            work()
            del work  # what it holds goes now, not with the next one

    def close(self) -> None:
        """The threads end once they are through with what they were given."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
