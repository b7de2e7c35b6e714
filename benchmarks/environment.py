"""The line under every table: machine, versions, date."""
from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path


def describe() -> str:
    """Processor, cores in use, threads, Python and package versions."""
    model = platform.processor()
    try:
        with open("/proc/cpuinfo") as f:
            model = next(line.partition(":")[2].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):  # no such file outside Linux: the platform's own name serves
        pass
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("jax", "jaxlib", "numpy", "torch"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (f"{datetime.date.today()}; {model}; cores used {cores} of {os.cpu_count()}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}; "
            f"Python {platform.python_version()}, {versions}. A shared virtual machine: read the ratios.")


def report(about: str, lines: list[str], out: str | None) -> None:
    """Print a benchmark's docstring, where it ran, and its table; into a file, too, where one is named."""
    text = "\n".join([about.strip(), "", describe(), "", *lines])
    print(text)
    if out:
        Path(out).write_text(text + "\n")
