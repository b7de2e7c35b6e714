"""A function of fixed shapes that XLA takes over from NumPy once that pays, kept on disk between processes."""
from __future__ import annotations

from collections.abc import Callable

import jax

from . import device, disk_cache, host
from .traces import beside, is_called_back

COMPILING, LOADING = 0.25, 0.01  # seconds lost in NumPy after which it is compiled (a part of what that costs), or looked for on disk


class KeptKernel:
    """`function` of arrays like `structs`; `call` is None until it is there, and where XLA cannot run: in forked processes, and in what a program calls back.

    Its results have to be those of the NumPy form to the bit, as the time at which it takes over is no part of a program's meaning.
    `exact` tells whether they are, of what was compiled, where that depends on the compiler; else NumPy goes on.
    """

    def __init__(self, name: str, function: Callable, structs: list, options: dict, compiling: float = COMPILING,
                 exact: Callable[[Callable], bool] | None = None):
        self.name, self.function, self.structs, self.options, self.compiling, self.exact = name, function, structs, options, compiling, exact
        self._form = f"{structs}{options}"
        self._call: Callable | None = None
        self.seconds, self.looked, self.refused = 0.0, False, False

    @property
    def call(self) -> Callable | None:
        return None if host.options.numpy_only or is_called_back() else self._call

    def spent(self, seconds: float) -> None:
        """NumPy will need so long now."""
        self.seconds += seconds
        if self.seconds < LOADING or self.refused or host.options.numpy_only or is_called_back():  # workers compile nothing
            return
        if not self.looked:
            self.looked = True
            self._take(disk_cache.kept(self.name, self._form))
        if self._call is None and self.seconds >= self.compiling:
            with beside(), jax.default_device(device.jax_device(device.CPU)):
                compiled = jax.jit(self.function).lower(*self.structs).compile(compiler_options=self.options)
            self._take(compiled)
            self.refused = self.exact is not None and not self.exact(self._call)
            if self.refused:
                self._call = None
            elif disk_cache.enabled():
                disk_cache.keep(self.name, self._form, compiled)

    def _take(self, compiled) -> None:
        if compiled is None:
            return

        def call(*arrays):
            with beside():
                return compiled(*arrays)
        self._call = call
