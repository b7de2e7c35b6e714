"""A function of fixed shapes that XLA takes over from NumPy once that pays, kept on disk between processes."""
from __future__ import annotations

from collections.abc import Callable

import jax

from . import disk_cache, host

COMPILING, LOADING = 0.25, 0.01  # seconds lost in NumPy after which it is compiled (a part of what that costs), or looked for on disk


class KeptKernel:
    """`function` of arrays like `structs`; `call` is None until it is there.

    Its results have to be those of the NumPy form to the bit, as the time at which it takes over is no part of a program's meaning.
    `quicker` is a function for the same that depends on how it is compiled, and what tells of its `call` whether it serves.
    """

    def __init__(self, name: str, function: Callable, structs: list, options: dict, compiling: float = COMPILING,
                 quicker: tuple[Callable, Callable[[Callable], bool]] | None = None):
        self.name, self.function, self.structs, self.options, self.compiling, self.quicker = name, function, structs, options, compiling, quicker
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
            self.call = self._callable(disk_cache.kept(self.name, self._form))
        if self.call is None and self.seconds >= self.compiling:
            compiled = self._made()
            if disk_cache.enabled():
                disk_cache.keep(self.name, self._form, compiled)
            self.call = self._callable(compiled)

    def _made(self):
        if self.quicker is not None:
            function, serves = self.quicker
            compiled = self._compiled(function)
            if serves(self._callable(compiled)):
                return compiled
        return self._compiled(self.function)

    def _compiled(self, function: Callable):
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            return jax.jit(function).lower(*self.structs).compile(compiler_options=self.options)

    @staticmethod
    def _callable(compiled) -> Callable | None:
        def call(*arrays):
            with jax.enable_x64(True):
                return compiled(*arrays)
        return call if compiled is not None else None
