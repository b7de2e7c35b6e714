"""One operation of a user's own: its kernels by device, what autograd and vmap know of it, and its name in torch.ops."""
from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from . import _autocast, _tensor
from ._core import program
from ._core.device import device
from ._core.dtype import dtype
from ._core.grad_mode import mode
from ._dispatch_keys import AUTOGRAD, DispatchKey, DispatchKeySet
from ._function_schema import FunctionSchema
from ._functorch._rules import by_rule
from ._functorch._trace import innermost
from ._kernels import KEYS, Kernels, kind_of, known_key, pending
from ._kernels import tensors as _tensors
from ._ops import OpOverload, OpOverloadPacket
from ._plainly import dispatching, rules
from ._schemas import Schema
from ._tags import Tag
from ._tensor import Tensor
from .autograd.function import Function, _count_mark
from .autograd.grad_mode import no_grad
from .utils._pytree import tree_structure

DEFINED: dict[str, CustomOpDef] = {}
_OVERLOADS: dict[str, dict[str, CustomOpDef]] = {}  # those of one name, each by what follows the dot, or "default"


class CustomOpDef:
    """One operation: kernels by device, what it does to shapes, and its derivative."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable | None, device_types: Iterable[str] | None = None,
                 tags: Tag | Iterable[Tag] | None = None) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self._qualname, self.__name__ = f"{namespace}::{name}", name
        self._nodes: dict[type[Function], type[Function]] = {}
        self._kernels = Kernels(pending.pop(self._qualname, {}) if fn is None else dict.fromkeys(device_types or ["default"], fn))
        self._fake = self._backward = self._setup_context = self._vmap = None
        self._parameters = Schema(self._qualname, schema)
        if "meta" in self._kernels and fn is None:
            self._fake = self._kernels.pop("meta")
        self._tags = [*([] if fn is None else [Tag.pt2_compliant_tag]), *([tags] if isinstance(tags, Tag) else tags or ())]
        if self._qualname in DEFINED and fn is None:
            raise RuntimeError(f"Tried to register an operator ({self._qualname}{schema}) with the same name and overload name multiple times.")
        DEFINED[self._qualname] = self
        base, _, overload = self._qualname.partition(".")
        _OVERLOADS.setdefault(base, {})[overload or "default"] = self
        self._opoverload = CustomOverload(_packet(base), overload or "default", self)

    def _forget(self) -> None:
        """The operation is no longer found by its name."""
        base, _, overload = self._qualname.partition(".")
        if DEFINED.get(self._qualname) is self:
            del DEFINED[self._qualname]
            del _OVERLOADS[base][overload or "default"]
            if not _OVERLOADS[base]:
                del _OVERLOADS[base]

    def _refuse_named_tensors(self, where: str) -> None:
        if any(a.only_named and a.kind.startswith("Tensor") for a in self._parameters.arguments):
            raise NotImplementedError(f"{where} with kwarg-only Tensor args. {'In the original definition of the op, please' if where != 'custom_op' else 'Please'} "
                                      f"make your tensors not kwarg-only. Got: {self._qualname}{self._schema}")

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if _tensor.record is not program.record and not dispatching.disabled:  # somebody dispatches
            from ._leaves import hand_on, state
            if state.stack or any(t._dispatches for t in _tensors((args, kwargs))):
                args, kwargs = self._parameters.shown(args, kwargs)
                return hand_on(self._opoverload, *args, **kwargs)
        kind = kind_of(args, kwargs)
        if kind == "meta" and self._fake is not None:
            return self._fake(*args, **kwargs)
        if kind == "meta" and self._init_fn is not None and "meta" not in self._kernels:
            return self._without_fake()
        if self._vmap is not None and innermost() is not None:
            computed = by_rule(self._qualname, self._vmap, self, args, kwargs, forward=True)
            if computed is not None:
                return computed[0]
        made = self._kernel(kind, args, kwargs)(*args, **kwargs)
        if self._init_fn is not None:
            for t in self._written(args, kwargs) if self._parameters.written else ():
                _count_mark(t)
            self._refuse_aliases(args, kwargs, made)
        return made

    def _kernel(self, kind: str, args: tuple, kwargs: dict) -> Callable:
        found = self._kernels.for_device(kind, args, kwargs) or self._kernels.get("composite")
        if found is not None:
            return found
        if kind in self._kernels.disabled and self._init_fn is not None:
            return self._init_fn
        if not kind and self._kernels:
            raise NotImplementedError("There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback function is "
                                      f"registered for schema {self._qualname}.  This usually means that this function requires a non-empty list of Tensors, or "
                                      "that you (the operator writer) forgot to register a fallback function.")
        raise NotImplementedError(f"Could not run '{self._qualname}' with arguments from the '{(kind or 'CPU').upper()}' backend: there is no kernel for it.")

    def _without_fake(self) -> None:
        """What an operation without a function for shapes does to them: nothing, if it returns nothing."""
        if self._opoverload._schema.returns:
            raise RuntimeError(f"There was no fake impl registered for {self!r}. This is necessary for torch.compile/export/fx tracing to work. Please use "
                               f"`{self.__name__}.register_fake` to add an fake impl.")

    def _written(self, args: tuple, kwargs: dict) -> Iterator[Tensor]:
        """The arguments that the schema says are written."""
        named = {**{a.name: x for a, x in zip(self._parameters.positional, args)}, **kwargs}
        return _tensors([x for name, x in named.items() if name in self._parameters.written])

    def _refuse_aliases(self, args: tuple, kwargs: dict, made: Any) -> None:
        """torch's error where a result shares memory with an argument or with another result."""
        seen = list(_tensors((args, kwargs)))
        for t in _tensors(made):
            if any(t is other or t._storage is not None and t._storage is other._storage for other in seen):
                raise RuntimeError(
                    f"{self._name} (with implementation in {sys.modules[__name__]}): The output of this custom operator (1) must not also be an input to this "
                    "custom operator and (2) may not alias any inputs to this custom operator or other returns. The most common way to trigger this error is "
                    "if we have y = custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) (e.g. return "
                    "x.clone()) or refactor the custom operator to not return y.")
            seen.append(t)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def _called(self, /, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self._parameters.taken(args, kwargs)
        kernel = self._layer(args, kwargs) if self._kernels.layered else None
        if kernel is not None:
            return kernel(*args, **kwargs)
        calls = getattr(program.state.capture, "calls", None)  # somebody counts operators
        return self._recorded(*args, **kwargs) if calls is None else calls(self, self._recorded, args, kwargs)

    def _layer(self, args: tuple, kwargs: dict) -> Callable | None:
        """The kernel of a layer above devices, if one is to run first."""
        kind, kernels = kind_of(args, kwargs), self._kernels
        found = (kernels.for_autocast(kind) if _autocast.active[0] else None) or kernels.for_autograd(kind, args, kwargs)
        if found is None and "composite" in kernels and not (kind == "meta" and self._fake) and kernels.for_device(kind, args, kwargs) is None:
            return kernels["composite"]
        return found

    def _recorded(self, *args: Any, **kwargs: Any) -> Any:
        if self._vmap is not None and innermost() is not None:
            computed = by_rule(self._qualname, self._vmap, self, args, kwargs)
            if computed is not None and not computed[1]:
                return computed[0]
        if self._init_fn is None and self._backward is None:
            return self._run(*args, **kwargs)  # what the kernel calls has derivatives of its own
        if not mode.enabled or not any(x.requires_grad for x in _tensors((args, kwargs))):
            with no_grad():
                return self._run(*args, **kwargs)
        if any(a.kind.startswith("Tensor[") for a in self._parameters.arguments):
            return _node_of(self, _CallOnLists).apply(self, kwargs, _lengths(args), *_spread(args))
        return _node_of(self, _Call).apply(self, kwargs, *args)

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable | None = None, /) -> Callable:
        """A function for some kinds of device; a decorator without fn."""
        if fn is None:
            return functools.partial(self.register_kernel, device_types)
        for kind in (device_types,) if isinstance(device_types, str) or device_types is None else device_types:
            self._kernels.put("default" if kind is None else device(kind).type, fn)
        return fn

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> AbstractContextManager:
        """A block in which the kernel for a kind of device runs or, not enabled, the one for all devices in its place."""
        return self._kernels.enabled(device_type, enabled, self._qualname)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Callable:
        """`torch.library.register_torch_dispatch` of this operation."""
        if fn is None:
            return functools.partial(self.register_torch_dispatch, torch_dispatch_class)
        rules.setdefault(self._qualname, {})[torch_dispatch_class] = fn
        return fn

    def register_fake(self, fn: Callable, /) -> Callable:
        """What the operation does to tensors of the meta device, which have shapes only."""
        self._fake = fn
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """backward(ctx, *gradients) gives the gradients of all arguments; setup_context(ctx, inputs, output) keeps what it needs."""
        self._refuse_named_tensors("register_autograd")
        self._backward, self._setup_context = backward, setup_context

    def register_autocast(self, device_type: str, cast_inputs: dtype) -> None:
        """Inside of `torch.autocast` for the device, the operation runs without autocast, on arguments of `cast_inputs` in the place of other floats (not
        of float64). The first dtype for a device stays. ValueError for a device that has no autocast."""
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device(device_type).type not in _autocast.DEFAULTS:
            raise ValueError(f"Device type '{device_type}' does not support autocast.")

        def run(*args: Any, **kwargs: Any) -> Any:
            with _autocast.disabled(device_type):
                return self(*[_autocast.cast(x, device_type, cast_inputs) for x in args],
                            **{name: _autocast.cast(x, device_type, cast_inputs) for name, x in kwargs.items()})
        if (key := f"Autocast{device_type.upper()}") not in self._kernels:
            self._kernels[key] = run

    def register_vmap(self, func: Callable | None = None) -> Callable:
        """func(info, in_dims, *args) gives (results, their batch dimensions) for batches of arguments; a decorator without func."""
        if func is None:
            return self.register_vmap
        self._vmap = func
        return func


