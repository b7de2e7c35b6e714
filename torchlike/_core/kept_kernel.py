"""A function of fixed shapes that XLA takes over from NumPy once that pays, kept on disk between processes."""
from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
from collections.abc import Callable

import jax

from . import disk_cache, host

COMPILING, LOADING = 0.25, 0.01  # seconds lost in NumPy after which it is compiled (a part of what that costs), or looked for on disk


class KeptKernel:
    """`function` of arrays like `structs`; `call` is None until it is there.

    Its results have to be those of the NumPy form to the bit, as the time at which it takes over is no part of a program's meaning.
    """

    def __init__(self, name: str, function: Callable, structs: list, options: dict):
        self.name, self.function, self.structs, self.options = name, function, structs, options
        self.call: Callable | None = None
        self.seconds, self.looked = 0.0, False

    def spent(self, seconds: float) -> None:
        """NumPy will need so long now."""
        self.seconds += seconds
        if self.seconds < LOADING or host.options.numpy_only:  # workers compile nothing
            return
        if not self.looked:
            self.looked = True
            self._ready(self._found())
        if self.call is None and self.seconds >= COMPILING:
            with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
                compiled = jax.jit(self.function).lower(*self.structs).compile(compiler_options=self.options)
            self._keep(compiled)
            self._ready(compiled)

    def _ready(self, compiled) -> None:
        if compiled is None:
            return

        def call(*arrays):
            with jax.enable_x64(True):
                return compiled(*arrays)
        self.call = call

    def _entry(self) -> str:
        stamp = hashlib.sha256(f"{self.structs}{self.options}{disk_cache._versions()}".encode()).hexdigest()[:40]
        return f"kernel-{self.name}-{stamp}"

    def _found(self):
        if not disk_cache.enabled():
            return None
        from jax.experimental import serialize_executable
        path = os.path.join(disk_cache.folder(), self._entry())
        try:
            with open(path, "rb") as f:
                payload = pickle.load(f)
            os.utime(path)
            with jax.enable_x64(True):
                return serialize_executable.deserialize_and_load(*payload)
        except Exception:  # not there, cut short, or of another build: it is compiled again
            return None

    def _keep(self, compiled) -> None:
        if not disk_cache.enabled():
            return
        from jax.experimental import serialize_executable
        with contextlib.suppress(Exception):  # a full disk: the cache is an optimisation only
            disk_cache._write(self._entry(), pickle.dumps(serialize_executable.serialize(compiled)))
