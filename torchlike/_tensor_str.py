"""How tensors are printed: torch's text, character for character, from a NumPy array and a few facts about the tensor.

Only the elements that will be shown are turned into strings, once; widths and line breaks follow from those strings.
Importing this module gives Tensor its ``__repr__`` and ``__format__``.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._core import program
from ._core.dtype import get_default_dtype
from ._core.value import is_tracer
from ._functorch import _layers
from ._tensor import Tensor

# {real dtype: the complex dtype that needs no suffix while it is the default}
_COMPLEX_DEFAULTS = {"float64": "complex128"}
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


@dataclasses.dataclass
class PrinterOptions:
    """The state behind :func:`set_printoptions`; ``sci_mode=None`` lets every tensor decide for itself."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: float = 80
    sci_mode: bool | None = None


PRINT_OPTS = PrinterOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print: digits after the point, the size from which a tensor is summarised, how many items to show
    at each edge then, and the line width. ``profile`` ("default", "short" or "full") is applied first; ``sci_mode``
    forces (or forbids) scientific notation and goes back to automatic whenever it is left out.
    """
    changes: dict[str, Any] = dict(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes.update({name: value for name, value in given.items() if value is not None})
    for name, value in changes.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options as a dictionary that :func:`set_printoptions` takes back."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Context manager: :func:`set_printoptions` on entry, the former options on exit."""
    former = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**former)


def tensor_str(
    array: np.ndarray | None,
    *,
    dtype: str,
    default_dtype: str = "float32",
    device: str = "cpu",
    requires_grad: bool = False,
    grad_fn: str | None = None,
    size: tuple[int, ...] | None = None,
    layout: str = "strided",
    prefix: str = "tensor(",
    contents: str | None = None,
    tangent: str | None = None,
) -> str:
    """The repr of a tensor.

    ``array`` holds the elements (None on the meta device, where ``size`` says the shape); ``dtype`` and
    ``default_dtype`` are names such as "float32"; ``grad_fn`` is a node's class name; ``contents`` replaces the
    elements; ``tangent`` is the repr of what forward differentiation made.
    """
    shape = tuple(array.shape) if array is not None else tuple(size or ())
    indent = len(prefix)
    suffixes = [f"device='{device}'"] if device.split(":")[0] != "cpu" else []
    known = {default_dtype}
    if array is None:
        body = "..."
        suffixes += [] if size is None else [f"size={shape}"]
    elif array.size == 0:
        body = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={shape}")
    else:
        known |= {"int64", "bool", _COMPLEX_DEFAULTS.get(default_dtype, "complex64")}
        body = _elements_str(array, indent, dtype) if contents is None else contents
        if not PRINT_OPTS.edgeitems:
            suffixes.append(f"size={shape}")
    if dtype not in known:
        suffixes.append(f"dtype=torch.{dtype}")
    if layout != "strided":
        suffixes.append(f"layout=torch.{layout}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _append_suffixes(prefix + (body if contents is None else contents), suffixes, indent)


def _append_suffixes(text: str, suffixes: list[str], indent: int, column: int | None = None) -> str:
    # torch counts the first line one character too long (and two per separator); line breaks depend on it.
    if column is None:
        column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _elements_str(array: np.ndarray, indent: int, dtype: str) -> str:
    edge = PRINT_OPTS.edgeitems
    summarised = array.size > PRINT_OPTS.threshold
    if summarised and not edge and array.ndim:
        return "[...]"
    # A dimension is cut when its two edges leave something out between them.
    cut = [summarised and length > 2 * edge for length in array.shape]
    if any(cut):
        kept = [
            np.r_[0:edge, length - edge : length] if is_cut else np.arange(length)
            for length, is_cut in zip(array.shape, cut, strict=True)
        ]
        array = array[np.ix_(*kept)]
    cells, width = _cells(array, dtype)
    table = np.empty(array.size, dtype=object)
    table[:] = cells
    return _layout(table.reshape(array.shape), cut, indent, width)


def _layout(cells: np.ndarray, cut: list[bool], indent: int, width: int) -> str:
    """Brackets, commas and line breaks around strings; ``cut[d]`` puts an ellipsis in the middle of dimension d."""
    if cells.ndim == 0:
        return cells.item()
    items = list(cells) if cells.ndim == 1 else [_layout(row, cut[1:], indent + 1, width) for row in cells]
    if cut[0]:
        items.insert(PRINT_OPTS.edgeitems, " ..." if cells.ndim == 1 else "...")
    margin = " " * (indent + 1)
    if cells.ndim > 1:
        return "[" + ("," + "\n" * (cells.ndim - 1) + margin).join(items) + "]"
    per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / (width + 2)))
    lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
    return "[" + (",\n" + margin).join(lines) + "]"