def _node_of(op: CustomOpDef, base: type[Function]) -> type[Function]:
    """The Function of an operator's calls, whose nodes are shown by its name."""
    made = op._nodes.get(base)
    if made is None:
        made = op._nodes[base] = type(f"GeneratedBackwardFor_{op._qualname.replace('::', '_').replace('.', '_')}_default", (base,), {})
    return made


class _Call(Function):
    """A call that autograd remembers."""

    @staticmethod
    def forward(ctx, op, kwargs, *args):
        out = op._run(*args, **kwargs)
        ctx.op, ctx.needs_input_grad = op, ctx.needs_input_grad[2:]
        _set_up(ctx, op, args, kwargs, out)
        return out

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, *_found_gradients(ctx, gradients))


class _CallOnLists(Function):
    """A call with lists of tensors, of which autograd is given the tensors."""

    @staticmethod
    def forward(ctx, op, kwargs, lengths, *flat):
        args = _gathered(lengths, flat)
        out = op._run(*args, **kwargs)
        ctx.op, ctx.lengths = op, lengths
        ctx.needs_input_grad = tuple(_gathered(lengths, ctx.needs_input_grad[3:]))
        _set_up(ctx, op, args, kwargs, out)
        return out

    @staticmethod
    def backward(ctx, *gradients):
        found = _found_gradients(ctx, gradients)
        if _lengths(found) != ctx.lengths:
            raise RuntimeError(f"Expected the return from backward to be of the same structure as the inputs. Got: {tree_structure(found)} (return from "
                               f"backward), {tree_structure(ctx.needs_input_grad)} (inputs)")
        return (None, None, None, *_spread(found))


