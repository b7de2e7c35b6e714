"""Which operator of torch.ops.aten a public function is to PyTorch, and with which arguments.

A rule is called with the function's arguments by their parameters' names and returns (operator, arguments), or NotImplemented: then
the function is seen through. Without a rule it is the operator of its name, if one of its schemas takes the arguments; a function for
which that fails is seen through as well.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .._aten_schemas import AtenSchema, overload, schemas
from .._core import dtype as dt
from .._core.device import device
from .._ops_layers import REDUCTIONS
from .._ops_windows import upsampling
from .._plainly import plain_function
from .._tensor import Tensor
from .._torch_names import torch_name

Found = tuple[AtenSchema, tuple, dict]


class Call(NamedTuple):
    """What a rule returns where some arguments go by name."""

    name: str
    args: tuple
    kwargs: dict


_NAMES = {  # of Python's operators, and of functions that torch gives to another operator
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_",
    "__truediv__": "div", "__itruediv__": "div_", "__matmul__": "matmul", "__neg__": "neg", "__abs__": "abs", "__pow__": "pow", "__rsub__": "rsub",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__invert__": "bitwise_not", "concat": "cat", "concatenate": "cat",
    "logsigmoid": "log_sigmoid", "absolute": "abs", "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "clip": "clamp", "greater": "gt",
}
_DTYPES = {"float": dt.float32, "double": dt.float64, "half": dt.float16, "bfloat16": dt.bfloat16, "int": dt.int32, "long": dt.int64, "short": dt.int16,
           "bool": dt.bool_}
_FAMILIES = ("torch._C._linalg", "torch._C._fft", "torch._C._special")  # of which operators have longer names
_LEFT_ALONE = frozenset("requires_grad_ backward register_hook retain_grad stft istft multi_head_attention_forward as_subclass set_ resize_ data_ptr normal_ "
                        "share_memory_ random_ geometric_ __setitem__ __getitem__ tensor as_tensor from_numpy scalar_tensor detach_ empty empty_like".split())
_RULES: dict[str, Callable] = {}
_MEANT = {"max_pool1d", "max_pool2d", "max_pool3d"}  # torch calls the operator of this name if it is not asked for indices


def as_aten(f: Callable, args: tuple, kwargs: dict) -> Found | None:
    """The operator that a call is, and its arguments."""
    name = f.__name__
    full = torch_name(f) or ""
    if full.startswith(_FAMILIES):
        name = full.rpartition(".")[2]
    rule = _RULES.get(name)
    if rule is not None:
        bound = _bound(f, args, kwargs)
        made = NotImplemented if bound is None else rule(**bound)
        if made is None:
            return None
        if made is not NotImplemented:
            return _found(*made) if made.__class__ is Call else _found(made[0], made[1:])
    name = _NAMES.get(name, name)
    if name in _LEFT_ALONE or not any(s.makes_tensors for s in schemas(name)):
        return None
    found = overload(name, args, kwargs)
    if found is None:
        bound = _bound(f, args, kwargs)
        found = None if bound is None else _by_name(name, bound)
    if found is None or not found[0].makes_tensors:
        return None
    return _placed(*found)


def _bound(f: Callable, args: tuple, kwargs: dict) -> dict | None:
    f = plain_function(f)
    try:
        bound = _signature(f).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    return dict(bound.arguments)


_signature = functools.cache(inspect.signature)


def _found(name: str, args: tuple, kwargs: dict | None = None) -> Found | None:
    found = overload(name, args, kwargs or {})
    return None if found is None else _placed(*found)


def _by_name(name: str, bound: dict) -> Found | None:
    """A function of torch.nn.functional: its parameters go by name; `inplace` chooses the operator."""
    if bound.pop("inplace", False):
        name += "_"
    if bound.pop("return_indices", False):
        return None
    for gone in ("size_average", "reduce", "_stacklevel"):
        if bound.pop(gone, None) not in (None, 3):
            return None
    if bound.get("reduction").__class__ is str:
        bound["reduction"] = REDUCTIONS.index(bound["reduction"])
    for schema in schemas(name):
        if all(k in schema.names or (k == "input" and "self" in schema.names) or x is None for k, x in bound.items()):
            given = {k: x for k, x in bound.items() if k in schema.names or k == "input"}
            made = schema.bound((), given)
            if made is not None and schema.operator() is not None:
                return schema, *made
    return None


def _placed(schema: AtenSchema, args: tuple, kwargs: dict) -> Found:
    """torch's calls say where a new tensor is made."""
    if "pin_memory" in schema.names and schema.op_name != "_to_copy" and schema.op_name != "to":
        if schema.arguments[0].kind != "Tensor":
            kwargs.setdefault("device", device("cpu"))
        kwargs.setdefault("pin_memory", False)
        order = [a.name for a in schema.arguments]
        kwargs = dict(sorted(kwargs.items(), key=lambda item: order.index(item[0])))
    return schema, args, kwargs


