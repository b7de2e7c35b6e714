"""pipeline(): a module exported as a graph, and the graph cut into stages."""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Callable, Iterator
from enum import Enum
from inspect import Parameter, Signature, signature
from typing import Any

import torchlike
from torchlike import library
from torchlike._tensor import Tensor
from torchlike.fx.graph_module import GraphModule, _assign_attr, _get_attr
from torchlike.fx.interpreter import Interpreter
from torchlike.fx.node import Node, map_aggregate
from torchlike.fx.passes.split_module import split_module
from torchlike.nn.modules.module import Module
from torchlike.nn.parameter import Parameter as Weight

from ._metadata import PipeInfo
from ._traced_stage import _PipelineStage

_PREFIX = "submod_pp"

library.define("pippy::_pipe_split", "() -> ()")
library.impl("pippy::_pipe_split", "CompositeExplicitAutograd", lambda: None)
_SPLIT = torchlike.ops.pippy._pipe_split.default


class SplitPoint(Enum):
    """Where a pipe is cut: before or after a submodule runs."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """A stage ends here, where a module with this call is made a pipe; otherwise nothing."""
    torchlike.ops.pippy._pipe_split()


class _Detaching(Interpreter):
    """Runs a pipe in one process as its stages would run: each with inputs of its own graph."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        def detached(value: Any) -> Any:
            return value.detach().requires_grad_(True) if isinstance(value, Tensor) and value.requires_grad else value
        return super().call_module(target, map_aggregate(args, detached), map_aggregate(kwargs, detached))


