"""Which datasets are data pipes. Their files are loaded when a program first names one: before that, nothing can be one."""
from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

NAMES = {"DataChunk": "datapipe", "IterDataPipe": "datapipe", "MapDataPipe": "datapipe", "functional_datapipe": "_decorator",
         "guaranteed_datapipes_determinism": "_decorator", "non_deterministic": "_decorator"}


def named(name: str) -> Any:
    """A name of torch.utils.data that is a file of the pipes, or in one."""
    if name in ("datapipes", "graph", "graph_settings"):
        return importlib.import_module(f"{__package__}.{name}")
    return getattr(importlib.import_module(f"{__package__}.datapipes.{NAMES[name]}"), name)


def iterated(dataset: Any) -> bool:
    """Whether a dataset is an IterDataPipe."""
    base = sys.modules.get(f"{__package__}.datapipes.datapipe")
    return base is not None and isinstance(dataset, base.IterDataPipe)


def any_kind(dataset: Any) -> bool:
    """Whether a dataset is a data pipe."""
    base = sys.modules.get(f"{__package__}.datapipes.datapipe")
    return base is not None and isinstance(dataset, (base.IterDataPipe, base.MapDataPipe))


def settings() -> ModuleType:
    """The functions that set all pipes a pipe is made of."""
    return importlib.import_module(f"{__package__}.graph_settings")


def seed(dataset: Any, number: int) -> None:
    """Give the pipes of a dataset their seeds, all from one."""
    from torchlike.ops.random import Generator
    settings().apply_random_seed(dataset, Generator().manual_seed(number))
