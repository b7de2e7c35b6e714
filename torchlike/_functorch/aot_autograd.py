"""Functions of which a forward and a backward graph are compiled ahead, each by a function that the program brings."""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._tensor import Tensor
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from ..fx.graph import CodeGen
from ..fx.graph_module import GraphModule
from ..nn.modules.module import Module
from ..ops import aten
from ..utils._pytree import tree_flatten, tree_unflatten
from .partitioners import FORWARD, TAG, default_partition

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func"]


def make_boxed_func(f: Callable) -> Callable:
    """f as a function of one list of arguments, which it may empty: what compilers return."""
    def boxed(args: list) -> Any:
        return f(*args)
    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results take one list of arguments."""
    def compile(module: GraphModule, inputs: Sequence) -> Callable:
        return make_boxed_func(compiler(module, inputs))
    return compile


def _run(compiled: Callable, args: list) -> list:
    made = compiled(args) if getattr(compiled, "_boxed_call", False) else compiled(*args)
    return list(made) if isinstance(made, (list, tuple)) else [made]


class _Plan:
    """The graphs of a function for the tensors that it was first called with, compiled."""

    def __init__(self, function: Callable, flat: list[Any], compilers: tuple, partition: Callable, decompositions: Mapping | None) -> None:
        forward_compiler, backward_compiler, inference_compiler = compilers
        self.places = [i for i, x in enumerate(flat) if isinstance(x, Tensor)]
        tensors = [flat[i] for i in self.places]
        self.wanted = [i for i, t in enumerate(tensors) if t.requires_grad]
        others = [x for x in flat if not isinstance(x, Tensor)]

        def called(primals: Sequence[Tensor]) -> list[Any]:
            left = iter(others)
            given = [None if i in self.places else next(left) for i in range(len(flat))]
            for i, t in zip(self.places, primals):
                given[i] = t
            made, self.structure = tree_flatten(function(given))
            return made
        def results(*primals: Tensor) -> list[Any]:
            made = called(primals)
            self.differentiable = [isinstance(y, Tensor) and y.requires_grad for y in made]
            self.about = [(tuple(y.shape), y.dtype, y.device) if isinstance(y, Tensor) else None for y in made]
            return made

        def joint(primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Any]:
            made = called(primals)
            for node in get_proxy_mode().tracer.graph.nodes:
                node.meta[TAG] = FORWARD
            roots = [y for y, d in zip(made, self.differentiable) if d]
            found = iter(_grad(roots, [primals[i] for i in self.wanted], tangents))
            return [*made, *[next(found) if i in self.wanted else None for i in range(len(primals))]]
        module, self.written = self._traced(results, tensors, None, decompositions)
        self.count = len(self.differentiable)
        self.trained = bool(self.wanted) and any(self.differentiable)
        if not self.trained:
            self.forward = inference_compiler(module, tensors)
            return
        from ..ops.creation import ones
        tangents = [ones(shape, dtype=dtype, device=device) for (shape, dtype, device), d in zip(
            [a or ((), None, None) for a in self.about], self.differentiable) if d]
        module, self.written = self._traced(joint, tensors, tangents, decompositions)
        forward, backward = partition(module, [*tensors, *tangents], num_fwd_outputs=self.count + len(self.written))
        self.forward = forward_compiler(forward, tensors)
        examples = [node.meta.get("val") for node in backward.graph.nodes if node.op == "placeholder"]
        self.backward = functools.cache(lambda: backward_compiler(backward, examples))  # at the first backward

    def _traced(self, function: Callable, primals: list[Tensor], tangents: list[Tensor] | None,
                decompositions: Mapping | None) -> tuple[GraphModule, list[int]]:
        """The flat graph of a function, without writes: the inputs that it writes, by number, have their new values among the results."""
        from ..func import functionalize
        given = [t.detach().requires_grad_(t.requires_grad) for t in primals]

        def run(primals: list, tangents: list) -> list:
            with enable_grad():
                return function(primals, tangents)
        if tangents is None:
            module = make_fx(functionalize(function), decompositions, "fake")(*given)
        else:
            module = make_fx(functionalize(run), decompositions, "fake")(given, tangents)
        graph = module.graph
        graph.set_codegen(CodeGen())
        placeholders, written, news = [n for n in graph.nodes if n.op == "placeholder"], [], []
        for node in list(graph.nodes):
            if node.op == "call_function" and node.target is aten.copy_.default and node.args[0] in placeholders:
                written.append(placeholders.index(node.args[0]))
                news.append(node.args[1])
                node.replace_all_uses_with(node.args[1])
                graph.erase_node(node)
        end = next(n for n in graph.nodes if n.op == "output")
        count = len(self.differentiable)
        end.args = ([*end.args[0][:count], *news, *end.args[0][count:]],)
        graph.eliminate_dead_code()
        module.recompile()
        return module, written

    def __call__(self, flat: list[Any]) -> Any:
        tensors = [flat[i] for i in self.places]
        if self.trained:
            made = list(_Compiled.apply(self, *tensors))
        else:
            with no_grad():
                made = _run(self.forward, list(tensors))
        news = made[self.count:self.count + len(self.written)]
        with no_grad():
            for i, new in zip(self.written, news):
                tensors[i].copy_(new)
        return tree_unflatten(made[:self.count], self.structure)


def _grad(roots: list[Tensor], inputs: list[Tensor], tangents: Sequence[Tensor]) -> Sequence[Tensor | None]:
    from ..autograd.engine import grad
    return grad(roots, inputs, list(tangents), allow_unused=True)


class _Compiled(Function):
    """A call of the compiled graphs."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, *tensors: Tensor) -> tuple:
        made = _run(plan.forward, list(tensors))
        results, saved = made[:plan.count + len(plan.written)], made[plan.count + len(plan.written):]
        ctx.plan, ctx.kept = plan, [None if isinstance(x, Tensor) else x for x in saved]
        ctx.save_for_backward(*[x for x in saved if isinstance(x, Tensor)])
        still = [y for i, y in enumerate(results) if isinstance(y, Tensor) and (i >= plan.count or not plan.differentiable[i])]
        ctx.mark_non_differentiable(*still)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        plan, tensors = ctx.plan, iter(ctx.saved_tensors)
        saved = [next(tensors) if x is None else x for x in ctx.kept]
        tangents = [g for g, d in zip(gradients, plan.differentiable) if d]
        return None, *_Backward.apply(plan, *saved, *tangents)


