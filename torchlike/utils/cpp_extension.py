"""What torch.utils.cpp_extension tells of the machine. Extensions are written against PyTorch's C++ classes, so there is nothing that
builds them: a program that falls back to PyTorch code where building fails runs on that."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys

IS_WINDOWS, IS_MACOS, IS_LINUX = (sys.platform.startswith(name) for name in ("win32", "darwin", "linux"))


CUDA_HOME = CUDNN_HOME = ROCM_HOME = None  # as where PyTorch was built without them


def get_default_build_root() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.realpath(os.path.join(cache, "torch_extensions"))


def is_ninja_available() -> bool:
    return shutil.which("ninja") is not None and subprocess.run(["ninja", "--version"], capture_output=True).returncode == 0


def verify_ninja_availability() -> None:
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def get_cxx_compiler() -> str:
    return os.environ.get("CXX", "cl" if IS_WINDOWS else "c++")