def _seen_as(*names: str) -> Callable:
    def register(rule: Callable) -> Callable:
        _RULES.update(dict.fromkeys(names, rule))
        return rule
    return register


# -- functions whose arguments are others than the operator's ----------------------------------------------------------------


def _dropout(name: str) -> Callable:
    def rule(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, train: bool | None = None) -> Any:
        return name + "_" * inplace, input, p, training if train is None else train
    return rule


_RULES |= {**{name: _dropout(name) for name in ("dropout", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")},
           **{f"dropout{n}d": _dropout("feature_dropout") for n in (1, 2, 3)}}


@_seen_as("batch_norm")
def _batch_norm(input: Tensor, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
                momentum: float = 0.1, eps: float = 1e-5, **native: Any) -> Any:
    return "batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps, False


@_seen_as("instance_norm")
def _instance_norm(input: Tensor, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: bool = True,
                   momentum: float = 0.1, eps: float = 1e-5, **native: Any) -> Any:
    return "instance_norm", input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False


@_seen_as("layer_norm")
def _layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enable: bool = True) -> Any:
    return "layer_norm", input, list(normalized_shape), weight, bias, eps, False


@_seen_as("group_norm")
def _group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True) -> Any:
    return "group_norm", input, num_groups, weight, bias, eps, False


@_seen_as("embedding")
def _embedding(input: Tensor | None = None, weight: Tensor | None = None, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
               scale_grad_by_freq: bool = False, sparse: bool = False, indices: Tensor | None = None) -> Any:
    if max_norm is not None:
        return None
    padding = -1 if padding_idx is None else padding_idx + weight.shape[0] if padding_idx < 0 and indices is None else padding_idx
    return "embedding", weight, input if indices is None else indices, padding, scale_grad_by_freq, sparse


def _softmax_of(name: str) -> Callable:
    def rule(input: Tensor, dim: int | None = None, dtype: Any = None, **level: Any) -> Any:
        return None if dim is None else (name, input, dim, *([] if dtype is None else [dtype]))
    return rule


_RULES |= {name: _softmax_of(name) for name in ("softmax", "log_softmax")}


def _max_pool(name: str) -> Callable:
    def rule(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
             return_indices: bool = False) -> Any:
        if return_indices:
            return f"{name}_with_indices", input, kernel_size, stride or [], padding, dilation, ceil_mode
        return name, input, kernel_size, stride or [], padding, dilation, ceil_mode
    return rule


_RULES |= {name: _max_pool(name) for name in _MEANT}


def _avg_pool(name: str) -> Callable:
    def rule(input: Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **named: Any) -> Any:
        return name, input, kernel_size, stride or [], *rest, *named.values()
    return rule


_RULES |= {f"avg_pool{n}d": _avg_pool(f"avg_pool{n}d") for n in (1, 2, 3)}


@_seen_as("interpolate")
def _interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None, antialias: bool = False) -> Any:
    dims = input.ndim - 2
    if mode in ("area", "lanczos"):
        return None
    if size is not None and not isinstance(size, (tuple, list)):
        size = [size] * dims
    if scale_factor is not None:
        scale_factor = [float(s) for s in scale_factor] if isinstance(scale_factor, (tuple, list)) else [float(scale_factor)] * dims
        if recompute_scale_factor:
            size, scale_factor = [int(n * s) for n, s in zip(input.shape[2:], scale_factor)], None
    name = upsampling(mode, dims, antialias)
    size = None if size is None else list(size)
    if mode.startswith("nearest"):
        return name, input, size, scale_factor
    return name, input, size, bool(align_corners), scale_factor


