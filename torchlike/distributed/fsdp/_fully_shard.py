"""fully_shard: a module's parameters lie in pieces over the ranks, and are whole while the module computes."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ..._tensor import Tensor
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...utils._pytree import tree_map_only
from ..device_mesh import DeviceMesh, init_device_mesh
from ..process_group import get_world_size
from ..tensor import Shard
from ._parameter_group import ParameterGroup
from ._places import Places, own_params
from ._policies import MixedPrecisionPolicy, OffloadPolicy

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


class UnshardHandle:
    """What `unshard(async_op=True)` returns: the parameters are whole after `wait()`."""

    def wait(self) -> None:
        """Nothing is left to wait for: parameters are gathered at once."""


class _State:
    """What a call of fully_shard leaves on its modules."""

    def __init__(self, modules: list[Module], group: ParameterGroup | None, mp_policy: MixedPrecisionPolicy, automatic: bool) -> None:
        self.modules, self.group, self.policy, self.automatic = modules, group, mp_policy, automatic
        self.is_root: bool | None = None

    def begin(self, module: Module) -> None:
        """The module whose forward is first called is the root; it keeps its whole parameters for the backward."""
        if self.is_root is None:
            for m in module.modules():
                if isinstance(m, FSDPModule):
                    m._get_fsdp_state().is_root = False
            self.is_root = True
            if self.automatic and self.group is not None:
                self.group.reshards_after_forward = False

    def before(self, module: Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        self.begin(module)
        if self.group is not None:
            self.group.unshard()
        if self.policy.cast_forward_inputs and self.policy.param_dtype is not None:
            args, kwargs = _cast((args, kwargs), self.policy.param_dtype)
        return args, kwargs

    def after(self, module: Module, args: tuple, output: Any) -> Any:
        if self.group is not None and self.group.reshards_after_forward:
            self.group.reshard()
        return output if self.policy.output_dtype is None else _cast(output, self.policy.output_dtype)


def _cast(x: Any, dtype: Any) -> Any:
    return tree_map_only(Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, x)


class FSDPModule:
    """The base that fully_shard puts before a module's own class."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the module's own class: a slice of a Sequential is made so."""
        own = cls.__mro__[2]
        made = own.__new__(own)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> _State:
        return self.__dict__["_fsdp_state"]

    def _groups(self, recurse: bool = True) -> list[ParameterGroup]:
        modules = self.modules() if recurse else [self]
        found = [m._get_fsdp_state().group for m in modules if isinstance(m, FSDPModule)]
        return list(dict.fromkeys(g for g in found if g is not None))

    def reshard(self) -> None:
        """Drop the whole parameters (of this module, not of those below) and hold pieces."""
        for group in self._groups(False):
            group.reshard()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the whole parameters (of this module, not of those below)."""
        for group in self._groups(False):
            group.unshard()
        return UnshardHandle() if async_op else None

    def reset_iter_state(self) -> None:
        """Forget an iteration that failed, and gradients that were not reduced."""
        for group in self._groups():
            group.reshard()
            group.forget()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether the next backward is the last of its iteration. Every backward ends its communication itself."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backwards reduce gradients; else they add up, whole, on each rank until one that does."""
        for group in self._groups(recurse):
            group.reduces = group.reduces_replicas = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backwards reduce gradients over replicas too (a mesh of two dimensions)."""
        for group in self._groups(recurse):
            group.reduces_replicas = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are dropped after a forward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for m in self.modules() if recurse else [self]:
            if isinstance(m, FSDPModule):
                state = m._get_fsdp_state()
                state.automatic = False
                if state.group is not None:
                    state.group.reshards_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether whole parameters are dropped after a backward."""
        for group in self._groups(recurse):
            group.reshards_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Modules to gather while this one computes; here each is gathered when it is called."""
        _all_sharded(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Modules to gather while this one's backward runs; here a backward needs no gathering."""
        _all_sharded(modules)

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether parameters are gathered for the backward. It uses those of the forward here, whatever this says."""

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by, in the place of the number of ranks."""
        for group in self._groups(False):
            group.divide_by = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        for group in self._groups():
            group.reshard()
        return super()._apply(*args, **kwargs)


def _all_sharded(modules: Iterable[Any]) -> None:
    for m in modules:
        if not isinstance(m, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(m)}: {m}")


def _no_copy(*args: Any, **kwargs: Any) -> NoReturn:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


@functools.cache
def _sharded_class(cls: type) -> type:
    return type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__deepcopy__": _no_copy})


def fully_shard(module: Module | list[Module], *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
                shard_placement_fn: Callable[[Parameter], Shard | None] | None = None, mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008
                offload_policy: OffloadPolicy = OffloadPolicy(), ignored_params: set[Parameter] | None = None) -> Any:  # noqa: B008
    """Cut the parameters of a module (or of several, as one group) into DTensors, but for those that a call on a submodule has cut already.

    They are gathered in one exchange before the module's forward, dropped after it (`reshard_after_forward`; the root keeps them by default), and
    their gradients are reduced to pieces of the mean in one exchange. A mesh of two dimensions replicates over the first. What the graph keeps for
    the backward keeps whole parameters too, and nothing is gathered again.
    """
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for m in modules:
        if isinstance(m, (ModuleList, ModuleDict)) and type(m).forward is Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {m}")
        if isinstance(m, FSDPModule):
            raise AssertionError("Each distinct composable distributed API can only be applied to a module once. fully_shard has already been applied to the "
                                 f"following module:\n{m}")
    if mesh is None:
        mesh = init_device_mesh("cpu", (get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        size = mesh.size(mesh.ndim - 1)
        if not 1 <= reshard_after_forward <= size or size % reshard_after_forward:
            raise ValueError("If passing reshard_after_forward as an int, it should be a factor of "
                             f"{size}, not {reshard_after_forward}")
        reshard_after_forward = reshard_after_forward > 1  # how many ranks share the pieces in between changes no result
    params = _managed(modules, ignored_params or set())
    group = ParameterGroup(params, mesh, shard_placement_fn, mp_policy, offload_policy) if params else None
    if group is not None:
        group.reshards_after_forward = reshard_after_forward is not False
    state = _State(modules, group, mp_policy, reshard_after_forward is None)
    for m in modules:
        m.__dict__["_fsdp_state"] = state
        m.register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
        m.register_forward_hook(state.after)
        if group is not None:
            m.register_state_dict_pre_hook(lambda *_: group.reshard())
            m.register_load_state_dict_pre_hook(lambda *_: group.reshard())
        m.__class__ = _sharded_class(type(m))
    return module


def _managed(modules: list[Module], ignored: set[Parameter]) -> list[tuple[Parameter, Places]]:
    """The parameters below the modules that no other call manages, with all their places."""
    found = own_params(modules, FSDPModule, ignored)
    if any(p.dim() == 0 for p, _ in found):
        raise ValueError("fully_shard doesn't support scalar parameters. Change the parameter to a 1D tensor with numel equal to 1.")
    return found


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method gather and drop parameters as forward does."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    own, state = getattr(module, method_name), module._get_fsdp_state()

    @functools.wraps(own)
    def wrapped(self: Module, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before(self, args, kwargs)
        return state.after(self, args, own(*args, **kwargs))
    setattr(module, method_name, wrapped.__get__(module, type(module)))


for _thing in (FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method):
    _thing.__module__ = "torch.distributed.fsdp"
