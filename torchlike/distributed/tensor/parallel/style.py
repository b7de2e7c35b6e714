"""How one module is made parallel: which of its parameters are cut, and how its inputs and outputs lie."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...._tensor import Tensor
from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ....nn.modules.sparse import Embedding
from ....nn.parameter import Parameter
from ...device_mesh import DeviceMesh
from .._api import distribute_module, distribute_tensor
from .._dtensor import DTensor
from ..placement_types import Placement, Replicate, Shard

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel"]


class ParallelStyle(ABC):
    """What `parallelize_module` does to a module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Make the module parallel over the mesh."""


def _lying(x: Any, mesh: DeviceMesh, given: tuple[Placement, ...], wanted: tuple[Placement, ...]) -> DTensor:
    """An input that lies as `wanted`; a plain tensor is taken to lie as `given`."""
    if not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, given)
    return x.redistribute(placements=wanted) if given != wanted else x


class _OfWeights(ParallelStyle):
    """Linear and Embedding, their weights cut along one dimension."""

    linear: int
    embedding: int

    def __init__(self, input_layout: Placement, output_layout: Placement, use_local_output: bool) -> None:
        self.input_layouts, self.output_layouts, self.use_local_output = (input_layout,), (output_layout,), use_local_output

    def _wanted(self, module: Module) -> tuple[Placement, ...]:
        return (Replicate(),)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if not isinstance(module, (Linear, Embedding)):
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        dim, wanted = self.linear if isinstance(module, Linear) else self.embedding, self._wanted(module)

        def cut(name: str, m: Module, mesh: DeviceMesh) -> None:
            for key, p in list(m.named_parameters()):
                place = Shard(dim) if dim < p.dim() else Replicate()
                m.register_parameter(key, Parameter(distribute_tensor(p, mesh, [place], src_data_rank=self.src_data_rank), p.requires_grad))

        def after(m: Module, outputs: Any, mesh: DeviceMesh) -> Any:
            outputs = outputs.redistribute(placements=self.output_layouts)
            return outputs.to_local() if self.use_local_output else outputs
        return distribute_module(module, device_mesh, cut, lambda m, inputs, mesh: _lying(inputs[0], mesh, self.input_layouts, wanted), after)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
                f"use_local_output={self.use_local_output})")


class ColwiseParallel(_OfWeights):
    """Each rank computes some of a layer's outputs. Inputs are whole by default, outputs cut along the last dimension."""

    linear, embedding = 0, 1

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True) -> None:
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)


class RowwiseParallel(_OfWeights):
    """Each rank uses some of a layer's inputs (of an embedding: has some rows). Inputs are cut along the last dimension by default, outputs whole."""

    linear, embedding = 1, 0

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True) -> None:
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _wanted(self, module: Module) -> tuple[Placement, ...]:
        return (Shard(-1),) if isinstance(module, Linear) else (Replicate(),)


class SequenceParallel(ParallelStyle):
    """A norm or dropout of which each rank computes a part of the sequence; parameters are replicated."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding, self.use_local_output = (Shard(sequence_dim),), use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def replicate(name: str, m: Module, mesh: DeviceMesh) -> None:
            for key, p in list(m.named_parameters()):
                m.register_parameter(key, Parameter(DTensor.from_local(p.detach(), mesh, [Replicate()])))

        def before(m: Module, inputs: Any, mesh: DeviceMesh) -> DTensor:
            x = inputs[0]
            if not isinstance(x, Tensor):
                raise ValueError(f"expecting input of {m} to be a torch.Tensor or DTensor, but got {x}")
            return x.redistribute(placements=self.sequence_sharding) if isinstance(x, DTensor) else DTensor.from_local(x, mesh, self.sequence_sharding)
        return distribute_module(module, device_mesh, replicate, before, lambda m, outputs, mesh: outputs.to_local() if self.use_local_output else outputs)

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"


def _several(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _prepared(x: Any, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None, local: bool) -> Any:
    if given is None:
        return x
    if not isinstance(x, Tensor):
        raise AssertionError("expecting input to be a torch.Tensor!")
    x = _lying(x, mesh, (given,), (given if wanted is None else wanted,))
    return x.to_local() if local else x


class PrepareModuleInput(ParallelStyle):
    """Makes a module's inputs DTensors of the layouts that it wants; None for what stays as it is."""

    def __init__(self, *, input_layouts: Any = None, desired_input_layouts: Any = None, input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False) -> None:
        self.input_layouts, self.desired_input_layouts, self.use_local_output = _several(input_layouts), _several(desired_input_layouts), use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts, self.desired_input_kwarg_layouts = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def before(m: Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
            if self.input_layouts is not None:
                if len(args) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                args = tuple(_prepared(x, device_mesh, p, q, self.use_local_output) for x, p, q in zip(args, self.input_layouts, self.desired_input_layouts))
            made = {name: _prepared(x, device_mesh, self.input_kwarg_layouts.get(name), self.desired_input_kwarg_layouts.get(name), self.use_local_output)
                    for name, x in kwargs.items()}
            return args, made
        module.register_forward_pre_hook(before, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts={self.desired_input_layouts}, "
                f"input_kwarg_layouts={self.input_kwarg_layouts}, desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
                f"use_local_output={self.use_local_output})")


class PrepareModuleOutput(ParallelStyle):
    """Makes a module's outputs lie as desired; None for what stays as it is."""

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts, self.use_local_output = _several(output_layouts), _several(desired_output_layouts), use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def after(m: Module, inputs: Any, outputs: Any) -> Any:
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(outputs) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            made = tuple(_prepared(x, device_mesh, p, q, self.use_local_output) for x, p, q in zip(outputs, self.output_layouts, self.desired_output_layouts))
            return made[0] if len(made) == 1 else made
        module.register_forward_hook(after)
        return module

    def __repr__(self) -> str:
        return (f"PrepareModuleOutput(output_layouts={self.output_layouts}, desired_output_layouts={self.desired_output_layouts}, "
                f"use_local_output={self.use_local_output})")


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput together."""

    def __init__(self, *, input_layouts: Any = None, desired_input_layouts: Any = None, input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False, output_layouts: Any,
                 desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.prepare_module_input = PrepareModuleInput(input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
                                                       input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
                                                       use_local_output=use_local_input)
        self.prepare_module_output = PrepareModuleOutput(output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
                                                         use_local_output=use_local_output)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        before, after = self.prepare_module_input, self.prepare_module_output
        return (f"PrepareModuleInputOutput(input_layouts={before.input_layouts}, desired_input_layouts={before.desired_input_layouts}, "
                f"input_kwarg_layouts={before.input_kwarg_layouts}, desired_input_kwarg_layouts={before.desired_input_kwarg_layouts}, "
                f"use_local_input={before.use_local_output}, output_layouts={after.output_layouts}, "
                f"desired_output_layouts={after.desired_output_layouts}, use_local_output={after.use_local_output})")
