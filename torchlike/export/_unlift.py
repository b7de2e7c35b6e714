"""`ExportedProgram.module()`: the graph with the module's tensors as its own, behind checks of its arguments."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._ops import aten
from .._tensor import Tensor
from ..fx import Graph, GraphModule
from ..fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph_module import _assign_attr
from ..nn import Module
from ..utils import _pytree as pytree
from .graph_signature import ConstantArgument, InputKind, OutputKind

if TYPE_CHECKING:
    from .exported_program import ExportedProgram


_WRITES = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)  # outputs of graphs without writes


class GuardsFn(Module):
    """Checks the leaves of a call's arguments."""

    def __init__(self, guards: list[tuple[str, Callable[[tuple], bool]]]) -> None:
        super().__init__()
        self._guards = guards

    def forward(self, *args: Any) -> None:
        """AssertionError where a check fails."""
        for text, holds in self._guards:
            if not holds(args):
                raise AssertionError(f"Guard failed: {text}")


def unlifted(program: ExportedProgram, check_guards: bool) -> GraphModule:
    """The module."""
    signature = program._module_call_graph[0].signature
    graph, values, root = Graph(), {}, Module()
    targets = {s.arg.name: s for s in program.graph_signature.input_specs}
    lifted = [n for n in program.graph.nodes if n.op == "placeholder" and targets[n.name].kind is not InputKind.USER_INPUT]
    inputs = [n for n in program.graph.nodes if n.op == "placeholder" and targets[n.name].kind is InputKind.USER_INPUT]
    by_target = {targets[n.name].target or n.name: n for n in (*lifted, *inputs)}
    for node in inputs:
        values[node] = graph.node_copy(node)
    for node in lifted:
        name = targets[node.name].target
        _assign(root, name, program, targets[node.name])
        made = values[node] = graph.create_node("get_attr", name, name=name.replace(".", "_"))
        made.meta = dict(node.meta)
    guards = GuardsFn(_guards(program, inputs)) if check_guards else None
    if guards is not None:
        root._guards_fn = guards
        graph.call_module("_guards_fn", tuple(values[n] for n in inputs))
    for node in program.graph.nodes:
        if node.op == "output":
            results = []
            for spec, x in zip(program.graph_signature.output_specs, node.args[0], strict=True):
                x = values[x] if hasattr(x, "op") else x
                if spec.kind in _WRITES:
                    graph.call_function(aten.copy_.default, (values[by_target[spec.target]], x))
                else:
                    results.append(x)
            graph.output(tuple(results))
        elif node.op != "placeholder":
            values[node] = graph.node_copy(node, values.__getitem__)
    graph.set_codegen(_CodeGen(_PyTreeInfo(signature.forward_arg_names or [], signature.in_spec, signature.out_spec)))
    made = _Exported(root, graph)
    made._in_spec, made._out_spec, made._names = signature.in_spec, signature.out_spec, signature.forward_arg_names or []
    made.train(True)
    made.__dict__["_exported"] = True
    return made


def _assign(root: Module, name: str, program: ExportedProgram, spec: Any) -> None:
    tensor = program.state_dict[name] if name in program.state_dict else program.constants[name]
    _assign_attr(tensor, root, name)
    if spec.kind is InputKind.BUFFER and spec.persistent is False:
        path, _, last = name.rpartition(".")
        root.get_submodule(path)._non_persistent_buffers_set.add(last)


class _CodeGen(_PyTreeCodeGen):
    """Arguments by position and by name are two parts of one tree."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        text, names = super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def), self.pytree_info.orig_args
        n = self.pytree_info.in_spec.children()[0].num_children
        named = ", ".join(f"'{name}':{name}" for name in names[n:])
        return text.replace(f"tree_flatten_spec([{', '.join(names)}], ", f"tree_flatten_spec(([{', '.join(names[:n])}], {{{named}}}), ")


class _Exported(GraphModule):
    """Takes a call's arguments apart, runs the graph and puts the results together."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = [n for n in self._names[len(args):] if n in kwargs]
        kwargs = {n: kwargs[n] for n in names} | kwargs
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{self._in_spec}\nbut actually got inputs with tree spec of: \n{spec}."
                             "\nPlease check that the inputs have the same number and type of args and kwargs as the ones you used when tracing.")
        positional, named = pytree.tree_unflatten(leaves, self._in_spec)
        if "_guards_fn" in self._modules:
            self._guards_fn(*leaves)  # here, where an error is the caller's and not one of generated code
        return super().__call__(*positional, *named.values())

    def train(self, mode: bool = True) -> Module:
        """The graph is what it is."""
        if "_exported" in self.__dict__:
            raise NotImplementedError("Calling train() is not supported yet.")
        return super().train(mode)

    def eval(self) -> Module:
        """The graph is what it is."""
        raise NotImplementedError("Calling eval() is not supported yet.")


# -- checks -------------------------------------------------------------------------------------------------------------------


def _guards(program: ExportedProgram, inputs: list) -> list[tuple[str, Callable[[tuple], bool]]]:
    specs = {s.arg.name: s for s in program.graph_signature.input_specs}
    found: list[tuple[str, Callable]] = []
    first: dict[str, tuple[int, int, str]] = {}
    later = []
    for i, node in enumerate(inputs):
        arg = specs[node.name].arg
        if isinstance(arg, ConstantArgument):
            if arg.value is not None:
                found.append((f"{node.name} == {arg.value!r}", lambda args, i=i, value=arg.value: args[i] == value))
            continue
        for d, n in enumerate(node.meta["val"].shape):
            where = f"{node.name}.size()[{d}]"
            if isinstance(n, int):
                found.append((f"{where} == {n}", lambda args, i=i, d=d, n=n: _size(args, i, d) == n))
            elif n.node.op == "symbol" and str(n.node) not in first:
                first[str(n.node)] = i, d, where
            else:
                later.append((i, d, where, n.node))
    for name, limits in program.range_constraints.items():
        if str(name) in first:
            i, d, where = first[str(name)]
            if limits.lower > 2:
                found.append((f"{where} >= {int(limits.lower)}", lambda args, i=i, d=d, n=limits.lower: _size(args, i, d) >= n))
            if limits.upper < math.inf:
                found.append((f"{where} <= {int(limits.upper)}", lambda args, i=i, d=d, n=limits.upper: _size(args, i, d) <= n))
    for i, d, where, expr in later:
        if expr.symbols() <= set(first):
            text = str(expr)
            for name, (_, _, there) in first.items():
                text = text.replace(name, there)
            found.append((f"{where} == {text}", lambda args, i=i, d=d, e=expr: _size(args, i, d) == e.at({s: _size(args, *first[s][:2]) for s in e.symbols()})))
    return found


def _size(args: tuple, i: int, d: int) -> int:
    x = args[i]
    return x.size(d) if isinstance(x, Tensor) and d < x.dim() else -1
