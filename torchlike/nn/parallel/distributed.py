"""DistributedDataParallel: each process has its part of the batch, and after a backward all have the mean of the gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from torchlike._tensor import Tensor
from torchlike.autograd.engine import queue_callback
from torchlike.autograd.grad_mode import is_grad_enabled
from torchlike.distributed import all_gather_object, arrays
from torchlike.distributed.algorithms.join import Join, Joinable, JoinHook
from torchlike.distributed.collectives import read, written
from torchlike.distributed.grad_bucket import GradBucket
from torchlike.distributed.process_group import default_group
from torchlike.nn.modules.module import Module
from torchlike.ops.creation import zeros_like
from torchlike.ops.from_data import from_numpy
from torchlike.utils._pytree import tree_map_only

__all__ = ["DistributedDataParallel"]

_FIRST_BUCKET, _MEGABYTE = 1 << 20, 1 << 20  # bytes; torch's first bucket is small, so that its reduction starts early


class _Joined(JoinHook):
    """Answers the collectives of a DistributedDataParallel whose process has no more inputs: its gradients are zeros."""

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self.ddp = ddp
        ddp._divide_by_all = divide_by_initial_world_size

    def main_hook(self) -> None:
        self.ddp._answer()

    def post_hook(self, is_last_joiner: bool) -> None:
        self.ddp._end_of_join(is_last_joiner)


class _Reducer:
    """What libraries ask a DistributedDataParallel's `reducer` for."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self._ddp = ddp

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Let the next backward reduce gradients, as a forward outside of `no_sync` does."""
        self._ddp._expects = True


class DistributedDataParallel(Module, Joinable):
    """Calls `module`, whose parameters and buffers start as those of rank 0.

    At the end of the first backward after a forward, gradients (what has accumulated in them included) become their mean over the processes of the group.
    State-dict names have `module.` in front. ValueError before `init_process_group`; RuntimeError if no parameter of `module`
    requires a gradient, or if some got none in a backward and `find_unused_parameters` is not set.
    """

    def __init__(
        self,
        module: Module,
        device_ids: list[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        if mixed_precision is not None or delay_all_reduce_named_params is not None or bucket_cap_mb_list is not None:
            raise RuntimeError("DistributedDataParallel: mixed_precision, delay_all_reduce_named_params and bucket_cap_mb_list are not supported yet by "
                               "torchlike")
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            process_group = device_mesh.get_group()
        self.process_group = default_group(process_group)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        if not any(p.requires_grad for _, p in named):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.module = module
        self.dim = dim
        self.device = next(module.parameters()).device
        self.device_type = self.device.type
        self.device_ids = None if not device_ids else list(device_ids)
        self.output_device = output_device
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._names, self._reduced = zip(*[(n, p) for n, p in named if p.requires_grad])
        self._shared_buffers = [b for n, b in module.named_buffers() if n not in ignored]
        self._bucket_bytes = 25 * _MEGABYTE if bucket_cap_mb is None else int(bucket_cap_mb * _MEGABYTE)
        self._hook: tuple[Any, Callable] | None = None
        self._expects = False  # whether the next backward reduces gradients: a forward outside of `no_sync` came before it
        self._arrived: set[int] = set()  # parameters whose gradient this backward has made
        self._missing: list[str] = []
        self._alone = self.process_group.size() == 1
        self._divide_by_all, self._running = True, self.process_group.size()  # inside a Join fewer processes may have inputs
        if not self._alone:
            if init_sync:
                self._agree(named)
                self._broadcast([p for _, p in named] + self._shared_buffers)
            self._watch()

    # -- forward -------------------------------------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        synchronizing = is_grad_enabled() and self.require_backward_grad_sync
        if not self._alone:
            Join.notify_join_context(self)
            if synchronizing and self._missing:
                raise RuntimeError(self._unfinished())
            self._begin(True, synchronizing)
        self._expects = self._expects or synchronizing
        if self.device_ids:
            inputs, kwargs = tree_map_only(Tensor, lambda t: t.to(self.device), (inputs, kwargs))
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """What goes forward inside only accumulates gradients in each process; the next that goes forward outside reduces them with its own."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @property
    def reducer(self) -> _Reducer:
        return _Reducer(self)

    def register_comm_hook(self, state: object, hook: Callable[[object, GradBucket], Any]) -> None:
        """`hook(state, bucket)` returns a torch.futures.Future of the tensor that the bucket's buffer becomes, instead of the mean."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self._hook = state, hook
        if self._alone:
            self._watch()

    def _set_static_graph(self) -> None:
        """Let every iteration use the same parameters, which need not be all of them."""
        self.static_graph = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What libraries read of the settings."""
        return {"backend_name": self.process_group.name(), "module_name": type(self.module).__name__, "rank": self.process_group.rank(),
                "world_size": self.process_group.size(), "num_parameter_tensors": len(self._reduced),
                "total_parameter_size_bytes": sum(p.numel() * p.element_size() for p in self._reduced), "bucket_cap_bytes": self._bucket_bytes,
                "broadcast_buffers": int(self.broadcast_buffers), "find_unused_parameters": int(self.find_unused_parameters),
                "gradient_as_bucket_view": int(self.gradient_as_bucket_view)}

    # -- processes without inputs ---------------------------------------------------------------------------------------------

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False) -> Join:
        """A context for a loop whose length differs between processes."""
        return Join([self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return _Joined(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        return self.device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    def _begin(self, mine: bool, synchronizing: bool) -> bool:
        """Before an iteration: buffers become those of one process. Whether the iteration reduces gradients."""
        group, source = self.process_group, 0
        if self._join_config.enable or not mine:
            flags = np.array([mine, synchronizing])
            states = arrays.all_gather(flags, [flags] * group.size(), group.rank(), group.exchange("DistributedDataParallel"))
            running = [r for r, (runs, _) in enumerate(states) if runs]
            source, self._running, synchronizing = running[-1], len(running), any(syncs for _, syncs in states)
        if self.require_forward_param_sync and self.broadcast_buffers:
            self._broadcast(self._shared_buffers, source)
        self.require_forward_param_sync = synchronizing
        return synchronizing

    def _answer(self) -> None:
        """An iteration of the other processes."""
        if self._begin(False, False):
            for bucket in self._buckets([self._reduced[i] for i in (self._used(set()) if self._asks else range(len(self._reduced)))]):
                self._mean(bucket, np.concatenate([np.zeros(p.numel(), p.dtype.np) for p in bucket.parameters()]))

    def _end_of_join(self, last: bool) -> None:
        group = self.process_group
        states = arrays.all_gather(np.array(last), [np.array(last)] * group.size(), group.rank(), group.exchange("DistributedDataParallel"))
        self._broadcast(list(self.module.parameters()) + self._shared_buffers, max(r for r, was_last in enumerate(states) if was_last))
        self._divide_by_all, self._running = True, group.size()

    # -- between processes ---------------------------------------------------------------------------------------------------

    def _agree(self, named: Sequence[tuple[str, Tensor]]) -> None:
        """RuntimeError unless every process has parameters of the same shapes."""
        mine = [(tuple(p.shape), p.dtype.name) for _, p in named]
        found: list = [None] * self.process_group.size()
        all_gather_object(found, mine, self.process_group)
        for rank, theirs in enumerate(found):
            if theirs != mine:
                raise RuntimeError(f"DDP expects same model across all ranks, but Rank {self.process_group.rank()} has {len(mine)} params, "
                                   f"while rank {rank} has inconsistent {len(theirs)} params.")

    def _broadcast(self, tensors: list[Tensor], source: int = 0) -> None:
        """The tensors become those of one rank, in one message."""
        if not tensors:
            return
        group = self.process_group
        held = [read(t) for t in tensors]
        flat = np.concatenate([np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in held])
        flat = arrays.broadcast(flat, source, group.rank(), group.size(), group.exchange("DistributedDataParallel"))
        if group.rank() == source:
            return
        for t, a, part in zip(tensors, held, np.split(flat, np.cumsum([a.nbytes for a in held])[:-1])):
            written(t, part.copy().view(a.dtype))

    def _watch(self) -> None:
        for i, p in enumerate(self._reduced):
            p.register_post_accumulate_grad_hook(lambda _, i=i: self._arrive(i))

    def _arrive(self, i: int) -> None:
        if not self._expects:
            return
        if not self._arrived:
            queue_callback(self._reduce)
        self._arrived.add(i)

    def _reduce_accumulated(self) -> None:
        """Reduce what backwards left in `.grad` that did not do it: of a pipeline, whose weights' gradients come in parts."""
        if not self._alone or self._hook is not None:
            self._arrived.update(i for i, p in enumerate(self._reduced) if p.grad is not None)
            self._reduce()

    def _reduce(self) -> None:
        """After a backward: every gradient becomes its mean over the processes."""
        arrived, self._arrived = self._arrived, set()
        wanted = self._used(arrived) if self._asks else range(len(self._reduced))
        self._missing = [] if self._asks else [self._names[i] for i in wanted if i not in arrived]
        if self._missing:
            return
        self._expects = False
        for i in wanted:
            if self._reduced[i].grad is None:  # another process used it
                self._reduced[i].grad = zeros_like(self._reduced[i])
        for bucket in self._buckets([self._reduced[i] for i in wanted]):
            self._reduce_bucket(bucket)

    @property
    def _asks(self) -> bool:
        """Whether some parameters may get no gradient, so that the processes ask each other which do."""
        return self.find_unused_parameters or self.static_graph

    def _used(self, arrived: set[int]) -> list[int]:
        """Parameters that got a gradient in some process."""
        group = self.process_group
        mine = np.zeros(len(self._reduced), bool)
        mine[list(arrived)] = True
        return np.flatnonzero(arrays.all_reduce(mine, "SUM", group.size(), group.rank(), group.exchange("DistributedDataParallel"))).tolist()

    def _buckets(self, parameters: list[Tensor]) -> list[GradBucket]:
        """Parameters of one dtype together, the last ones first: their gradients come first in a backward."""
        found: list[list[Tensor]] = []
        filling: dict[Any, list[Tensor]] = {}
        for p in reversed(parameters):
            bucket = filling.setdefault(p.dtype, [])
            if not bucket:
                found.append(bucket)
            bucket.append(p)
            limit = min(_FIRST_BUCKET, self._bucket_bytes) if bucket is found[0] else self._bucket_bytes
            if sum(q.numel() * q.element_size() for q in bucket) >= limit:
                del filling[p.dtype]
        return [GradBucket(i, bucket, i + 1 == len(found)) for i, bucket in enumerate(found)]

    def _reduce_bucket(self, bucket: GradBucket) -> None:
        grads = [p.grad for p in bucket.parameters()]
        if any(g.is_sparse for g in grads):
            raise RuntimeError("DistributedDataParallel of several processes takes no sparse gradients")
        flat = self._mean(bucket, np.concatenate([read(g).reshape(-1) for g in grads]))
        for g, part in zip(grads, np.split(flat, np.cumsum([g.numel() for g in grads])[:-1])):
            written(g, part)

    def _mean(self, bucket: GradBucket, flat: np.ndarray) -> np.ndarray:
        group = self.process_group
        if self._hook is None:
            share = flat.dtype.type(1 / (group.size() if self._divide_by_all else self._running))
            return arrays.all_reduce(flat * share, "SUM", group.size(), group.rank(), group.exchange("DistributedDataParallel"))
        bucket.set_buffer(from_numpy(flat).to(self.device))
        state, hook = self._hook
        return read(hook(state, bucket).wait())

    def _unfinished(self) -> str:
        return ("Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has "
                "parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument "
                "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs "
                f"participate in calculating loss.\nParameters which did not receive grad for rank {self.process_group.rank()}: "
                f"{', '.join(self._missing)}")
