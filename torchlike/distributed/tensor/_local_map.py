"""local_map: functions of each rank's pieces, applied to DTensors."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten
from ..device_mesh import DeviceMesh
from ._dtensor import DTensor
from .placement_types import Placement

_Places = Sequence[Placement] | None


def local_map(func: Callable | None = None, out_placements: _Places | tuple[_Places, ...] = None, in_placements: tuple[_Places, ...] | None = None,
              in_grad_placements: tuple[_Places, ...] | None = None, device_mesh: DeviceMesh | None = None, *, redistribute_inputs: bool = False) -> Callable:
    """`func` on this rank's pieces of DTensors; what it returns becomes DTensors that lie as `out_placements` says, one list for each result in a tuple.

    `in_placements` has one list for each argument (None for what is no tensor): ValueError where a DTensor lies otherwise, unless
    `redistribute_inputs` moves it. `in_grad_placements` says how the pieces' gradients lie. AssertionError where an entry is missing or too many.
    Without DTensors among its arguments, `func` is called as it is. Without `func`, a decorator.
    """
    if func is None:
        return functools.partial(local_map, out_placements=out_placements, in_placements=in_placements, in_grad_placements=in_grad_placements,
                                 device_mesh=device_mesh, redistribute_inputs=redistribute_inputs)

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat, tree = tree_flatten(args)
        if in_placements is not None and len(in_placements) != len(flat):
            raise AssertionError(f"in_placements length {len(in_placements)} does not match the number of input args {len(flat)}!")
        mesh = next((x.device_mesh for x in flat if isinstance(x, DTensor)), None)
        local = []
        for i, x in enumerate(flat):
            if isinstance(x, DTensor):
                x = _lying(x, in_placements and (in_placements[i],), redistribute_inputs)
                x = x.to_local(grad_placements=None if in_grad_placements is None else _needed(x, in_grad_placements[i], "in grad placements"))
            elif in_placements is not None and not isinstance(x, Tensor) and in_placements[i] is not None:
                raise AssertionError(f"Non-Tensor input {x} expects None placements but received {in_placements[i]}!")
            local.append(x)
        out = func(*tree_unflatten(local, tree), **kwargs)
        return out if mesh is None else _spread(out, mesh if device_mesh is None else device_mesh, out_placements)
    return mapped


def _needed(x: DTensor, places: _Places, what: str) -> tuple[Placement, ...]:
    if places is None:
        raise AssertionError(f"DTensor input {x} expects {what} but received {places}!")
    return tuple(places)


def _lying(x: DTensor, wanted: tuple[_Places] | None, move: bool) -> DTensor:
    """x, which lies as is wanted."""
    if wanted is None:
        return x
    places = _needed(x, wanted[0], "placements")
    if x.placements == places:
        return x
    if not move:
        raise ValueError(f"arg {x} in local_map has a mismatched placements: arg placements is {x.placements} but the input placements is {places}! "
                         "If redistribute_inputs is wanted, set redistribute_inputs=True to local_map.")
    return x.redistribute(placements=places)


def _spread(out: Any, mesh: DeviceMesh, places: _Places | tuple[_Places, ...]) -> Any:
    flat, tree = tree_flatten(out)
    each = places if isinstance(places, tuple) else (places,)
    if len(flat) != len(each):
        raise AssertionError(f"local_map requires one PlacementType be provided for each output value, received {len(each)} out_placements but "
                             f"{len(flat)} is expected!")
    made = []
    for x, lies in zip(flat, each, strict=True):
        if isinstance(x, DTensor):
            raise AssertionError(f"torch.Tensor output expected but received {type(x)}: {x}")
        if not isinstance(x, Tensor) and lies is not None:
            raise AssertionError(f"Non-tensor output {x} expects None placements but received {lies}!")
        made.append(DTensor.from_local(x, mesh, lies, run_check=False) if isinstance(x, Tensor) else x)
    return tree_unflatten(made, tree)