def _cells(array: np.ndarray, dtype: str) -> tuple[list[str], int]:
    """One string per element in row-major order, padded to a common width, and that width."""
    flat = array.reshape(-1)
    if flat.dtype.kind == "c":
        reals, real_width = _float_cells(flat.real.astype(np.float64), dtype)
        imags, imag_width = _float_cells(flat.imag.astype(np.float64), dtype)
        pairs = zip(reals, (imag.lstrip() for imag in imags), strict=True)
        cells = [real + ("" if imag[0] in "+-" else "+") + imag + "j" for real, imag in pairs]
        return cells, real_width + imag_width + 1
    if flat.dtype.kind in "biu":
        texts = [str(value) for value in flat.tolist()]
        width = max(map(len, texts))
        return [text.rjust(width) for text in texts], width
    return _float_cells(flat.astype(np.float64), dtype)


def _float_cells(values: np.ndarray, dtype: str) -> tuple[list[str], int]:
    """Integral values print as "3."; others with ``precision`` digits; in scientific notation when the magnitudes are
    far apart (over 1000), over 1e8, or (unless all are integral) under 1e-4. Only finite non-zero values decide.
    """
    if dtype == "float8_e8m0fnu":
        # This format has neither zero nor infinity: torch takes its smallest value for zero, and nan for finite.
        deciding = values[values != 2.0**-127]
    else:
        deciding = values[np.isfinite(values) & (values != 0)]
    if not deciding.size:
        return [_integral(value) for value in values.tolist()], 1
    magnitudes = np.abs(deciding)
    low, high = magnitudes.min().item(), magnitudes.max().item()
    integral = bool((deciding == np.ceil(deciding)).all())
    scientific = high / low > 1000.0 or high > 1e8 or (not integral and low < 1e-4)
    if PRINT_OPTS.sci_mode is not None:
        scientific = PRINT_OPTS.sci_mode
    if scientific:
        text = f"{{:.{PRINT_OPTS.precision}e}}".format
    elif integral:
        text = _integral
    else:
        text = f"{{:.{PRINT_OPTS.precision}f}}".format
    width = max(len(text(value)) for value in deciding.tolist())
    return [text(value).rjust(width) for value in values.tolist()], width


def _integral(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


# -- Tensor -----------------------------------------------------------------------------------------------------------


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """repr(tensor); ``tensor_contents`` stands in for the printed elements."""
    if hasattr(self._value, "leaf"):  # see _interop.py
        return f"{type(self).__name__}({self._value.leaf!r})"
    array, size = None, tuple(self.shape)
    if _layers.state.open and tensor_contents is None:
        from ._functorch._wrappers import shown  # above this file
        text = shown(self)
        if text is not None:
            return text
    if is_tracer(self._current().array):
        tensor_contents = tensor_contents or repr(self._current().array)
    elif self._current().array is not program.META_ARRAY or (self._dispatches and self._storage.data is not None):
        array = self._host_array()
    elif tensor_contents is not None and self._dispatches and self.device.type != "meta":  # there are elements, which its class has shown
        array = np.broadcast_to(np.int8(0), size)
    try:
        grad_fn = self.grad_fn and type(self.grad_fn).__name__
    except RuntimeError:  # of a view that may no longer be differentiated
        grad_fn = "Invalid"
    shown, is_parameter = _shown_as(self)
    text = tensor_str(
        array,
        dtype=self.dtype.name,
        default_dtype=get_default_dtype().name,
        device=str(self.device),
        requires_grad=self.requires_grad,
        grad_fn=grad_fn,
        size=size,
        prefix=f"{shown}(",
        contents=tensor_contents,
        tangent=_tangent_str(self),
    )
    return f"Parameter({text})" if is_parameter else text


def _tangent_str(t: Tensor) -> str | None:
    from .autograd import forward_ad  # above this file

    level = forward_ad._state.level
    tangent = None if level is None else level.tangent(t)
    return None if tangent is None else repr(tangent)


def _shown_as(t: Tensor) -> tuple[str, bool]:
    """The name that stands before the elements, and whether t is a Parameter whose class would not tell."""
    from .nn.parameter import Parameter  # above this file

    return ("tensor", False) if type(t) in (Tensor, Parameter) else (type(t).__name__, isinstance(t, Parameter))


def _format(self: Tensor, spec: str) -> str:
    """format(tensor, spec): a 0-dim tensor formats as its number, any other takes no spec."""
    if self.ndim == 0 and self.device.type != "meta" and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


Tensor.__repr__ = _str
Tensor.__format__ = _format


# -- the parts, as libraries with printed classes of their own know them ---------------------------------------------


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements in their brackets, for a text that begins in column `indent`."""
    array = self._host_array()
    return _elements_str(array, indent, self.dtype.name) if array.size else "[]"


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text with suffixes and the closing bracket; the first suffix may be made to begin a line."""
    return _append_suffixes(tensor_str, suffixes, indent, PRINT_OPTS.linewidth if force_newline else None)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """repr(inp)."""
    return _str(inp, tensor_contents=tensor_contents)
