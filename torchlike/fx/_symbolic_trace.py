"""Tracer and `symbolic_trace`: run a function on proxies and keep the graph of what it did."""
from __future__ import annotations

import copy
import functools  # noqa: F401  (libraries take it from here)
import inspect
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any, get_type_hints

from .. import _assert
from .._tensor import Tensor
from ..nn import Module, Parameter
from ..utils import _pytree as pytree
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from ._compatibility import compatibility  # noqa: F401
from ._patcher import _autowrap_check, _patch_wrapped_functions, _Patcher, find_proxy, renew
from ._wrap import _wrapped_fns_to_patch, _wrapped_methods_to_patch, wrap  # noqa: F401  (names of this module, too)
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, has_side_effect
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

_orig_module_call: Callable = Module.__call__
_orig_module_getattr: Callable = Module.__getattr__
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False
_VARARGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class ScriptObject:
    """An instance of a TorchScript class; there are none here."""


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _is_fx_tracing_flag


def is_fx_symbolic_tracing() -> bool:
    """Whether a function is being traced, and not by torch.compile."""
    return _is_fx_tracing_flag


class ProxyableClassMeta(type):
    """Metaclass: making an instance from proxies is a node, so that instances can be made in traced code."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)
        proxy = find_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)
        return instance


class PHBase:
    """In concrete_args: this value stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A placeholder with attributes for the node."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


@has_side_effect
def _assert_is_none(value: object, msg: str) -> None:
    """AssertionError unless the value is None."""
    if value is not None:
        raise AssertionError(msg)


_wrapped_fns_to_patch[id(globals()), "_assert_is_none"] = globals()
has_side_effect(_assert)


class Tracer(TracerBase):
    """Traces modules and functions. Subclasses say what is a leaf, and how nodes and arguments are made."""

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,), autowrap_functions: tuple[Callable, ...] = (),
                 param_shapes_constant: bool = False) -> None:
        super().__init__()
        functions = chain.from_iterable(m.__dict__.items() for m in autowrap_modules)
        self._autowrap_function_ids = {id(f) for name, f in functions if not name.startswith("_") and callable(f)}
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    _qualname_counter: dict[str, int] = defaultdict(int)

    def get_fresh_qualname(self, prefix: str) -> str:
        """`prefix` with the first number for which the root has no attribute."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def create_arg(self, a: Any) -> Argument:
        """As TracerBase; parameters, buffers and other tensors become attributes of the root."""
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Module):
            for name, m in self.root.named_modules():
                if a is m:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor):
            for name, b in self.root.named_buffers():
                if b is a:
                    return self.create_node("get_attr", name, (), {})
            name = self.tensor_attrs.get(a)
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                setattr(self.root, name, a)
                self.tensor_attrs[a] = name
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    # -- modules --------------------------------------------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one step: those of torch.nn are, but Sequential."""
        from ..nn import Sequential

        place = m.__module__
        return (place.startswith(("torch.nn", "torch.ao.nn", "torchlike.nn", "torchlike.ao.nn"))) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The qualified name of a module in the root."""
        path = self.submodule_paths.get(mod) if self.submodule_paths else next((n for n, m in self.root.named_modules() if m is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A module is called: a node if it is a leaf, else its forward is traced."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            self.num_calls[path] = calls + 1
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """A module's attribute is read: parameters become nodes, and buffers with proxy_buffer_attributes."""
        if isinstance(attr_val, Parameter):
            return self._member(attr_val, self.root.named_parameters(), parameter_proxy_cache, self.param_shapes_constant)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._member(attr_val, self.root.named_buffers(), parameter_proxy_cache, False)
        return attr_val

    def _member(self, value: Tensor, members: Iterator[tuple[str, Tensor]], cache: dict[str, Proxy], constant_shape: bool) -> Any:
        name = next((n for n, p in members if p is value), None)
        if name is None:
            return value
        if name not in cache:
            extra = {}
            if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:  # a subclass's method may lack it
                extra["proxy_factory_fn"] = (lambda node: ParameterProxy(self, node, name, value)) if constant_shape else None
            cache[name] = self.create_proxy("get_attr", name, (), {}, **extra)
        return cache[name]

    # -- arguments ------------------------------------------------------------------------------------------------------

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: dict[str, Any] | tuple[Any, ...] | None = None) -> tuple[Any, list[Any]]:
        """The function to run and its arguments: proxies, and values from concrete_args."""
        inner = inspect.unwrap(root_fn)
        code, orig_args = inner.__code__, list(inspect.signature(inner).parameters)
        total = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        signature, kinds = inspect.signature(inner), _annotations(inner)
        args: list[Any] = []
        skip = 0
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            skip = 1
            next(names)
            args.append(self.root)
        if isinstance(concrete_args, tuple) and code.co_flags & inspect.CO_VARARGS and not code.co_kwonlyargcount:
            args.extend(self.create_proxy("placeholder", f"input_{i}", (), {}) for i in range(len(concrete_args)))  # the tuple says how many there are
            return root_fn, args
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != total - skip:
                raise RuntimeError(f"Tracing expected {total - skip} arguments but got {len(concrete_args)} concrete arguments")
            concrete_args = dict(zip(code.co_varnames[skip:], concrete_args))
        flat = _Opener(self, concrete_args)
        args.extend(flat.placeholder(next(names), signature, kinds) for _ in range(skip, total))
        if code.co_kwonlyargcount or code.co_flags & _VARARGS:
            for mark, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS)):
                if code.co_flags & flag:
                    args.append(self.create_proxy("placeholder", mark + next(names), (), {}))
            root_fn = _with_plain_arguments(root_fn, len(args))
        flat_args, in_spec = pytree.tree_flatten(tuple(args))
        if not all(child.is_leaf() for child in in_spec.children_specs):
            self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(orig_args[:total], _without_self(in_spec, skip), None))
            return self._flattened(root_fn, in_spec), flat_args
        return root_fn, args

    def _flattened(self, root_fn: Callable, in_spec: Any) -> Callable:
        def run(*flat):  # no annotation: what it gives back is a list of leaves
            result, out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(flat), in_spec)))
            info = self.graph._codegen.pytree_info
            self.graph._codegen.pytree_info = info._replace(out_spec=out_spec)
            return result
        return run

    # -- the trace ------------------------------------------------------------------------------------------------------

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Run `root` on proxies; the graph of what it did."""
        with _tracing():
            return self._trace(root, concrete_args)

    def _trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None) -> Graph:
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        if isinstance(fn, GraphModule):
            fn = type(fn).forward.__get__(fn)
        self.tensor_attrs: dict[Tensor, str] = {}
        self._collect_tensors(self.root, [])
        if not isinstance(fn, FunctionType) and not inspect.ismethod(fn):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        scope = inspect.unwrap(fn).__globals__
        code = inspect.unwrap(fn).__code__
        self.graph._co_fields = {"co_name": code.co_name, "co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno}
        fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        cache: dict[str, Proxy] = {}

        def read(mod: Module, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        def called(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(mod, *args, **kwargs)
            _autowrap_check(patcher, getattr(getattr(mod, "forward", mod), "__globals__", {}), self._autowrap_function_ids)
            renew(patcher, mod)
            return self.call_module(mod, forward, args, kwargs)

        with _Patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", read)
            patcher.patch_method(Module, "__call__", called)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, scope, self._autowrap_function_ids)
            renew(patcher, self.root)
            for module in self._autowrap_search:
                _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
            self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=_annotations(fn).get("return"))
        self.submodule_paths = None
        return self.graph

    def _collect_tensors(self, m: Module, prefix: list[str]) -> None:
        for name, value in m.__dict__.items():
            if isinstance(value, Tensor):
                self.tensor_attrs.setdefault(value, ".".join([*prefix, name]))
        for name, child in m.named_children():
            self._collect_tensors(child, [*prefix, name])

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            made.__dict__[name] = copy.copy(value) if name in ("_autowrap_search",) else copy.deepcopy(value, memo)
        return made


@contextmanager
def _tracing() -> Iterator[None]:
    global _is_fx_tracing_flag
    before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
    try:
        yield
    finally:
        _is_fx_tracing_flag = before


def _annotations(fn: Callable) -> dict[str, Any]:
    """What a function says of its types. Our own layers say it in strings, and Any where torch's say nothing."""
    if not (fn.__module__ or "").startswith("torchlike."):
        return getattr(fn, "__annotations__", {})
    try:
        return {name: kind for name, kind in get_type_hints(fn).items() if kind is not Any}
    except NameError:  # of something that is imported for type checkers alone
        return {}


