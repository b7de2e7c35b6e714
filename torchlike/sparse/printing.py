"""How sparse tensors print: their parts, then size, number of entries and layout."""
from __future__ import annotations

from .._core.dtype import get_default_dtype
from .._tensor import Tensor
from .._tensor_str import _COMPLEX_DEFAULTS, PRINT_OPTS, _append_suffixes, _elements_str
from .tensor import SparseTensor

_INDENT = len("tensor(")


def sparse_str(self: SparseTensor, *, tensor_contents: str | None = None) -> str:
    """repr(tensor)."""
    role = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
    names = ("indices",) if self.layout_name == "sparse_coo" else ("ccol_indices", "row_indices") if self.axis else ("crow_indices", "col_indices")
    parts = [*((name, getattr(self, "_" + name if name == "indices" else name)()) for name in names), ("values", self._entries.detach())]
    text = "tensor(" + (",\n" + " " * _INDENT).join(_part(name, t) for name, t in parts)
    default = get_default_dtype().name
    suffixes = [f"device='{self.device}'"] if self.device.type != "cpu" else []
    suffixes += [f"size={self._dims}"] + ([] if self.is_meta else [f"nnz={self._nnz()}"])
    if self.dtype.name not in (default, "int64", "bool", _COMPLEX_DEFAULTS.get(default, "complex64")):
        suffixes.append(f"dtype={self.dtype}")
    suffixes.append(f"layout={self.layout}")
    if self.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    if self.layout_name == "sparse_coo":  # torch begins a line there
        text, suffixes = text + ",\n" + " " * _INDENT + suffixes[0], suffixes[1:]
        return role + _append_suffixes(text, suffixes, _INDENT, len(text) - text.rfind("\n") - 1)
    return role + _append_suffixes(text, suffixes, _INDENT)


def _part(name: str, t: Tensor) -> str:
    prefix = f"{name}=tensor("
    if t.is_meta:
        return f"{prefix}..., size={tuple(t.shape)})"
    array = t._host_array()
    if not array.size:
        return f"{prefix}[], size={tuple(t.shape)})"
    return prefix + _elements_str(array, _INDENT + len(prefix), t.dtype.name) + ("" if PRINT_OPTS.edgeitems else f", size={tuple(t.shape)}") + ")"


SparseTensor.__repr__ = sparse_str
