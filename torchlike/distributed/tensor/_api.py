"""Making DTensors: of whole tensors, of nothing, and of a module's parameters."""
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._functions import torch
from ..._tensor import Size, Tensor, as_tensor_value
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .. import arrays
from .._counting import tell
from ..collectives import read
from ..device_mesh import DeviceMesh, current_mesh
from ._dtensor import DTensor, marked
from ._layout import checked, local_shape
from .placement_types import Partial, Placement, Shard, pieces


def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
                      *, src_data_rank: int | None = 0) -> DTensor:
    """A leaf tensor, spread over the mesh: as rank `src_data_rank` of each of its dimensions has it, or (None) as each rank has it."""
    mesh = current_mesh() if device_mesh is None else device_mesh
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    found = checked(tensor.dim(), mesh, placements)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}.")
        if tensor.placements != found:
            raise ValueError(f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {found}. do you want to call "
                             "`redistribute` instead?")
        return tensor
    local = tensor.detach()
    if mesh.get_coordinate() is None:
        return marked(local.new_empty(0), mesh, found, tensor.shape).requires_grad_(tensor.requires_grad)
    for i, p in enumerate(found):
        local = _share(local, p, mesh, i, src_data_rank)
    if local._storage is not None and not all(p.is_replicate() for p in found):
        local = local.clone()  # a piece is a copy, the whole on one rank is the tensor itself
    return marked(local, mesh, found, tensor.shape).requires_grad_(tensor.requires_grad)


def _share(local: Tensor, p: Placement, mesh: DeviceMesh, i: int, source: int | None) -> Tensor:
    """What a rank has of `local` along one dimension of the mesh."""
    group, meta = mesh.get_group(i), local.is_meta
    if isinstance(p, Shard):
        sizes = pieces(local.shape[p.dim], group.size())
        parts = local.split(sizes, p.dim)
        if source is None or group.size() == 1 or meta:
            return parts[group.rank()].clone()
        tell("c10d.scatter_")
        held = [read(part) for part in parts]
        return as_tensor_value(arrays.scatter(held, held[group.rank()], source, group.rank(), group.exchange("scatter")), local.device)
    if source is not None and group.size() > 1 and not meta:
        tell("c10d.broadcast_")
        local = as_tensor_value(arrays.broadcast(read(local), source, group.rank(), group.size(), group.exchange("broadcast")), local.device)
    if isinstance(p, Partial):
        local = local / group.size() if p.reduce_op == "sum" else local.clone()
    return local


def distribute_module(module: Module, device_mesh: DeviceMesh | None = None, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
                      input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
                      output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None) -> Module:
    """Make parameters and buffers DTensors: `partition_fn(name, submodule, mesh)` those it replaces, all others replicated. `input_fn` and
    `output_fn` change what goes into the module and comes out of it."""
    mesh = current_mesh() if device_mesh is None else device_mesh
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError("distribute_module should only be called once on a module, but it has already been called on this module!")
    for name, m in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, m, mesh)
        _replicate(m, mesh)
    if input_fn is not None:
        if len(inspect.signature(input_fn).parameters) == 2:
            warnings.warn("Deprecating input_fn that takes two arguments (inputs, device_mesh), please use input_fn that takes in (module, inputs, "
                          "device_mesh) instead!", FutureWarning, stacklevel=2)
            module.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, mesh))
        else:
            module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        if len(inspect.signature(output_fn).parameters) == 2:
            warnings.warn("Deprecating output_fn that takes two arguments (inputs, device_mesh), please use output_fn that takes in (module, inputs, "
                          "device_mesh) instead!", FutureWarning, stacklevel=2)
            module.register_forward_hook(lambda m, inputs, outputs: output_fn(outputs, mesh))
        else:
            module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    module._distribute_module_applied = True
    return module


def _replicate(module: Module, mesh: DeviceMesh) -> None:
    for name, p in module._parameters.items():
        if p is not None and not isinstance(p, DTensor):
            module.register_parameter(name, Parameter(distribute_tensor(p.data, mesh)))
    for name, b in module._buffers.items():
        if b is not None and not isinstance(b, DTensor):
            module._buffers[name] = distribute_tensor(b, mesh)


def _maker(name: str, meaning: str, valued: bool = False) -> Callable:
    def made(*size: Any, **settings: Any) -> DTensor:
        lies = {key: settings.pop(key, None) for key in ("device_mesh", "placements")}
        requires_grad, value = settings.pop("requires_grad", False), ()
        if valued:
            value = (settings.pop("fill_value"),) if "fill_value" in settings else size[1:]
            size = (settings.pop("size"),) if "size" in settings else size[:1]
        mesh = current_mesh() if lies["device_mesh"] is None else lies["device_mesh"]
        shape = Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
        found = checked(len(shape), mesh, lies["placements"])
        local = torch[name](local_shape(shape, mesh, found), *value, device=mesh.device_type, **settings)
        return marked(local, mesh, found, shape).requires_grad_(requires_grad)
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"A DTensor {meaning}; takes `device_mesh` and `placements` beside dtype, layout and requires_grad."
    return made


zeros, ones, empty, full, rand, randn = (
    _maker("zeros", "of zeros"), _maker("ones", "of ones"), _maker("empty", "that holds anything"), _maker("full", "of one value (after the size)", True),
    _maker("rand", "uniform in [0, 1), drawn on each rank"), _maker("randn", "drawn from a normal distribution on each rank"))