@_seen_as("cross_entropy")
def _cross_entropy(input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
                   reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    if size_average is not None or reduce is not None:
        return None
    return "cross_entropy_loss", input, target, weight, REDUCTIONS.index(reduction), ignore_index, float(label_smoothing)


@_seen_as("nll_loss")
def _nll_loss(input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
              reduction: str = "mean") -> Any:
    if size_average is not None or reduce is not None or reduction.__class__ is not str:
        return None
    return "nll_loss_nd", input, target, weight, REDUCTIONS.index(reduction), ignore_index


@_seen_as("to")
def _to(**given: Any) -> Any:
    """torch reads a dtype, a device and both, or a tensor that has them."""
    self, args, named = given["self"], list(given.get("args", ())), dict(given.get("kwargs", {}))
    named |= {k: x for k, x in given.items() if k not in ("self", "args", "kwargs") and x is not None and x is not False}
    for x in args:
        if isinstance(x, Tensor):
            named |= {"dtype": x.dtype, "device": x.device}
        elif isinstance(x, (str, device)):
            named["device"] = x
        elif x is not None and not isinstance(x, bool):
            named["dtype"] = x
    if getattr(named.get("memory_format"), "name", "") == "preserve_format":
        del named["memory_format"]
    named = {k: x for k, x in named.items() if k in ("dtype", "device", "copy", "memory_format")}
    where = named.pop("device", None)
    if where is not None:
        return Call("to", (self,), {"dtype": self.dtype, "layout": self.layout, "device": device(where), **named})
    return Call("to", (self, named.pop("dtype", self.dtype)), named)


def _as_dtype(made: dt.dtype) -> Callable:
    def rule(self: Tensor, **rest: Any) -> Any:
        return "to", self, made
    return rule


_RULES |= {name: _as_dtype(made) for name, made in _DTYPES.items()}


@_seen_as("norm")
def _norm(input: Tensor | None = None, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None,
          self: Tensor | None = None) -> Any:
    x = input if self is None else self
    if p == "nuc" or out is not None or (p == "fro" and isinstance(dim, (tuple, list)) and len(dim) > 2):
        return None
    return Call("linalg_vector_norm", (x, 2 if p in ("fro", None) else p, dim, keepdim), {} if dtype is None else {"dtype": dtype})


@_seen_as("unfold")
def _unfold(input: Tensor | None = None, kernel_size: Any = None, dilation: Any = 1, padding: Any = 0, stride: Any = 1, **method: Any) -> Any:
    return NotImplemented if kernel_size is None else ("im2col", input, kernel_size, dilation, padding, stride)


@_seen_as("grid_sample")
def _grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:
    return "grid_sampler", input, grid, ("bilinear", "nearest", "bicubic").index(mode), ("zeros", "border", "reflection").index(padding_mode), bool(align_corners)


@_seen_as("tensordot")
def _tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Any:
    if isinstance(dims, Tensor) or out is not None:
        return None
    if isinstance(dims, int):
        dims = list(range(-dims, 0)), list(range(dims))
    first, second = dims
    return "tensordot", a, b, [first] if isinstance(first, int) else list(first), [second] if isinstance(second, int) else list(second)


@_seen_as("contiguous")
def _contiguous(self: Tensor, memory_format: Any = None, **rest: Any) -> Any:
    return None if self.is_contiguous() else ("contiguous", self)


@_seen_as("split")
def _split(tensor: Tensor | None = None, split_size_or_sections: Any = None, dim: int = 0, self: Tensor | None = None, split_size: Any = None, **rest: Any) -> Any:
    x, sizes = (tensor if self is None else self), (split_size_or_sections if split_size is None else split_size)
    return ("split_with_sizes", x, list(sizes), dim) if isinstance(sizes, (tuple, list)) else ("split", x, sizes, dim)
