"""Settings of all pipes that a pipe is made of: parts, order, seeds."""
from __future__ import annotations

import inspect
import warnings
from typing import Any

from torchlike._core.dtype import int64
from torchlike._functions import torch
from torchlike.ops.random import Generator

from .datapipes.iter.sharding import SHARDING_PRIORITIES
from .graph import DataPipe, traverse_dps

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph: dict) -> list[DataPipe]:
    """The pipes of a graph, each once, from the last to the first."""
    found: dict[int, DataPipe] = {}

    def visit(part: dict) -> None:
        for number, (pipe, inner) in part.items():
            if number not in found:
                found[number] = pipe
                visit(inner)
    visit(graph)
    return list(found.values())


def _has(pipe: Any, *methods: str) -> bool:
    return all(inspect.ismethod(getattr(pipe, m, None)) for m in methods)


def apply_sharding(datapipe: DataPipe, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT) -> DataPipe:
    """Tell the sharding filters their part; RuntimeError where two stand one behind the other."""
    def visit(graph: dict, above: Any = None) -> None:
        for pipe, inner in graph.values():
            here = above
            if _has(pipe, "apply_sharding"):
                if above is not None:
                    raise RuntimeError("Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding already applied to "
                                       f"{above} while trying to apply to {pipe}")
                group = {"sharding_group": sharding_group} if len(inspect.signature(pipe.apply_sharding).parameters) > 2 else {}
                pipe.apply_sharding(num_of_instances, instance_id, **group)
                here = pipe
            visit(inner, here)
    visit(traverse_dps(datapipe))
    return datapipe


def apply_shuffle_settings(datapipe: DataPipe, shuffle: bool | None = None) -> DataPipe:
    """Turn the shufflers on or off; add one where there is none to turn on."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in get_all_graph_pipes(traverse_dps(datapipe)) if _has(p, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the default buffer size "
                      "might not be sufficient for your task.", stacklevel=2)
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: DataPipe, rng: Generator) -> DataPipe:
    """Give each pipe that takes one a seed."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has(pipe, "set_seed"):
            pipe.set_seed(torch.empty((), dtype=int64).random_(generator=rng).item())
    return datapipe
