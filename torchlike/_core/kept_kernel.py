"""A function of fixed shapes that XLA takes over from NumPy once that pays, kept on disk between processes."""
from __future__ import annotations

from collections.abc import Callable

import jax

from . import disk_cache, host

COMPILING, LOADING = 0.25, 0.01  # seconds lost in NumPy after which it is compiled (a part of what that costs), or looked for on disk


class KeptKernel:
    """`function` of arrays like `structs`; `call` is None until it is there.

    Its results have to be those of the NumPy form to the bit, as the time at which it takes over is no part of a program's meaning.
    """

    def __init__(self, name: str, function: Callable, structs: list, options: dict, compiling: float = COMPILING):
        self.name, self.function, self.structs, self.options, self.compiling = name, function, structs, options, compiling
        self._form = f"{structs}{options}"
        self.call: Callable | None = None
        self.seconds, self.looked = 0.0, False

    def spent(self, seconds: float) -> None:
        """NumPy will need so long now."""
        self.seconds += seconds
        if self.seconds < LOADING or host.options.numpy_only:  # workers compile nothing
            return
        if not self.looked:
            self.looked = True
            self._ready(disk_cache.kept(self.name, self._form))
        if self.call is None and self.seconds >= self.compiling:
            with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
                compiled = jax.jit(self.function).lower(*self.structs).compile(compiler_options=self.options)
            if disk_cache.enabled():
                disk_cache.keep(self.name, self._form, compiled)
            self._ready(compiled)

    def _ready(self, compiled) -> None:
        if compiled is None:
            return

        def call(*arrays):
            with jax.enable_x64(True):
                return compiled(*arrays)
        self.call = call