def _without_self(spec: Any, skip: int) -> Any:
    return pytree.TreeSpec(spec.type, spec.context, spec.children_specs[skip:]) if skip else spec


class _Opener:
    """Makes the placeholders of one function; those of a concrete argument's leaves are numbered."""

    def __init__(self, tracer: Tracer, concrete: dict[str, Any] | None) -> None:
        self.tracer, self.concrete = tracer, concrete

    def placeholder(self, name: str, signature: inspect.Signature, kinds: dict[str, Any]) -> Any:
        parameter = signature.parameters[name]
        default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        if self.concrete is not None and name in self.concrete:
            self.count = 0
            return pytree.tree_map(lambda x: self.leaf(name, x, default), self.concrete[name])
        return self.tracer.create_proxy("placeholder", name, default, {}, type_expr=kinds.get(name))

    def leaf(self, name: str, x: Any, default: tuple) -> Any:
        self.count += 1
        out = self.tracer.create_proxy("placeholder", f"{name}_{self.count}", default, {})
        if isinstance(x, PHBase):
            for attribute, value in vars(x).items():
                if not hasattr(out.node, attribute):
                    setattr(out.node, attribute, value)
            return out
        message = f"{name} has been specialized to have value {x} but got another value"
        if type(x) is bool or type(x) in (int, float, str):
            self.tracer.create_proxy("call_function", _assert, (out == x, message), {})
        elif x is None:
            self.tracer.create_proxy("call_function", _assert_is_none, (out, message), {})
        return x


def _with_plain_arguments(fn: Callable, count: int) -> Callable:
    """fn called with its keyword-only arguments and its *args and **kwargs by position, so that these may be proxies themselves."""
    inner = inspect.unwrap(fn)
    code = inner.__code__
    made = FunctionType(_positional(code, count), inner.__globals__, inner.__name__, inner.__defaults__, inner.__closure__)
    made.__annotations__ = inner.__annotations__
    return made


def _positional(code: CodeType, count: int) -> CodeType:
    return code.replace(co_flags=code.co_flags & ~_VARARGS, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a module or function: a GraphModule that does the same."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)

