"""FullyShardedDataParallel: a unit's parameters lie flat in pieces over the ranks, and are whole while the unit computes."""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..._core.device import resolve
from ..._core.dtype import float32
from ..._functions import torch
from ..._tensor import Tensor
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...nn.utils.clip_grad import clip_grad_norm_
from ...utils._pytree import tree_map_only
from ..collectives import all_reduce, broadcast
from ..device_mesh import DeviceMesh
from ..process_group import ProcessGroup, ReduceOp, default_group, get_rank
from ..tensor import DTensor, Shard, distribute_tensor
from . import _optim_state
from ._flat_param import FlatHandle, FlatParameter  # noqa: F401
from ._places import own_modules, own_params
from .api import (  # noqa: F401
    CONFIGS,
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
    whole_states,
)
from .wrap import wrap_submodules

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_WRAPPED = "_fsdp_wrapped_module"
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


class FullyShardedDataParallel(Module):
    """Wraps a module as one unit: its parameters, but for those of units below it, become one flat vector of which each rank keeps a piece.

    With `use_orig_params` the optimizer sees each parameter's part of the piece under its own name, else the piece (`_flat_param`). `auto_wrap_policy`
    makes submodules units first. Gradients are the mean over all ranks.
    """

    def __init__(self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None, cpu_offload: CPUOffload | None = None,
                 auto_wrap_policy: Any = None, backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
                 mixed_precision: MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None,
                 param_init_fn: Callable[[Module], None] | None = None, device_id: Any = None, sync_module_states: bool = False,
                 forward_prefetch: bool = False, limit_all_gathers: bool = True, use_orig_params: bool = False, ignored_states: Iterable[Any] | None = None,
                 device_mesh: DeviceMesh | None = None) -> None:
        super().__init__()
        if isinstance(module, (ModuleList, ModuleDict)):
            warnings.warn(f"FSDP will not all-gather parameters for containers that do not implement forward: {module}", stacklevel=2)
        if ignored_modules is not None and ignored_states is not None:
            raise ValueError("Cannot pass both ignored_modules and ignored_states at the same time. Please just pass ignored_states.")
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        self.sharding_strategy, self.mixed_precision = strategy, mixed_precision or MixedPrecision()
        self.cpu_offload, self._use_orig_params, self._device_mesh = cpu_offload or CPUOffload(), use_orig_params, device_mesh
        self._groups(process_group, device_mesh, auto_wrap_policy)
        skipped_modules, skipped = _ignored(ignored_modules, ignored_states)
        self._ignored_params = skipped
        settings = {
            "process_group": process_group, "sharding_strategy": sharding_strategy, "cpu_offload": cpu_offload, "backward_prefetch": backward_prefetch,
            "mixed_precision": mixed_precision, "param_init_fn": param_init_fn, "device_id": device_id, "sync_module_states": sync_module_states,
            "forward_prefetch": forward_prefetch, "limit_all_gathers": limit_all_gathers, "use_orig_params": use_orig_params, "ignored_states": skipped,
            "device_mesh": device_mesh,
        }
        if strategy in _HYBRID and device_mesh is None:
            settings["process_group"] = self.process_group, self._inter_node_pg
        if auto_wrap_policy is not None:
            wrap_submodules(module, auto_wrap_policy, FullyShardedDataParallel, settings, skipped_modules, skipped)
        params = own_params([module], FullyShardedDataParallel, skipped)
        if any(p.is_meta for p, _ in params):
            _give_memory(module, param_init_fn, device_id)
            params = own_params([module], FullyShardedDataParallel, skipped)
        if device_id is not None:
            device = resolve(device_id if not isinstance(device_id, int) else f"cuda:{device_id}")
            for p, _ in params:
                p.data = p.data.to(device)
        self.compute_device = params[0][0].device if params else resolve("cpu")
        if sync_module_states:
            for t in [p for p, _ in params] + [b for m in own_modules([module], FullyShardedDataParallel) for b in m._buffers.values() if b is not None]:
                for group in (self.process_group, self._inter_node_pg):
                    if isinstance(group, ProcessGroup):
                        broadcast(t.data, group=group, group_src=0)
        self._is_root: bool | None = None
        self._state_settings = whole_states()
        self._summoned = False
        shards = None if self.sharding_strategy is ShardingStrategy.NO_SHARD else self.process_group
        replicas = self.process_group if strategy is ShardingStrategy.NO_SHARD else self._inter_node_pg
        self._handle = FlatHandle(module, params, shards, replicas, use_orig_params, self.mixed_precision, self.compute_device,
                                  self.cpu_offload.offload_params) if params else None
        self._fsdp_wrapped_module = module
        self.register_load_state_dict_post_hook(lambda m, keys: m._end_loading(keys))

    def _groups(self, given: Any, mesh: DeviceMesh | None, policy: Any) -> None:
        self._inter_node_pg: ProcessGroup | None = None
        if mesh is not None and given is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them.")
        if self.sharding_strategy in _HYBRID:
            if mesh is not None and mesh.ndim != 2:
                raise ValueError("Expected device_mesh to have ndim=2 but got " + str(mesh.ndim))
            if mesh is None and given is None and policy is None:
                raise ValueError(f"Manual wrapping with {self.sharding_strategy} requires explicit specification of process group or device_mesh.")
            if mesh is None and not isinstance(given, tuple):
                raise ValueError(f"torchlike does not know which ranks share a machine: {self.sharding_strategy} needs a device_mesh or a pair of process groups")
            self.process_group, self._inter_node_pg = (mesh.get_group(1), mesh.get_group(0)) if mesh is not None else given
        else:
            self.process_group = mesh.get_group(0) if mesh is not None else default_group(given)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        if self.world_size == 1:
            self.sharding_strategy = ShardingStrategy.NO_SHARD

    # -- the wrapped module ------------------------------------------------------------------------------------------------

    @property
    def module(self) -> Module:
        """The wrapped module."""
        return self._modules[_WRAPPED]

    @property
    def _flat_param(self) -> Parameter | None:
        return None if self._handle is None or self._use_orig_params else self._handle.leaves[0]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_WRAPPED), name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]

    def check_is_root(self) -> bool:
        """Whether no unit is above this one."""
        self._begin()
        return bool(self._is_root)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The units in a module, or those that are roots."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return [m for m in found if m.check_is_root()] if root_only else found

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """fn of every submodule, while parameters are whole."""
        with contextlib.nullcontext() if self._summoned else _summoned([self], True, False, False):
            return super().apply(fn)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """As of the wrapped module while parameters are summoned."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(_WRAPPED + ".", "") if self._summoned else name, p

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """As of the wrapped module while parameters are summoned."""
        for name, b in super().named_buffers(*args, **kwargs):
            yield name.replace(_WRAPPED + ".", "") if self._summoned else name, b

    # -- running ---------------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """The first unit that is asked is the root; it names the parameters."""
        if self._is_root is not None:
            return
        for m in FullyShardedDataParallel.fsdp_modules(self):
            m._is_root = m is self
        if self.mixed_precision.buffer_dtype is not None:
            for b in self.buffers():
                if b.is_floating_point():
                    b.data = b.data.to(self.mixed_precision.buffer_dtype)
        _name_members(self)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped module's forward, with whole parameters."""
        self._begin()
        precision = self.mixed_precision
        if precision.param_dtype is not None and (precision.cast_forward_inputs or self._is_root and precision.cast_root_forward_inputs):
            args, kwargs = tree_map_only(Tensor, lambda t: t.to(precision.param_dtype) if t.is_floating_point() else t, (args, kwargs))
        if self._handle is None or self._summoned:
            return self.module(*args, **kwargs)
        self._handle.unshard()
        try:
            return self.module(*args, **kwargs)
        finally:
            self._handle.show_pieces()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, backwards add up whole gradients on each rank; the next one outside reduces them with its own."""
        self._begin()
        if not self._is_root:
            raise RuntimeError("`no_sync()` on inner FSDP instances is not supported. Please call `no_sync()` on root FSDP module.")
        handles = [m._handle for m in FullyShardedDataParallel.fsdp_modules(self) if m._handle is not None]
        before = [h.reduces for h in handles]
        for h in handles:
            h.reduces = False
        try:
            yield
        finally:
            for h, was in zip(handles, before):
                h.reduces = was

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients together so that their norm over all ranks is at most `max_norm`; the norm before."""
        self._begin()
        if not self._is_root:
            raise RuntimeError("`clip_grad_norm_()` should only be called on the root FSDP instance")
        handles = [m._handle for m in FullyShardedDataParallel.fsdp_modules(self) if m._handle is not None]
        if all(h.shards is None for h in handles):
            return clip_grad_norm_(self.parameters(), max_norm, norm_type)
        norm_type = float(norm_type)
        cut = {id(x): x for h in handles if h.shards is not None for x in h.leaves}
        both = [list(cut.values()), [p for p in self.parameters() if id(p) not in cut]]
        total = _norm(both[0], norm_type, self.compute_device)
        if norm_type == float("inf"):
            total = total.maximum(_norm(both[1], norm_type, self.compute_device))
            all_reduce(total, ReduceOp.MAX, self.process_group)
        else:
            total = total ** norm_type
            all_reduce(total, group=self.process_group)
            total = (total + _norm(both[1], norm_type, self.compute_device) ** norm_type) ** (1 / norm_type)
        scale = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
        for p in [*both[0], *both[1]]:
            if p.grad is not None:
                p.grad.mul_(scale.to(p.grad.device, p.grad.dtype))
        return total

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False, offload_to_cpu: bool = False,
                           with_grads: bool = False) -> Iterator[None]:
        """Inside, parameters are whole and have their own names; what is written into them is kept if `writeback`."""
        if writeback and rank0_only:
            raise NotImplementedError("writeback=True and rank0_only=True is not supported, as model parameter shapes will be different across ranks, and "
                                      "writing to them can lead to inconsistencies across ranks when the context is exited.")
        units = FullyShardedDataParallel.fsdp_modules(module)
        for m in FullyShardedDataParallel.fsdp_modules(module, root_only=True):
            m._begin()
        if not recurse:
            units = [m for m in units if m is module]
        with _summoned(units, writeback, offload_to_cpu, with_grads, rank0_only):
            yield

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        made = super()._apply(*args, **kwargs)
        if self._handle is not None:
            h = self._handle
            for i, leaf in enumerate(h.leaves):  # conversions may have made new parameters
                module, name = (h.members[i].places[0]) if h.own_names else (self.module, "_flat_param")
                h.leaves[i] = module._parameters.get(name, leaf)
            h.device = self.compute_device = h.leaves[0].device
            h.dtype = h.leaves[0].dtype
        return made

    # -- states of the module ----------------------------------------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
                            optim_state_dict_config: OptimStateDictConfig | None = None) -> StateDictSettings:
        """What `state_dict` of all units gives from now on; the settings before."""
        kinds = CONFIGS[state_dict_type]
        configs = [kind() if given is None else given for kind, given in zip(kinds, (state_dict_config, optim_state_dict_config))]
        for config, kind in zip(configs, kinds):
            if type(config) is not kind:
                raise RuntimeError(f"Expected config of type {kind} but got {type(config)}")
        units = FullyShardedDataParallel.fsdp_modules(module)
        before = units[0]._state_settings if units else whole_states()
        for m in units:
            m._state_settings = StateDictSettings(state_dict_type, *configs)
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What `state_dict` of the units gives."""
        found = [m._state_settings for m in FullyShardedDataParallel.fsdp_modules(module)]
        if any(s != found[0] for s in found):
            raise AssertionError("All FSDP modules must have the same state dict settings.")
        return found[0] if found else whole_states()

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
                        optim_state_dict_config: OptimStateDictConfig | None = None) -> Iterator[None]:
        """Inside, `state_dict` of all units gives this."""
        before = FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """The wrapped module's state, as `state_dict_type` says."""
        self._begin()
        handle, settings = self._handle, self._state_settings
        local = settings.state_dict_type is StateDictType.LOCAL_STATE_DICT
        summoned = handle is None or local or self._summoned
        if not summoned:
            handle.summon()
        made = self.module.state_dict(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        own = {prefix + _below(self, m.name) for m in handle.members} if handle is not None else set()
        if local and handle is not None:
            if handle.own_names:
                own = set()
            else:
                own = {prefix + "_flat_param"}
                made[prefix + "_flat_param"] = DTensor.from_local(handle.leaves[0].detach(), self._mesh(), [Shard(0)])
        if not summoned:
            handle.show_pieces()
        config = settings.state_dict_config
        for name in [n for n in made if n.startswith(prefix)]:
            if getattr(config, "rank0_only", False) and get_rank() != 0:
                del made[name]
            elif name in own and settings.state_dict_type is StateDictType.SHARDED_STATE_DICT and not isinstance(made[name], DTensor):
                made[name] = self._spread(handle, made[name])
            elif config.offload_to_cpu and isinstance(made[name], Tensor):
                made[name] = made[name].cpu()
        return made

    def _mesh(self) -> DeviceMesh:
        if self._device_mesh is None:
            self._device_mesh = DeviceMesh(self.compute_device.type, self.process_group.ranks)
        return self._device_mesh if self._device_mesh.ndim == 1 else self._device_mesh[self._device_mesh.mesh_dim_names[1]]

    def _spread(self, handle: FlatHandle, t: Tensor) -> Tensor:
        return distribute_tensor(t.detach(), self._mesh(), [Shard(0)], src_data_rank=None) if t.dim() else t

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        self._begin()
        for name in [n for n in state_dict if n.startswith(prefix) and not n.startswith(prefix + _WRAPPED)]:
            x = state_dict.pop(name)
            if isinstance(x, DTensor):
                x = x.to_local() if name.endswith("_flat_param") else x.full_tensor()
            state_dict[f"{prefix}{_WRAPPED}.{name.removeprefix(prefix)}"] = x
        if self._handle is not None and self._state_settings.state_dict_type is not StateDictType.LOCAL_STATE_DICT and not self._summoned:
            self._handle.summon()
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _end_loading(self, keys: Any) -> None:
        """After a load: what was loaded into whole parameters goes into the pieces."""
        for names in keys:
            names[:] = [n.replace(_WRAPPED + ".", "") for n in names]
        if self._handle is not None and self._handle.whole is not None and not self._summoned:
            self._handle.write_back()
            self._handle.show_pieces()

    # -- states of optimizers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: dict[str, Any] | None = None, group: Any = None) -> dict[str, Any]:
        """The optimizer's state with parameters by name, as `state_dict_type` says: whole or as DTensors."""
        _begin_all(model)
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        first = FullyShardedDataParallel.fsdp_modules(model)[0]
        return _optim_state.named_state(model, optim, optim_state_dict, settings.state_dict_type, config.offload_to_cpu,
                                        getattr(config, "rank0_only", False), first._spread)

    @staticmethod
    def optim_state_dict_to_load(model: Module, optim: Any, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False,
                                 load_directly: bool = False, group: Any = None) -> dict[str, Any]:
        """What `optim.load_state_dict` takes, of what `optim_state_dict` gave; where rank 0 alone has it, of its."""
        _begin_all(model)
        config = FullyShardedDataParallel.get_state_dict_type(model).optim_state_dict_config
        if getattr(config, "rank0_only", False):
            optim_state_dict = _optim_state.from_rank0(optim_state_dict, group)
        made = _optim_state.numbered_state(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(made)
        return made

    @staticmethod
    def full_optim_state_dict(model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None) -> dict[str, Any]:
        """Whole states by name, on rank 0 alone by default."""
        _begin_all(model)
        return _optim_state.named_state(model, optim, None, StateDictType.FULL_STATE_DICT, True, rank0_only, None)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Any, group: Any = None) -> dict[str, Any]:
        """States by name as DTensors."""
        _begin_all(model)
        first = FullyShardedDataParallel.fsdp_modules(model)[0]
        return _optim_state.named_state(model, optim, None, StateDictType.SHARDED_STATE_DICT, False, False, first._spread)

    @staticmethod
    def shard_full_optim_state_dict(full_optim_state_dict: dict[str, Any], model: Module, optim_input: Any = None, optim: Any = None) -> dict[str, Any]:
        """This rank's pieces of whole states."""
        _begin_all(model)
        return _optim_state.numbered_state(model, optim, full_optim_state_dict)

    @staticmethod
    def flatten_sharded_optim_state_dict(sharded_optim_state_dict: dict[str, Any], model: Module, optim: Any) -> dict[str, Any]:
        """This rank's pieces of states that are DTensors."""
        _begin_all(model)
        return _optim_state.numbered_state(model, optim, sharded_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(full_optim_state_dict: dict[str, Any] | None, model: Module, optim_input: Any = None, optim: Any = None,
                                      group: Any = None) -> dict[str, Any]:
        """This rank's pieces of whole states that rank 0 has."""
        _begin_all(model)
        return _optim_state.numbered_state(model, optim, _optim_state.from_rank0(full_optim_state_dict, group))

    @staticmethod
    def rekey_optim_state_dict(optim_state_dict: dict[str, Any], optim_state_key_type: OptimStateKeyType, model: Module, optim_input: Any = None,
                               optim: Any = None) -> dict[str, Any]:
        """States with parameters by name or by number, for a model that is not wrapped."""
        return _optim_state.rekeyed(optim_state_dict, optim_state_key_type, model)


# -- helpers -------------------------------------------------------------------------------------------------------------------


def _ignored(modules: Iterable[Module] | None, states: Iterable[Any] | None) -> tuple[set[Module], set[Parameter]]:
    """Modules and parameters that stay as they are."""
    states = list(states or ())
    given = [*(modules or ()), *[s for s in states if isinstance(s, Module)]]
    below = {m for g in given for m in g.modules() if not isinstance(m, FullyShardedDataParallel)}
    return below, {s for s in states if isinstance(s, Parameter)} | {p for g in given for p in g.parameters()}


def _give_memory(module: Module, init: Callable[[Module], None] | None, device_id: Any) -> None:
    """Make the parameters of a module that has none in memory: by `param_init_fn`, or by the modules themselves."""
    for m in list(own_modules([module], FullyShardedDataParallel)):
        if any(p is not None and p.is_meta for p in m._parameters.values()):
            if init is not None:
                init(m)
            else:
                m.to_empty(device=resolve("cpu" if device_id is None or isinstance(device_id, int) else device_id), recurse=False)
                m.reset_parameters()


@contextlib.contextmanager
def _summoned(units: list[FullyShardedDataParallel], writeback: bool, on_host: bool, with_grads: bool, rank0_only: bool = False) -> Iterator[None]:
    for m in units:
        if m._summoned:
            raise AssertionError("parameters are summoned already")
        m._summoned = True
        if m._handle is not None:
            m._handle.summon(with_grads, "cpu" if on_host else None)
            if rank0_only and get_rank() != 0:
                m._handle.show_pieces()
    try:
        yield
    finally:
        for m in units:
            m._summoned = False
            if m._handle is not None:
                if writeback or m._handle.shards is None:  # then there is only the one place to write to
                    m._handle.write_back(with_grads)
                m._handle.show_pieces()


def _begin_all(model: Module) -> None:
    for m in FullyShardedDataParallel.fsdp_modules(model, root_only=True):
        m._begin()
    _name_members(model)


def _name_members(model: Module) -> None:
    """Give the units' parameters their names in the model."""
    names = {id(m): n.replace(_WRAPPED + ".", "").removesuffix(_WRAPPED) for n, m in model.named_modules()}
    for unit in FullyShardedDataParallel.fsdp_modules(model):
        for member in unit._handle.members if unit._handle is not None else ():
            module, name = member.places[0]
            above = names[id(module)].rstrip(".")
            member.name = f"{above}.{name}" if above else name
        unit._name = names[id(unit)].rstrip(".")


def _below(unit: FullyShardedDataParallel, name: str) -> str:
    """A parameter's name as of its unit."""
    return name.removeprefix(unit._name + ".") if unit._name else name


def _norm(params: list[Parameter], norm_type: float, device: Any) -> Tensor:
    """The norm of these gradients on this rank, in single precision."""
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0, device=device)
    norms = [torch.linalg.vector_norm(g.detach(), norm_type, dtype=float32) for g in grads if g.numel()]
    return torch.linalg.vector_norm(torch.stack(norms or [torch.tensor(0.0)]), norm_type).to(device)
