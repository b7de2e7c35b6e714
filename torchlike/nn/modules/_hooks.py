"""Hooks of modules: their registration, the global ones, and the call that runs them.

A module without hooks never enters this file: `Module.__call__` looks at five dictionaries and calls `forward`.
The dictionaries of global hooks are attributes of `module.py`: programs look there, empty them and put others in their place.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from weakref import ref

import torchlike.nn.modules.module as everywhere  # which imports this file; it is looked at in calls only
from torchlike._core.hook_handles import RemovableHandle
from torchlike._tensor import Tensor
from torchlike.nn.modules._backward_hook import BackwardHook

_MIXED = "Cannot use both regular backward hooks and full backward hooks {}. Please use only one of them."


def _has_any_global_hook() -> bool:
    return bool(everywhere._global_backward_pre_hooks or everywhere._global_backward_hooks or everywhere._global_forward_pre_hooks
                or everywhere._global_forward_hooks or everywhere._global_forward_hooks_always_called
                or everywhere._global_forward_hooks_with_kwargs)


def _add(hooks: dict, hook: Callable, flags: tuple[dict, ...] = (), prepend: bool = False) -> RemovableHandle:
    """Put `hook` into `hooks`, and its id into every dictionary of `flags`."""
    handle = RemovableHandle(hooks, extra_dict=list(flags) or None)
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, buffer)` at every buffer registration; what it returns replaces the buffer."""
    return _add(everywhere._global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, submodule)` at every submodule registration; what it returns replaces it."""
    return _add(everywhere._global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, param)` at every parameter registration; what it returns replaces it."""
    return _add(everywhere._global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; what it returns replaces the arguments."""
    return _add(everywhere._global_forward_pre_hooks, hook)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; what it returns replaces the output."""
    flags = ((everywhere._global_forward_hooks_with_kwargs,) * with_kwargs
             + (everywhere._global_forward_hooks_always_called,) * always_call)
    return _add(everywhere._global_forward_hooks, hook, flags)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of every module's input are computed."""
    return _add(everywhere._global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of every module's input are known."""
    return _add_global_backward(hook, full=True)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The old form of `register_module_full_backward_hook`: `grad_input` is that of the module's last operation."""
    return _add_global_backward(hook, full=False)


def _add_global_backward(hook: Callable, full: bool) -> RemovableHandle:
    if everywhere._global_is_full_backward_hook is (not full):
        raise RuntimeError(_MIXED.format("as a global Module hook"))
    everywhere._global_is_full_backward_hook = full
    return _add(everywhere._global_backward_hooks, hook)


class _WrappedHook:
    """A hook that carries its module along, weakly."""

    def __init__(self, hook: Callable, module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module = ref(module) if self.with_module else None
        self.__name__ = getattr(hook, "__name__", type(hook).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict:
        state = {"hook": self.hook, "with_module": self.with_module}
        return {**state, "module": self.module()} if self.with_module else state

    def __setstate__(self, state: dict) -> None:
        if state["with_module"] and state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.__init__(state["hook"], state.get("module"))


class HooksMixin:
    """The part of Module that registers hooks and calls `forward` with them."""

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; a value returned replaces the arguments.

        With `with_kwargs`: `hook(module, args, kwargs)`, returning None or a pair of both.
        """
        return _add(self._forward_pre_hooks, hook, (self._forward_pre_hooks_with_kwargs,) * with_kwargs, prepend)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; a value returned replaces the output.

        With `with_kwargs`: `hook(module, args, kwargs, output)`. With `always_call` it also runs when `forward` raises.
        """
        flags = (self._forward_hooks_with_kwargs,) * with_kwargs + (self._forward_hooks_always_called,) * always_call
        return _add(self._forward_hooks, hook, flags, prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known; a result replaces them."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are known.

        A value returned replaces `grad_input`.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MIXED.format("on a single Module"))
        self._is_full_backward_hook = True
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The old form of `register_full_backward_hook`: `grad_input` is that of the module's last operation."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MIXED.format("on a single Module"))
        self._is_full_backward_hook = False
        return _add(self._backward_hooks, hook)

    def _get_backward_hooks(self) -> tuple[list, list]:
        """The full and the old-style backward hooks that apply to this module, global ones first."""
        full: list[Callable] = []
        old: list[Callable] = []
        for is_full, hooks in ((everywhere._global_is_full_backward_hook, everywhere._global_backward_hooks),
                               (self._is_full_backward_hook, self._backward_hooks)):
            (full if is_full is True else old).extend(hooks.values())
        return full, old

    def _get_backward_pre_hooks(self) -> list:
        return [*everywhere._global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._backward_hooks or self._backward_pre_hooks or self._forward_hooks or self._forward_pre_hooks
                or _has_any_global_hook()):
            return self.forward(*args, **kwargs)
        called: set[int] = set()
        seen = {"args": args, "kwargs": kwargs, "result": None}
        try:
            return self._call_with_hooks(seen, called)
        except Exception:
            self._run_always_called_hooks(seen, called)
            raise

    def _call_with_hooks(self, seen: dict[str, Any], called: set[int]) -> Any:
        self._run_forward_pre_hooks(seen)
        full, old = self._get_backward_hooks()
        backward_pre = self._get_backward_pre_hooks()
        backward_hook = BackwardHook(self, full, backward_pre) if full or backward_pre else None
        if backward_hook:
            seen["args"] = backward_hook.setup_input_hook(seen["args"])
        seen["result"] = self.forward(*seen["args"], **seen["kwargs"])
        for key, hook in (*everywhere._global_forward_hooks.items(), *self._forward_hooks.items()):
            called.add(key)
            self._run_forward_hook(key, hook, seen)
        if backward_hook:
            if not isinstance(seen["result"], (Tensor, tuple)):
                warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                              f"but received {type(seen['result'])}", stacklevel=3)
            seen["result"] = backward_hook.setup_output_hook(seen["result"])
        if old:
            self._register_old_backward_hooks(old, seen["args"], seen["result"])
        return seen["result"]

    def _run_forward_pre_hooks(self, seen: dict[str, Any]) -> None:
        for key, hook in (*everywhere._global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                new = hook(self, seen["args"], seen["kwargs"])
                if new is None:
                    continue
                if not (isinstance(new, tuple) and len(new) == 2):
                    raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                       f"but got {new}.")
                seen["args"], seen["kwargs"] = new
            else:
                new = hook(self, seen["args"])
                if new is not None:
                    seen["args"] = new if isinstance(new, tuple) else (new,)

    def _run_forward_hook(self, key: int, hook: Callable, seen: dict[str, Any]) -> None:
        if key in self._forward_hooks_with_kwargs or key in everywhere._global_forward_hooks_with_kwargs:
            new = hook(self, seen["args"], seen["kwargs"], seen["result"])
        else:
            new = hook(self, seen["args"], seen["result"])
        if new is not None:
            seen["result"] = new

    def _run_always_called_hooks(self, seen: dict[str, Any], called: set[int]) -> None:
        """Run the `always_call` hooks that a failing forward left out; what they raise becomes a warning."""
        for kind, hooks, always in (("global module", everywhere._global_forward_hooks, everywhere._global_forward_hooks_always_called),
                                    ("module", self._forward_hooks, self._forward_hooks_always_called)):
            for key, hook in list(hooks.items()):
                if key not in always or key in called:
                    continue
                try:
                    self._run_forward_hook(key, hook, seen)
                except Exception as error:
                    warnings.warn(f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                                  f"silenced as another error was raised in forward: {error}", stacklevel=3)

    def _register_old_backward_hooks(self, hooks: list[Callable], args: tuple, result: Any) -> None:
        first = result
        while not isinstance(first, Tensor):
            first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
        if first.grad_fn is None:
            return
        for hook in hooks:
            first.grad_fn.register_hook(_WrappedHook(hook, self))
        self._maybe_warn_non_full_backward_hook(args, result, first.grad_fn)

    def _maybe_warn_non_full_backward_hook(self, inputs: Any, result: Any, grad_fn: Any) -> None:
        """Warn where an old-style backward hook will not see all gradients."""
        inputs, outputs = (x if isinstance(x, tuple) else (x,) for x in (inputs, result))
        kind, nodes = "Using non-full backward hooks on a Module that does not", "Using a non-full backward hook when"
        if not all(isinstance(r, Tensor) for r in outputs):
            what, lost = f"{kind} return a single Tensor or a tuple of Tensors", "of the grad_output"
        elif not all(isinstance(i, Tensor) for i in inputs):
            what, lost = f"{kind} take as input a single Tensor or a tuple of Tensors", "of the grad_input"
        elif len({r.grad_fn for r in outputs if r.grad_fn is not None}) > 1:
            what, lost = f"{nodes} outputs are generated by different autograd Nodes", "grad_output"
        elif {i.grad_fn for i in inputs if i.grad_fn is not None} != {fn for fn, _ in grad_fn.next_functions}:
            what, lost = f"{nodes} the forward contains multiple autograd Nodes", "grad_input"
        else:
            return
        warnings.warn(f"{what} is deprecated and will be removed in future versions. This hook will be missing some "
                      f"{lost}. Please use register_full_backward_hook to get the documented behavior.",
                      FutureWarning, stacklevel=5)
