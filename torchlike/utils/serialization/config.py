"""Settings of `torch.save` and `torch.load`, each for the thread that sets it.

`load.mmap` and `load.endianness`, `save.compute_crc32` and `save.storage_alignment` (bytes) act; the others keep what they are given.
"""
import mmap as _mmap
import sys as _sys

from .._config_module import install_config_module as _install_config_module


class load:
    mmap = calculate_storage_offsets = False
    endianness = None
    mmap_flags = getattr(_mmap, "MAP_PRIVATE", None)


class save:
    compute_crc32, use_pinned_memory_for_d2h, storage_alignment = True, False, 64


_install_config_module(_sys.modules[__name__])
