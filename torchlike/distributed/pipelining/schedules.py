"""The schedules: in which order stages work on microbatches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlike._dynamo import OptimizedModule
from torchlike.nn.modules.module import Module
from torchlike.profiler import record_function

from . import _orders
from ._actions import (  # noqa: F401
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
)
from ._lowering import add_reduce_grad
from ._runtime import PipelineScheduleMulti, _PipelineContext, _PipelineScheduleRuntime  # noqa: F401
from ._schedule import _batch_p2p, _PipelineSchedule, _sorted_batch_p2p, _wait_batch_p2p  # noqa: F401
from ._stage import _PipelineStageBase

__all__ = ["PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
           "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "get_schedule_class"]


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule of one stage per rank; classes of it say `_step_microbatches`.

    With `scale_grads` gradients are divided by the number of microbatches, as is right for losses that are means.
    """

    def __init__(
        self,
        stage: _PipelineStageBase,
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads)
        self._stage, self._num_stages = stage, stage.num_stages
        self.pipeline_order: Order | None = self._get_pipeline_order()

    @property
    def _all_stages(self) -> list[_PipelineStageBase]:
        return [self._stage]

    def _get_pipeline_order(self) -> Order | None:
        """Each rank's actions, where they are known."""
        return None

    def _initialize_stage(self, args: Any, kwargs: dict[str, Any], target: Any = None, loss_kwargs: dict[str, Any] | None = None) -> None:
        self._prepare(args, kwargs, target)


class _InOrder(PipelineScheduleSingle):
    """A schedule that is an order of forwards and backwards: what each needs is received before, what it makes is sent after."""

    def _actions_of(self, stage: int) -> list[_Action | None]:
        raise NotImplementedError

    def _get_pipeline_order(self) -> Order | None:
        return {stage: add_reduce_grad(self._actions_of(stage), self._n_microbatches) for stage in range(self._num_stages)}

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
        self._initialize_stage(arg_mbs[0], kwarg_mbs[0], None if target_mbs is None else target_mbs[0], loss_kwargs)
        stage, sent = self._stage, []
        actions = [a for a in self._actions_of(stage.stage_index) if a is not None]
        trains = any(a.computation_type is FULL_BACKWARD for a in actions)
        for action in actions:
            m, forward = action.microbatch_index, action.computation_type is FORWARD
            with record_function(f"{'Forward' if forward else 'Backward'} {m}"):
                for work in _sorted_batch_p2p((stage.get_fwd_recv_ops if forward else stage.get_bwd_recv_ops)(m)).values():
                    _wait_batch_p2p(work)
                if forward:
                    output = stage.forward_one_chunk(m, arg_mbs[m], kwarg_mbs[m], save_forward_output=return_outputs)
                    sent += _sorted_batch_p2p(stage.get_fwd_send_ops(m)).values()
                    if trains:
                        self._maybe_compute_loss(stage, output, target_mbs, m, loss_kwargs)
                else:
                    stage.backward_one_chunk(m, loss=self._maybe_get_loss(stage, m), last_backward=m == self._n_microbatches - 1)
                    sent += _sorted_batch_p2p(stage.get_bwd_send_ops(m)).values()
        for work in sent:
            _wait_batch_p2p(work)
        self._update_losses(stage, losses)
        if trains:
            stage.perform_reduce_grad(self._n_microbatches if self.scale_grads else 1)


class _ScheduleForwardOnly(_InOrder):
    """Forwards only. RuntimeError where a target or `losses` is given."""

    def _get_pipeline_order(self) -> Order | None:
        return None

    def _actions_of(self, stage: int) -> list[_Action | None]:
        return [_Action(stage, FORWARD, m) for m in range(self._n_microbatches)]

    def _step_microbatches(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None, target_mbs: list | None = None, losses: list | None = None,
                           return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None) -> None:
        if target_mbs is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")
        super()._step_microbatches(arg_mbs, kwarg_mbs, None, None, True, loss_kwargs)


class ScheduleGPipe(_InOrder):
    """All forwards, then all backwards."""

    def _actions_of(self, stage: int) -> list[_Action | None]:
        return _orders.gpipe(stage, self._num_stages, self._n_microbatches)


