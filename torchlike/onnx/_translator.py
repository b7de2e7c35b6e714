"""From runs of a model to an ONNX graph: the runs' operations are gone through side by side."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core import program
from .._core.value import Value
from .._examples.sizes import Dyn, dyn
from ._capture import Run, Step, _leaves
from ._errors import ConversionError, TorchExportError
from ._graph import Graph, Var
from ._symbolic import REGISTERED, symbolic
from ._translate import NAMES, TABLE
from .errors import UnsupportedOperatorError

_FORMATS = frozenset({"clone", "overwrite"})  # results that are their input


class Mismatch(TorchExportError):
    """The model does not do the same at other sizes."""


class Translator:
    """`names`: of the model's parameters and buffers, by the id of their Values."""

    def __init__(self, graph: Graph, runs: list[Run], names: dict[int, str]) -> None:
        self.graph, self.runs, self.names = graph, runs, names
        self.env: list[dict[int, Var]] = [{} for _ in runs]

    def add_inputs(self, names: list[str]) -> None:
        """The graph's inputs are the runs' inputs."""
        for name, *values in zip(names, *[r.inputs for r in self.runs], strict=True):
            var = Var(name, self._shape(values), values[0].aval.dtype)
            self.graph.inputs.append(var)
            self.graph.place(var)
            for env, v in zip(self.env, values):
                env[id(v)] = var

    def outputs(self) -> list[Var]:
        """What the model returned, after everything that it takes."""
        counts = {len(r.outputs) for r in self.runs}
        if len(counts) > 1:
            raise Mismatch("Failed to export the model: how many results it has depends on a dynamic dimension")
        wanted = [id(x) for r in self.runs[:1] for x in r.outputs if x.__class__ is Value]
        self._translate_all([r.steps for r in self.runs], set(wanted))
        return [self._merge(xs) for xs in zip(*[r.outputs for r in self.runs]) if xs[0].__class__ is Value]

    # -- the operations ----------------------------------------------------------------------------------------------------------

    def _translate_all(self, lists: list[list[Step]], wanted: set[int]) -> None:
        needed = _needed(lists[0], wanted)
        if len({len(steps) for steps in lists}) > 1:
            raise Mismatch("Failed to export the model: how many operations it runs depends on a dynamic dimension (a loop over it, or an `if`)")
        for i, steps in enumerate(zip(*lists)):
            if i in needed:
                if len({s.op for s in steps}) > 1:
                    raise Mismatch(f"Failed to export the model: which operations it runs depends on a dynamic dimension (at one place: "
                                   f"{', '.join(dict.fromkeys(s.op for s in steps))})")
                self._translate(steps, wanted)

    def _translate(self, steps: tuple[Step, ...], wanted: set[int]) -> None:
        g, first = self.graph, steps[0]
        args = self._merge([s.args for s in steps])
        outs = list(zip(*[s.outs for s in steps]))
        results = [(self._shape(values), values[0].aval.dtype) for values in outs]
        if first.data and not isinstance(results[0][0][0], Dyn):
            raise ConversionError(f"how many elements {first.op} gives depends on data, but was the same for all inputs that were tried: give the export an "
                                  "example of which a mask chooses some elements and not others")
        if self._folds(first, args, results):
            arrays = self._run(first)
            made: Any = tuple(_constant(g, a, d, first, args) for a, (_, d) in zip(arrays, results))
        else:
            g.called, g.title, g.results = first.op, NAMES.get(first.op, first.op.rpartition("::")[2]), results
            g.avals = () if first.plan is None else first.plan.avals
            start = len(g.nodes)
            custom = REGISTERED.get(first.op)
            f = TABLE.get(first.op)
            made = symbolic(g, custom, args) if custom else NotImplemented if f is None else f(g, *args)
            if made is NotImplemented:
                del g.nodes[start:]
                if first.inner is None or not {id(v) for v in first.outs} <= {id(v) for s in first.inner for v in s.outs} | set(self.env[0]):
                    raise UnsupportedOperatorError(first.op if "::" in first.op else f"aten::{NAMES.get(first.op, first.op)}", g.opset, None)
                self._translate_all([s.inner for s in steps], wanted | {id(v) for v in first.outs})
                return
            made = made if isinstance(made, (tuple, list)) else (made,)
        for k, (var, values, (shape, dtype)) in enumerate(zip(made, outs, results)):
            if var is None:
                continue
            if var.shape is None or var.node is not None:
                var.shape = shape
            var.dtype = dtype
            g.place(var)
            if var.node is not None and not var.node.name and var.name.startswith("val_"):
                title = g.title if k == 0 else f"{g.title}_{k}" if len(made) > 1 else g.title
                var.name = g.fresh(title)
                var.node.name = f"node_{var.name}"
            for env, v in zip(self.env, values):
                env[id(v)] = var

    def _folds(self, step: Step, args: Any, results: list) -> bool:
        """Whether the results are known now: they depend on constants only."""
        if step.plan is None or any(isinstance(n, Dyn) for shape, _ in results for n in shape):
            return False
        return all(x.constant if isinstance(x, Var) else not isinstance(x, Dyn) for x in _leaves(args)) and not self.graph.training

    def _run(self, step: Step) -> list[np.ndarray]:
        """A step's results from constants."""
        plan = step.plan
        inputs = [self.env[0][id(x)].value if x.__class__ is Value else x for x in step.values]
        if plan.numpy is not None:
            made = plan.numpy(*inputs)
            return [made] if plan.single else list(made)
        return [np.asarray(a) for a in plan.xla(*inputs)]

    # -- one of the runs' values ------------------------------------------------------------------------------------------------------

    def _shape(self, values: list[Value]) -> tuple:
        shapes = [v.aval.shape for v in values]
        if len({len(s) for s in shapes}) > 1:
            raise Mismatch("Failed to export the model: the rank of a tensor depends on a dynamic dimension")
        return tuple(dyn(ns) for ns in zip(*shapes))

    def _merge(self, xs: Any) -> Any:
        first = xs[0]
        if first.__class__ is Value:
            return self._var(xs)
        if isinstance(first, (tuple, list)):
            if len({len(x) for x in xs}) > 1:
                raise Mismatch("Failed to export the model: an operation's arguments are of another number at another size")
            return tuple([self._merge(ys) for ys in zip(*xs)])
        if isinstance(first, (int, float)) and not isinstance(first, bool) and len(xs) > 1:
            return dyn([int(x) if isinstance(x, int) else x for x in xs])
        return first

    def _var(self, values: Any) -> Var:
        found = self.env[0].get(id(values[0]))
        if found is None:
            found = self._outside(values)
            for env, v in zip(self.env, values):
                env[id(v)] = found
        elif any(env.get(id(v)) is not found for env, v in zip(self.env, values) if v.__class__ is Value):
            raise Mismatch("Failed to export the model: which values an operation reads depends on a dynamic dimension")
        return found

    def _outside(self, values: Any) -> Var:
        """A parameter, a buffer, or what else the model has made without reading its inputs."""
        shape, dtype = self._shape(values), values[0].aval.dtype
        name = self.names.get(id(values[0]))
        if name is not None:
            return Var(name, shape, dtype, lambda: np.asarray(program.concrete(values[0])))
        if all(v is values[0] for v in values):
            return self.graph.const(np.array(program.concrete(values[0])))
        arrays = [np.asarray(program.concrete(v)) for v in values]
        if all(np.array_equal(a, arrays[0]) for a in arrays):
            return self.graph.const(np.array(arrays[0]))
        if not shape or (len(shape) == 1 and not isinstance(shape[0], Dyn)):  # torch.tensor(x.shape[0])
            numbers = [dyn(ns) for ns in zip(*[a.reshape(-1).tolist() for a in arrays])]
            var = self.graph.scalar(numbers[0], dtype) if not shape else self.graph.cast(self.graph.sizes(numbers), dtype, _int64())
            var.shape, var.dtype = shape, dtype
            return var
        return Var("?", shape, dtype, _differs)


