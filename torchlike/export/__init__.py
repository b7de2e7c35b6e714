"""`torch.export`: modules as graphs of torch.ops.aten operators, and files of such graphs.

`_trace` sees what a module does in one run, `_functions` says which operator a public function is, `_build` makes a graph of several runs
(of other sizes where dimensions are dynamic), `_unlift` a module of the program, `_archive` a file.
"""
from ..fx._pytree import register_pytree_flatten_spec as _register_flatten_spec
from ..utils import _pytree
from ._archive import load, save  # noqa: F401
from ._export import export  # noqa: F401
from .dynamic_shapes import Dim, dims  # noqa: F401
from .exported_program import (  # noqa: F401
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from .graph_signature import ExportGraphSignature  # noqa: F401

__all__ = ["Dim", "ExportGraphSignature", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "dims", "export", "load", "register_dataclass",
           "save"]


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be arguments and results of exported modules: their fields are."""
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
    _register_flatten_spec(cls, lambda x, spec: _pytree.SUPPORTED_NODES[cls].flatten_fn(x)[0])
