"""Schedules of several stages per rank: an order of actions, lowered to one with sends and receives, and what runs it."""

from __future__ import annotations

import csv
import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlike.distributed.fsdp import FSDPModule, UnshardHandle
from torchlike.distributed.work import Work
from torchlike.profiler import record_function

from ._actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    OVERLAP_F_B,
    RECV_B,
    RECV_F,
    REDUCE_GRAD,
    RESHARD,
    SEND_B,
    SEND_F,
    UNSHARD,
    Order,
    _Action,
    _ComputationType,
    written_order,
)
from ._lowering import Lowered, add_reduce_grad, add_send_recv, add_unshard_reshard, defer_receives, validated
from ._orders import stage_to_rank
from ._schedule import _batch_p2p, _PipelineSchedule, _wait_batch_p2p
from ._stage import _PipelineStageBase

logger = logging.getLogger(__name__)


@dataclass
class _PipelineContext:
    """What a function that does an action itself gets beside the action."""

    schedule_ref: _PipelineSchedule
    arg_mbs: list[tuple] | None = None
    kwarg_mbs: list[dict] | None = None
    target_mbs: list | None = None
    losses: list | None = None


def _rows(filename: str) -> Order:
    with Path(filename).open(newline="") as file:
        return {rank: [_Action.from_str(text) for text in row] for rank, row in enumerate(csv.reader(file))}


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule of several stages per rank, by `pipeline_order`: each rank's actions.

    With `scale_grads` gradients are divided by the number of microbatches, as is right for losses that are means.
    """

    def __init__(
        self,
        stages: list[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
    ) -> None:
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads)
        self._stages, self._num_stages = stages, stages[0].num_stages
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        self._set_ranks(stage_to_rank(self.pp_group_size, self._num_stages))
        self._backward_requires_autograd = backward_requires_autograd
        self._defer_pp_recv = False
        self.pipeline_order: Order = {}
        self.pipeline_order_with_comms: Lowered = {}
        self._comp_type_to_function_map: dict[_ComputationType, Callable] = {}
        self.backward_counter: Counter[int] = Counter()  # by stage: in the last one data-parallel ranks reduce
        self.fwd_recv_ops: dict[tuple[int, int], list[Work]] = {}  # by stage and microbatch
        self.bwd_recv_ops: dict[tuple[int, int], list[Work]] = {}
        self.unshard_ops: dict[int, list[UnshardHandle]] = defaultdict(list)
        self.unsharded_stages: set[int] = set()
        if use_full_backward is not None:
            logger.warning("Deprecation warning: 'use_full_backward' is no longer supported. Simply stop passing it, and everything should still work fine.")

    @property
    def _all_stages(self) -> list[_PipelineStageBase]:
        return self._stages

    def _prepare(self, args: Any, kwargs: dict[str, Any], target: Any) -> None:
        before = self._prepared
        super()._prepare(args, kwargs, target)
        if self._prepared is not before:
            for stage in self._stages:
                sources = {info.source for info in stage.args_recv_info[0] if info.source is not None}
                targets = {to for stages in stage.act_send_info.values() for to in stages}
                self._adjacent(stage.stage_index, "forward recv", sources, set() if stage.is_first else {stage.stage_index - 1})
                self._adjacent(stage.stage_index, "forward send", targets, set() if stage.is_last else {stage.stage_index + 1})

    @staticmethod
    def _adjacent(stage: int, what: str, found: set[int], allowed: set[int]) -> None:
        if found - allowed:
            raise RuntimeError(f"PipelineScheduleMulti only supports adjacent-stage communication, but stage {stage} has {what} stages {sorted(found)} with "
                               f"non-adjacent stages {sorted(found - allowed)} (allowed adjacent stages: {sorted(allowed)}). This commonly indicates skip "
                               "connections, which are unsupported in this schedule runtime.")

    def _set_ranks(self, ranks: dict[int, int]) -> None:
        self.stage_index_to_group_rank = ranks
        for stage in self._stages:
            stage.stage_index_to_group_rank = ranks

    def _validate_and_set_stage_mapping(self, actions: Order) -> None:
        self._set_ranks(validated(actions, self.pp_group_size, self._num_stages, self._n_microbatches))

    def _prepare_schedule_with_comms(self, actions: Order, format: str = "compute_only") -> None:  # noqa: A002  (torch's name)
        """Take an order of computations, or, for "compute_comms", one that has all else already."""
        self._validate_and_set_stage_mapping(actions)
        if format == "compute_comms":
            for rank_actions in actions.values():
                if None in rank_actions:
                    raise AssertionError(f"Expected action to be not None, got {type(None)}")
            self.pipeline_order_with_comms = {rank: list(rank_actions) for rank, rank_actions in actions.items()}
            return
        if format != "compute_only":
            raise NotImplementedError(f"{format=} is not implemented")
        for rank, rank_actions in actions.items():
            for i, action in enumerate(rank_actions):
                if action is not None and not action.is_compute_op:
                    raise ValueError(f"Expected compute-only schedule but found communication action '{action}' at rank {rank}, position {i}. Communication "
                                     "actions (e.g. SEND_F, RECV_F, etc.) should not be present when format='compute_only'.")
        ranks = self.stage_index_to_group_rank.__getitem__
        lowered = {rank: add_reduce_grad(add_unshard_reshard(rank_actions), self._n_microbatches) for rank, rank_actions in actions.items()}
        lowered = add_send_recv(lowered, ranks, self._num_stages)
        self.pipeline_order_with_comms = defer_receives(lowered, ranks) if self._defer_pp_recv else lowered

    def _load_csv(self, filename: str, format: str = "compute_only") -> None:  # noqa: A002
        """Take the order that a file has, a row per rank."""
        if format == "compute_only":
            self.pipeline_order = _rows(filename)
            self._prepare_schedule_with_comms(self.pipeline_order)
        else:
            self._prepare_schedule_with_comms(_rows(filename), format)

    def _dump_csv(self, filename: str, format: str = "compute_only") -> None:  # noqa: A002
        order = self.pipeline_order if format == "compute_only" else self.pipeline_order_with_comms
        with Path(filename).open("w", newline="") as file:
            csv.writer(file).writerows(order.values())

    # -- running -------------------------------------------------------------------------------------------------------------

    def _step_microbatches(
        self,
        arg_mbs: list | None = None,
        kwarg_mbs: list | None = None,
        target_mbs: list | None = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
    ) -> None:
        arg_mbs, kwarg_mbs = self._check_inputs(arg_mbs, kwarg_mbs, target_mbs, losses)
        if not self.pipeline_order_with_comms:  # a class that only sets pipeline_order
            self._prepare_schedule_with_comms(self.pipeline_order)
        self._prepare(arg_mbs[0], kwarg_mbs[0], None if target_mbs is None else target_mbs[0])
        context = _PipelineContext(self, arg_mbs, kwarg_mbs, target_mbs, losses)
        run = _Run(context, return_outputs, loss_kwargs)
        self.backward_counter.clear()
        for step, action in enumerate(self.pipeline_order_with_comms[self.rank]):
            try:
                with record_function(f"PP:{action}"):
                    if action.computation_type in self._comp_type_to_function_map:
                        self._comp_type_to_function_map[action.computation_type](action, context)
                    elif action.computation_type is OVERLAP_F_B and action.sub_actions is None:
                        raise AssertionError("sub_actions must be set")
                    else:
                        for part in action.parts:
                            run.do(part)
            except Exception:
                logger.error("%s caught exception at step %s when running action %s.  Full Schedule:\n%s", type(self).__name__, step, action,
                             written_order(self.pipeline_order_with_comms, step))
                raise
        for work in run.sent:
            _wait_batch_p2p(work)
        if self.unshard_ops:
            raise AssertionError("Unused unshard operations")
        self._update_losses(self._stages, losses)

    def _assert_unsharded(self, stage: _PipelineStageBase) -> None:
        """Wait for a stage's whole parameters."""
        if isinstance(stage.submod, FSDPModule):
            index = stage.stage_index
            if index in self.unshard_ops:
                for op in self.unshard_ops.pop(index):
                    op.wait()
                self.unsharded_stages.add(index)
            if index not in self.unsharded_stages:
                raise AssertionError(f"Attempted to compute on sharded stage_idx={index}")


