"""functorch.compile: forward and backward graphs ahead of time, for compilers of a program's own."""
from typing import Any

from ....fx.graph_module import GraphModule
from ... import config  # noqa: F401
from ...aot_autograd import aot_function, aot_module, aot_module_simplified, make_boxed_compiler, make_boxed_func
from ...partitioners import default_partition, min_cut_rematerialization_partition

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "default_partition", "make_boxed_compiler",
           "make_boxed_func", "min_cut_rematerialization_partition", "nop", "print_compile"]

compiled_function, compiled_module = aot_function, aot_module  # older names


def nop(fx_g: GraphModule, _: Any) -> GraphModule:
    """A compiler that does nothing."""
    return fx_g


def print_compile(fx_g: GraphModule, _: Any) -> GraphModule:
    """A compiler that prints a graph's code."""
    print(fx_g.code)
    return fx_g
