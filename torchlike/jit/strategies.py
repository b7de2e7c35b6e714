"""How TorchScript would compile: choices that no result depends on, since recording compiles every function alike."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

_choices = {"autocast": True, "profiling_executor": True, "profiling_mode": True, "fuse_on_cpu": False, "fuse_on_gpu": False, "texpr_fuser": True,
            "fusion": [("STATIC", 2), ("DYNAMIC", 10)]}
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


def _swap(name: str, value: Any) -> Any:
    """Keeps a choice and returns the one before."""
    before, _choices[name] = _choices[name], value
    return before


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """How often TorchScript would compile for sizes; returns what was set before."""
    for kind, _ in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
    return _swap("fusion", list(strategy))


def switches() -> dict[str, Callable]:
    """Those of torch._C."""
    made: dict[str, Callable] = {f"_jit_set_{name}": functools.partial(_swap, name) for name in ("profiling_executor", "profiling_mode")}
    made["_jit_set_autocast_mode"] = functools.partial(_swap, "autocast")
    for setter, name in ("override_can_fuse_on_cpu", "fuse_on_cpu"), ("override_can_fuse_on_gpu", "fuse_on_gpu"), ("set_texpr_fuser_enabled", "texpr_fuser"):
        made[f"_jit_{setter}"] = functools.partial(_choices.__setitem__, name)
    for getter, name in ("can_fuse_on_cpu", "fuse_on_cpu"), ("texpr_fuser_enabled", "texpr_fuser"):
        made[f"_jit_{getter}"] = functools.partial(_choices.__getitem__, name)
    return made
