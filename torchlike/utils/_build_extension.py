"""Extensions in a program's setup.py, built by setuptools. Loaded when a program asks for them: setuptools takes long to import."""
from __future__ import annotations

import copy
import os
from typing import Any, NoReturn

import setuptools
from setuptools.command.build_ext import build_ext

from . import cpp_extension


def CppExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> setuptools.Extension:
    """A module in plain C++. What includes PyTorch's headers does not compile: there are none."""
    kwargs["language"] = "c++"
    return setuptools.Extension(name, sources, *args, **kwargs)


def CUDAExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> NoReturn:
    """OSError, as in a PyTorch that finds no CUDA compiler."""
    raise OSError("CUDA_HOME environment variable is not set. Please set it to your CUDA install root.")


class BuildExtension(build_ext):
    """`cmdclass={"build_ext": BuildExtension}`: C++20, with TORCH_EXTENSION_NAME as the module's name. Options of ninja and of names without the Python
    version are taken."""

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """A class whose instances have these options."""
        class cls_with_options(cls):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{**kwargs, **options})
        return cls_with_options

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{name: x for name, x in kwargs.items() if name not in ("use_ninja", "no_python_abi_suffix")})
        self.no_python_abi_suffix = kwargs.get("no_python_abi_suffix", False)
        self.use_ninja = kwargs.get("use_ninja", True) and cpp_extension.is_ninja_available()

    def build_extensions(self) -> None:
        """Build them with these flags added. OSError for CUDA sources."""
        for extension in self.extensions:
            if any(os.path.splitext(source)[1] in (".cu", ".cuh") for source in extension.sources):
                raise OSError("CUDA sources cannot be built here: no CUDA compiler is used")
            given = extension.extra_compile_args = copy.deepcopy(extension.extra_compile_args)
            given = given.setdefault("cxx", []) if isinstance(given, dict) else given
            if not any(flag.startswith("-std=") for flag in given):
                given.append("-std=c++20")
            extension.define_macros.append(("TORCH_EXTENSION_NAME", extension.name.split(".")[-1]))
            if isinstance(extension.extra_compile_args, dict):
                extension.extra_compile_args = extension.extra_compile_args["cxx"]
        super().build_extensions()

    def get_ext_filename(self, ext_name: str) -> str:
        """The module's file."""
        name = super().get_ext_filename(ext_name)
        parts = name.split(".")
        return ".".join((*parts[:-2], parts[-1])) if self.no_python_abi_suffix and len(parts) > 2 else name
