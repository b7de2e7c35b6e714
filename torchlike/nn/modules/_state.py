"""`state_dict` and `load_state_dict`: the part of Module that turns it into named tensors and back."""
from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torchlike.__future__ as future
from torchlike._core.hook_handles import RemovableHandle
from torchlike._tensor import Tensor
from torchlike.autograd.grad_mode import no_grad
from torchlike.nn.modules._hooks import _add, _WrappedHook
from torchlike.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns: keys the module wanted and keys it has no use for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` swaps with this tensor under `torch.__future__.set_swap_module_params_on_conversion(True)`."""
    return other.detach() if assign else self.copy_(other).detach()


Tensor.module_load = module_load


def _swap_in(param: Tensor, given: Tensor, assign: bool) -> None:
    """Load into `param` by `module_load`, which classes of tensors define for themselves, and a swap."""
    from torchlike.utils import swap_tensors  # above nn

    new = param.module_load(given, assign=assign)
    if new is given or new is param:
        raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load")
    if isinstance(param, Parameter):
        new = new.requires_grad_(param.requires_grad) if isinstance(new, Parameter) else Parameter(new, requires_grad=param.requires_grad)
    swap_tensors(param, new)


def _swapping() -> AbstractContextManager:
    """Around the loading of many tensors, where each is swapped."""
    if not future._swap:
        return nullcontext()
    from torchlike.utils._swap import many  # above nn
    return many()


class StateDictMixin:
    """Saving to and loading from a flat dictionary, with the hooks on the way."""

    def get_extra_state(self) -> Any:
        """Anything besides tensors to keep in the state dict; override together with `set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously "
                               "registered via register_state_dict_post_hook")
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the module wrote its part, to edit it."""
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module writes its part."""
        return _add(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        return _add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it edits the keys in place."""
        return _add(self._load_state_dict_post_hooks, hook)

    def _has_extra_state(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(StateDictMixin, name)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: dict | None = None, prefix: str = "",
                   keep_vars: bool = False) -> dict[str, Any]:
        """An ordered dictionary of all parameters and persistent buffers, by dotted name."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for "
                          "details.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        """Load this module's own entries, without its children's; problems go into the three lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        local_state = {k: v for k, v in (*self._parameters.items(), *persistent.items()) if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local_state.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, param, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_extra_state("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    first, *deeper = key[len(prefix):].split(".", 1)
                    if first not in (self._modules if deeper else local_state):
                        unexpected_keys.append(key)

    def _load_tensor(self, name: str, param: Tensor, key: str, given: Any, assign: bool, error_msgs: list[str]) -> None:
        if not isinstance(given, Tensor):
            error_msgs.append(f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                              f"from checkpoint but received {type(given)}")
            return
        if is_lazy(param) and is_lazy(given):
            return
        lazy = is_lazy(param)
        if not lazy and param.dim() == 0 and given.dim() == 1 and given.size(0) == 1:
            given = given[0]  # scalars saved before 0-dimensional tensors existed
        if not lazy and given.shape != param.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the "
                              f"shape in current model is {param.shape}.")
            return
        if param.is_meta and not given.is_meta and not assign:
            warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                          "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the "
                          "state dictionary to their corresponding key in the module instead of copying them in "
                          "place?)",
                          stacklevel=2)
        try:
            with no_grad():
                if future._swap:
                    _swap_in(param, given, assign)
                    return
                if not assign:
                    param.copy_(given)
                    return
                if isinstance(param, Parameter):
                    if isinstance(given, Parameter):
                        given.requires_grad_(param.requires_grad)
                    else:
                        given = Parameter(given, requires_grad=param.requires_grad)
                setattr(self, name, given)
        except Exception as error:  # collected: one report lists every tensor that did not fit
            error_msgs.append(f'While {"swapping" if future._swap else "copying"} the parameter named "{key}", whose dimensions in the model are '
                              f"{param.size()} and whose dimensions in the checkpoint are {given.size()}, an "
                              f"exception occurred : {error.args}.")

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                        assign: bool = False) -> _IncompatibleKeys:
        """Copy the tensors of `state_dict` into this module (with `assign`: put them in its place).

        Raises RuntimeError listing every tensor of the wrong shape and, if `strict`, every missing or unexpected key.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module: Any, local_state: dict, prefix: str = "") -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(child, {k: v for k, v in local_state.items() if k.startswith(child_prefix)}, child_prefix)
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not "
                                         "expected to return new values, if incompatible_keys need to be modified, it "
                                         "should be done inplace.")

        with _swapping():
            load(self, state_dict)
        load = None  # a function that calls itself is a cycle
        if strict:
            for keys, kind in ((unexpected, "Unexpected"), (missing, "Missing")):
                if keys:
                    errors.insert(0,
                                  f"{kind} key(s) in state_dict: {', '.join(f'{chr(34)}{k}{chr(34)}' for k in keys)}. ")
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__,
                                                                                    "\n\t".join(errors)))
        return _IncompatibleKeys(missing, unexpected)
