"""Tracing below operations: `make_fx` writes a function's run down as a graph of PyTorch's operators, with what its derivatives run."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ... import _leaves
from ..._ops import OpOverload
from ..._plainly import state as overriding
from ..._tensor import Tensor
from ...nn import Module, Parameter
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten
from .._symbolic_trace import PH, Tracer
from ..graph_module import GraphModule
from ..node import Node
from ..proxy import Proxy

__all__ = ["PythonKeyTracer", "disable_proxy_modes_tracing", "get_proxy_mode", "make_fx"]


class PythonKeyTracer(Tracer):
    """What makes the nodes: tensors from outside become attributes of the graph's module."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Modules are seen through."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Attributes are what they are."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """As Tracer; a parameter becomes one of the graph's module."""
        if isinstance(a, Node):
            return a
        if isinstance(a, Parameter):
            name = next((n for n, p in self.root.named_parameters() if p is a), None)
            if name is None:
                name = self.get_fresh_qualname("_param_constant")
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)


def make_fx(f: Callable, decomposition_table: Mapping[OpOverload, Callable] | None = None, tracing_mode: str = "real", _allow_non_fake_inputs: bool = False, *,
            pre_dispatch: bool = False, record_module_stack: bool = False, _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True,
            record_stack_traces: bool = False, proxy_module_inputs: bool = False, _disable_torch_fn_metadata_mode: bool = False) -> Callable[..., GraphModule]:
    """A function that takes f's arguments and returns the GraphModule of the operators of torch.ops.aten that f runs on them, those of
    derivatives inside of f (`torch.func.grad`, `autograd.grad`, `backward`) among them.

    `tracing_mode`: "real" runs f, "fake" computes nothing. Sizes are constants of the graph: "symbolic" is refused (NotImplementedError), as are
    `pre_dispatch`, `record_module_stack` and `proxy_module_inputs`. `decomposition_table` maps operators to functions that are traced in their place.
    RuntimeError where f looks at a value that depends on its arguments.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")
    if tracing_mode == "symbolic":
        raise NotImplementedError("torchlike: make_fx(tracing_mode='symbolic'). Take 'fake', whose graph is for the sizes of the arguments, or torch.export.export "
                                  "with dynamic_shapes.")
    refused = [name for name, x in (("pre_dispatch", pre_dispatch), ("record_module_stack", record_module_stack), ("proxy_module_inputs", proxy_module_inputs)) if x]
    if refused:
        raise NotImplementedError(f"torchlike: make_fx({refused[0]}=True)")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        from ..._guards import detect_fake_mode
        from ..._subclasses.fake_tensor import FakeTensorMode
        from ._recorded import ProxyTorchDispatchMode
        tracer = PythonKeyTracer()
        tracer.record_stack_traces = record_stack_traces
        fake = detect_fake_mode(args)
        if tracing_mode == "fake" and fake is None:
            fake = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=_allow_non_fake_inputs)
        trace = ProxyTorchDispatchMode(tracer, fake, decomposition_table, _error_on_data_dependent_ops)
        with disable_proxy_modes_tracing():
            graph = tracer.trace(_of_proxies(_with_names(f, len(args)), args, trace), tree_map(lambda _: PH, args))
        return GraphModule(tracer.root, graph, "<lambda>" if not hasattr(f, "__name__") else f.__name__)
    return wrapped


def _with_names(f: Callable, n: int) -> Callable:
    """f as a function whose parameters have names."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is not None and not code.co_flags & inspect.CO_VARARGS:
        return f
    names = ", ".join(f"arg{i}" for i in range(n))
    return eval(f"lambda {names}: fn({names})", {"fn": f})


def _of_proxies(f: Callable, args: tuple, trace: Any) -> Callable:
    """f on Recorded tensors, as a function of their Proxies."""
    from ._recorded import unwrapped
    flat, _ = tree_flatten(args)

    @functools.wraps(f)
    def run(*proxies: Any) -> Any:
        given, spec = tree_flatten(list(proxies))
        made = []
        with trace:
            for x, p in zip(flat, given, strict=True):
                if isinstance(x, Tensor):
                    made.append(trace.given(x, p.node))
                else:
                    trace.tell(p.node, x)
                    made.append(x)
            return unwrapped(f(*tree_unflatten(made, spec)))
    return run


def get_proxy_mode() -> Any:
    """The mode under which tensors are recorded in a graph, if one is on."""
    return next((m for m in reversed(_leaves.state.stack) if type(m).__name__ == "ProxyTorchDispatchMode"), None)


@contextmanager
def disable_proxy_modes_tracing() -> Iterator[Any]:
    """A block in which what is done to tensors from outside is not recorded."""
    found = get_proxy_mode()
    stack, modes = _leaves.state.stack, overriding.modes
    _leaves.state.stack = tuple(m for m in stack if type(m).__name__ != "ProxyTorchDispatchMode")
    overriding.modes = tuple(m for m in modes if getattr(m, "trace", None) is None or m.trace is not found)
    try:
        yield found
    finally:
        _leaves.state.stack, overriding.modes = stack, modes