class Pipe(Module):
    """A module in stages: `split_gm` calls `submod_pp_0`, `submod_pp_1` and so on, whose parameters have the names that they had.

    A parameter of several stages is one of its own in each of them; `replicated_params` has their names.
    """

    def __init__(self, split_gm: GraphModule, num_stages: int, has_loss_and_backward: bool, loss_spec: Any) -> None:
        super().__init__()
        self.split_gm = split_gm
        self.executor = _Detaching(split_gm)
        self.num_stages, self.has_loss_and_backward, self.loss_spec = num_stages, has_loss_and_backward, loss_spec
        for node in split_gm.graph.nodes:
            if node.op not in ("call_module", "placeholder", "output") and node.target is not operator.getitem:
                raise AssertionError(f"Unexpected node: {node}")
        users: dict[Weight, dict[str, str]] = {}
        for stage, module in split_gm.named_children():
            for name, parameter in module.named_parameters():
                users.setdefault(parameter, {})[stage] = name
        self.replicated_params = [names for names in users.values() if len(names) > 1]
        for names in self.replicated_params:
            for stage, name in names.items():
                module = split_gm.get_submodule(stage)
                shared = module.get_parameter(name)
                own = copy.deepcopy(shared)
                for same in [n for n, p in module.named_parameters(remove_duplicate=False) if p is shared]:
                    path, _, last = same.rpartition(".")
                    setattr(module.get_submodule(path), last, own)

        def throw(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError("To run pipeline locally, invoke the Pipe object directly, not `split_gm`")

        split_gm.forward = throw

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """All stages in this process; a tuple of the module's outputs."""
        if kwargs:
            names = [node for node in self.split_gm.graph.nodes if node.op == "placeholder"]
            bound = Signature([Parameter(n.target, Parameter.POSITIONAL_OR_KEYWORD, default=n.args[0] if n.args else Parameter.empty)
                               for n in names]).bind(*args, **kwargs)
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        return self.executor.run(*args)

    def get_stage_module(self, stage_idx: int) -> Module:
        """ValueError where there is no such stage."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"{_PREFIX}_{stage_idx}")

    @staticmethod
    def from_tracing(
        mod: Module,
        example_args: tuple[Any, ...],
        example_kwargs: dict[str, Any] | None = None,
        split_policy: Callable[[GraphModule], GraphModule] | None = None,
    ) -> Pipe:
        """Export `mod` with these arguments, and cut it at its `pipe_split()`s, or those that `split_policy` puts into its graph.

        RuntimeError for a module that cannot be exported.
        """
        try:
            program = torchlike.export.export(mod, example_args, example_kwargs)
        except Exception as error:
            raise RuntimeError(
                "It seems that we cannot capture your model as a full graph. Typical reasons include graph breaks, data/shape-dependent control flow, or "
                "missing meta kernels for custom operators. You can use our manual pipeline interfaces, or try to fix the graph breaks, see "
                "https://pytorch.org/docs/stable/export.html") from error
        traced = program.module(check_guards=False)
        whole, taken = traced.graph._codegen, len(signature(traced.forward).parameters)
        if split_policy is not None:
            traced = split_policy(traced)
        split, stages = _cut(traced, mod)
        pipe = Pipe(split, stages, False, None)
        first = pipe.get_stage_module(0)
        if len(signature(first.forward).parameters) == taken:
            _called_as(first, whole, [node.name for node in split.graph.nodes if node.op == "placeholder"])
        return pipe

    def print_readable(self) -> None:
        """Print the graph, and each stage's."""
        self.split_gm.print_readable()

    def __repr__(self) -> str:
        return repr(self.split_gm)

    def info(self) -> PipeInfo:
        """What stages have to know of the pipe."""
        return PipeInfo(self.split_gm.graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> _PipelineStage:
        """A stage for this process, on `device`."""
        stage = _PipelineStage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)
        stage._move(torchlike.device(device))
        return stage


def _cut(traced: GraphModule, original: Module) -> tuple[GraphModule, int]:
    """A module of the stages, each with its parameters and buffers, and how many they are."""
    graph, part, places, due = traced.graph, 0, {}, False
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is _SPLIT:
            due = bool(places)  # before anything ran there is no stage to end
            graph.erase_node(node)
        elif node.op not in ("placeholder", "get_attr", "output"):
            part, due = part + due, False
            places[node] = part
    split = split_module(traced, traced, places.__getitem__, partition_affix="pp")
    state = {node: _get_attr(traced, node.target) for node in split.graph.nodes if node.op == "get_attr"}
    for call in [node for node in split.graph.nodes if node.op == "call_module"]:
        stage = split.get_submodule(call.target)
        _own(stage, call, state)
        _name_again(stage, original)
    for node in state:
        split.graph.erase_node(node)
        root = node.target.partition(".")[0]
        if not root.startswith(_PREFIX) and hasattr(split, root):
            delattr(split, root)
    split.graph.lint()
    split.recompile()
    return split, part + 1


def _own(stage: GraphModule, call: Node, state: dict[Node, Any]) -> None:
    """Give a stage the parameters and buffers that it was called with."""
    placeholders = [node for node in stage.graph.nodes if node.op == "placeholder"]
    kept, last = [], placeholders[-1] if placeholders else None
    for placeholder, given in zip(placeholders, call.args, strict=True):
        if given not in state:
            kept.append(given)
            continue
        _assign_attr(state[given], stage, given.target)
        with stage.graph.inserting_after(last):
            inside = stage.graph.get_attr(given.target)
        inside.meta = placeholder.meta
        placeholder.replace_all_uses_with(inside)
        stage.graph.erase_node(placeholder)
        last = inside if last is placeholder else last
    call.args = tuple(kept)
    stage.graph.lint()
    stage.recompile()


def _name_again(stage: GraphModule, original: Module) -> None:
    """A parameter of two names has both in a stage that has both modules."""
    held = {id(p): p for p in stage.parameters()}
    for name, value in original.named_parameters(remove_duplicate=False):
        path, _, last = name.rpartition(".")
        if id(value) in held:
            with contextlib.suppress(AttributeError):
                owner = stage.get_submodule(path)
                if last not in owner._parameters:
                    owner.register_parameter(last, value)


def _called_as(stage: GraphModule, whole: Any, names: list[str]) -> None:
    """Let the first stage take the arguments as the whole module does: in that order, by name, nested."""
    graph = stage.graph
    placeholders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    if set(placeholders) != set(names):
        return
    first = next(iter(graph.nodes))
    for name in names:
        if placeholders[name] is not first:
            first.prepend(placeholders[name])
        else:
            first = first.next
    graph._codegen = copy.deepcopy(whole)
    graph._codegen.pytree_info = graph._codegen.pytree_info._replace(out_spec=None)
    stage.recompile()


@contextlib.contextmanager
def _marked(module: Module, spec: dict[str, SplitPoint]) -> Iterator[None]:
    """Inside, the submodules that `spec` names call `pipe_split`."""
    before: list[tuple[Module, Any]] = []

    def marking(forward: Callable, at: SplitPoint) -> Callable:
        def run(*args: Any, **kwargs: Any) -> Any:
            if at is SplitPoint.BEGINNING:
                pipe_split()
            output = forward(*args, **kwargs)
            if at is SplitPoint.END:
                pipe_split()
            return output
        return run

    try:
        for name, at in spec.items():
            if not isinstance(at, SplitPoint):
                raise ValueError("Unknown split point type.")
            found, path = module, name.split(".")
            for i, part in enumerate(path):
                try:
                    found = getattr(found, part)
                except AttributeError as error:
                    if i + 1 == len(path):
                        raise
                    raise AttributeError(f"Specified target {name} referenced nonexistent module {'.'.join(path[:i + 1])}") from error
            before.append((found, found.__dict__.get("forward")))
            found.forward = marking(found.forward, at)
        yield
    finally:
        for found, forward in reversed(before):
            if forward is None:
                del found.forward
            else:
                found.forward = forward


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:
    """A module in stages, given one microbatch's arguments: cut where `split_spec` says by submodules' names, where `split_policy` puts calls of `pipe_split`
    into the graph, or where the module itself calls it. ValueError for both of them."""
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    with _marked(module, split_spec or {}):
        return Pipe.from_tracing(module, mb_args, mb_kwargs, split_policy)
