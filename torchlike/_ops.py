"""torch.ops.aten: PyTorch's operators by the names and overloads of its registry. Each calls the public function that does the same."""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import _ops_gradients, fft, linalg, special  # noqa: F401  (the operators of the first)
from ._core.dtype import int32, int64
from ._core.errors import not_implemented
from ._ops_backward import BACKWARDS
from ._ops_forms import FORMS
from ._ops_inner import INNER
from ._ops_layers import LAYERS
from ._public import FUNCTIONS
from ._tensor import Tensor
from .nn import functional

loaded_libraries: set[str] = set()  # the paths of those that `load_library` took
_FUNCTIONAL = ("copy", "zero", "uniform", "exponential", "random", "geometric", "cauchy", "log_normal")  # without a public function of that name
_FAMILIES = {"linalg_": linalg, "fft_": fft, "special_": special}


def _call(operator: OpOverload | OpOverloadPacket, function: Callable, args: tuple, kwargs: dict) -> Any:
    """What the operator does; classes that take functions over are asked first. `overrides` is loaded with the first one that derives from Tensor."""
    if f"{__package__}.overrides" not in sys.modules and not any(hasattr(x.__class__, "__torch_function__") and not isinstance(x, Tensor)
                                                                 for x in (*args, *kwargs.values())):
        return function(*args, **kwargs)
    from .overrides import call_operator
    return call_operator(operator, function, args, kwargs)


def lookup_op(qualname: str) -> OpOverload:
    """The operator `namespace::name` or `namespace::name.overload` as torch.ops has it; AttributeError for none."""
    from . import ops  # above this file
    namespace, name = qualname.split("::")
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(ops, namespace), name), overload or "default")


def function_of(operator: OpOverloadPacket) -> Callable:
    """The operator as `torch.<name>`, whose first argument is called input there."""
    def function(*args: Any, **kwargs: Any) -> Any:
        if "input" in kwargs and not args and operator._first_argument == "self":
            kwargs["self"] = kwargs.pop("input")
        return operator(*args, **kwargs)
    function.__name__ = function.__qualname__ = operator.__name__
    return function


class OpOverload:
    """One overload. The public function tells its own arguments apart, so all overloads call the same."""

    _defined_in_python = False  # by torch.library

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self.overloadpacket = self._overloadpacket = packet
        self._overloadname, self._opname = name, packet.__name__
        self.__name__, self.__module__ = f"{packet.__name__}.{name}", packet.__module__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _call(self, self._function, args, kwargs)

    @property
    def _function(self) -> Callable:
        return self.overloadpacket._function

    def name(self) -> str:
        """`aten::add.Tensor`; a default overload has no suffix."""
        return self.overloadpacket._qualified_op_name + ("" if self._overloadname == "default" else f".{self._overloadname}")

    @property
    def namespace(self) -> str:
        return self.overloadpacket._namespace

    @property
    def _name(self) -> str:
        return self.name()

    @property
    def _schema(self) -> Any:
        """What it takes and returns. AttributeError where that is not known: of operators that are torchlike's own."""
        from ._function_schema import function_schema
        found = function_schema(self)
        if found is None:
            raise AttributeError(f"torchlike: the schema of '{self}' is not known")
        return found

    @property
    def tags(self) -> list[Any]:
        """What torch.Tag says of it."""
        from ._tags import tags_of
        return tags_of(self._opname, self._overloadname) if self.namespace == "aten" else []

    @property
    def is_view(self) -> bool:
        """Whether what it returns is memory of an argument that it does not write."""
        aliases = [a.alias_info for a in self._schema.arguments if a.alias_info is not None]
        return bool(aliases) and not any(a.is_write for a in aliases)

    def __deepcopy__(self, memo: dict) -> OpOverload:
        return self

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator: called, it chooses an overload; its attributes are the overloads."""

    def __init__(self, name: str, function: Callable, overloads: list[str], namespace: str = "aten") -> None:
        self.__name__, self.__module__, self._qualified_op_name, self._namespace = name, f"torch._ops.{namespace}", f"{namespace}::{name}", namespace
        self._function, self._overloads = function, overloads

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _call(self, self._function, args, kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name not in self.__dict__.get("_overloads", ()):
            raise AttributeError(f"The underlying op of '{self.__dict__.get('_namespace')}.{self.__dict__.get('__name__')}' has no overload name '{name}'")
        made = self.__dict__[name] = OpOverload(self, name)
        return made

    def __deepcopy__(self, memo: dict) -> OpOverloadPacket:
        return self

    @functools.cached_property
    def _first_argument(self) -> str:
        """The name of its first argument."""
        return next(iter(inspect.signature(self._function).parameters), "")

    def overloads(self) -> list[str]:
        """Their names."""
        return list(self._overloads)

    def __iter__(self) -> Iterator[str]:
        return iter(self._overloads)

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


@functools.cache
def _overloads() -> dict[str, list[str]]:
    """The overloads of each operator, from a file of lines `overloads: operators`."""
    lines = (Path(__file__).parent / "_overloads.txt").read_text().splitlines()
    found = {name: names.split() for names, _, operators in (line.partition(": ") for line in lines) for name in operators.split()}
    return {**dict.fromkeys((*BACKWARDS, *INNER, *_FUNCTIONAL, "_local_scalar_dense", "_unique2"), ["default"]), **found}


def _function(name: str) -> Callable | None:
    if name in _INNER:
        return _INNER[name]
    for prefix, module in _FAMILIES.items():
        if name.startswith(prefix):
            return getattr(module, name.removeprefix(prefix), None)
    return FUNCTIONS.get(name) or getattr(Tensor, name, None) or getattr(functional, name, None)


class _Namespace:
    """torch.ops.aten."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        function = _function(name) if name in _overloads() else None
        if function is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        made = self.__dict__[name] = OpOverloadPacket(name, function, _overloads()[name])
        return made


