"""Random numbers in functions that JAX writes down (jax.jit, jax.lax.scan): drawn from torch's generator at each run, in the program's order."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .._core import program
from .._core.traces import is_staging
from .._core.value import of_array
from .._tensor import Tensor
from .from_data import place
from .host_calls import at_each_run


def staged(draw: Callable[..., np.ndarray], device, shape: tuple, kind: np.dtype, *arrays) -> Tensor:
    """The numbers that `draw(*arrays)` makes at each run."""
    made, = at_each_run(lambda *xs: [draw(*xs)], [jax.ShapeDtypeStruct(shape, kind)], *arrays)
    return Tensor._of(of_array(made, device))


without_data: list[Callable] = []  # asked first, of (parameters, device, shape, kind): what makes tensors that have no data


def undrawn(parameters: Sequence[Tensor], device: Any, shape: tuple, kind: np.dtype) -> Tensor | None:
    """What stands for random numbers where nobody will see any, and none are to be drawn."""
    for make in without_data:
        made = make(parameters, device, shape, kind)
        if made is not None:
            return made
    return place(np.broadcast_to(np.zeros((), kind), shape), device) if device.type == "meta" else None


def drawn_from(draw: Callable[..., np.ndarray], parameters: Sequence[Tensor], shape: tuple, kind: np.dtype) -> Tensor:
    """The numbers that `draw` makes of the parameters' values."""
    device = parameters[0].device
    if (without_data or device.type == "meta") and (made := undrawn(parameters, device, shape, kind)) is not None:
        return made
    values = [t._current() for t in parameters]
    if is_staging() or any(program.is_tracer(v.array) for v in values):
        return staged(draw, device, shape, kind, *map(program.concrete, values))
    return place(draw(*[t.detach()._host_array() for t in parameters]), device)
