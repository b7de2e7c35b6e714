"""Optimizer: parameter groups, states, hooks and state dicts; what every optimizer has in common."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from .._core import program
from .._core.grad_mode import mode
from .._core.hook_handles import RemovableHandle
from .._public import SPARSE_FORMS
from .._tensor import Tensor
from ..autograd.grad_mode import enable_grad
from . import _rules, _sparse
from ._for_libraries import (
    DeviceDict,  # noqa: F401
    DeviceDtypeDict,  # noqa: F401
    GroupsTensors,
    _capturable_doc,  # noqa: F401
    _default_to_fused_or_foreach,  # noqa: F401
    _device_dtype_check_for_fused,
    _differentiable_doc,  # noqa: F401
    _disable_dynamo_if_unsupported,  # noqa: F401
    _foreach_doc,  # noqa: F401
    _fused_doc,  # noqa: F401
    _get_capturable_supported_devices,  # noqa: F401
    _get_scalar_dtype,  # noqa: F401
    _get_value,  # noqa: F401
    _maximize_doc,  # noqa: F401
    _params_doc,  # noqa: F401
    _stack_if_compiling,  # noqa: F401
    _view_as_real,  # noqa: F401
)

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
params_t = ParamsT
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
GlobalOptimizerPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]
_pre_hooks: dict[int, Callable] = OrderedDict()
_post_hooks: dict[int, Callable] = OrderedDict()


class _RequiredParameter:
    """The default of an option that has none."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(table: dict, hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """hook(optimizer, args, kwargs) before every optimizer's step; may return new (args, kwargs)."""
    return _register(_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """hook(optimizer, args, kwargs) after every optimizer's step."""
    return _register(_post_hooks, hook)


def _typename(x: Any) -> str:
    if isinstance(x, Tensor):
        return x.type()
    kind = x if isinstance(x, type) else type(x)
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", None) else f"{module}.{kind.__qualname__}"


def _use_grad_for_differentiable(step: Callable) -> Callable:
    """Runs a step outside autograd, unless the optimizer is differentiable."""

    @functools.wraps(step)
    def run(*args, **kwargs):
        before, mode.enabled = mode.enabled, bool(args[0].defaults.get("differentiable"))
        try:
            return step(*args, **kwargs)
        finally:
            mode.enabled = before

    return run


def closure_loss(closure: Callable | None) -> Any:
    """The closure's result, computed with gradients; None without a closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def _with_hooks(step: Callable) -> Callable:
    """The hooks around a step, and the natural end of a program after it."""

    @functools.wraps(step)
    def run(*args, **kwargs):
        self = args[0]
        for hook in chain(_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        inner = self.__dict__.get("_in_step", False)
        capture = None if inner else program.state.capture
        if capture is not None:
            capture.begin_step(self, args[1:] or kwargs or None)
        self._in_step = True
        try:
            out = step(*args, **kwargs)
        finally:
            self._in_step = inner
        if capture is not None:
            capture.end_step(self)
        for hook in chain(self._optimizer_step_post_hooks.values(), _post_hooks.values()):
            hook(self, args, kwargs)
        if not inner:
            program.cut("end of optimizer step")
        return out

    run.hooked = True
    return run


class Optimizer(GroupsTensors):
    """The base of all optimizers: `step` of a subclass reads `self.param_groups` and keeps what it needs in `self.state`.

    `params` are tensors, (name, tensor) pairs, or dicts with 'params' and options that differ from `defaults`.
    """

    OptimizerPreHook: TypeAlias = Callable
    OptimizerPostHook: TypeAlias = Callable
    _newer_options: dict[str, Any] = {}  # what older pickles lack, and its value then
    _unchecked_fused = False  # with `fused=True`, until the first step

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._set_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + _typename(params)
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)
        self._warned_capturable_if_run_uncaptured = True
        program.cut("optimizer made")  # the initial values are not part of the first step, which is then the same program as the others

    def _set_hooks(self) -> None:
        for name in (
            "step_pre",
            "step_post",
            "state_dict_pre",
            "state_dict_post",
            "load_state_dict_pre",
            "load_state_dict_post",
        ):
            self.__dict__.setdefault(f"_optimizer_{name}_hooks", OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        step = self.__class__.step
        if not getattr(step, "hooked", None):
            self.__class__.step = _with_hooks(step)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_hooks()
        self.defaults.setdefault("differentiable", False)
        if self._newer_options:
            self._renew()

    def __repr__(self) -> str:
        groups = [
            "\n".join([f"\nParameter Group {i}", *(f"    {k}: {group[k]}" for k in sorted(group) if k != "params")])
            for i, group in enumerate(self.param_groups)
        ]
        return f"{self.__class__.__name__} (" + "\n".join(groups) + "\n)"

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """hook(optimizer, args, kwargs) before `step`; may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """hook(optimizer, args, kwargs) after `step`."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer) before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer, state_dict) -> None or another state dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer, state_dict) -> None or another state dict to load."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer) after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # -- state dicts ---------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{'state': by parameter number, 'param_groups': options, and the numbers of the groups' parameters}."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            groups.append(
                {
                    **{k: v for k, v in group.items() if k != "params"},
                    "params": [numbers[id(p)] for p in group["params"]],
                }
            )
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        out = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, out)
            if result is not None:
                out = result
        return out

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: int, param_groups: list[dict], key: Hashable = None
    ) -> Tensor:
        """A loaded state tensor in its parameter's dtype and device; counts of steps stay as they are."""
        if key == "step":
            group = next((g for g in param_groups if param_id in g["params"]), {})
            if group.get("capturable") or group.get("fused"):
                from .._core.dtype import float32

                return value.to(dtype=float32, device=param.device)
            return value
        return (
            value.to(dtype=param.dtype, device=param.device)
            if param.is_floating_point()
            else value.to(device=param.device)
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave. Raises ValueError when the groups do not fit."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = dict(
            zip(chain.from_iterable(g["params"] for g in saved), chain.from_iterable(g["params"] for g in groups))
        )

        def fit(param, value, number, key=None):
            if isinstance(value, Tensor):
                return Optimizer._process_value_according_to_param_policy(
                    param, value, number, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: fit(param, v, number, k) for k, v in value.items()}
            if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
                return type(value)(fit(param, v, number) for v in value)
            return value

        state: defaultdict[Tensor, Any] = defaultdict(dict)
        for k, v in state_dict["state"].items():
            if k in params:
                state[params[k]] = fit(params[k], v, k)
            else:
                state[k] = v
        for group, new in zip(groups, saved):
            new["params"] = group["params"]
            if "param_names" in group and "param_names" not in new:
                new["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # -- use -----------------------------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop all gradients, or fill them with zeros."""
        if program.state.capture is not None:
            program.state.capture.asks_for_gradients(p for group in self.param_groups for p in group["params"])
        for group in self.param_groups:
            for p in group["params"]:
                grad = p._grad
                if grad is None:
                    continue
                if set_to_none:
                    p._grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()
        program.run_waiting()

    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once; `closure` computes the loss again."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add {'params': ..., options}. Raises TypeError and ValueError for what cannot be optimized."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        params = param_group["params"] = list(params)
        if params and isinstance(params[0], tuple):
            if not all(isinstance(p, tuple) for p in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["params"] = [p for _, p in params]
            param_group["param_names"] = [name for name, _ in params]
        elif any(isinstance(p, tuple) for p in params):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        for p in param_group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_typename(p)}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(map(id, params)):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            added = "with" if "param_names" in param_group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {added} names to the optimizer"
            )
        self.param_groups.append(param_group)

    def _has_step_hooks(self) -> bool:
        """Whether anything runs before or after a step."""
        return bool(_pre_hooks or _post_hooks or self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks)

    # -- for the optimizers of this package ------------------------------------------------------------------------------

    def _groups_to_step(self) -> list[dict[str, Any]]:
        """The groups that a step updates. With `fused=True` a GradScaler leaves it to the optimizer to skip a step whose gradients overflowed, and
        to unscale them: `found_inf` and `grad_scale` are the optimizer's attributes meanwhile."""
        found, scale = getattr(self, "found_inf", None), getattr(self, "grad_scale", None)
        if found is not None and found.item():
            return []
        if scale is not None:
            for group in self.param_groups:
                for p in group["params"]:
                    if p._grad is not None:
                        p._grad.div_(scale.to(p.device))
        return self.param_groups

    def _updates(self, group: dict[str, Any], names: tuple[str, ...], create: Callable[[dict, Tensor], None] | None):
        """What a step of `group` updates: (step number or None, parameters, gradients, state columns) per recorded operation.

        `create(state, p)` fills a new state. Parameters with another count of steps or device are other operations.
        """
        params = [p for p in group["params"] if p._grad is not None]
        if _rules.meet(params):  # named twice (a GP's likelihood beside the model that holds it), or tied by their memory: updated twice
            for again in _rules.rounds(params):
                yield from self._updates({**group, "params": again}, names, create)
            return
        if self._unchecked_fused and params:
            _device_dtype_check_for_fused(params[0])
            self._unchecked_fused = False
        if SPARSE_FORMS:
            _sparse.refuse("Adam" if "decoupled_weight_decay" in self.defaults and "amsgrad" in self.defaults else self.__class__.__name__, params)
        state = self.state
        states = [state[p] for p in params] if names or create else ()
        if create is not None:
            for s, p in zip(states, params):
                if not s:
                    create(s, p)
                    if hasattr(p, "_lay_state"):
                        p._lay_state(s)
        if not params:
            return
        if group.get("capturable") and any(p._value.aval.device.type == "cpu" for p in params):
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported devices: "
                "['cuda', 'xpu', 'hpu', 'privateuseone', 'xla']."
            )
        grads = [p._grad for p in params]
        columns = [[s[name] for s in states] for name in names]
        steps = [s["step"] for s in states] if states and "step" in states[0] else ()
        for number, where in _rules.advance(steps) if steps else [(None, range(len(params)))]:
            for part in _rules.by_device(params, where):
                if len(part) == len(params):
                    yield number, params, grads, columns
                else:
                    yield (
                        number,
                        [params[i] for i in part],
                        [grads[i] for i in part],
                        [[c[i] for i in part] for c in columns],
                    )

    def _renew(self) -> None:
        """Give an older pickle the options it lacks, and tensors for the counts of steps that it kept as numbers."""
        for group in self.param_groups:
            for name, value in self._newer_options.items():
                group.setdefault(name, value)
            for p in group["params"]:
                s = self.state.get(p)
                if s and "step" in s and not isinstance(s["step"], Tensor):
                    on_device = group.get("capturable") or group.get("fused")
                    s["step"] = _rules.step_tensor(float(s["step"]), p.device if on_device else None)


def check_learning_rate(lr: float | Tensor, foreach: bool | None = None, capturable: bool = False) -> None:
    """torch's ValueErrors for a learning rate."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_one_element(lr)
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_one_element(lr: float | Tensor) -> None:
    """ValueError for a learning rate that is a larger tensor."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_not_negative(**options: float) -> None:
    """ValueError for the first option below zero."""
    for name, value in options.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: tuple) -> None:
    """ValueError for a decay rate outside [0, 1)."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused(optimizer: Optimizer, fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """torch's RuntimeErrors for `fused` with what it excludes. One fused program is what we always run."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        optimizer._step_supports_amp_scaling = optimizer._unchecked_fused = True
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
