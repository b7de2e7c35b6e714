"""How TorchScript would compile: choices that no result depends on, since recording compiles every function alike."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

_FUSERS = ("fuser0", "fuser1", "fuser2", "fuser3", "none")


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block for which TorchScript's compiler is chosen by name; XLA compiles the block here as elsewhere."""
    if name not in _FUSERS:
        raise Exception(f"unrecognized fuser option (name: {name})")  # noqa: TRY002  (torch's class)
    yield


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block whose TorchScript is optimized or not."""
    yield


class ScriptFunction:
    """The class of compiled functions, of which there are none: `torch.jit.script` hands back the function."""

    __module__ = "torch.jit"

    def __new__(cls) -> ScriptFunction:
        raise TypeError("ScriptFunction: No constructor defined!")
