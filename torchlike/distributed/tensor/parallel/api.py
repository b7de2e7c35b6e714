"""parallelize_module: a plan of styles by the names of submodules."""
from __future__ import annotations

import warnings
from fnmatch import fnmatch

from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh, current_mesh
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(module: Module, device_mesh: DeviceMesh | None = None, parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None, *,
                       src_data_rank: int | None = 0) -> Module:
    """Make a module parallel over a mesh of one dimension, in place: by one style, or by styles of submodules, whose names may hold wildcards."""
    mesh = current_mesh() if device_mesh is None else device_mesh
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module call will do nothing.",
                      stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!")
    for path, style in parallelize_plan.items():
        first, _, rest = path.partition(".")
        found = [m for name, m in module.named_children() if fnmatch(name, first)] if path else [module]
        if not found:
            warnings.warn(f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module {module}, skipping this "
                          "plan entry.", stacklevel=2)
        for m in found:
            parallelize_module(m, mesh, {rest: style} if rest else style, src_data_rank=src_data_rank)
    return module
