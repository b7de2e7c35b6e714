"""Stages of modules that the program made itself: PipelineStage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlike
from torchlike._tensor import Tensor
from torchlike.distributed.objects import recv_object_list, send_object_list
from torchlike.nn.modules.module import Module

from ._metadata import Metas, PipeInfo, PipeliningMetadataError, TensorMeta, as_tensors, check, metas_of
from ._stage import _PipelineStageBase, _RecvInfo
from ._stage import as_outputs as _normalize_model_output_as_tuple  # noqa: F401  (its name in torch)
from ._traced_stage import _PipelineStage

__all__ = ["PipelineStage", "build_stage"]


class PipelineStage(_PipelineStageBase):
    """A module as one stage of `num_stages`: what it returns, a tensor or several, are the next stage's positional arguments.

    Shapes come from `input_args` and `output_args` where all stages have both; otherwise each stage's module is called once, before the first step, to
    learn them. PipeliningMetadataError for arguments that are no tensors, or others than those.
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Tensor | tuple[Tensor, ...] | None = None,
        output_args: Tensor | tuple[Tensor, ...] | None = None,
        output_grads: Tensor | tuple[Tensor | None, ...] | None = None,
        input_grads: Tensor | tuple[Tensor | None, ...] | None = None,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Any = None,
    ) -> None:
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        self._given_inputs, self._given_outputs = metas_of(as_tensors(input_args)), metas_of(as_tensors(output_args))
        self._given_input_grads = metas_of(as_tensors(input_grads, allow_none=True))
        self._given_output_grads = metas_of(as_tensors(output_grads, allow_none=True))
        self._inputs: Metas = ()
        self._outputs: Metas = ()
        self._static = False  # whether all stages know their shapes; the schedule asks them

    @property
    def _knows_shapes(self) -> bool:
        return self._given_inputs is not None and self._given_outputs is not None

    def _on_this_rank(self, stage: int) -> bool:
        return self.stage_index_to_group_rank[stage] == self.group_rank

    def _prepare_forward(self, num_microbatches: int, args: Any, kwargs: dict[str, Any], has_backward: bool) -> Metas | None:
        sent = None
        if self._static:
            self._inputs, self._outputs = self._given_inputs, self._given_outputs
        else:
            sent = self._infer(args, kwargs, has_backward)
            check(f"Stage {self.stage_index} input", self._given_inputs, self._inputs)
            check(f"Stage {self.stage_index} output", self._given_outputs, self._outputs)
        name = "root_input" if self.is_first else f"recv_for_{self.stage_index}_from_{self.stage_index - 1}"
        source = None if self.is_first else self.stage_index - 1
        for m in range(num_microbatches):
            self.args_recv_info[m] = tuple(_RecvInfo(f"{name}_{i}" if self.is_first else name, source, None, meta, self.is_first, i)
                                           for i, meta in enumerate(self._inputs))
        self.act_send_info = {i: [] if self.is_last else [self.stage_index + 1] for i in range(len(self._outputs))}
        return sent

    def _infer(self, args: Any, kwargs: dict[str, Any], has_backward: bool) -> Metas | None:
        """Call the module for the shapes of its outputs; they go to the next stage, or are returned where that is on this rank."""
        if self.is_first:
            inputs = tuple(t.detach().requires_grad_(t.requires_grad) for t in as_tensors(args))
            self._inputs = metas_of(inputs)
        else:
            if not self._on_this_rank(self.stage_index - 1):
                received: list[Metas] = [()]
                recv_object_list(received, self._peer(self.stage_index - 1), self.group)
                args = received[0]
            if args is None:
                raise PipeliningMetadataError(f"Stage {self.stage_index}: the stage before on the same rank comes later in the list of stages")
            self._inputs = args
            inputs = tuple(self._filled(meta) for meta in args)
        kwargs = {k: v.detach().requires_grad_(v.requires_grad) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
        before = [(b, b.clone()) for b in self.submod.buffers()]
        with torchlike.set_grad_enabled(has_backward):
            self._outputs = metas_of(as_tensors(self.submod(*inputs, **kwargs))) or ()
        with torchlike.no_grad():
            for buffer, value in before:  # running statistics are those of the steps only
                buffer.copy_(value)
        if self.is_last or self._on_this_rank(self.stage_index + 1):
            return self._outputs
        send_object_list([self._outputs], self._peer(self.stage_index + 1), self.group)
        return None

    def _filled(self, meta: TensorMeta) -> Tensor:
        return meta.empty(self.device).zero_().requires_grad_(meta.requires_grad)

    def _prepare_backward(self, num_microbatches: int, loss_fn: Callable | None, target: Any) -> None:
        if self.is_last and not self._static and (loss_fn is None or target is None):
            raise PipeliningMetadataError(f"Stage {self.stage_index}: loss_fn and target required for last stage")
        self._input_grads = tuple(meta.gradient() for meta in self._inputs)
        output_grads = tuple(meta.gradient() for meta in self._outputs)
        if self._static:
            self._input_grads = self._given_input_grads or self._input_grads
            output_grads = self._given_output_grads or output_grads
        else:
            check(f"Stage {self.stage_index} input_grad", self._given_input_grads, self._input_grads)
            check(f"Stage {self.stage_index} output_grad", self._given_output_grads, output_grads)
        self.chunks = num_microbatches
        following, name = self.stage_index + 1, f"recv_grad_for_{self.stage_index}_from_{self.stage_index + 1}"
        for m in range(num_microbatches):
            self.grad_recv_info[m] = () if self.is_last else tuple(_RecvInfo(name, following, None, meta, position=i) for i, meta in enumerate(output_grads))


def build_stage(stage_module: Module, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None) -> _PipelineStage:
    """The stage of a module that was cut from a pipe, by `pipe.info()`."""
    return _PipelineStage(stage_module, stage_index, pipe_info, device, group)
