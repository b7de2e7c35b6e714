"""`torch.export.export`: a module and example arguments to an ExportedProgram."""
from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterator, Mapping
from typing import Any

from .._core.value import Value
from .._dynamo.exc import UserError, UserErrorType
from .._examples import dynamic
from .._examples.example import Example, other, resized
from .._examples.sizes import dyn
from .._examples.watch import Unfollowed
from .._tensor import Tensor
from ..fx import GraphModule
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..nn import Module, Parameter
from ..utils import _pytree as pytree
from ._build import Builder, Mismatch, symbol_name, violated
from ._constraints import ValueRanges
from ._module_stack import ModuleStack
from ._trace import Ref, Trace, held
from .dynamic_shapes import Dim, _DimHint
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)


def export(mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *,
           dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None, strict: bool = False,
           preserve_module_call_signature: tuple[str, ...] = (), prefer_deferred_runtime_asserts_over_guards: bool = False) -> ExportedProgram:
    """A module as a graph of torch.ops.aten operators: what it does with the tensors in `args` and `kwargs`; other arguments are constants.

    dynamic_shapes   which dimensions may be of other sizes, by argument: `{"x": {0: torch.export.Dim("batch")}}`, Dim.AUTO or Dim.DYNAMIC
    strict           makes no difference: the module runs, and what it does is recorded
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(UserErrorType.INVALID_INPUT, f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if preserve_module_call_signature:
        raise NotImplementedError("torch.export.export: preserve_module_call_signature is not supported")
    mod = getattr(mod, "_orig_mod", mod)
    kwargs = dict(kwargs or {})
    inspect.signature(mod.forward).bind(*args, **kwargs)
    return Export(mod, args, kwargs, dynamic_shapes).program()


class Export:
    """One export, from its arguments to the program."""

    def __init__(self, mod: Module, args: tuple, kwargs: dict, dynamic_shapes: Any = None, traced: bool = False, method: str = "forward") -> None:
        """traced: as torch.jit.trace does it, for which data that the model looks at are constants. method: which one of the module's."""
        self.mod, self.args, self.kwargs, self.traced = mod, args, kwargs, traced
        self.example = Example(mod, args, kwargs, ordered=False, method=method)
        self.names = _placeholder_names(self.example)
        self.labels: dynamic.Labels = [{} for _ in self.example.tensors]
        if dynamic_shapes is not None:
            try:
                self.labels = dynamic.from_shapes(self.example.named, dynamic_shapes)
            except ValueError as e:
                raise UserError(UserErrorType.INVALID_INPUT, str(e)) from None
        self.parameters = dict(mod.named_parameters(remove_duplicate=False))
        self.buffers = dict(mod.named_buffers(remove_duplicate=False))
        self.attributes = _tensor_attributes(mod)
        self.persistent = set(mod.state_dict())
        self.out: Any = None
        self.form: list = []  # the operations of the first run, where `takes` is asked

    # -- runs ---------------------------------------------------------------------------------------------------------------

    def program(self) -> ExportedProgram:
        """The ExportedProgram."""
        failed: Exception | None = None
        for runs, symbols, places, ranges in self._tries():
            if isinstance(runs, Exception):
                failed = failed or runs
                continue
            try:
                return self._built(runs, symbols, places, ranges)
            except Mismatch as e:
                failed = failed or e
        if any(self.labels):
            if all(isinstance(label, _DimHint) and label is Dim.AUTO for labels in self.labels for label in labels.values()):
                self.labels = [{} for _ in self.labels]
                return self.program()
            raise violated(self.base, f"{type(failed).__name__}: {failed}") from failed
        raise UserError(UserErrorType.INVALID_OUTPUT, str(failed)) from failed

    def _tries(self) -> Iterator[tuple]:
        if not any(self.labels):
            first = self._run(self.example.tensors)
            if self.traced or not any(c.data for c in first.calls):
                yield [first], {}, {}, {}
            else:
                out = self.out
                others = [self._run([other(t, k) for t in self.example.tensors]) for k in (1, 2)]
                self.out = out
                yield [first, *others], {}, {}, {}
            return
        self._run(self.example.tensors)  # what is wrong with the model itself shows here
        out = self.out
        for together in (False, True):
            sizes = dynamic.Sizes(self.example.tensors, self.labels, together)
            names, places, ranges = self._symbols(sizes)
            for attempt in sizes.attempts():
                try:
                    runs = [self._run([resized(t, s) for t, s in zip(self.example.tensors, sizes.shapes(self.example.tensors, at))]) for at in attempt]
                except (UserError, GuardOnDataDependentSymNode):
                    raise
                except Exception as e:  # whatever the model says to these sizes
                    yield e, {}, {}, {}
                    continue
                self.out = out
                yield runs, {names[s]: dyn([at[s] for at in attempt]) for s in sizes.names}, places, ranges

    def takes(self, places: list[tuple[int, int]]) -> bool:
        """Whether the model runs, and runs the same operations, where these dimensions, (tensor, dimension), are of another size."""
        shapes = [[2 * n if (i, d) in places else n for d, n in enumerate(t.shape)] for i, t in enumerate(self.example.tensors)]
        try:
            run = self._run([resized(t, tuple(s)) for t, s in zip(self.example.tensors, shapes)])
        except Exception:  # whatever the model says to these sizes
            if not places:
                raise
            return False
        form = [(c.target, len(c.outs)) for c in run.calls]
        if not places:
            self.form = form
        return form == self.form

    def _symbols(self, sizes: dynamic.Sizes) -> tuple[dict, dict, dict]:
        """The symbols' names as PyTorch makes them, where each is found, and between which limits it is."""
        names: dict[Any, str] = {}
        places: dict[str, tuple[int, int]] = {}
        ranges: dict[str, ValueRanges] = {}
        taken: set[str] = set()
        start = len(self._state())
        sources = [s for s, x in self.sources() if isinstance(x, Tensor)]
        for i, dims in enumerate(sizes.of):
            for d, (symbol, a, b) in dims.items():
                label = self.labels[i].get(d, self.labels[i].get(d - self.example.tensors[i].ndim))
                if symbol not in names and (a, b) == (1, 0):
                    name = names[symbol] = symbol_name(f"{sources[i]}.size()[{d}]", taken)
                    places[name] = start + i, d
                    ranges[name] = ValueRanges(label.min, label.max) if isinstance(label, Dim) else ValueRanges(2, float("inf"))
        self.base = {s if isinstance(s, str) else names.get(s, str(s)): n for s, n in sizes.base.items()}
        for symbol in sizes.names:
            if symbol not in names:
                raise UserError(UserErrorType.DYNAMIC_DIM, f"torch.export.export: no dimension is {symbol} itself, only functions of it are")
        return names, places, ranges

    def sources(self) -> list[tuple[str, Any]]:
        """Where PyTorch finds each leaf of the arguments."""
        return [(f"L['{name}']" + pytree.keystr(path), x) for name, value in self.example.named for path, x in pytree.tree_leaves_with_path(value)]

    def _state(self) -> list[Tensor]:
        return [*self.parameters.values(), *self.buffers.values(), *self.attributes.values()]

    def _run(self, tensors: list[Tensor]) -> Trace:
        fresh = [Tensor._of(Value(t._current().aval, t._host_array())) for t in tensors]
        trace = Trace([*self._state(), *fresh], ModuleStack(self.mod), self.traced)

        def call() -> Any:
            try:
                return self.example.call(fresh)
            except Unfollowed as error:
                raise UserError(UserErrorType.ANTI_PATTERN, str(error)) from None
        self.out = trace.run(call, self._state())
        leaves, spec = pytree.tree_flatten(self.out)
        trace.results = [trace.refs(x) for x in leaves]
        trace.out_spec = spec
        return trace

    # -- the program ----------------------------------------------------------------------------------------------------------

    def _built(self, runs: list[Trace], symbols: dict, places: dict, ranges: dict) -> ExportedProgram:
        first = runs[0]
        if len({len(r.results) for r in runs}) > 1:
            raise Mismatch("how many results the model has depends on a dynamic dimension")
        builder = Builder(runs, symbols, places)
        specs, constants = self._inputs(builder, first)
        for (at, t), *others in zip(*[r.constants for r in runs]):
            if any(o[0] != at or o[1].shape != t.shape or not (o[1] == t).all() for o in others):
                raise Mismatch("a tensor that the model makes depends on a dynamic dimension in a way that cannot be followed")
        builder.calls(first.results)
        results = [builder.merged(xs) for xs in zip(*[r.results for r in runs])]
        for x in results:
            if not (x is None or hasattr(x, "op") or isinstance(x, (int, float, bool, str))):
                raise UserError(UserErrorType.INVALID_OUTPUT, f"Failed to export the model: it returns a {type(x).__name__}, which is no tensor, number or text")
        builder.graph.output(tuple(results))
        outs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(x.name) if hasattr(x, "op") else ConstantArgument("", x), None) for x in results]
        for node in builder.graph.nodes:
            stack, modules = node.meta.pop("where", ((), ()))
            if modules:
                node.meta["nn_module_stack"] = dict(modules)
            if stack:
                node.meta["stack_trace"] = "\n  ".join(f'File "{f}", line {n}, in {c}\n    {linecache.getline(f, n).strip()}' for f, n, c in stack)
        module = GraphModule({}, builder.graph)
        in_spec = pytree.tree_flatten((self.args, dict(self.example.named[len(self.args):])))[1]
        names = [name for name, _ in self.example.named]
        entry = ModuleCallEntry("", ModuleCallSignature([], [], in_spec, first.out_spec, names))
        used = {name for node in module.graph.nodes for n in _sizes(node) for name in n.node.symbols()}
        known = {SymbolKey(name): r for name, r in ranges.items() if name in used or name in places}
        state = {**self.parameters, **{k: v for k, v in self.buffers.items() if k in self.persistent}}
        constants |= {k: v for k, v in self.buffers.items() if k not in self.persistent}
        return ExportedProgram(module, builder.graph, ExportGraphSignature(specs, outs), state, known, [entry], (self.args, self.kwargs), constants)

    def _inputs(self, builder: Builder, first: Trace) -> tuple[list[InputSpec], dict[str, Tensor]]:
        """The graph's placeholders and what they are."""
        specs: list[InputSpec] = []
        number = 0
        for prefix, kind, tensors in (("p", InputKind.PARAMETER, self.parameters), ("b", InputKind.BUFFER, self.buffers)):
            for name in tensors:
                node = builder.placeholder(f"{prefix}_{name.replace('.', '_')}", number)
                number += 1
                specs.append(InputSpec(kind, TensorArgument(node.name), name, name in self.persistent if kind is InputKind.BUFFER else None))
        constants: dict[str, Tensor] = {}
        read = {r for run in [first] for c in run.calls for r in _numbers((c.args, c.kwargs))} | set(_numbers(first.results))
        for name, t in self.attributes.items():
            if number in read:
                node = builder.placeholder(f"c_{name.replace('.', '_')}", number)
                constants[name] = t.detach()
                specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name))
            number += 1
        for k, (at, t) in enumerate(first.constants):
            name = f"lifted_tensor_{k}"
            node = builder.placeholder(f"c_{name}", at)
            constants[name] = t.detach().clone()
            specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name))
        for name, (_, x) in zip(self.names, self.sources()):
            if isinstance(x, Tensor):
                node = builder.placeholder(name, number)
                number += 1
                specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
            else:
                node = builder.placeholder(name, None, x)
                specs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, x), None))
        return specs, constants


