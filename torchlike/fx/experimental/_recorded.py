"""Tensors whose operators become nodes of a graph: what `make_fx` runs a function on.

A Recorded holds a tensor and knows the node that it is in the graph. Its class dispatches, so it sees the operators of forward and backward alike,
below autograd; factories and what is done to tensors from outside come by the modes.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ... import _leaves
from ..._aten_schemas import overload
from ..._core import program
from ..._core.value import Value
from ..._dispatch.held import make_wrapper
from ..._ops import OpOverload, aten
from ..._plainly import _disabled_torch_function_impl, dispatching, plain_function
from ..._plainly import state as overriding
from ..._subclasses.fake_tensor import FakeTensor, FakeTensorMode, without_modes, writes
from ..._tensor import Tensor
from ..._tracing import Capture
from ...export._functions import _placed, as_aten
from ...overrides import install
from ...utils._python_dispatch import TorchDispatchMode
from ...utils._pytree import tree_leaves, tree_map, tree_map_only
from ..node import Node
from ..passes.shape_prop import _extract_tensor_metadata
from ..proxy import TracerBase
from . import _functional

_FACTORIES = frozenset("zeros ones full empty empty_strided rand randn randint randperm normal arange eye linspace logspace tril_indices triu_indices scalar_tensor".split())
_OF_DATA = frozenset("tensor as_tensor asarray".split())
_NO_OPERATORS = frozenset("__get__ __set__ __delete__ requires_grad_ backward register_hook register_post_accumulate_grad_hook retain_grad __repr__ __format__ size dim stride "
                          "numel is_floating_point is_complex __len__ data_ptr storage_offset is_contiguous type element_size nelement numpy tolist".split())
_LOOKED_AT = ("It appears that you're trying to get value out of a tracing tensor with {} - erroring out! It's likely that this is caused by data-dependent "
              "control flow or similar.  It may be possible to trace this with dynamic shapes; try setting tracing_mode='symbolic' in your make_fx call.")


class Recorded(Tensor):
    """A tensor and its node."""

    __torch_function__ = _disabled_torch_function_impl
    elem: Tensor
    node: Node | None
    trace: ProxyTorchDispatchMode
    constant: Tensor | None = None  # its data, of a number that the function wrote down
    shown: _functional.Shown | None = None  # whose view it is
    writes = 0  # how often it was written by functionalized functions
    source: Tensor | None = None  # what it stands for, of a tensor from outside, which is read anew each time

    @staticmethod
    def of(elem: Tensor, node: Node, trace: ProxyTorchDispatchMode, constant: Tensor | None = None, wants: bool = False) -> Recorded:
        """A new one."""
        made = make_wrapper(Recorded, elem.shape, elem.dtype, elem.device, elem.stride(), elem.storage_offset(), wants)
        made.elem, made.node, made.trace, made.constant = elem, node, trace, constant
        return made

    @staticmethod
    def without_writes(given: list[Recorded], call: Callable) -> Any:
        """What a functionalized function makes, the arguments `given` among its own."""
        inputs = _functional.Inputs(given)
        dispatching.functional += 1
        try:
            made = call()
            for t in tree_leaves(made):
                if isinstance(t, Recorded):
                    _functional.read(t)
        finally:
            dispatching.functional -= 1
        inputs.copy_back()
        return made

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"Recorded({'' if self.node is None else self.node.name}, size={tuple(self.shape)}, dtype={self.dtype})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    @classmethod
    def __torch_dispatch__(cls, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        traces = [t.trace for t in tree_leaves((args, kwargs or {})) if isinstance(t, Recorded)]
        trace = next((t for t in traces if t._parts), traces[0])  # the one that is on
        return trace.record(func, args, kwargs or {})


class ProxyTorchDispatchMode(TorchDispatchMode):
    """While it is on, operators are nodes of `tracer.graph`. `fake`: the mode of their results, where nothing is to be computed."""

    def __init__(self, tracer: TracerBase, fake: FakeTensorMode | None = None, decompositions: Mapping[OpOverload, Callable] | None = None,
                 refuses_values: bool = True) -> None:
        super().__init__()
        self.tracer, self.fake, self.decompositions, self.refuses_values = tracer, fake, dict(decompositions or {}), refuses_values
        self._shown = fake or FakeTensorMode()  # of what nodes tell in their "val"
        self._draws = Capture()  # its `draws` are the random numbers
        self._factories = _Factories(self)
        self._parts: list[tuple] = []
        self._adopted: dict[int, Recorded] = {}
        self._grads: list[tuple[Tensor, Tensor | None]] = []  # gradients of tensors from outside, as they were

    def __enter__(self) -> ProxyTorchDispatchMode:
        from ... import overrides
        super().__enter__()
        install()
        overrides._install_methods()
        self._parts.append((overriding.modes, program.state.capture))
        overriding.modes = (*overriding.modes, self._factories)
        program.state.capture = self._draws
        return self

    def __exit__(self, *exc: object) -> None:
        from ... import overrides
        overriding.modes, program.state.capture = self._parts.pop()
        overrides._remove_methods()
        if not self._parts:
            self._give_back()
        super().__exit__(*exc)

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self.record(func, args, kwargs or {})

    # -- tensors -----------------------------------------------------------------------------------------------------------------

    def given(self, t: Tensor, node: Node) -> Recorded:
        """An argument of the function."""
        with without_modes():
            while isinstance(t, Recorded):  # of a trace around this one
                t = t.elem.detach().requires_grad_(t.requires_grad)
            elem = self.fake.from_tensor(t) if self.fake is not None else t
            wants, elem = elem.requires_grad, elem.detach()
        self.tell(node, elem, wants)
        return Recorded.of(elem, node, self, None, wants)

    def constant(self, t: Tensor, copied: bool = True) -> Recorded:
        """A tensor that the function made of numbers of Python's."""
        node = self.tracer.create_arg(t)
        with without_modes():
            elem = self.fake._constant(t) if self.fake is not None else t.clone()
            known = t.clone() if t.numel() <= 1 else None
        if copied:
            node = self.tracer.create_node("call_function", aten.lift_fresh_copy.default, (node,), {}, name="lift_fresh_copy")
        self.tell(node, elem)
        return Recorded.of(elem, node, self, known)

    def adopted(self, t: Tensor) -> Recorded:
        """A tensor from outside, which keeps its place in the graph of its derivatives."""
        made = self._adopted.get(id(t))
        if made is None:
            with without_modes():
                made = self._adopted[id(t)] = Recorded.of(t.detach(), None, self)
                made.source = t
                self._grads.append((t, t.grad if t.is_leaf else None))
        made._edge, made._out = t._edge, t._out
        return made

    def _give_back(self) -> None:
        """Tensors from outside have gradients with data again."""
        for t, before in self._grads:
            if t.is_leaf and isinstance(t.grad, Recorded):
                t.grad = before if self.fake is not None else t.grad.elem
        self._grads.clear()
        self._adopted.clear()

    def node_of(self, t: Tensor) -> Node:
        """The node that a tensor is: of one from outside, an attribute of the graph's module."""
        if isinstance(t, Recorded):
            if t.trace is not self:
                raise NotImplementedError("torchlike: make_fx within make_fx, of a function that closes over a tensor of the outer one. Hand it in as an argument.")
            if t.node is not None:
                return t.node
            t = t.source
        if any(v is t._value for v, _ in self._draws.draws):
            raise NotImplementedError("torchlike: make_fx cannot follow numbers that a function has drawn at random for itself")
        node = self.tracer.create_arg(t)
        self.tell(node, t)
        return node

    def tell(self, node: Node, made: Any, wants: bool | None = None) -> None:
        """What is known of a node's result goes into its `meta`."""
        if isinstance(made, Tensor):
            with without_modes():
                node.meta["val"] = made if isinstance(made, FakeTensor) and self.fake is not None else self._shown.from_tensor(made.detach())
                found = _extract_tensor_metadata(made)
            node.meta["tensor_meta"] = found._replace(requires_grad=found.requires_grad if wants is None else wants)
        else:
            node.meta["val"] = tree_map_only(Tensor, lambda t: t if self.fake is not None else self._shown.from_tensor(t.detach()), made)

    # -- operators ---------------------------------------------------------------------------------------------------------------

    def record(self, func: OpOverload, args: tuple, kwargs: dict) -> Any:
        """Run an operator, and make it a node."""
        if func in self.decompositions:
            with self:
                made = self.decompositions[func](*args, **kwargs)
            if made is not NotImplemented:
                return made
        leaves = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        known = bool(leaves) and all(isinstance(t, Recorded) and t.constant is not None for t in leaves)
        name = func.overloadpacket.__name__
        if dispatching.functional:
            for t in leaves:
                if isinstance(t, Recorded):
                    _functional.read(t)
            if writes(func):
                return _functional.write(self, func, args, kwargs)
        if name == "_local_scalar_dense":
            if known:
                return args[0].constant.item()
            if self.refuses_values:
                raise RuntimeError(_LOOKED_AT.format(func))
            return func(args[0].elem)
        nodes, named = tree_map_only(Tensor, self.node_of, args), tree_map_only(Tensor, self.node_of, kwargs)
        if "statics" in named:
            named["statics"] = _leaves.written_down(named["statics"])
        node = self.tracer.create_node("call_function", func, self.tracer.create_arg(nodes), self.tracer.create_arg(named), name=name)
        written = writes(func)
        shown = _functional.view_of(self, func, args[0], args[1:], kwargs) if dispatching.functional and _is_view(func) and isinstance(args[0], Recorded) else None
        elems = {id(t.elem): t for t in leaves if isinstance(t, Recorded)}
        if self.fake is not None and not self.fake.allow_non_fake_inputs:
            args, kwargs = tree_map_only(Recorded, _source, args), tree_map_only(Recorded, _source, kwargs)
        with without_modes():
            args, kwargs = tree_map_only(Recorded, _elem, args), tree_map_only(Recorded, _elem, kwargs)
            made = func(*args, **kwargs) if self.fake is None else self.fake.dispatch(func, (), args, kwargs)
        constant = None
        if written:
            for t in leaves:
                if isinstance(t, Recorded):
                    t.constant = None
        elif known and isinstance(made, Tensor) and made.numel() <= 1 and not any(tag.name.startswith("nondeterministic") for tag in func.tags):
            constant = self._computed(func, leaves, args, kwargs)
        if not isinstance(made, (tuple, list)):
            out = self._out(made, node, elems, constant)
            if shown is not None:
                out.shown = shown
            return out
        self.tell(node, made)
        outs = []
        for i, t in enumerate(made):
            item = self.tracer.create_node("call_function", operator.getitem, (node, i), {}, name="getitem")
            outs.append(self._out(t, item, elems, None))
        return type(made)(outs) if type(made) in (tuple, list) else tuple(outs)

    def _computed(self, func: OpOverload, leaves: list, args: tuple, kwargs: dict) -> Tensor:
        """A number made of numbers."""
        data = {id(t.elem): t.constant for t in leaves}
        with without_modes():
            return func(*tree_map_only(Tensor, lambda t: data[id(t)], args), **tree_map_only(Tensor, lambda t: data[id(t)], kwargs))

    def _out(self, made: Any, node: Node, elems: dict[int, Recorded], constant: Tensor | None) -> Any:
        self.tell(node, made)
        if not isinstance(made, Tensor):
            return made
        written = elems.get(id(made))
        if written is not None:
            if written.source is None:
                written.node = node
            return written
        return Recorded.of(made, node, self, constant)


