"""torch.utils.cpp_extension: what it tells of the machine, and `load`. There are no headers of PyTorch's here, so what includes them does not
compile: a program that falls back to PyTorch code where building fails runs on that. Modules in plain C++ are built and imported."""
from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

from .._alias import missing
from .file_baton import FileBaton

IS_WINDOWS, IS_MACOS, IS_LINUX = (sys.platform.startswith(name) for name in ("win32", "darwin", "linux"))


CUDA_HOME = CUDNN_HOME = ROCM_HOME = HIP_HOME = None  # as where PyTorch was built without them
IS_HIP_EXTENSION = False


def __getattr__(name: str) -> Any:
    if name in ("BuildExtension", "CppExtension", "CUDAExtension"):
        from . import _build_extension
        return getattr(_build_extension, name)
    raise missing(name, __name__)


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


def load(name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None,
         build_directory=None, verbose=False, with_cuda=None, with_sycl=None, is_python_module=True, is_standalone=False, keep_intermediates=True):
    """Build C++ sources (a file or a list of them) by ninja, and import the module that they define as `TORCH_EXTENSION_NAME`. Files that did not change are
    not compiled again. Returns the module; with `is_python_module=False` the path of the library, loaded; with `is_standalone=True` the program's path.

    Raises RuntimeError where ninja is missing or the sources do not compile (those that include PyTorch's headers), OSError for CUDA and SYCL sources."""
    sources = [os.path.abspath(source) for source in ([sources] if isinstance(sources, str) else sources)]
    flags = [list(map(os.fspath, given or ())) for given in (extra_cflags, extra_ldflags, extra_include_paths)]
    version = _version(name, sources, (flags, is_standalone))
    for kind, wanted, endings in (("CUDA", with_cuda, (".cu", ".cuh")), ("SYCL", with_sycl, (".sycl",))):
        if wanted or (wanted is None and any(source.endswith(endings) for source in sources)):
            raise OSError(f"{kind} sources cannot be built here: no {kind} compiler is used")
    verify_ninja_availability()
    folder = build_directory or os.path.join(_extensions_root(), name)
    os.makedirs(folder, exist_ok=True)
    versioned = f"{name}_v{version}" if version else name
    target = os.path.join(folder, versioned + ("" if is_standalone else ".so"))
    baton = FileBaton(os.path.join(folder, "lock"))
    while not baton.try_acquire():
        baton.wait()
    try:
        _build(name, versioned, sources, *flags, folder, target, is_standalone, verbose)
        if not keep_intermediates:
            for part in os.listdir(folder):
                if part.endswith((".o", ".o.d")):
                    os.remove(os.path.join(folder, part))
    finally:
        baton.release()
    if is_standalone:
        return target
    if not is_python_module:
        ctypes.CDLL(target, ctypes.RTLD_GLOBAL)
        return target
    if versioned not in _modules or _modules[versioned].__file__ != target:
        spec = importlib.util.spec_from_file_location(versioned, target)
        _modules[versioned] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_modules[versioned])
    return _modules[versioned]


_modules: dict = {}  # a process cannot load a module again, so what changed gets another name
_versions: dict[str, tuple[int, str]] = {}  # an extension's version, and what it was built of


def _version(name: str, sources: list[str], settings) -> int:
    seen = hashlib.sha256(repr((sources, settings)).encode())
    for source in sources:
        with open(source, "rb") as file:
            seen.update(file.read())
    version, built_of = _versions.get(name, (-1, None))
    if built_of != seen.hexdigest():
        version += 1
        _versions[name] = version, seen.hexdigest()
    return version


def _extensions_root() -> str:
    root = os.environ.get("TORCH_EXTENSIONS_DIR")
    return root or os.path.join(get_default_build_root(), f"py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}_torchlike")


def _build(name, versioned, sources, cflags, ldflags, include_paths, folder, target, is_standalone, verbose) -> None:
    def escaped(path):  # ninja's own signs
        return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")

    defines = [f"-DTORCH_EXTENSION_NAME={versioned}", *(f"-I{os.path.abspath(path)}" for path in include_paths), f"-isystem {sysconfig.get_path('include')}"]
    flags = " ".join([*defines, "-fPIC", "-std=c++20", *cflags])
    links = " ".join([*([] if is_standalone else ["-shared", *(["-undefined", "dynamic_lookup"] if IS_MACOS else [])]), *ldflags])
    stems = [os.path.splitext(os.path.basename(source))[0] for source in sources]
    objects = [f"{stem if stems.count(stem) == 1 else f'{stem}_{k}'}.o" for k, stem in enumerate(stems)]
    lines = [f"cxx = {get_cxx_compiler()}", "rule compile", "  command = $cxx -MMD -MF $out.d " + flags.replace("$", "$$") + " -c $in -o $out",
             "  depfile = $out.d", "  deps = gcc", "rule link", "  command = $cxx $in " + links.replace("$", "$$") + " -o $out",
             *(f"build {made}: compile {escaped(source)}" for made, source in zip(objects, sources)),
             f"build {escaped(os.path.basename(target))}: link {' '.join(objects)}", ""]
    with open(os.path.join(folder, "build.ninja"), "w") as file:
        file.write("\n".join(lines))
    ran = subprocess.run(["ninja", "-v"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if verbose:
        print(ran.stdout)
    if ran.returncode:
        raise RuntimeError(f"Error building extension '{name}': {ran.stdout}")
