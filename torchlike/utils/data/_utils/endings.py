"""What PyTorch says of a worker process that ended before its time."""
from __future__ import annotations

import signal

__all__ = ["reason"]


def reason(pid: int, code: int) -> str:
    """By its exit code: what it gave itself, or, below zero, the signal that ended it."""
    if code > 0:
        return (f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. Details are lost "
                "due to multiprocessing. Rerunning with num_workers=0 may give better error trace.")
    text = f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-code)}. "
    if -code == getattr(signal, "SIGBUS", None):
        text += ("It is possible that dataloader's workers are out of shared memory. Please try to raise your shared "
                 "memory limit.")
    return text
