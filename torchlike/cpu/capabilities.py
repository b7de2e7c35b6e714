"""What the processor can do, as Linux tells: its instruction sets, caches and cores."""
from __future__ import annotations

import functools
import os
import platform
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .._core import processor

# what Linux calls them where that is another name; those of torch that Linux has by the same name follow
_X86 = {"sse3": "pni", "fma3": "fma", "lzcnt": "abm", "bmi": "bmi1", "sha": "sha_ni", "avx512_f": "avx512f", "avx512_cd": "avx512cd", "avx512_dq": "avx512dq",
        "avx512_bw": "avx512bw", "avx512_vl": "avx512vl", "avx512_ifma": "avx512ifma", "avx512_vbmi": "avx512vbmi", "avx10_1": "avx10",
        **{name: name for name in """sse sse2 ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512_vnni avx512_bf16
                                     avx512_fp16 avx512_vp2intersect avx512_4vnniw avx512_4fmaps avx10_2 avx_vnni_int8 avx_vnni_int16 avx_ne_convert amx_bf16
                                     amx_tile amx_int8 amx_fp16 fma4 f16c bmi2 popcnt aes clflush clflushopt clwb""".split()}}
_ARM = {"neon": "asimd", "fp16_arith": "asimdhp", "bf16": "bf16", "i8mm": "i8mm", "dot": "asimddp", "sve": "sve", "sve2": "sve2", "sve_bf16": "svebf16", "sme": "sme",
        "sme2": "sme2", "atomics": "atomics", "fhm": "asimdfhm", "rdm": "asimdrdm", "crc32": "crc32", "aes": "aes", "sha1": "sha1", "sha2": "sha2", "pmull": "pmull"}


def _lines() -> list[tuple[str, str]]:
    """What /proc/cpuinfo says of all processors; nothing where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    return [(name.strip(), value.strip()) for name, colon, value in (line.partition(":") for line in text.splitlines()) if colon]


def _caches() -> dict[str, int]:
    """The sizes of the first processor's caches for data, in bytes."""
    found = {}
    for path in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((path / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and level in "12" and size.endswith("K"):
            found["l1d_cache_size" if level == "1" else "l2_cache_size"] = int(size[:-1]) * 1024
    return found


_NO_NAME = re.compile(r"\((?:R|TM|C)\)|\b(?:CPU|Processor|\d+-Core)\b", re.IGNORECASE)


def _shortened(model: str) -> str:
    """A processor's name as PyTorch's library has it: without marks and words that all have, and without the frequency where there is a model's number."""
    name, _, frequency = _NO_NAME.sub(" ", model).partition("@")
    return " ".join([*name.split(), *([] if any(map(str.isdigit, name)) else frequency.split())])


@functools.cache
def get_capabilities() -> MappingProxyType[str, Any]:
    """By name whether the processor has an instruction set (`avx512_vnni`); `architecture` and `cpu_name`, the numbers of sockets and cores, and the sizes of
    caches in bytes. Where the system does not tell (it is not Linux), sets are False."""
    lines, architecture = _lines(), platform.machine()
    arm = architecture in ("aarch64", "arm64")
    flags = processor.flags()
    sockets, cores, socket = {"0"}, set(), "0"
    for name, value in lines:
        if name == "physical id":
            socket = value
            sockets.add(value)
        elif name == "core id":
            cores.add((socket, value))
    model = next((value for name, value in lines if name == "model name"), platform.processor())
    logical = os.cpu_count() or 1
    return MappingProxyType({"architecture": architecture, "cpu_name": _shortened(model), "num_sockets": len(sockets), "num_logical_cores": logical,
                             "num_physical_cores": len(cores) or logical, **_caches(), **{name: flag in flags for name, flag in (_ARM if arm else _X86).items()}})


def _asking(*names: str) -> bool:
    return all(get_capabilities().get(name, False) for name in names)


def _is_avx2_supported() -> bool:
    """AVX2 and FMA."""
    return _asking("avx2", "fma3")


def _is_avx512_supported() -> bool:
    """The sets of AVX-512 that kernels take."""
    return _asking("avx512_f", "avx512_vl", "avx512_bw", "avx512_dq")


def _is_avx512_bf16_supported() -> bool:
    """Products of bfloat16."""
    return _asking("avx512_bf16")


def _is_vnni_supported() -> bool:
    """Products of bytes."""
    return _asking("avx512_vnni")


def _is_amx_tile_supported() -> bool:
    """Tiles."""
    return _asking("amx_tile")


def _is_amx_fp16_supported() -> bool:
    """Tiles of float16."""
    return _asking("amx_tile", "amx_fp16")
