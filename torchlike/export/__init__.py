"""`torch.export`: modules as graphs of torch.ops.aten operators, and files of such graphs.

`_trace` sees what a module does in one run, `_functions` says which operator a public function is, `_build` makes a graph of several runs
(of other sizes where dimensions are dynamic), `_unlift` a module of the program, `_archive` a file.
"""
from ._archive import load, save  # noqa: F401
from ._export import export  # noqa: F401
from .dynamic_shapes import Dim, dims  # noqa: F401
from .exported_program import (  # noqa: F401
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from .graph_signature import ExportGraphSignature  # noqa: F401