def _differs() -> np.ndarray:
    raise ConversionError("a tensor that the model makes depends on a dynamic dimension in a way that cannot be followed (values drawn at random, or "
                          "calculated outside of torch)")


def _int64() -> Any:
    from .._core.dtype import int64
    return int64


def _needed(steps: list[Step], wanted: set[int]) -> set[int]:
    """Which steps the wanted values depend on."""
    wanted, needed = set(wanted), set()
    for i in reversed(range(len(steps))):
        step = steps[i]
        if any(id(v) in wanted for v in step.outs):
            needed.add(i)
            inputs = [*_leaves(step.args), *(x for s in step.inner or () for x in _leaves(s.args))]
            wanted.update(id(v) for v in inputs if v.__class__ is Value)
    return needed


def _constant(g: Graph, array: np.ndarray, dtype: Any, step: Step, args: tuple) -> Var:
    array = np.asarray(array).astype(dtype.np, copy=False)
    sources = [x for x in args if isinstance(x, Var)]
    if len(sources) == 1 and sources[0].shape == array.shape and sources[0].dtype is dtype and step.op in _FORMATS:
        return sources[0]
    made = g.const(np.ascontiguousarray(array).reshape(array.shape))
    if step.op in ("view", "unsqueeze") and sources:
        made.origin = sources[0].origin or sources[0]
    return made


