"""The mean of parameters over processes."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from ....nn.parameter import Parameter
from ...collectives import all_reduce
from ...process_group import GroupMember, ProcessGroup, default_group

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Parameter], process_group: ProcessGroup | None) -> None:
    """Parameters become their means over the group, sent in one message; nothing happens in a process outside of it."""
    if process_group is GroupMember.NON_GROUP_MEMBER:
        return
    group, params = default_group(process_group), list(params)
    together = _flatten_dense_tensors([p.data for p in params]) / group.size()
    all_reduce(together, group=group)
    for p, part in zip(params, _unflatten_dense_tensors(together, params), strict=True):
        p.data = part.type_as(p)


def get_params_to_average(params: Iterable[Any]) -> list[Parameter]:
    """Those that have a gradient, of parameters or of an optimizer's groups."""
    found = []
    for entry in params:
        if not isinstance(entry, (Parameter, dict)):
            raise NotImplementedError(f"Parameter input of type {type(entry)} is not supported")
        found += [p for p in (entry["params"] if isinstance(entry, dict) else [entry]) if p.grad is not None]
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Parameters that have a gradient become their means."""
    average_parameters(get_params_to_average(params), process_group)
