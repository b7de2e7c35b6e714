"""torch.backends.cpu."""
import functools
import platform

from .._core import processor


@functools.cache
def get_cpu_capability() -> str:
    """The vector instructions there are, in PyTorch's words: AVX512, AVX2 or DEFAULT. Programs choose their ways by it."""
    flags = processor.flags()
    if not flags:
        return "AVX2" if platform.machine() in ("x86_64", "AMD64") else "DEFAULT"  # no list to look at: nearly all have it
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq", "fma"} <= flags:
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= flags else "DEFAULT"
