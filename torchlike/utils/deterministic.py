"""torch.utils.deterministic: whether memory that nobody wrote is filled while deterministic algorithms are asked for."""
import sys as _sys
import types as _types

from .._core import unwritten as _unwritten


class _Switch(_types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` and its kin give NaN, or the largest integer, under `torch.use_deterministic_algorithms`; they give zeros otherwise."""
        return _unwritten.fills

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if type(mode) is not bool:
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _unwritten.fills = mode


_sys.modules[__name__].__class__ = _Switch
