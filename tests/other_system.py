"""A program that prints what it computes, on this system, or on one that poses as another: `python other_system.py linux|darwin|win32`.

Posing takes away what Linux has and the other has not, before torchlike is imported.
"""
# Python's own libraries, and JAX, have their ways on each system, which they choose when they are imported
import asyncio  # noqa: F401
import builtins
import ctypes
import multiprocessing
import multiprocessing.connection
import multiprocessing.popen_spawn_posix
import multiprocessing.resource_tracker
import multiprocessing.shared_memory
import os
import signal
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import types

import jax  # noqa: F401

LINUX_ONLY = {os: ("sched_getaffinity", "sched_setaffinity", "memfd_create", "posix_fallocate", "eventfd")}
POSIX_ONLY = {os: ("register_at_fork", "fork", "sched_yield", "uname", "sysconf", "getuid", "geteuid", "getpgid", "killpg", "mkfifo", "statvfs", "getloadavg", "openpty"),
              signal: ("SIGALRM", "SIGKILL", "SIGCHLD", "SIGHUP", "SIGUSR1", "setitimer")}
POSIX_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "pty")


class Library(ctypes.CDLL):
    """The C library of another system: without glibc's functions, and under no name of Linux's."""

    def __init__(self, name=None, *args, **kwargs):
        if name is not None and ".so" in str(name):
            raise OSError(f"no library {name}")
        super().__init__(name, *args, **kwargs)

    def __getattr__(self, name):
        if name in ("mallopt", "malloc_trim", "prctl"):
            raise AttributeError(name)
        return super().__getattr__(name)


def pose_as(system: str) -> None:
    if system == "linux":
        return
    missing = LINUX_ONLY if system == "darwin" else {os: LINUX_ONLY[os] + POSIX_ONLY[os], signal: POSIX_ONLY[signal]}
    for module, names in missing.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    if system == "win32":
        import fcntl
        sys.modules["msvcrt"] = types.SimpleNamespace(LK_LOCK=1, locking=lambda file, mode, count: fcntl.flock(file, fcntl.LOCK_EX))
        for name in POSIX_MODULES:
            sys.modules[name] = None
    opened = builtins.open

    def open_elsewhere(file, *args, **kwargs):
        if str(file).startswith("/proc"):
            raise FileNotFoundError(file)
        return opened(file, *args, **kwargs)
    builtins.open, ctypes.CDLL, sys.platform = open_elsewhere, Library, system


pose_as(sys.argv[1])  # in spawned processes, too

import torchlike as torch  # noqa: E402
from torchlike import nn  # noqa: E402
from torchlike.nn import functional as F  # noqa: E402


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((3,), float(i)) ** 2, i


def main() -> None:
    torch.manual_seed(0)
    convolutional = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 64, 3, padding=1), nn.Dropout(), nn.Flatten(),
                                  nn.Linear(64 * 49, 10))
    optimizer = torch.optim.AdamW(convolutional.parameters(), lr=1e-3)
    x, y = torch.randn(16, 1, 16, 16), torch.randint(0, 10, (16,))

    def step():
        loss = F.cross_entropy(convolutional(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss
    print([round(step().item(), 4) for _ in range(6)])
    compiled = torch.compile(step)
    print([round(compiled().item(), 4) for _ in range(4)])
    for positions in (64, 400, 1100):
        q = torch.randn(1, 2, positions, 16, requires_grad=True)
        F.scaled_dot_product_attention(q, q, q, is_causal=True).square().sum().backward()
        print(positions, round(q.grad.norm().item(), 3))
    half = nn.Conv2d(3, 64, 3).to(torch.bfloat16)
    print(half(torch.randn(2, 3, 9, 9, dtype=torch.bfloat16)).float().std())
    lstm = nn.LSTM(8, 16, batch_first=True)
    print(lstm(torch.randn(4, 30, 8))[0].sum())
    print(torch.linalg.svdvals(torch.randn(5, 4)), torch.randperm(8), torch.poisson(torch.ones(4)), torch.fft.rfft(torch.randn(9)).abs().sum())
    for values, numbers in torch.utils.data.DataLoader(Squares(), 5, num_workers=2, persistent_workers=True, multiprocessing_context="spawn"):
        print(values.sum(), numbers)
    shared = torch.zeros(3).share_memory_()
    shared += 1
    print(shared, shared.is_shared())
    torch.save(convolutional.state_dict(), "weights.pt")
    convolutional.load_state_dict(torch.load("weights.pt"))
    print(torch.load("weights.pt", mmap=True)["7.bias"].shape, torch.get_num_threads() > 0, torch.get_num_interop_threads() > 0, len(str(torch.explain()).splitlines()) > 2)
    torch.set_flush_denormal(False)
    torch.distributed.init_process_group("gloo", init_method=f"file://{os.path.abspath('store')}", rank=0, world_size=1)
    whole = torch.ones(2)
    torch.distributed.all_reduce(whole)
    print(whole)
    torch.distributed.destroy_process_group()
    if sys.argv[1] != "win32":
        process = multiprocessing.get_context("spawn").Process(target=add_one, args=(shared,))
        process.start()
        process.join()
        print(shared, process.exitcode)


def add_one(tensor) -> None:
    tensor += 1


if __name__ == "__main__":
    main()