def refresh() -> None:
    """Public functions were replaced: operators that were asked for before call what is there now."""
    for name, packet in vars(aten).items():
        packet._function = _function(name)


# -- operators that have no public function ------------------------------------------------------------------------------


def _to_copy(self: Tensor, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking: bool = False, memory_format=None) -> Tensor:
    given = {} if memory_format is None else {"memory_format": memory_format}
    return self.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True, **given)


def _slice(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return self[(slice(None),) * (dim % self.dim()) + (slice(start, end, step),)]


def _index(self: Tensor, indices: list[Tensor | None]) -> Tensor:
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _in_place(function: Callable) -> Callable:
    """An activation that torch.nn.functional has with `inplace=True` only."""
    return lambda self: function(self, inplace=True)


def _convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int], transposed: bool,
                 output_padding: list[int], groups: int) -> Tensor:
    n = weight.dim() - 2
    if transposed:
        return getattr(functional, f"conv_transpose{n}d")(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(functional, f"conv{n}d")(input, weight, bias, stride, padding, dilation, groups)


def _convolution_with_settings(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                               transposed: bool, output_padding: list[int], groups: int, benchmark: bool, deterministic: bool,
                               cudnn_enabled: bool, allow_tf32: bool = True) -> Tensor:
    """The same; the settings choose among kernels that PyTorch has."""
    return _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _unique2(self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> tuple:
    """The values, and what was not asked for without elements."""
    made = FUNCTIONS["unique"](self, sorted, return_inverse, return_counts)
    parts = iter(made if isinstance(made, tuple) else (made,))
    return next(parts), *[next(parts) if asked else self.new_zeros(0, dtype=int64) for asked in (return_inverse, return_counts)]


def _coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins among sorted rows, and the end."""
    if self.dim() > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {self.dim()} dimensional tensor.")
    if self.dtype.is_floating_point or self.dtype.is_complex:
        raise not_implemented("convert_indices_from_coo_to_csr_cpu", self.dtype)
    return FUNCTIONS["searchsorted"](self, FUNCTIONS["arange"](size + 1, dtype=self.dtype, device=self.device), out_int32=out_int32)


def _csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False) -> Tensor:
    """The two coordinates of each entry, by columns and rows where `transpose` is set."""
    rows = FUNCTIONS["arange"](crow_indices.shape[0] - 1, device=crow_indices.device).repeat_interleave(crow_indices.diff())
    return FUNCTIONS["stack"]((col_indices, rows) if transpose else (rows, col_indices)).to(int32 if out_int32 else int64)


def _sparse_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return FUNCTIONS["addmm"](self, mat1, mat2, beta=beta, alpha=alpha)


def _with_half_to_float(f: Callable) -> Callable:
    """f(input, dim), which computes 16-bit floats as float32 where that is asked for."""
    def run(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
        return f(self.float() if half_to_float else self, dim)
    return run


def _attention(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Tensor | None = None,
               scale: float | None = None) -> tuple[Tensor, Tensor]:
    """scaled_dot_product_attention, and the logarithm of the sum of each query's exponentials."""
    out = functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    scores = (query @ key.transpose(-1, -2)).float() * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores + scores.new_full(scores.shape[-2:], -float("inf")).triu(1)
    if attn_mask is not None:
        scores = scores + attn_mask if attn_mask.is_floating_point() else scores.masked_fill(attn_mask.logical_not(), -float("inf"))
    return out, scores.logsumexp(-1)


def _not_on_cpu(query: Tensor, name: str) -> Tensor:
    """What stands for the state of a random generator; PyTorch has these kernels on accelerators only."""
    if query.device.type == "cpu":
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.")
    return query.new_zeros((), dtype=int64)


def _flash_attention(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, return_debug_mask: bool = False, *,
                     scale: float | None = None) -> tuple:
    state = _not_on_cpu(query, "_scaled_dot_product_flash_attention")
    out, sums = _attention(query, key, value, dropout_p, is_causal, scale=scale)
    return out, sums, None, None, query.shape[-2], key.shape[-2], state, state, query.new_zeros(0)


def _efficient_attention(query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None, compute_log_sumexp: bool, dropout_p: float = 0.0,
                         is_causal: bool = False, *, scale: float | None = None) -> tuple:
    state = _not_on_cpu(query, "_scaled_dot_product_efficient_attention")
    out, sums = _attention(query, key, value, dropout_p, is_causal, attn_mask=attn_bias, scale=scale)
    return out, sums if compute_log_sumexp else sums.new_zeros(0), state, state


def _without_writing(name: str) -> Callable:
    """The operator that makes a new tensor of what another one writes."""
    return lambda self, *args, **kwargs: getattr(self.clone(), name)(*args, **kwargs)


_INNER: dict[str, Callable] = {
    "_softmax": _with_half_to_float(functional.softmax),
    "_log_softmax": _with_half_to_float(functional.log_softmax),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention": _flash_attention,
    "_scaled_dot_product_efficient_attention": _efficient_attention,
    "_to_copy": _to_copy,
    "_local_scalar_dense": lambda self: self.item(),
    "_unique2": _unique2,
    "alias": lambda self: self.view(self.shape),
    "lift_fresh_copy": Tensor.clone,
    **{name: _without_writing(f"{name}_") for name in _FUNCTIONAL},
    "numpy_T": lambda self: self.T,
    "matrix_H": lambda self: self.mH,
    "slice": _slice,
    "index": _index,
    "sym_size": lambda self, dim=None: self.size() if dim is None else self.size(dim),
    "sym_stride": lambda self, dim=None: self.stride() if dim is None else self.stride(dim),
    "sym_numel": Tensor.numel,
    "sym_storage_offset": Tensor.storage_offset,
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "convolution": _convolution, "_convolution": _convolution_with_settings,
    "_sparse_addmm": _sparse_addmm,
    "_convert_indices_from_coo_to_csr": _coo_to_csr, "_convert_indices_from_csr_to_coo": _csr_to_coo,
    **{f"{f.__name__}_": _in_place(f) for f in (functional.hardsigmoid, functional.hardswish, functional.mish, functional.silu)},
    **LAYERS,
    **FORMS,
    **INNER,
    **BACKWARDS,
}

aten = _Namespace()