def _set_up(ctx: Any, op: CustomOpDef, args: Sequence, kwargs: dict, out: Any) -> None:
    if op._setup_context is not None:
        inputs, named = op._parameters.completed(args, kwargs)
        op._setup_context(ctx=ctx, inputs=inputs, output=out, **({"keyword_only_inputs": named} if named else {}))


def _found_gradients(ctx: Any, gradients: tuple) -> tuple:
    if ctx.op._backward is None:
        raise RuntimeError(f"Trying to backward through {ctx.op._qualname}.default but no autograd formula was registered. If you need autograd "
                           "support, please use register_autograd.")
    found = ctx.op._backward(ctx, *gradients)
    return found if isinstance(found, tuple) else (found,)


def _lengths(args: Iterable) -> list[int | None]:
    """The lengths of lists of tensors, in which gradients may be None; None for other arguments, lists of numbers among them."""
    return [len(x) if isinstance(x, (list, tuple)) and all(y is None or isinstance(y, Tensor) for y in x) else None for x in args]


def _spread(args: Iterable) -> list:
    """The arguments, the items of lists of tensors one by one."""
    return [y for x, n in zip(args, _lengths(args)) for y in ((x,) if n is None else x)]


def _gathered(lengths: Sequence[int | None], flat: Sequence) -> list:
    """`_spread` undone: None where an argument is no list, else its length."""
    items = iter(flat)
    return [next(items) if n is None else [next(items) for _ in range(n)] for n in lengths]


def named(qualname: str) -> tuple[str, str]:
    """The namespace and the name of `namespace::name`."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the torch.library APIs must '
                         "consist of a namespace and a name, e.g. aten::sin")
    return parts[0], parts[1]


def found_operator(op: Any) -> CustomOpDef:
    if isinstance(op, (CustomOpDef, CustomOverload)):
        return op if isinstance(op, CustomOpDef) else op.definition
    named(op)
    if op not in DEFINED:
        raise RuntimeError(f"operator {op} does not exist")
    return DEFINED[op]


def kernel(qualname: str, kinds: str | Sequence[str]) -> Callable[[Callable], Callable]:
    """A decorator like `impl`'s, for torchlike's own kernels: the function stays what it is, where torch's leaves None under its name."""
    def implemented(f: Callable) -> Callable:
        implement(qualname, kinds, None, f)
        return f
    return implemented


