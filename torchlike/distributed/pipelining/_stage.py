"""What all stages do: receive, run their module, send; and the same backward."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torchlike
from torchlike._tensor import Tensor
from torchlike.distributed.fsdp import FSDPModule
from torchlike.distributed.point_to_point import P2POp, irecv, isend
from torchlike.distributed.process_group import default_group, get_global_rank, get_rank, get_world_size
from torchlike.nn.modules.module import Module
from torchlike.nn.parallel import DistributedDataParallel
from torchlike.utils._pytree import tree_leaves

from ._backward import stage_backward, stage_backward_input, stage_backward_weight
from ._metadata import Metas, PipeliningMetadataError, TensorMeta, described
from ._orders import stage_to_rank


def as_outputs(output: Any) -> tuple:
    """A module's output as the tuple of tensors that is sent."""
    return tuple(output) if type(output) in (tuple, list) else (output,)


@dataclass
class _RecvInfo:
    """A tensor that a stage gets: from stage `source`, or, without one, as an argument of the whole model."""

    input_name: str
    source: int | None
    buffer: Tensor | None
    tensor_meta: TensorMeta | None
    is_root_arg: bool = False
    position: int = 0  # among the source's outputs: the order in which those are sent


class _PipelineStageBase(ABC):
    """One part of a model of `num_stages` parts that run one after the other, on `device` in this process.

    ValueError where `stage_index` is not below `num_stages`, RuntimeError where `group` has more ranks than there are stages.
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
    ) -> None:
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages, self.device, self.group = submodule, stage_index, num_stages, device, group
        self.dw_builder = dw_builder
        self.group_rank, self.group_size = get_rank(group), get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}")
        self.stage_index_to_group_rank = stage_to_rank(self.group_size, num_stages)
        self.has_backward = False
        self.chunks: int | None = None
        self.log_prefix = f"[Stage {stage_index}]"
        # by microbatch: outputs and inputs, the inputs' gradients, and what the weights' gradients still need
        self.fwd_cache: dict[int, tuple[Any, list]] = {}
        self.bwd_cache: dict[int, tuple[Tensor | None, ...]] = {}
        self.backward_state: dict[int, tuple] = {}
        self.dw_runner: dict[int, Callable[..., None]] = {}
        self.output_chunks: list[Any] = []
        # what is received, by microbatch; where outputs are sent
        self.args_recv_info: dict[int, tuple[_RecvInfo, ...]] = {}
        self.grad_recv_info: dict[int, tuple[_RecvInfo, ...]] = {}
        self.act_send_info: dict[int, list[int]] = {}
        self._input_grads: Metas = ()  # which gradients the stages before wait for

    @property
    def is_first(self) -> bool:
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        return self.stage_index == self.num_stages - 1

    @abstractmethod
    def _prepare_forward(self, num_microbatches: int, args: Any, kwargs: dict[str, Any], has_backward: bool) -> Metas | None:
        """Find out what is received and sent. `args`: the first microbatch, or what the stage before on the same rank returned."""

    @abstractmethod
    def _prepare_backward(self, num_microbatches: int, loss_fn: Callable | None, target: Any) -> None:
        """Find out which gradients are received."""

    def _check_chunk_id(self, chunk_id: int) -> None:
        if self.chunks is None:
            raise RuntimeError("Attempted to access chunk_id before chunks have been configured.")
        if chunk_id >= self.chunks:
            raise RuntimeError(f"Chunk id {chunk_id} is out of range [0, {self.chunks})")

    # -- between stages ------------------------------------------------------------------------------------------------------

    def _peer(self, stage: int) -> int:
        return get_global_rank(default_group(self.group), self.stage_index_to_group_rank[stage])

    def _receives(self, infos: Sequence[_RecvInfo]) -> list[P2POp]:
        found = []
        for info in sorted(infos, key=lambda info: info.position):
            if not info.is_root_arg and info.tensor_meta is not None:
                info.buffer = info.tensor_meta.empty(self.device)
                found.append(P2POp(irecv, info.buffer, self._peer(info.source), self.group))
        return found

    def _send(self, tensor: Tensor, stage: int) -> P2POp:
        return P2POp(isend, tensor.detach().contiguous(), self._peer(stage), self.group)

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[P2POp]:
        """The receives of a microbatch's inputs."""
        return self._receives(self.args_recv_info[fwd_chunk_id])

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[P2POp]:
        """The receives of the gradients of a microbatch's outputs."""
        return self._receives(self.grad_recv_info[bwd_chunk_id]) if self.has_backward and not self.is_last else []

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[P2POp]:
        """The sends of a microbatch's outputs."""
        outputs = self.fwd_cache[fwd_chunk_id][0]
        return [self._send(out, stage) for i, out in enumerate(outputs) for stage in self.act_send_info[i]]

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[P2POp]:
        """The sends of the gradients of a microbatch's inputs; zeros where an input was not used."""
        if not self.has_backward or self.is_first:
            return []
        self._check_chunk_id(bwd_chunk_id)
        found = []
        grads = zip(self.bwd_cache.pop(bwd_chunk_id), self.args_recv_info[0], self._input_grads, strict=True)
        for grad, info, meta in sorted(grads, key=lambda entry: entry[1].position):
            meta = None if info.is_root_arg else meta
            if meta is not None:
                found.append(self._send(meta.empty(self.device).zero_() if grad is None else grad, info.source))
            elif grad is not None:
                where = "but no stage to send it to" if info.is_root_arg else "which the stage before does not expect"
                raise PipeliningMetadataError(f"[{self.stage_index}] for chunk {bwd_chunk_id} has gradient {grad} {where}")
        return found

    def set_local_fwd_input(self, prev_stage_outputs: Any, mb_index: int) -> None:
        """The inputs of a microbatch, from the stage before on the same rank."""
        for info, tensor in zip(self.args_recv_info[mb_index], as_outputs(prev_stage_outputs), strict=True):
            if not isinstance(tensor, Tensor):
                raise AssertionError(f"expected tensor values as outputs from prev stage, got {type(tensor)}")
            if info.is_root_arg:
                raise AssertionError("set_local_fwd_input should only be called on non-first stage, which should always have non-root RecvInfo")
            info.buffer = tensor.detach()

    def get_local_bwd_output(self, mb_index: int) -> tuple[Tensor | None, ...]:
        """The gradients of a microbatch's inputs, for the stage before on the same rank."""
        if not self.has_backward:
            raise AssertionError("can't steal_bwd_input if this stage doesn't have backward")
        if self.is_first:
            raise AssertionError("can't get bwd output if this stage is first")
        self._check_chunk_id(mb_index)
        return self.bwd_cache.pop(mb_index)

    def set_local_bwd_input(self, next_stage_bwd_outputs: tuple[Tensor | None, ...], mb_index: int) -> None:
        """The gradients of a microbatch's outputs, from the next stage on the same rank."""
        if not isinstance(next_stage_bwd_outputs, tuple):
            raise AssertionError(f"Expected tuple, got {type(next_stage_bwd_outputs)}")
        if not self.has_backward:
            raise AssertionError("can't set bwd input if this stage doesn't have backward")
        if self.is_last:
            raise AssertionError("can't set bwd input if this stage is last")
        for info, tensor in zip(self.grad_recv_info[mb_index], next_stage_bwd_outputs, strict=True):
            if tensor is not None:
                info.buffer = tensor
            elif info.tensor_meta is not None:
                info.buffer = info.tensor_meta.empty(self.device).zero_()

    def clear_runtime_states(self) -> None:
        """Forget the last step."""
        self.fwd_cache.clear()
        self.output_chunks.clear()

    # -- forward -------------------------------------------------------------------------------------------------------------

    def _activations(self, chunk_id: int) -> Iterator[Tensor]:
        for info in self.args_recv_info[chunk_id]:
            if info.is_root_arg:
                raise PipeliningMetadataError("Cannot get recv tensor from root arg")
            yield info.buffer.requires_grad_(info.tensor_meta.requires_grad and self.has_backward and torchlike.is_grad_enabled())

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.submod, DistributedDataParallel):
            with self.submod.no_sync():
                return self.submod(*args, **kwargs)
        return self.submod(*args, **kwargs)

    def forward_one_chunk(self, fwd_chunk_id: int, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, save_forward_output: bool = True) -> Any:
        """The module's output for a microbatch. `args` count for the first stage only. RuntimeError, with the shapes, where the module fails."""
        kwargs = kwargs or {}
        inputs = args if self.is_first else tuple(self._activations(fwd_chunk_id))
        try:
            output = self.forward_maybe_with_nosync(*inputs, **kwargs)
        except Exception as error:
            raise RuntimeError(f"""
            {self.log_prefix} failed to run forward:
            args: {described(inputs)}
            kwargs: {described(kwargs)}
            """) from error
        if self.is_last and save_forward_output:
            self.output_chunks.append(output)
        self.fwd_cache[fwd_chunk_id] = as_outputs(output), tree_leaves(inputs) + tree_leaves(kwargs)
        return output

    # -- backward ------------------------------------------------------------------------------------------------------------

    def _weights(self) -> list[Tensor]:
        """The parameters that get gradients: FSDP's are pieces, also while the module has whole ones."""
        pieces = {}
        if isinstance(self.submod, FSDPModule):
            pieces = {id(whole): member.param for group in self.submod._groups() for member, whole in zip(group.members, group.whole or ())}
        return [pieces.get(id(p), p) for p in self.submod.parameters()]

    def backward_maybe_with_nosync(self, backward_type: str, bwd_kwargs: dict[str, Any], last_backward: bool = False) -> tuple:
        """(the inputs' gradients, what the weights' need). Only in the last backward of a step are gradients reduced over data-parallel ranks."""
        def run() -> tuple:
            output = bwd_kwargs["stage_output"]
            if backward_type == "full":
                return stage_backward(output, bwd_kwargs["output_grads"], bwd_kwargs["input_values"]), None
            if backward_type == "input":
                return stage_backward_input(output, bwd_kwargs["output_grads"], bwd_kwargs["input_values"], self._weights())
            if backward_type == "weight":
                return (), stage_backward_weight(self._weights(), bwd_kwargs["param_groups"])
            raise RuntimeError(f"Unknown backward type: {backward_type}")

        if isinstance(self.submod, FSDPModule):
            self.submod.set_is_last_backward(last_backward)
            self.submod.set_requires_gradient_sync(last_backward)
        elif isinstance(self.submod, DistributedDataParallel):
            self.submod._expects = last_backward and backward_type != "weight"
            found = run()
            if last_backward and backward_type == "weight":  # it was several backwards, of some weights each
                self.submod._reduce_accumulated()
            return found
        return run()

    def backward_one_chunk(self, bwd_chunk_id: int, loss: Tensor | None = None, full_backward: bool = True, last_backward: bool = False) -> None:
        """A microbatch's backward; without `full_backward` the weights' gradients wait for `backward_weight_one_chunk`."""
        if not self.has_backward:
            return
        self._check_chunk_id(bwd_chunk_id)
        outputs, inputs = self.fwd_cache.pop(bwd_chunk_id)
        known = {"stage_output": loss if self.is_last else outputs, "input_values": inputs,
                 "output_grads": None if self.is_last else tuple(info.buffer for info in self.grad_recv_info[bwd_chunk_id])}
        grads: tuple[Tensor | None, ...] = ()
        if self.dw_builder or full_backward:
            grads = self.backward_maybe_with_nosync("full", known, last_backward)[0]
            if self.dw_builder and full_backward:
                self.dw_builder()()
            elif self.dw_builder:
                self.dw_runner[bwd_chunk_id] = self.dw_builder()
        else:
            groups = None
            if not self.is_first:
                if isinstance(known["stage_output"], Tensor):
                    known["stage_output"] = (known["stage_output"],)
                grads, groups = self.backward_maybe_with_nosync("input", known, last_backward)
            self.backward_state[bwd_chunk_id] = known, groups
        received = len(self.args_recv_info[bwd_chunk_id])  # keyword arguments have gradients, too, but no stage waits for them
        self.bwd_cache[bwd_chunk_id] = grads[:received]
        if self.is_last and not self.is_first:
            for t in outputs:  # the caller's now: the graph goes
                if not t._is_view():
                    t.detach_()

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """The rest of a microbatch's backward. AssertionError unless `backward_one_chunk(full_backward=False)` came first."""
        if not self.has_backward:
            return
        if bwd_chunk_id not in (self.dw_runner if self.dw_builder else self.backward_state):
            raise AssertionError(f"{self.log_prefix} Attempted to run backward_weight_one_chunk for chunk {bwd_chunk_id}"
                                 " without first calling `backward_one_chunk(full_backward=False)`")
        if self.dw_builder:
            self.dw_runner.pop(bwd_chunk_id)()
            return
        known, groups = self.backward_state.pop(bwd_chunk_id)
        if self.is_first:  # nobody waits for its inputs' gradients
            self.backward_maybe_with_nosync("full", known, last_backward)
        else:
            self.backward_maybe_with_nosync("weight", {**known, "param_groups": groups}, last_backward)

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the parameters' gradients."""
        if grad_scale_factor != 1:
            for p in self.submod.parameters():
                if p.grad is not None:
                    p.grad.div_(grad_scale_factor)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """After the last backward of a step: data-parallel ranks have reduced their gradients, so only the scale is left."""
        self.scale_grads(grad_scale_factor)
