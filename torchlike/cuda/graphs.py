"""CUDA graphs: a region's work recorded once, replayed on the same tensors. XLA makes the GPU's own graphs of it where it can."""
from __future__ import annotations

import gc
import itertools
from typing import Any

from .._captured import Captured
from ..nn.modules.module import Module
from ._devices import need
from .streams import Stream, synchronize

_pools = itertools.count(1)


class CUDAGraph:
    """Work of a GPU that is captured once and replayed on the same tensors."""

    def __init__(self, keep_graph: bool = False) -> None:
        need(RuntimeError, "Tried to instantiate dummy base class CUDAGraph")
        self._captured = Captured()
        self._pool: tuple[int, int] | None = None

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global") -> None:
        """From here on work is recorded and not done. XLA shares memory between programs itself, whatever the pool."""
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}")
        self._pool = pool or graph_pool_handle()
        self._captured.begin()

    def capture_end(self) -> None:
        """The end of what is captured."""
        self._captured.end()

    def replay(self) -> None:
        """Do the captured work on what its tensors hold now."""
        self._captured.replay()

    def reset(self) -> None:
        """Forget the captured work."""
        self._captured.reset()

    def pool(self) -> tuple[int, int]:
        """The pool that `capture_begin` got or made, for other graphs to share."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool


class graph:  # noqa: N801  (torch's name)
    """`with graph(g):` captures the work of the block into `g`."""

    def __init__(self, cuda_graph: CUDAGraph, pool: tuple[int, int] | None = None, stream: Stream | None = None,
                 capture_error_mode: str = "global") -> None:
        self.capture_stream = Stream() if stream is None else stream
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)

    def __exit__(self, *exc: Any) -> None:
        self.cuda_graph.capture_end()


def make_graphed_callables(callables: Any, sample_args: tuple, num_warmup_iters: int = 3, allow_unused_input: bool = False,
                           pool: tuple[int, int] | None = None) -> Any:
    """A function, or a module with another `forward` (several in a tuple), whose forward and backward are recorded once and replayed: as `compile` does,
    which needs no samples, and takes calls of other shapes as well."""
    need()
    from .._compile import compile
    if isinstance(callables, tuple):
        return tuple(make_graphed_callables(c, args) for c, args in zip(callables, sample_args, strict=True))
    if not isinstance(callables, Module):
        return compile(callables)
    callables.forward = compile(callables.forward)
    return callables


def graph_pool_handle() -> tuple[int, int]:
    """A name for memory that graphs share."""
    need(RuntimeError, "Tried to instantiate dummy base class _graph_pool_handle")
    return (0, next(_pools))


def is_current_stream_capturing() -> bool:
    """Whether work is captured now."""
    need(RuntimeError, "Tried to instantiate dummy base class _cuda_isCurrentStreamCapturing")
    return Captured.running()
