"""ZeroRedundancyOptimizer: each process keeps the optimizer's state for its share of the parameters, updates those, and sends them to the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ...optim import Optimizer
from ...utils._pytree import tree_map
from ..algorithms.join import Join, Joinable, JoinHook
from ..collectives import broadcast
from ..objects import gather_object
from ..process_group import ProcessGroup, default_group, get_global_rank

__all__ = ["ZeroRedundancyOptimizer"]


def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    for given, group in zip(source, target, strict=True):
        group.update((k, v) for k, v in given.items() if k != "params")


class _Joined(JoinHook):
    """Sends this process's share of the parameters while others still have inputs."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """`param_groups` holds all parameters, `optim` (an `optimizer_class`) those of this process. Options are read from
    `param_groups` at each step. `parameters_as_bucket_view` says where PyTorch keeps parameters, which changes no value."""

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: ProcessGroup | None = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("torchlike: ZeroRedundancyOptimizer with overlap_with_ddp=True")
        self.process_group = default_group(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.global_rank = get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self.optim: Optimizer | None = None
        self._gathered: list[dict[str, Any]] = []
        super().__init__(_checked(params), defaults)
        self.optim = optimizer_class(self._shares()[self.rank], **defaults)
        _copy_options(self.optim.param_groups, self.param_groups)

    def _shares(self) -> list[list[dict[str, Any]]]:
        """The groups of each rank: the largest parameter goes to the rank that has least, group by group. So a group that is added moves nothing."""
        sizes = [0] * self.world_size
        shares: list[list[dict[str, Any]]] = [[] for _ in sizes]
        for group in self.param_groups:
            parts: list[list[Tensor]] = [[] for _ in sizes]
            for p in sorted(group["params"], key=Tensor.numel, reverse=True):
                rank = sizes.index(min(sizes))
                parts[rank].append(p)
                sizes[rank] += p.numel()
            for share, part in zip(shares, parts, strict=True):
                share.append({**group, "params": part})
        return shares

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """On all ranks."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self.optim.add_param_group(self._shares()[self.rank][-1])

    def step(self, closure: Callable[[], float] | None = None, **kwargs: Any) -> Any:
        """One step of this rank's parameters; then all ranks have all of them."""
        Join.notify_join_context(self)
        _copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        _copy_options(self.optim.param_groups, self.param_groups)
        sent = [broadcast(p.data, group=self.process_group, group_src=rank, async_op=True)
                for rank, groups in enumerate(self._shares()) for group in groups for p in group["params"]]
        for work in sent:
            work.wait()
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return _Joined(self)

    @property
    def join_device(self) -> Any:
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    # -- state dicts -----------------------------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather all states on the CPU of rank `to`, for its `state_dict`. On all ranks."""
        _copy_options(self.param_groups, self.optim.param_groups)
        own = tree_map(lambda x: x.cpu() if isinstance(x, Tensor) else x, self.optim.state_dict())
        self._gathered = [{}] * self.world_size if self.rank == to else []
        gather_object(own, self._gathered or None, group=self.process_group, group_dst=to)
        if self.rank == to:  # as `state_dict` of any optimizer, the tensors themselves
            self._gathered[to] = own

    def state_dict(self) -> dict[str, Any]:
        """As of one optimizer with all parameters. Raises RuntimeError where `consolidate_state_dict` did not gather."""
        if not self._gathered:
            raise RuntimeError("Optimizer state has not been consolidated on this rank. "
                               f"Please call `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state.")
        whole, numbers = super().state_dict(), self._numbers()
        states = {}
        for groups, part in zip(self._shares(), self._gathered, strict=True):
            ours = [p for group in groups for p in group["params"]]
            for number, state in part["state"].items():
                states[numbers[ours[number]]] = state
        whole["state"] = dict(sorted(states.items()))
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Each rank takes the states of its parameters from one of all."""
        super().load_state_dict({**state_dict, "state": {}})
        numbers, groups = self._numbers(), [dict(group) for group in self.optim.param_groups]
        _copy_options(self.param_groups, groups)
        ours = [numbers[p] for group in groups for p in group["params"]]
        local = {number: i for i, number in enumerate(ours)}
        for group in groups:
            group["params"] = [local[numbers[p]] for p in group["params"]]
        self.optim.load_state_dict({"state": {local[i]: state for i, state in state_dict["state"].items() if i in local}, "param_groups": groups})

    def _numbers(self) -> dict[Tensor, int]:
        return {p: i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}


def _checked(params: Any) -> list[Any]:
    """The parameters or groups, refused in torch's words."""
    if isinstance(params, Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {_name(params)}")
    try:
        given = list(params)
    except TypeError as error:
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {_name(params)}") from error
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    groups = [x for x in given if isinstance(x, dict)]
    if groups and len(groups) < len(given) or not all(isinstance(x, (Tensor, dict)) for x in given):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    if not all("params" in group for group in groups):
        raise ValueError("Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters in the group")
    kinds = [_name(p) for x in given for p in (([x["params"]] if isinstance(x["params"], Tensor) else list(x["params"])) if isinstance(x, dict) else [x])]
    if kinds and kinds[0].startswith("torch.sparse."):
        raise ValueError(f"ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got {kinds[0]}")
    other = next((kind for kind in kinds if kind != kinds[0]), None)
    if other:
        raise ValueError(f"ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both {kinds[0]} and {other}")
    return given


def _name(x: Any) -> str:
    from ...optim.optimizer import _typename
    return _typename(x)
