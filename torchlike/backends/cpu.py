"""torch.backends.cpu."""
import functools
import platform
from pathlib import Path


@functools.cache
def get_cpu_capability() -> str:
    """The vector instructions there are, in PyTorch's words: AVX512, AVX2 or DEFAULT. Programs choose their ways by it."""
    try:
        line = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return "AVX2" if platform.machine() in ("x86_64", "AMD64") else "DEFAULT"  # no list to look at: nearly all have it
    flags = set(line.split())
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq", "fma"} <= flags:
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= flags else "DEFAULT"