def _is_view(func: OpOverload) -> bool:
    return hasattr(func, "_schema") and (func.is_view or func.overloadpacket.__name__ == "_unsafe_view")


def _elem(t: Recorded) -> Tensor:
    return t.elem


def _source(t: Recorded) -> Tensor:
    return t if t.source is None else t.source


class _Factories:
    """The TorchFunctionMode of a trace: functions that make tensors of no tensor, and functions of tensors from outside."""

    def __init__(self, trace: ProxyTorchDispatchMode) -> None:
        self.trace = trace

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), dict(kwargs or {})
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        if name in _OF_DATA and not given:
            wants = kwargs.pop("requires_grad", False)
            with without_modes():
                made = plain_function(func)(*args, **kwargs)
            made = self.trace.constant(made)
            return made.requires_grad_() if wants else made
        if name in _FACTORIES and not given:
            wants = kwargs.pop("requires_grad", False)
            found = overload(name, args, kwargs)
            found = as_aten(func, args, kwargs) if found is None else _placed(*found)
            if found is not None and found[0].operator() is not None:
                made = self.trace.record(found[0].operator(), *found[1:])
                return made.requires_grad_() if wants else made
            if wants:
                kwargs["requires_grad"] = wants
        if name not in _NO_OPERATORS and any(_is_outside(t) for t in given):
            args, kwargs = tree_map(self._taken, (args, kwargs))
        return func(*args, **kwargs)

    def _taken(self, x: Any) -> Any:
        return self.trace.adopted(x) if isinstance(x, Tensor) and _is_outside(x) else x


def _is_outside(t: Tensor) -> bool:
    return not t._dispatches and not t._sparse and t._value.__class__ is Value


def unwrapped(tree: Any) -> Any:
    """Results of the function, with nodes' Proxies in the place of tensors."""
    def one(t: Tensor) -> Any:
        found = _leaves.shown(t._current()) if not t._dispatches and not t._sparse else t
        return found.trace.tracer.proxy(found.node) if isinstance(found, Recorded) else found
    return tree_map(lambda x: one(x) if isinstance(x, Tensor) else x, tree)
