"""Module: the base class of every layer and model. A tree of named parameters, buffers and child modules.

Hooks and the call live in `_hooks.py`, state dicts in `_state.py`.
"""
from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Self

import torchlike.__future__ as future
from torchlike._kinds import combination
from torchlike._tensor import Tensor
from torchlike.autograd.grad_mode import no_grad
from torchlike.nn.modules._hooks import (
    HooksMixin,
    _has_any_global_hook,  # noqa: F401  (libraries ask)
    _WrappedHook,  # noqa: F401  (pickles that PyTorch wrote look for it here)
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torchlike.nn.modules._state import _EXTRA_STATE_KEY_SUFFIX, StateDictMixin, _IncompatibleKeys
from torchlike.nn.modules.utils import typename
from torchlike.nn.parameter import Buffer, Parameter

__all__ = [
    "Module", "_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys", "register_module_backward_hook",
    "register_module_buffer_registration_hook", "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]

_global_buffer_registration_hooks: dict[int, Callable] = OrderedDict()
_global_module_registration_hooks: dict[int, Callable] = OrderedDict()
_global_parameter_registration_hooks: dict[int, Callable] = OrderedDict()
_global_backward_pre_hooks: dict[int, Callable] = OrderedDict()
_global_backward_hooks: dict[int, Callable] = OrderedDict()
_global_forward_pre_hooks: dict[int, Callable] = OrderedDict()
_global_forward_hooks: dict[int, Callable] = OrderedDict()
_global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
_global_is_full_backward_hook: bool | None = None

_HOOK_DICTS = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
               "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
               "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
               "_load_state_dict_post_hooks")


def _addindent(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def _forward_unimplemented(self: Module, *input: Any) -> None:
    """Subclasses define the computation here."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _takes_over(old: Tensor, new: Tensor) -> bool:
    """Whether a tensor stays the object that it is, with what a conversion made of it; data cannot change its kind."""
    return not future._overwrite and old.is_meta == new.is_meta and old.layout is new.layout


LATE: dict[str, Callable[[Any], Any]] = {}  # attributes that some modules have: by their names, what makes one of a module, or None


class Module(HooksMixin, StateDictMixin):
    """Base class of all layers and models.

    Attributes that are Parameters, Buffers or Modules are registered under their names; `forward` is the computation.
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    call_super_init: bool = False
    _compiled_call_impl: Callable | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                                f"'{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} "
                                "were given")
        # Straight into __dict__: __setattr__ looks for these very dictionaries.
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(), _backward_hooks=OrderedDict(), _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(), _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(), _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(), _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(), _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(), _modules={})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        if (self._backward_hooks or self._backward_pre_hooks or self._forward_hooks or self._forward_pre_hooks
                or _global_forward_hooks or _global_forward_pre_hooks or _global_backward_hooks
                or _global_backward_pre_hooks):
            return self._call_impl(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module's calls; arguments as in `torchlike.compile`."""
        import torchlike as torch  # compile is above nn

        self._compiled_call_impl = torch.compile(self._call_impl, *args, **kwargs)

    # ------------------------------------------------------------------------------------------------ registration
    def _check_name(self, kind: str, name: Any, registered: dict, dot_message: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(dot_message)
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registered:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter; only `persistent` ones enter the state dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers, 'buffer name can\'t contain "."')
        if tensor is not None and not (isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        for hook in _global_buffer_registration_hooks.values():
            output = hook(self, name, tensor)
            tensor = tensor if output is None else output
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`; None reserves the name and its place in the order."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters, 'parameter name can\'t contain "."')
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{typename(param)}' object to parameter '{name}' "
                            "(torch.nn.Parameter or None required)")
        if param.grad_fn:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                             f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                             "the forward() method.")
        for hook in _global_parameter_registration_hooks.values():
            output = hook(self, name, param)
            param = param if output is None else output
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under `name`."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules, f'module name can\'t contain ".", got: {name}')
        self._modules[name] = self._run_module_registration_hooks(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Same as `add_module`."""
        self.add_module(name, module)

    def _run_module_registration_hooks(self, name: str, module: Module | None) -> Module | None:
        for hook in _global_module_registration_hooks.values():
            output = hook(self, name, module)
            module = module if output is None else output
        return module

    # --------------------------------------------------------------------------------------------------- attributes
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__  # unrolled: every read of a weight comes here
        members = own.get("_parameters")
        if members is not None and name in members:
            return members[name]
        members = own.get("_buffers")
        if members is not None and name in members:
            return members[name]
        members = own.get("_modules")
        if members is not None and name in members:
            return members[name]
        late = LATE.get(name)
        if late is not None and (found := late(self)) is not None:
            return found
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params, modules, buffers = own.get("_parameters"), own.get("_modules"), own.get("_buffers")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            own.pop(name, None)
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            own.pop(name, None)
            self._forget(name, "_parameters", "_buffers")
            modules[name] = self._run_module_registration_hooks(name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")
            modules[name] = self._run_module_registration_hooks(name, value)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *kinds: str) -> None:
        """A name has one meaning: drop it from `kinds`."""
        own = self.__dict__
        for kind in kinds:
            own[kind].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def _set_buffer(self, name: str, value: Tensor | None) -> None:
        if value is not None and not (isinstance(value, Tensor) or hasattr(value, "__torch_function__")):
            raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' "
                            "(torch.nn.Buffer, torch.Tensor or None expected)")
        if isinstance(value, Buffer):
            if "_buffers" not in self.__dict__:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._forget(name, "_parameters", "_modules")
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError("Registering a non-persistent buffer on a Module subclass that implements "
                               "register_buffer() without the persistent argument is not allowed.")

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_compiled_call_impl"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_DICTS:  # saved by a version that did not have them yet
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # -------------------------------------------------------------------------------------------------- access by path
    def _walk(self, path: list[str]) -> Any:
        module: Any = self
        for item in path:
            if not hasattr(module, item):
                raise AttributeError(module._get_name() + f" has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def _owner(self, target: str) -> tuple[Module, str]:
        """The module that holds `target`'s last part, which must exist, and that part."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(module._get_name() + f" has no attribute `{name}`")
        return module, name

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; the empty path is this module."""
        return self if target == "" else self._walk(target.split("."))

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at a dotted path; with `strict` the path must already hold a module."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        *path, name = target.split(".")
        parent = self._walk(path)
        if strict or hasattr(parent, name):
            parent._walk([name])
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        module, name = self._owner(target)
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        module, name = self._owner(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    # ----------------------------------------------------------------------------------------------------- iteration
    def _named_members(self, get_members_fn: Callable, prefix: str = "", recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield module_prefix + ("." if module_prefix else "") + name, member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The direct child modules."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct child modules with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo: set[Module] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    # ------------------------------------------------------------------------------------------- changing all tensors
    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                new, grad = fn(param), None if param.grad is None else fn(param.grad)
            if future._swap or (new._dispatches and hasattr(new, "__tensor_flatten__")):
                self._swap_in(param, new, grad, name)
                continue
            target, old = param, param.grad
            if not _takes_over(param, new):
                target = self._parameters[name] = Parameter(new, param.requires_grad)
            elif new is not param:
                param.data = new
            if grad is not None and target is param and _takes_over(old, grad):
                if grad is not old:
                    old.data = grad
            elif grad is not None:
                target.grad = grad.requires_grad_(old.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _swap_in(self, param: Tensor, new: Tensor, new_grad: Tensor | None, name: str) -> None:
        """The parameter and its gradient become what a conversion made of them, and stay the objects that they are."""
        from torchlike.utils import swap_tensors  # above nn

        what, grad = name, param.grad
        param.grad = None
        try:
            swap_tensors(param, Parameter(new, param.requires_grad))
            if grad is not None:
                what = name + ".grad"
                swap_tensors(grad, new_grad.requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{what}") from error
        finally:
            param.grad = grad

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` on every module below this one, then on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast all parameters and buffers in place: `to(device, dtype, non_blocking)`, `to(dtype)`,
        `to(tensor)`, `to(memory_format=...)`. Only floating-point and complex tensors change their dtype.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got desired "
                                f"dtype={dtype}")
            if dtype.is_complex:
                warnings.warn("Complex modules are a new feature under active development whose design may change, and "
                              "some modules might not work as expected when using complex tensors as parameters "
                              "or buffers.",
                              stacklevel=2)

        def convert(t: Tensor) -> Tensor:
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, new_dtype, non_blocking, memory_format=memory_format)
                return t.to(device, new_dtype, non_blocking)
            except NotImplementedError as error:
                if str(error) != "Cannot copy out of meta tensor; no data!":
                    raise
                text = (f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                        "module from meta to a different device.")
                raise NotImplementedError(text) from None

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to `device` without copying values."""
        import torchlike as torch

        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def cuda(self, device: Any = None) -> Self:
        """Move all parameters and buffers to the GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """AssertionError: there are no such devices."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """AssertionError: there are no such devices."""
        return self._apply(lambda t: t.mtia(device))

    def ipu(self, device: Any = None) -> Self:
        """RuntimeError: there are no such devices."""
        return self._apply(lambda t: t.ipu(device))

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers, integer ones included."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self) -> Self:
        """Move all tensors to memory that processes share."""
        return self._apply(lambda t: t.share_memory_())

    # ------------------------------------------------------------------------------------------------------- training
    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below it to training (or evaluation) mode."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch to evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether all parameters take gradients."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters: to None, or to zeros in place."""
        if getattr(self, "_is_replica", False):
            warnings.warn("Calling .zero_grad() from a module created with nn.DataParallel() has no effect.",
                          stacklevel=2)
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            else:
                param.grad.requires_grad_(False)
            param.grad.zero_()

    # ------------------------------------------------------------------------------------------------------- printing
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What to print between the parentheses; subclasses give their arguments."""
        return ""

    def __repr__(self) -> str:
        said = self.extra_repr()
        extra = said.split("\n") if said else []
        children = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        if len(extra) == 1 and not children:
            body = extra[0]
        else:
            body = "\n  " + "\n  ".join(extra + children) + "\n" if extra or children else ""
        return f"{self._get_name()}({body})"

    def _replicate_for_data_parallel(self) -> Self:
        replica = self.__new__(type(self))
        replica.__dict__ = {**self.__dict__, "_parameters": {}, "_buffers": dict(self._buffers),
                            "_modules": dict(self._modules), "_is_replica": True}
        return replica


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The arguments of `Module.to` in its three forms as (device, dtype, non_blocking, memory_format)."""
    import torchlike as torch

    memory_format = kwargs.pop("memory_format", None)
    copies = kwargs.pop("copy", None) is not None
    if args and isinstance(args[0], Tensor) or "tensor" in kwargs:
        names = ("tensor", "non_blocking")
    elif args and isinstance(args[0], torch.dtype):
        names = ("dtype", "non_blocking")
    else:
        names = ("device", "dtype", "non_blocking")
    if copies or (len(args) == len(names) + 1 and isinstance(args[-1], bool)):
        raise RuntimeError(".to() does not accept copy argument")
    given = dict(zip(names, args), **kwargs)
    if len(args) > len(names) or set(given) - {*names, "device", "dtype"} or isinstance(given.get("non_blocking"), Tensor):
        raise combination("to", args, kwargs, True)
    if "tensor" in given:
        device, dtype = given["tensor"].device, given["tensor"].dtype
    else:
        device, dtype = given.get("device"), given.get("dtype")
    if device is not None and not isinstance(device, torch.device):
        device = torch.device(device)
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise combination("to", args, kwargs, True)
    return device, dtype, bool(given.get("non_blocking", False)), memory_format
