"""CUDA graphs. XLA makes them of its own programs; what a program records by hand is what torch.compile records."""
from __future__ import annotations

from typing import Any

from ._devices import need
from .streams import Stream


class CUDAGraph:
    """Work of a GPU that is captured once and replayed: only the type is here, as in torch's builds without CUDA."""

    def __init__(self, keep_graph: bool = False) -> None:
        need(RuntimeError, "Tried to instantiate dummy base class CUDAGraph")
        raise RuntimeError("torch.cuda.CUDAGraph is not supported yet by torchlike: torch.compile replays one program")


class graph:  # noqa: N801  (torch's name)
    """`with graph(g):` captures the work of the block into `g`."""

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None,
                 capture_error_mode: str = "global") -> None:
        self.capture_stream = Stream() if stream is None else stream
        self.cuda_graph = cuda_graph
