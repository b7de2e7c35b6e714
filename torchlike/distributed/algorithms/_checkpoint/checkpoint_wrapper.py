"""Modules wrapped so that what they keep for the backward is computed again, or lies on the CPU. Names of parameters and of a
state_dict's entries stay those of the wrapped modules."""
from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import lambda_auto_wrap_policy, wrap_submodules

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which form of `torch.utils.checkpoint.checkpoint` is used."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module, ABC):
    """A module around another, which shows what the other has."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped module's result."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """The parameters under the wrapped module's names."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
        _rename(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _rename(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


def _rename(state_dict: dict[str, Any], old: str, new: str) -> None:
    """Entries whose names begin with `old` begin with `new`."""
    for name in [n for n in state_dict if n.startswith(old)]:
        state_dict[new + name[len(old):]] = state_dict.pop(name)


class OffloadWrapper(ActivationWrapper):
    """What is kept for the backward lies on the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped module's result."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """What the backward needs is computed again, by `checkpoint_fn` or torch's own."""

    def __init__(self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable | None = None,
                 **checkpoint_fn_kwargs: Any) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn, checkpoint_fn_kwargs = checkpoint, {"use_reentrant": checkpoint_impl is CheckpointImpl.REENTRANT, **checkpoint_fn_kwargs}
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped module's result."""
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)

        def run(*values: Any) -> Any:  # the reentrant form takes no keywords
            named = dict(zip(kwargs, values[len(args):]))
            return self._checkpoint_wrapped_module(*values[:len(args)], **named)
        return self.checkpoint_fn(run, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """The module, which keeps on the CPU what its backward needs."""
    return OffloadWrapper(module)


def checkpoint_wrapper(module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable | None = None,
                       **checkpoint_fn_kwargs: Any) -> Module:
    """The module, which computes again what its backward needs."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(model: Module, checkpoint_wrapper_fn: Callable[..., Module] = checkpoint_wrapper,
                                   check_fn: Callable[[Module], bool] = lambda _: True, auto_wrap_policy: Any = None) -> None:
    """Wraps, in place, the modules inside a model that `check_fn` or a policy (one of FSDP's) chooses."""
    policy = auto_wrap_policy if auto_wrap_policy is not None else functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_submodules(model, policy, checkpoint_wrapper_fn, {}, set(), set())