class _Backward(Function):
    """A call of the compiled backward."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, *given: Any) -> tuple:
        return tuple(_run(plan.backward(), list(given)))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")


def aot_function(fn: Callable, fw_compiler: Callable, bw_compiler: Callable | None = None, partition_fn: Callable = default_partition,
                 decompositions: Mapping | None = None, num_params_buffers: int = 0, keep_inference_input_mutations: bool = False,
                 inference_compiler: Callable | None = None, *, dynamic: bool = False, enable_log: bool = True, disable_functionalization: bool = False) -> Callable:
    """fn, whose first call traces the operators of its forward and backward, and has `compiler(graph module, example inputs)` make a function of each
    (`bw_compiler`: `fw_compiler` by default; `inference_compiler` of a forward whose arguments need no gradients). Later calls run these functions, for tensors
    of the same shapes; other arguments are constants. `partition_fn` splits the graph of both. Writes into arguments are done after the call.
    NotImplementedError for `dynamic`."""
    if dynamic:
        raise NotImplementedError("torchlike: aot_function(dynamic=True)")
    compilers = fw_compiler, bw_compiler or fw_compiler, inference_compiler or fw_compiler
    plan: list[_Plan] = []

    def compiled(*args: Any, **kwargs: Any) -> Any:
        flat, structure = tree_flatten((args, kwargs))

        def function(given: list) -> Any:
            args, kwargs = tree_unflatten(given, structure)
            return fn(*args, **kwargs)
        if not plan:
            plan.append(_Plan(function, flat, compilers, partition_fn, decompositions))
        return plan[0](flat)
    return compiled


def _state(mod: Module) -> dict[str, Tensor]:
    return {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}


def _functional(mod: Module) -> Callable:
    from ..func import functional_call

    def call(state: dict[str, Tensor], args: tuple, kwargs: dict) -> Any:
        return functional_call(mod, state, args, kwargs)
    return call


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Module:
    """`aot_function` of a module's forward, whose parameters and buffers are arguments; the settings are aot_function's. A module of the same state."""
    compiled = aot_function(_functional(mod), *args, **kwargs)

    class AOTModule(Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return compiled(_state(mod), args, kwargs)
    return AOTModule()


def aot_module_simplified(mod: Module, args: Sequence, fw_compiler: Callable, bw_compiler: Callable | None = None, partition_fn: Callable = default_partition,
                          decompositions: Mapping | None = None, keep_inference_input_mutations: bool = False,
                          inference_compiler: Callable | None = None) -> Callable:
    """A function of a module's arguments, compiled at once for arguments like `args`, flat tensors."""
    call = _functional(mod)
    state = _state(mod)
    flat, structure = tree_flatten((state, tuple(args)))

    def function(given: list) -> Any:
        state, args = tree_unflatten(given, structure)
        made = call(state, args, {})
        if not isinstance(made, (tuple, list)):
            raise RuntimeError("Graph output must be a (). This is so that we can avoid pytree processing of the outputs. Please change the module to have tuple "
                               "outputs or use aot_module instead.")
        return made
    plan = _Plan(function, flat, (fw_compiler, bw_compiler or fw_compiler, inference_compiler or fw_compiler), partition_fn, decompositions)

    def forward(*args: Any) -> Any:
        return plan(tree_flatten((_state(mod), args))[0])
    forward.zero_grad, forward.named_parameters, forward.named_buffers = mod.zero_grad, mod.named_parameters, mod.named_buffers
    return forward
