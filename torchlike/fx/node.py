"""Node: one step of a Graph, and the functions that map over a node's arguments."""
from __future__ import annotations

import builtins
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._core.dtype import dtype
from .._ops import OpOverload, OpOverloadPacket
from .._tensor import Tensor
from .._torch_names import public, torch_name
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]

Target = Callable[..., Any] | str
Argument = Any
_legal_ops = dict.fromkeys(["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"])
_side_effectful_functions: set[Callable] = {operator.setitem}
_RANDOM = frozenset(f"torch.{name}" for name in ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "poisson",
                                                 "bernoulli", "multinomial"))


def has_side_effect(fn: Callable) -> Callable:
    """Mark a function whose calls stay in a graph though nobody uses their results."""
    _side_effectful_functions.add(fn)
    return fn


# -- mapping over arguments ----------------------------------------------------------------------------------------------


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """`a` with fn applied to every node in it."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def is_named(a: tuple) -> bool:
    """Whether a is a named tuple; what `max` and others return counts as a tuple."""
    return hasattr(a, "_fields") and type(a).__module__ != "torch.return_types"


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """`a` with fn applied to everything in its tuples, lists, dicts and slices; these become the immutable ones."""
    if isinstance(a, tuple):
        made = [map_aggregate(x, fn) for x in a]
        return type(a)(*made) if is_named(a) else tuple(made)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(x, fn)) for k, x in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


# -- names ---------------------------------------------------------------------------------------------------------------


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """The name by which generated code reaches a function."""
    name = getattr(func, "__name__", "")
    if name and getattr(builtins, name, None) is func:
        return name
    known = torch_name(func)
    if known is not None:
        return known
    if isinstance(func, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{func}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except (OSError, TypeError) as error:
            raise RuntimeError("Unable to represent lambda") from error
    return f"{public(_module_of(func))}.{name}"


def _module_of(func: Callable[..., Any]) -> str:
    module = getattr(func, "__module__", None)
    if isinstance(module, str):
        return module
    owner = getattr(func, "__objclass__", None)
    if owner is not None:
        return f"{owner.__module__}.{owner.__name__}"
    raise RuntimeError(f"cannot find module for {func}")


def _type_repr(obj: object) -> str:
    """A type as code writes it: the bare name of a builtin one, the full name of another."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return f"{public(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace("torchlike.", "torch.")


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    """An argument as a graph shows it: nodes with a percent sign."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, Node):
        return f"%{arg}"
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(x) for i, x in enumerate(arg) if i < max_list_len]
        if len(arg) > len(shown):
            shown.append(f"...[total_len={len(arg)}]")
        if isinstance(arg, list):
            return f"[{', '.join(shown)}]"
        return f"({', '.join(shown)}{',' * (len(arg) == 1)})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return str(arg)


# -- nodes ---------------------------------------------------------------------------------------------------------------


class Node:
    """One step: an input, an attribute's value, a call of a function, a method or a module, or the result.

    Nodes of a graph form a ring through its root. `users` are the nodes that take this one, in the order they began to.
    """

    def __init__(self, graph: Graph, name: str, op: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
                 return_type: Any | None = None) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {_typename(target)} but a Callable is expected")
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {_typename(target)} but a str is expected")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._args: tuple = ()
        self._kwargs: dict = immutable_dict()
        self._take(args, kwargs)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    # nodes are ordered as they stand in their graph
    def __lt__(self, other: Node) -> bool:
        return self._place() < other._place()

    def __gt__(self, other: Node) -> bool:
        return self._place() > other._place()

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    def _place(self) -> int:
        return self.graph._places().get(self, -1)  # -1: erased

    @property
    def next(self) -> Node:
        """The node after this one; after the last, the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first, the graph's root."""
        return self._prev

    # -- place ----------------------------------------------------------------------------------------------------------

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._moved()

    def prepend(self, x: Node) -> None:
        """Move x to the place before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move x to the place after this node."""
        self._next.prepend(x)

    # -- arguments ------------------------------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Argument, ...]:
        """The arguments by position; assigning keeps the users of every node in step."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._take(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._take(self._args, k)

    def _take(self, args: Iterable[Argument], kwargs: Mapping[str, Argument]) -> None:
        if not isinstance(args, (tuple, list)) or not isinstance(kwargs, Mapping):
            raise TypeError(f"a Node's args are a tuple and its kwargs a dict, got {type(args).__name__} and {type(kwargs).__name__}")
        for x in self._input_nodes:
            x.users.pop(self, None)
        self._input_nodes = {}
        self._args = map_arg(tuple(args), self._use)
        self._kwargs = map_arg(dict(kwargs), self._use)

    def _use(self, x: Node) -> Node:
        self._input_nodes.setdefault(x)
        x.users.setdefault(self)
        return x

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace the argument at position idx."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put an argument in front of the one at position idx."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self._args = (*self.args[:idx], map_arg(arg, self._use), *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set the argument called key."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take new_input wherever this node takes old_input."""
        self._tell(old_input, new_input)

        def swap(x: Node) -> Node:
            return new_input if x is old_input else x

        self._take(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def _tell(self, old: Node, new: Node) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old, new=new.name, user=self)

    def replace_all_uses_with(self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *,
                              propagate_meta: bool = False) -> list[Node]:
        """Make this node's users take replace_with (those for which delete_user_cb says so); they are returned."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys")
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    # -- questions ------------------------------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The user's lines that led to this node, where they were recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node does something besides its result, so that dead code elimination leaves it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions:
                return True
            if isinstance(self.target, OpOverload):
                return self.target.overloadpacket.__name__.endswith("_")
            return impure_random and torch_name(self.target) in _RANDOM
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = self.graph.owning_module.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        return False

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        if module in ("builtins", "_operator"):
            return f"{module.removeprefix('_')}.{target.__name__}"
        return _get_qualified_name(target)

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, *,
                    include_tensor_metadata: bool = False) -> str | None:
        """The node's line in its graph's text. With the two lists, inputs and the result's type are put there instead."""
        kind = f"{_type_repr(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target} : {_type_repr(self.type)}" if self.type else self.target)
                return None
            return head + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return head
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        return f"{head}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)


def _typename(target: object) -> str:
    return type(target).__name__ if not inspect.isroutine(target) and not isinstance(target, type) else _get_qualified_name(target)


base_types = (str, int, float, bool, complex, dtype, Tensor, type(None), type(...), OpOverload)
