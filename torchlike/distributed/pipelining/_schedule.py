"""What all schedules do: cut a batch in microbatches, let the stages learn their shapes, keep the losses, join the outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torchlike
from torchlike._tensor import Tensor
from torchlike.distributed.collectives import all_reduce
from torchlike.distributed.point_to_point import P2POp, batch_isend_irecv
from torchlike.distributed.process_group import ReduceOp
from torchlike.distributed.work import Work

from ._stage import _PipelineStageBase
from .microbatch import TensorChunkSpec, _split_tensor, merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage

_TARGETS = TensorChunkSpec(0)


def _batch_p2p(p2p_ops: list[P2POp], desc: str | None = None) -> list[Work]:
    """Start sends and receives."""
    return batch_isend_irecv(p2p_ops) if p2p_ops else []


def _sorted_batch_p2p(p2p_ops: list[P2POp], desc: str | None = None) -> dict[int, list[Work]]:
    """Start sends and receives: what to wait for, by the other rank."""
    by_peer = defaultdict(list)
    for op in p2p_ops:
        by_peer[op.peer].append(op)
    return {peer: _batch_p2p(ops) for peer, ops in sorted(by_peer.items())}


def _wait_batch_p2p(work: Sequence[Work]) -> None:
    for w in work:
        w.wait()


class _PipelineSchedule(ABC):
    def __init__(
        self,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec, self._output_merge_spec = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        self._has_backward = loss_fn is not None
        self._backward_requires_autograd = True
        self._internal_losses: list[Tensor] = []
        self._prepared: bool | None = None  # for steps with a backward, or without; None: not yet

    @property
    @abstractmethod
    def _all_stages(self) -> list[_PipelineStageBase]:
        """This rank's."""

    @abstractmethod
    def _step_microbatches(
        self,
        arg_mbs: list | None = None,
        kwarg_mbs: list | None = None,
        target_mbs: list | None = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """One step, given the arguments of each microbatch."""

    def step(self, *args: Any, target: Any = None, losses: list | None = None, return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None,
             **kwargs: Any) -> Any:
        """One step on a whole batch: the rank of the last stage returns its outputs, and puts each microbatch's loss in `losses`.

        `args` are the first stage's, `kwargs` those of this rank's stages, `target` the loss function's. RuntimeError where gradients are disabled.
        """
        if self._has_backward and self._backward_requires_autograd and not torchlike.is_grad_enabled():
            raise RuntimeError("step() requires gradients to be enabled for backward computation; it should not be used under torch.no_grad() context. "
                               "Please call eval() instead.")
        for stage in self._all_stages:
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()
        args_split, kwargs_split = self._split_inputs(args, kwargs)
        targets = None if target is None else list(_split_tensor(target, _TARGETS, self._n_microbatches))
        self._step_microbatches(args_split, kwargs_split, targets, losses, return_outputs, loss_kwargs=loss_kwargs)
        last = next((s for s in self._all_stages if s.is_last), None)
        return None if last is None or not return_outputs else self._merge_outputs(last.output_chunks)

    def eval(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """`step` without a backward."""
        before, self._has_backward = self._has_backward, False
        try:
            return self.step(*args, target=target, losses=losses, **kwargs)
        finally:
            self._has_backward = before

    def _check_inputs(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None, target_mbs: list | None = None,
                      losses: list | None = None) -> tuple[list, list]:
        for name, given in (("arg_mbs", arg_mbs), ("kwarg_mbs", kwarg_mbs), ("target_mbs", target_mbs)):
            if given is None:
                continue
            if not isinstance(given, list):
                raise TypeError(f"{name} must be a list but got a {type(given)}")
            if len(given) != self._n_microbatches:
                raise ValueError(f"Expecting {self._n_microbatches} {name} but got {len(given)}")
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        return ([()] * self._n_microbatches if arg_mbs is None else arg_mbs), ([{}] * self._n_microbatches if kwarg_mbs is None else kwarg_mbs)

    def _split_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> tuple[list, list]:
        if args or kwargs:
            return split_args_kwargs_into_chunks(args, kwargs, self._n_microbatches, self._args_chunk_spec, self._kwargs_chunk_spec)
        return [()] * self._n_microbatches, [{}] * self._n_microbatches

    def _merge_outputs(self, output_chunks: list[Any]) -> Any:
        return merge_chunks(output_chunks, self._output_merge_spec)

    # -- losses --------------------------------------------------------------------------------------------------------------

    def _compute_loss(self, output: Any, target: Any, loss_kwargs: dict[str, Any] | None = None) -> Tensor:
        return self._loss_fn(output, target, **(loss_kwargs or {}))

    def _maybe_compute_loss(self, stage: _PipelineStageBase, output: Any, target_mbs: Any, mb_index: int, loss_kwargs: dict[str, Any] | None = None) -> None:
        if stage.is_last and self._loss_fn is not None:
            self._internal_losses.append(self._compute_loss(output, target_mbs[mb_index], loss_kwargs))

    def _maybe_get_loss(self, stage: _PipelineStageBase, mb_index: int) -> Tensor | None:
        known = 0 <= mb_index < len(self._internal_losses)
        if self._internal_losses and not known:
            raise RuntimeError(f"Loss for microbatch {mb_index} is not available. Available losses for microbatches: {self._internal_losses}")
        return self._internal_losses[mb_index] if known and stage.is_last and self._loss_fn is not None else None

    def _update_losses(self, stages: Any, losses: list | None) -> None:
        """After a step: the losses are the caller's."""
        stages = stages if isinstance(stages, list) else [stages]
        if losses is not None and any(s.is_last for s in stages):
            if len(self._internal_losses) != self._n_microbatches:
                raise RuntimeError(f"Expecting {self._n_microbatches} losses but got {len(self._internal_losses)}")
            losses[:] = self._internal_losses
        self._internal_losses.clear()

    # -- shapes --------------------------------------------------------------------------------------------------------------

    def _prepare(self, args: Any, kwargs: dict[str, Any], target: Any) -> None:
        """Before the first step, and where training and evaluation change: the stages learn what they receive, from the first microbatch.

        Nothing of it draws random numbers that a step would draw.
        """
        if self._prepared is self._has_backward:
            return
        stages = self._all_stages
        by_hand = [s for s in stages if isinstance(s, PipelineStage)]
        if len(by_hand) == len(stages):
            # a stage whose shapes are known would tell nothing to one that has to learn its own: all do the same
            votes = torchlike.tensor([all(s._knows_shapes for s in by_hand)], dtype=torchlike.int32)
            all_reduce(votes, ReduceOp.MIN, stages[0].group)
            for stage in by_hand:
                stage._static = bool(votes.item())
        devices = [d for d in {torchlike.device(s.device) for s in stages} if d.type != "cpu"]
        with torchlike.random.fork_rng(devices=devices, **({"device_type": devices[0].type} if devices else {})):
            passed = None
            for stage in stages:
                passed = stage._prepare_forward(self._n_microbatches, args if stage.is_first else passed, kwargs, self._has_backward)
            if self._has_backward:
                for stage in reversed(stages):
                    stage._prepare_backward(self._n_microbatches, self._loss_fn, target)
        self._prepared = self._has_backward