def implement(qualname: str, kinds: str | Sequence[str], lib: Any, func: Callable) -> None:
    for kind in (kinds,) if isinstance(kinds, str) else kinds:
        if lib is not None and kind in KEYS:
            lib.impl(qualname, func, kind)
        elif KEYS.get(kind) == "meta":
            found_operator(qualname).register_fake(func)
        else:
            found_operator(qualname)._kernels.put(kind if is_device(kind) else known_key(kind), func)


def is_device(kind: str) -> bool:
    """Whether that is a kind of device or "default", not a dispatch key; RuntimeError for what is neither."""
    return kind[:1].islower() and (kind == "default" or bool(device(kind)))


class CustomOverload(OpOverload):
    """One operation as torch.ops has it."""

    def __init__(self, packet: OpOverloadPacket, name: str, definition: CustomOpDef) -> None:
        super().__init__(packet, name)
        self.definition = definition

    @property
    def _function(self) -> Callable:
        return self.definition._called

    @property
    def _schema(self) -> FunctionSchema:
        """What it takes and returns."""
        return FunctionSchema(f"{self.definition._name}{self.definition._schema}", self.namespace)

    _defined_in_python = True

    def redispatch(self, keyset: DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """A call that begins at the layers of `keyset`: without autograd's keys, the kernel for the device runs."""
        if (keyset & AUTOGRAD)._keys or any(keyset.has(key) for key in DispatchKey if key.value.startswith("Autocast")):
            return self(*args, **kwargs)
        args, kwargs = self.definition._parameters.taken(args, kwargs)
        return self.definition._run(*args, **kwargs)

    def has_kernel_for_dispatch_key(self, k: DispatchKey) -> bool:
        """Whether a kernel was registered for the key itself."""
        return known_key(k.value) in self.definition._kernels or k is DispatchKey.Meta and self.definition._fake is not None

    def _can_decompose(self) -> bool:
        return "composite" in self.definition._kernels

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """What the kernel made of other operations gives; NotImplemented without one."""
        return self.definition._kernels["composite"](*args, **kwargs) if self._can_decompose() else NotImplemented

    @property
    def tags(self) -> list[Tag]:
        """Those that it was defined with."""
        return list(self.definition._tags)


class _CustomPacket(OpOverloadPacket):
    """Operations of one name: a call is that of the first which takes its arguments."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(name, self._first, [], namespace)

    def overloads(self) -> list[str]:
        """Their names, "default" for the one without."""
        return list(_OVERLOADS.get(self._qualified_op_name, ()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __getattr__(self, name: str) -> CustomOverload:
        operators = _OVERLOADS.get(self.__dict__.get("_qualified_op_name"), {})
        return operators[name]._opoverload if name in operators else super().__getattr__(name)

    def _first(self, /, *args: Any, **kwargs: Any) -> Any:
        operators, wrong = list(_OVERLOADS.get(self._qualified_op_name, {}).values()), []
        if len(operators) == 1:
            return operators[0]._called(*args, **kwargs)
        for op in operators:
            try:
                op._parameters.taken(args, kwargs)
            except RuntimeError as error:
                wrong.append(str(error))
            else:
                return op._called(*args, **kwargs)
        raise RuntimeError("Overloaded torch operator invoked from Python failed to match any schema:\n" + "\n\n".join(wrong) + "\n\n")


@functools.cache
def _packet(qualname: str) -> _CustomPacket:
    return _CustomPacket(*qualname.split("::"))


class _Namespace(types.ModuleType):
    """torch.ops.<namespace>."""

    __file__ = "torch.ops"  # which PyTorch shows

    def __getattr__(self, name: str) -> OpOverloadPacket:
        qualname = f"{self.__dict__['name']}::{name}"
        if qualname not in _OVERLOADS:
            raise AttributeError(f"'_OpNamespace' '{self.__dict__['name']}' object has no attribute '{name}'")
        return _packet(qualname)

    def __iter__(self) -> Iterator[str]:
        return iter([name for namespace, name in (key.split("::") for key in _OVERLOADS) if namespace == self.name])


@functools.cache
def own_namespace(name: str) -> _Namespace:
    """The operators that a program has defined, or will, under a name."""
    made = _Namespace(f"torch.ops.{name}")
    made.name = name
    return made


def namespace(name: str) -> _Namespace | None:
    """The operations that a namespace has; None where it has none."""
    return own_namespace(name) if any(key.startswith(f"{name}::") for key in _OVERLOADS) else None