class SymbolKey(str):
    """A symbol as a key of `range_constraints`: shown as it is named."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name."""
        return str(self)

    def __repr__(self) -> str:
        return str(self)


def _numbers(x: Any) -> Iterator[int]:
    for r in held(Ref, x):
        yield r.number


def _sizes(node: Any) -> Iterator[Any]:
    val = node.meta.get("val")
    for v in val if isinstance(val, list) else [val]:
        yield from (n for n in getattr(v, "shape", ()) if not isinstance(n, int))


def _placeholder_names(example: Example) -> list[str]:
    """A name for every leaf of the arguments: `x`, `pair_0`, `batch_key`."""
    names = []
    for name, value in example.named:
        for path, _ in pytree.tree_leaves_with_path(value):
            parts = [str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path]
            names.append("_".join([name, *parts]))
    return ["".join(c if c.isalnum() or c == "_" else "_" for c in n) for n in names]


def _tensor_attributes(mod: Module) -> dict[str, Tensor]:
    """Tensors that are neither parameters nor buffers, by name."""
    found: dict[str, Tensor] = {}
    for prefix, m in mod.named_modules():
        for name, x in vars(m).items():
            if isinstance(x, Tensor) and not isinstance(x, Parameter):
                found[f"{prefix}.{name}" if prefix else name] = x
    return found