class Schedule1F1B(_InOrder):
    """One forward and one backward in turn, once the pipeline is full. ValueError for fewer microbatches than stages."""

    def _get_pipeline_order(self) -> Order | None:
        if self._n_microbatches < self._num_stages:
            raise ValueError(f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of stages ({self._num_stages}).")
        return super()._get_pipeline_order()

    def _actions_of(self, stage: int) -> list[_Action | None]:
        return _orders.one_forward_one_backward(stage, self._num_stages, self._n_microbatches)


class _Planned(_PipelineScheduleRuntime):
    """A schedule that `_plan` gives the order of."""

    def __init__(
        self,
        stages: list[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads=scale_grads,
                         backward_requires_autograd=backward_requires_autograd, defer_pp_recv=defer_pp_recv)
        self.n_local_stages = len(stages)
        self.pipeline_order = self._plan()
        self._prepare_schedule_with_comms(self.pipeline_order)

    def _plan(self) -> Order:
        raise NotImplementedError

    def _in_rounds(self, name: str, zero_bubble: bool) -> Order:
        n = self._n_microbatches
        self.number_of_rounds = max(1, n // self.pp_group_size)
        self.microbatches_per_round = n // self.number_of_rounds
        if n % self.number_of_rounds:
            raise ValueError(f"{name} requires the number of microbatches to be a multiple of the number of rounds ({self.number_of_rounds}), but got {n}.")
        return {r: _orders.interleaved(r, self.pp_group_size, self.n_local_stages, self.microbatches_per_round, n, zero_bubble)
                for r in range(self.pp_group_size)}

    def _in_a_v(self) -> None:
        self._set_ranks(_orders.stage_to_rank(self.pp_group_size, self._num_stages, "v"))
        if self.n_local_stages != 2:
            raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {self.n_local_stages}.")
        self.num_stages = self._num_stages

    def _check_not_compiled(self) -> None:
        """RuntimeError for a compiled module: its backward cannot be divided."""
        for stage in self._stages:
            if isinstance(stage.submod, Module) and any(isinstance(m, OptimizedModule) for m in stage.submod.modules()):
                raise RuntimeError(f"The {type(self).__name__} schedule is not supported with stage modules that have used torch.compile. "
                                   "Found OptimizedModule in OptimizedModule")


class ScheduleLoopedBFS(_Planned):
    """All microbatches through a stage before the next one of the same rank (https://arxiv.org/abs/2211.05953)."""

    def __init__(
        self,
        stages: list[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(stages, n_microbatches, loss_fn, None, None, output_merge_spec, scale_grads, backward_requires_autograd, defer_pp_recv)

    def _plan(self) -> Order:
        return {r: _orders.looped_bfs(r, self.pp_group_size, self.n_local_stages, self._n_microbatches) for r in range(self.pp_group_size)}


class ScheduleInterleaved1F1B(_Planned):
    """One forward and one backward in turn, with several stages per rank; earlier microbatches first (https://arxiv.org/pdf/2104.04473).

    ValueError where the microbatches do not divide into rounds of at least as many as there are ranks.
    """

    def _plan(self) -> Order:
        return self._in_rounds("Interleaved 1F1B", False)


class ScheduleInterleavedZeroBubble(_Planned):
    """The same, and the weights' gradients are made where a rank would wait (ZB1P of https://arxiv.org/pdf/2401.10241).

    RuntimeError for compiled modules.
    """

    def _plan(self) -> Order:
        self._check_not_compiled()
        return _orders.with_bubbles(self._in_rounds("Zero bubble", True))


class ScheduleZBVZeroBubble(_Planned):
    """Two stages per rank, the first and the last on the same one (ZBV of https://arxiv.org/pdf/2401.10241). ValueError for other numbers of stages."""

    def _plan(self) -> Order:
        self._check_not_compiled()
        self._in_a_v()
        return {r: _orders.zero_bubble_v(r, self.pp_group_size, self._num_stages, self._n_microbatches) for r in range(self.pp_group_size)}


class ScheduleDualPipeV(_Planned):
    """Two stages per rank, the first and the last on the same one; a forward of one goes with a backward of the other (https://arxiv.org/pdf/2412.19437).

    ValueError for other numbers of stages, or fewer microbatches than stages.
    """

    def _plan(self) -> Order:
        self._check_not_compiled()
        self._in_a_v()
        if self._n_microbatches < self._num_stages:
            raise ValueError(f"DualPipeV requires at least as many microbatches as stages, but got {self._n_microbatches} microbatches and {self._num_stages} "
                             "stages.")
        return {r: _orders.dual_pipe_v(r, self.pp_group_size, self._n_microbatches) for r in range(self.pp_group_size)}


_BY_NAME = {"1F1B": Schedule1F1B, "Interleaved1F1B": ScheduleInterleaved1F1B, "GPipe": ScheduleGPipe, "LoopedBFS": ScheduleLoopedBFS,
            "InterleavedZeroBubble": ScheduleInterleavedZeroBubble, "PipelineScheduleSingle": PipelineScheduleSingle,
            "PipelineScheduleMulti": PipelineScheduleMulti, "ZBVZeroBubble": ScheduleZBVZeroBubble, "DualPipeV": ScheduleDualPipeV}


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """The class of a schedule, by its name in any case. ValueError for another name."""
    for name, found in _BY_NAME.items():
        if name.lower() == schedule_name.lower():
            return found
    raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(_BY_NAME)}")
