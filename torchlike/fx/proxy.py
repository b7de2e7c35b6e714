"""Proxy: what a function is given while it is traced; everything done to it becomes a node."""
from __future__ import annotations

import copy
import dataclasses
import enum
import opcode
import operator
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import overrides
from .._core.device import device
from .._torch_names import call_form
from ..ops.layouts import layout
from ..ops.memory_formats import memory_format
from . import traceback as fx_traceback
from ._codegen import magic_methods, reflectable_magic_methods
from .graph import Graph
from .node import Argument, Node, Target, base_types, is_named, map_aggregate

if TYPE_CHECKING:
    from ..nn import Parameter

__all__ = ["TracerBase", "GraphAppendingTracer", "TraceError", "Proxy", "Attribute", "ParameterProxy", "Scope", "ScopeContextManager"]

_PLAIN = (*base_types, device, layout, memory_format, enum.Enum)
# what a node takes over from the one that an Interpreter runs, under preserve_node_meta
_COPY_META_FIELDS = ["nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id", "has_backward_hook", "from_node",
                     "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag"]
# methods behind operators whose first operand is a plain tensor, where torch records the method's other name
_OPERATORS = {"__mod__": "remainder", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge"}
_ITERATED = ("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument. "
             "See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, and check out the "
             "Proxy docstring for help troubleshooting Proxy iteration errors")


class TraceError(ValueError):
    """A function did something with a Proxy that a graph cannot express."""


@dataclasses.dataclass
class Scope:
    """The module whose forward is being traced: its path and its class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """Inside the block the tracer's scope is another one."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._prev_scope = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exc: Any) -> None:
        self._scope.module_path, self._scope.module_type = self._prev_scope.module_path, self._prev_scope.module_type


class TracerBase:
    """Turns what is done to proxies into nodes of `graph`."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(self, kind: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument], name: str | None = None,
                    type_expr: Any | None = None) -> Node:
        """A node of the graph that also knows the module it comes from."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if hasattr(self, "scope"):
            self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            known = fx_traceback.get_current_meta()
            node.meta.update({name: copy.copy(known[name]) for name in ("stack_trace", *_COPY_META_FIELDS) if name in known})
        if getattr(self, "module_stack", None) and "nn_module_stack" not in node.meta:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and (lines := _user_lines()):
            node.stack_trace = lines
        return node

    def proxy(self, node: Node) -> Proxy:
        """The Proxy of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
                     type_expr: Any | None = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Proxy:
        """A node whose arguments may hold proxies, and its Proxy."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args_, tuple) or not isinstance(kwargs_, dict):
            raise AssertionError(f"Expected a tuple and a dict of arguments, got {type(args_)} and {type(kwargs_)}")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument of a node: proxies become their nodes, containers are walked."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            made = tuple([self.create_arg(x) for x in a])
            return self.create_node("call_function", type(a), made, {}) if is_named(a) else made
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return self._dict_arg(a)
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, _PLAIN) or (overrides.is_tensor_like(a) and not isinstance(a, type)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _dict_arg(self, a: dict) -> dict:
        made = {}
        for key, value in a.items():
            key = self.create_arg(key)

            def refuse(x: Any, key: Any = key) -> Any:
                if isinstance(x, Node):
                    raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
                return x
            map_aggregate(key, refuse)
            made[key] = self.create_arg(value)
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """A condition that depends on a Proxy; subclasses may answer."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """A loop over a Proxy: possible for `a, b = x` alone, which tells how many there are."""
        caller = sys._getframe(2)
        code = caller.f_code.co_code
        if code[caller.f_lasti] == opcode.opmap["UNPACK_SEQUENCE"]:
            return (obj[i] for i in range(code[caller.f_lasti + 1]))
        raise TraceError(_ITERATED)

    def keys(self, obj: Proxy) -> Any:
        """`x.keys()`, which `**x` asks for as well."""
        return Attribute(obj, "keys")()


def _user_lines() -> str:
    """The frames of the traced function, as text."""
    stack = traceback.extract_stack()
    start = next((i for i, f in enumerate(stack) if f.filename.endswith("_symbolic_trace.py")), 0)
    return "".join(traceback.format_list([f for f in stack[start:] if "/torchlike/" not in f.filename]))


class GraphAppendingTracer(TracerBase):
    """Adds to a graph that there is, outside of any trace."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


class Proxy:
    """Stands for the value of a node. Operators, methods, attributes and torch functions make further nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # no node yet: when this is called it is a method
        return Attribute(self, k)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, d: dict) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = Proxy.__new__(Proxy)
        made.__dict__ = {k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()}
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """`x.keys()`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
                           "torch.fx.wrap('len') at module scope")

    @classmethod
    def __torch_function__(cls, orig_method: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] | None = None,
                           kwargs: dict[str, Any] | None = None) -> Proxy:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[Any, None] = {}

        def ask(x: Any) -> Any:
            if isinstance(x, Proxy):
                tracers[x.tracer] = None
            return x
        map_aggregate(args, ask)
        map_aggregate(kwargs, ask)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}")
        tracer = next(iter(tracers))
        if overrides.is_tensor_method_or_property(orig_method):
            name = orig_method.__name__
            return tracer.create_proxy("call_method", _OPERATORS.get(name, name), args, kwargs)
        kind, target, args, kwargs = call_form(orig_method, args, kwargs)
        return tracer.create_proxy(kind, target, args, kwargs)


class Attribute(Proxy):
    """`x.attr`: a node of its own only where it is used, since `x.attr()` is one call."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The Proxy of a parameter whose shape is taken as a constant."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


def _tracer_of(args: tuple) -> TracerBase:
    return next(x for x in args if isinstance(x, Proxy)).tracer


def _define(name: str) -> None:
    function = getattr(operator, name)

    def call(*args: Any, **kwargs: Any) -> Proxy:
        return _tracer_of(args).create_proxy("call_function", function, args, kwargs)
    call.__name__ = call.__qualname__ = f"__{name.strip('_')}__"
    setattr(Proxy, call.__name__, call)


def _define_reflected(name: str) -> None:
    function = getattr(operator, name)

    def call(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (other, self), {})
    call.__name__ = call.__qualname__ = f"__r{name.strip('_')}__"
    setattr(Proxy, call.__name__, call)


for _name in magic_methods:
    if hasattr(operator, _name):
        _define(_name)
        if _name in reflectable_magic_methods:
            _define_reflected(_name)