class _Run:
    """One step's actions on a rank."""

    def __init__(self, context: _PipelineContext, return_outputs: bool, loss_kwargs: dict[str, Any] | None) -> None:
        self.context, self.schedule = context, context.schedule_ref
        self.return_outputs, self.loss_kwargs = return_outputs, loss_kwargs
        self.stages = {stage.stage_index: stage for stage in self.schedule._stages}
        self.sent: list[list[Work]] = []
        self.ways = {SEND_F: self.send, SEND_B: self.send, RECV_F: self.receive, RECV_B: self.receive, UNSHARD: self.unshard, RESHARD: self.reshard,
                     FORWARD: self.forward, FULL_BACKWARD: self.backward, BACKWARD_INPUT: self.backward, BACKWARD_WEIGHT: self.backward_weight,
                     REDUCE_GRAD: self.reduce_grad}

    def do(self, action: _Action) -> None:
        way = self.ways.get(action.computation_type)
        if way is None:
            raise ValueError(f"{action=} is unknown or unsupported")
        if action.microbatch_index is None and action.computation_type not in (UNSHARD, RESHARD, REDUCE_GRAD):
            raise AssertionError(f"{action=} missing mb_index")
        way(action, self.stages[action.stage_index])

    def send(self, action: _Action, stage: _PipelineStageBase) -> None:
        ops = stage.get_fwd_send_ops if action.computation_type is SEND_F else stage.get_bwd_send_ops
        self.sent.append(_batch_p2p(ops(action.microbatch_index)))

    def receive(self, action: _Action, stage: _PipelineStageBase) -> None:
        forward, key = action.computation_type is RECV_F, (action.stage_index, action.microbatch_index)
        coming = self.schedule.fwd_recv_ops if forward else self.schedule.bwd_recv_ops
        if key in coming:
            raise AssertionError(f"Recv twice for stage_idx={key[0]} mb_index={key[1]} without executing {'forward' if forward else 'backward'}")
        coming[key] = _batch_p2p((stage.get_fwd_recv_ops if forward else stage.get_bwd_recv_ops)(action.microbatch_index))

    def arrived(self, action: _Action, coming: dict[tuple[int, int], list[Work]]) -> None:
        key = action.stage_index, action.microbatch_index
        if key not in coming:
            raise AssertionError(f"Computing {action=} before receiving input")
        _wait_batch_p2p(coming.pop(key))

    def unshard(self, action: _Action, stage: _PipelineStageBase) -> None:
        if isinstance(stage.submod, FSDPModule):
            index = action.stage_index
            if index in self.schedule.unsharded_stages or index in self.schedule.unshard_ops:
                raise AssertionError(f"Unsharding the same stage_idx={index} twice")
            for module in stage.submod.modules():
                if isinstance(module, FSDPModule):
                    self.schedule.unshard_ops[index].append(module.unshard(async_op=True))

    def reshard(self, action: _Action, stage: _PipelineStageBase) -> None:
        if isinstance(stage.submod, FSDPModule):
            index = action.stage_index
            if index in self.schedule.unshard_ops:
                raise AssertionError(f"Resharding stage_idx={index} before finishing unshard")
            if index not in self.schedule.unsharded_stages:
                raise AssertionError(f"Resharding stage_idx={index} without unsharding")
            for module in stage.submod.modules():
                if isinstance(module, FSDPModule):
                    module.reshard()
            self.schedule.unsharded_stages.remove(index)

    def forward(self, action: _Action, stage: _PipelineStageBase) -> None:
        schedule, index, m = self.schedule, action.stage_index, action.microbatch_index
        schedule._assert_unsharded(stage)
        if not stage.is_first and index - 1 not in self.stages:
            self.arrived(action, schedule.fwd_recv_ops)
        output = stage.forward_one_chunk(m, self.context.arg_mbs[m], self.context.kwarg_mbs[m], save_forward_output=self.return_outputs)
        schedule._maybe_compute_loss(stage, output, self.context.target_mbs, m, self.loss_kwargs)
        if index + 1 in self.stages:
            self.stages[index + 1].set_local_fwd_input(output, m)

    def backward(self, action: _Action, stage: _PipelineStageBase) -> None:
        schedule, index, m = self.schedule, action.stage_index, action.microbatch_index
        full = action.computation_type is FULL_BACKWARD
        schedule._assert_unsharded(stage)
        if not stage.is_last and index + 1 not in self.stages:
            self.arrived(action, schedule.bwd_recv_ops)
        loss = schedule._maybe_get_loss(stage, m)
        stage.backward_one_chunk(m, loss=loss, full_backward=full, last_backward=full and self.counted(index))
        if index - 1 in self.stages and stage.has_backward:
            self.stages[index - 1].set_local_bwd_input(stage.get_local_bwd_output(m), m)

    def backward_weight(self, action: _Action, stage: _PipelineStageBase) -> None:
        self.schedule._assert_unsharded(stage)
        stage.backward_weight_one_chunk(action.microbatch_index, last_backward=self.counted(action.stage_index))

    def counted(self, index: int) -> bool:
        """Count a stage's backward: whether it is the last one."""
        self.schedule.backward_counter[index] += 1
        return self.schedule.backward_counter[index] == self.schedule._n_microbatches

    def reduce_grad(self, action: _Action, stage: _PipelineStageBase) -> None:
        stage.perform_reduce_grad(self.schedule._n_microbatches if self.schedule.scale_grads else 1)


class _PipelineScheduleRuntime(PipelineScheduleMulti):
    """A schedule whose actions a program may do itself, and which it may read from a file."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        defer = kwargs.pop("defer_pp_recv", False)
        super().__init__(*args, **kwargs)
        self._defer_pp_recv = defer

    def register_custom_function(self, computation_type: _ComputationType, custom_function: Callable[[_Action, _PipelineContext], None]) -> None:
        """Let `custom_function(action, context)` do all actions of a kind. ValueError for sends and receives."""
        if computation_type in (SEND_F, RECV_F, SEND_B, RECV_B) or not isinstance(computation_type, _ComputationType):
            raise ValueError(f"Invalid computation type {computation_type}. Only FORWARD, FULL_BACKWARD, \
                BACKWARD_INPUT, BACKWARD_WEIGHT, OVERLAP_F_B, UNSHARD, RESHARD and REDUCE_GRAD are supported.")
        if computation_type in self._comp_type_to_function_map:
            logger.warning("Computation type %s is already registered. Overwriting the existing custom function.", computation_type)
        self._comp_type_to_function_map[computation_type] = custom_function

    def _dump_csv(self, filename: str, format: str = "compute_comms") -> None:  # noqa: A002
        super()._dump_csv(filename, format)
