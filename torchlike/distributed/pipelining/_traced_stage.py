"""Stages that were cut from a pipe: their graphs say what they receive and send."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchlike.fx.node import Node
from torchlike.nn.modules.module import Module
from torchlike.utils._pytree import tree_leaves

from ._metadata import Metas, PipeInfo, PipeliningMetadataError, TensorMeta
from ._stage import _PipelineStageBase, _RecvInfo


class _PipelineStage(_PipelineStageBase):
    """A module that was cut from a pipe, on `device`. PipeliningMetadataError where the pipe has not as many modules as stages."""

    def __init__(self, stage_module: Module, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None) -> None:
        super().__init__(stage_module, stage_index, pipe_info.num_stages, device, group)
        self.pipe_info = pipe_info
        calls = [node for node in pipe_info.graph.nodes if node.op == "call_module"]
        if len(calls) != self.num_stages:
            raise PipeliningMetadataError(f"Number of submodules in pipe graph {len(calls)} does not match number of stages {self.num_stages}")
        self.node = calls[stage_index]
        self.name = self.node.name
        self.submod_to_stage_index = {node.name: i for i, node in enumerate(calls)}
        self._outputs: Metas = ()
        if not any(p.is_meta for p in stage_module.parameters()):
            stage_module.to(device)

    def _prepare_forward(self, num_microbatches: int, args: Any, kwargs: dict[str, Any], has_backward: bool) -> None:
        for m in range(num_microbatches):
            self.args_recv_info[m] = self._received(has_backward)
        self._outputs = tuple(self._meta(node, has_backward) for node in tree_leaves(self.submod.graph.output_node().args))
        self.act_send_info = self._sent()

    def _prepare_backward(self, num_microbatches: int, loss_fn: Callable | None, target: Any) -> None:
        self._input_grads = tuple(info.tensor_meta.gradient() for info in self.args_recv_info[0])
        self.chunks = num_microbatches
        for m in range(num_microbatches):
            self.grad_recv_info[m] = tuple(self._gradient(i) for i in range(len(self._outputs)))

    @staticmethod
    def _meta(node: Node, requires_grad: bool) -> TensorMeta:
        meta = TensorMeta.of(node.meta["val"])
        return replace(meta, requires_grad=requires_grad and meta.dtype.is_floating_point)  # the trace was without gradients

    def _received(self, has_backward: bool) -> tuple[_RecvInfo, ...]:
        found = []
        placeholders = [node for node in self.submod.graph.nodes if node.op == "placeholder"]
        for placeholder, given in zip(placeholders, self.node.args, strict=True):
            if given.op == "placeholder":
                found.append(_RecvInfo(f"root_input_{placeholder.name}", None, None, TensorMeta.of(placeholder.meta["val"]), True))
                continue
            position = 0
            if given.target is operator.getitem:
                given, position = given.args
            if given.op != "call_module":
                raise PipeliningMetadataError(f"Expecting call_module, got {given.op}")
            found.append(_RecvInfo(given.name, self.submod_to_stage_index[given.name], None, self._meta(placeholder, has_backward), position=position))
        return tuple(found)

    def _sent(self) -> dict[int, list[int]]:
        """The stages that each output goes to."""
        found: dict[int, list[int]] = {i: [] for i in range(len(self._outputs))}
        for user in self.node.users:
            position, users = (user.args[1], user.users) if user.target is operator.getitem else (0, [user])
            found[position] += [self.submod_to_stage_index[u.name] for u in users if u.op == "call_module"]
        return {i: sorted(stages) for i, stages in found.items()}

    def _gradient(self, i: int) -> _RecvInfo:
        stages, meta = self.act_send_info[i], self._outputs[i].gradient()
        if not stages or meta is None:
            return _RecvInfo(f"recv_grad_for_{self.stage_index}_none_{i}", None, None, None)
        if len(stages) > 1:
            raise PipeliningMetadataError("Backward of skip connections not supported yet")
        return _RecvInfo(f"recv_grad_for_{self.stage_index}_from_{stages[0]}", stages[0], None, meta, position=i)

    def _move(self, device: Any) -> None:
        """The operations that make tensors make them on `device`."""
        for node in self.submod.graph.nodes:
            if node.op == "call_function" and node.kwargs.get("device", device) != device:
                node.update_kwarg("device", device)
        self.submod.recompile()
