"""An optimizer of parameters that live at several workers: one at each of them."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from ...futures import Future
from .. import autograd, rpc

__all__ = ["DistributedOptimizer"]


class _LocalOptimizer:
    """The optimizer of one worker's parameters. Steps are taken one after the other, whoever asks for them."""

    global_lock = threading.Lock()  # parameters may belong to several optimizers

    def __init__(self, optim_cls: type, local_params_rref: list, *args: Any, **kwargs: Any) -> None:
        self.parameters = [rref.local_value() for rref in local_params_rref]
        self.optim = optim_cls(self.parameters, *args, **kwargs)

    def step(self, autograd_ctx_id: int) -> None:
        """A step by the gradients of a context alone: those in `.grad` are another's, and stay."""
        found = autograd.get_gradients(autograd_ctx_id)
        with self.global_lock:
            before = [p.grad for p in self.parameters]
            try:
                for p in self.parameters:
                    p.grad = found.get(p)
                self.optim.step()
            finally:
                for p, g in zip(self.parameters, before):
                    p.grad = g


def _new_local_optimizer(optim_cls: type, local_params_rref: list, *args: Any, **kwargs: Any) -> rpc.RRef:
    return rpc.RRef(_LocalOptimizer(optim_cls, local_params_rref, *args, **kwargs))


def _local_optimizer_step(local_optim_rref: rpc.RRef, autograd_ctx_id: int) -> None:
    local_optim_rref.local_value().step(autograd_ctx_id)


def _all(futures: list[Future]) -> list:
    """What they hold, once all are done; the last one's exception, if there is one."""
    found, failed = [], None
    for future in futures:
        try:
            found.append(future.wait())
        except Exception as error:
            failed = error
    if failed is not None:
        raise failed
    return found


class DistributedOptimizer:
    """`optimizer_class(parameters, *args, **kwargs)` at each worker that owns some of the parameters of `params_rref`, references to them."""

    def __init__(self, optimizer_class: type, params_rref: list, *args: Any, **kwargs: Any) -> None:
        at: dict[Any, list] = defaultdict(list)
        for rref in params_rref:
            at[rref.owner()].append(rref)
        self.remote_optimizers = _all([rpc.rpc_async(worker, _new_local_optimizer, (optimizer_class, rrefs, *args), kwargs) for worker, rrefs in at.items()])

    def step(self, context_id: int) -> None:
        """A step at every worker by the gradients of a context of torch.distributed.autograd, once all have taken it."""
        autograd._is_valid_context(context_id)
        _all([rpc.rpc_async(rref.owner(), _local_optimizer_step, (rref, context_id)) for rref in self.remote_optimizers])
