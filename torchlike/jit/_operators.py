"""What the operators of TorchScript's text do: those of aten by torchlike's functions, those on Python's values by Python's.

Only what stands in these tables or is an operator of `torch.ops.aten` can be called from a file: nothing here opens files or runs code.
"""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import _VF, _ops
from .._core import dtype as dt
from .._core.device import device
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..amp.autocast_mode import is_autocast_enabled
from ..autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ..nn import functional as F
from ..nn.utils import rnn as utils_rnn
from ..ops import memory_formats, rnn
from ..ops.layouts import LAYOUTS
from ._plain import ANY_VALUE, PLAIN
from .script import Error

# -- numbers that stand for types ----------------------------------------------------------------------------------------

_NAMES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", None, "complex64", "complex128", "bool", None, None, None, "bfloat16",
          *[None] * 7, "float8_e5m2", "float8_e4m3fn", None, None, "uint16", "uint32", "uint64")
_DTYPES = [None if name is None else dt.by_name(name) for name in _NAMES]
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


def _dtype(number: Any) -> Any:
    return _DTYPES[number] if number.__class__ is int else number


def _number(kind: dt.dtype) -> int:
    return _DTYPES.index(kind)


def _options(kwargs: dict) -> dict:
    """Keywords with types, layouts and formats in place of their numbers."""
    out = {k: v for k, v in kwargs.items() if v is not None}
    if "dtype" in out:
        out["dtype"] = _dtype(out["dtype"])
    if out.get("layout").__class__ is int:
        out["layout"] = LAYOUTS["strided"]
    if "memory_format" in out:
        out["memory_format"] = getattr(memory_formats, _FORMATS[out["memory_format"]])
    return out


# -- operators of aten that have no public function of the same order ----------------------------------------------------


def _to(x: Tensor, *args: Any, non_blocking: bool = False, copy: bool = False, dtype: Any = None, device: Any = None, **rest: Any) -> Tensor:
    given = list(args)
    if given and isinstance(given[0], Tensor):
        other = given.pop(0)
        dtype, device = other.dtype, other.device
    else:
        if given and (given[0] is None or isinstance(given[0], globals()["device"])):
            device = given.pop(0)
        if given and given[0].__class__ is not bool:
            dtype = given.pop(0)
    copy = given[1] if len(given) > 1 else copy
    return x.to(device=x.device if device is None else device, dtype=x.dtype if dtype is None else _dtype(dtype), copy=copy)


def _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *cudnn) -> Tensor:
    return _ops.aten.convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _reduced(f: Callable, names: tuple[str, ...]) -> Callable:
    """A loss of torch.nn.functional, whose arguments after input and target are `names`; its reduction is 0, 1 or 2."""
    def loss(x: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        given = dict(zip(names, args)) | kwargs
        if "reduction" in given:
            given["reduction"] = ("none", "mean", "sum")[given["reduction"]]
        return f(x, target, **given)
    return loss


def _resized(mode: str) -> Callable:
    def interpolate(x: Tensor, size: list[int] | None, *args: Any) -> Tensor:
        args = list(args)
        given = {} if mode == "nearest" else {"align_corners": args.pop(0)}
        if size is not None:
            return F.interpolate(x, size, mode=mode, **given)
        return F.interpolate(x, scale_factor=args[0], mode=mode, **given)
    return interpolate


def _elu(x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    return FUNCTIONS["where"](x > 0, scale * x, scale * alpha * FUNCTIONS["expm1"](input_scale * x))


def _softmax(f: Callable) -> Callable:
    return lambda x, dim, dtype=None: f(x, dim, dtype=_dtype(dtype))


def _index_put(x: Tensor, indices: list, values: Tensor, accumulate: bool = False) -> Tensor:
    where = tuple(slice(None) if i is None else i for i in indices)
    if not accumulate:
        x[where] = values
        return x
    return x.index_put_(indices, values, True)


def _attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, heads: int, qkv_weight: Tensor, qkv_bias: Tensor, out_weight: Tensor,
               out_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True, average: bool = True, mask_type: int | None = None) -> tuple:
    """Attention of several heads, batch first. mask is True where nothing is seen: (L, L), (N, L) for type 1, (N, heads, L, L) for type 2."""
    parts = [F.linear(x, w, b).unflatten(-1, (heads, -1)).transpose(1, 2)
             for x, w, b in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3))]
    q, k, v = parts
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = mask[:, None, None] if mask_type == 1 else mask
        scores = scores.masked_fill(mask, -math.inf) if mask.dtype is dt.by_name("bool") else scores + mask
    weights = scores.softmax(-1)
    out = F.linear((weights @ v).transpose(1, 2).flatten(-2), out_weight, out_bias)
    return out, (weights.mean(1) if average else weights) if need_weights else None


def _encoder_layer(x: Tensor, embed_dim: int, heads: int, qkv_weight: Tensor, qkv_bias: Tensor, out_weight: Tensor, out_bias: Tensor, gelu: bool,
                   norm_first: bool, eps: float, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, up: Tensor, up_bias: Tensor, down: Tensor,
                   down_bias: Tensor, mask: Tensor | None = None, mask_type: int | None = None) -> Tensor:
    """nn.TransformerEncoderLayer in eval mode."""
    def attend(y: Tensor) -> Tensor:
        return _attention(y, y, y, embed_dim, heads, qkv_weight, qkv_bias, out_weight, out_bias, mask, False, True, mask_type)[0]

    def feed(y: Tensor) -> Tensor:
        return F.linear((F.gelu if gelu else F.relu)(F.linear(y, up, up_bias)), down, down_bias)

    def first(y: Tensor) -> Tensor:
        return F.layer_norm(y, (embed_dim,), w1, b1, eps)

    def second(y: Tensor) -> Tensor:
        return F.layer_norm(y, (embed_dim,), w2, b2, eps)
    if norm_first:
        x = x + attend(first(x))
        return x + feed(second(x))
    x = first(x + attend(x))
    return second(x + feed(x))


_MARGIN = ("p", "margin", "weight", "reduction")
_LOSSES = {"mse_loss": ("reduction",), "l1_loss": ("reduction",), "smooth_l1_loss": ("reduction", "beta"), "huber_loss": ("reduction", "delta"),
           "binary_cross_entropy": ("weight", "reduction"), "kl_div": ("reduction", "log_target"),
           "binary_cross_entropy_with_logits": ("weight", "pos_weight", "reduction"), "nll_loss": ("weight", "reduction", "ignore_index"),
           "cross_entropy": ("weight", "reduction", "ignore_index", "label_smoothing")}


def _set_grad_enabled(on: bool) -> None:
    set_grad_enabled(on)


def _packed(x: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    return utils_rnn.pack_padded_sequence(x, lengths, batch_first)[:2]


def _padded(data: Tensor, sizes: Tensor, batch_first: bool, value: float, total: int) -> tuple[Tensor, Tensor]:
    return utils_rnn.pad_packed_sequence(utils_rnn.PackedSequence(data, sizes), batch_first, value, total)


def _renormed(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    F.embedding(indices, weight, None, max_norm, norm_type)
    return weight


_ATEN: dict[str, Callable] = {
    "to": _to, "_convolution": _convolution, "elu": _elu, "elu_": lambda x, *args: x.copy_(_elu(x, *args)), "log_sigmoid": F.logsigmoid, "index_put_": _index_put,
    "softmax": _softmax(F.softmax), "log_softmax": _softmax(F.log_softmax), "size": lambda x, dim=None: list(x.shape) if dim is None else x.size(dim),
    "adaptive_max_pool1d": lambda x, size: F.adaptive_max_pool1d(x, size, True), "adaptive_max_pool2d": lambda x, size: F.adaptive_max_pool2d(x, size, True),
    "adaptive_max_pool3d": lambda x, size: F.adaptive_max_pool3d(x, size, True), "numpy_T": lambda x: x.T, "IntImplicit": int, "FloatImplicit": float,
    "ScalarImplicit": lambda x: x.item(), "item": lambda x: x.item(), "len": len, "tensor": lambda data, **kwargs: FUNCTIONS["tensor"](data, **kwargs),
    "device": lambda name: device(name), "is_autocast_enabled": is_autocast_enabled, "is_grad_enabled": is_grad_enabled, "set_grad_enabled": _set_grad_enabled,
    "_native_multi_head_attention": _attention, "_transformer_encoder_layer_fwd": _encoder_layer,
    "grid_sampler": lambda x, grid, mode, padding, align: F.grid_sample(x, grid, ("bilinear", "nearest", "bicubic")[mode],
                                                                        ("zeros", "border", "reflection")[padding], align),
    "im2col": F.unfold, "col2im": F.fold, "fractional_max_pool2d": lambda x, kernel, size, samples: F.fractional_max_pool2d(x, kernel, size, None, True, samples),
    "_pack_padded_sequence": _packed, "_pad_packed_sequence": _padded, "pad_sequence": utils_rnn.pad_sequence, "embedding_renorm_": _renormed,
    "cpu": lambda x: x.cpu(), "cuda": lambda x: x.cuda(), "element_size": lambda x: x.element_size(), "as_tensor": FUNCTIONS["as_tensor"],
    "promote_types": lambda a, b: _number(FUNCTIONS["promote_types"](_dtype(a), _dtype(b))), "multi_margin_loss": _reduced(F.multi_margin_loss, _MARGIN),
    **{f"max_pool{n}d_with_indices": getattr(F, f"max_pool{n}d_with_indices") for n in (1, 2, 3)},
    **{name: getattr(_VF, name) for name in ("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")},
    **{name: getattr(rnn, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")},
    **{{"cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd"}.get(name, name): _reduced(getattr(F, name), names)
       for name, names in _LOSSES.items()}, "nll_loss": _reduced(F.nll_loss, _LOSSES["nll_loss"]),
    **{f"upsample_{mode}{n}d": _resized(mode if mode != "linear" else ("linear", "bilinear", "trilinear")[n - 1])
       for mode, n in (("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2))},
}
# of torch.nn.functional's functions, those that take what aten's do in aten's order
_SAME = {"linear", "gelu", "silu", "mish", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "softplus", "glu", "pad",
         "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "max_pool2d", "max_pool3d", "scaled_dot_product_attention", "one_hot", "relu6",
         "softshrink"}
_REFUSED = {"from_file"}  # reads a file


def _raise(message: str, kind: str = "") -> None:
    raise Error(message)


def _warn(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, stacklevel=stacklevel)


def _extreme(f: Callable) -> Callable:
    """max or min: of an int and a float it is a float."""
    def of(*values: Any) -> Any:
        kinds = {type(v) for v in values}
        return float(f(*values)) if kinds == {int, float} else f(*values)
    return of


_PRIM: dict[str, Callable] = {
    "NumToTensor": lambda x: FUNCTIONS["tensor"](x), "RaiseException": _raise, "dtype": lambda x: _number(x.dtype), "device": lambda x: x.device,
    "type": lambda d: d.type, "index": lambda d: d.index, "requires_grad": lambda x: x.requires_grad, "data": lambda x: x.data, "is_nested": lambda x: False,
    "is_cuda": lambda x: x.is_cuda, "is_cpu": lambda x: x.is_cpu, "is_quantized": lambda x: x.is_quantized, "is_sparse": lambda x: x.is_sparse,
    "layout": lambda x: 0, "ndim": lambda x: x.ndim, "T": lambda x: x.T, "mT": lambda x: x.mT, "H": lambda x: x.H, "grad": lambda x: x.grad,
    "max": _extreme(max), "min": _extreme(min), "abs": abs, "tolist": lambda x: x.tolist(), "unchecked_unwrap_optional": lambda x: x, "itemsize": lambda x: x.itemsize,
}


def aten(name: str) -> Callable:
    """The operator `aten::name`, as `torch.name` in the text."""
    plain = PLAIN.get(name)
    if name == "warn":
        return _warn
    made = _ATEN.get(name)
    if made is None and name not in _REFUSED and name in _ops._overloads():
        made = FUNCTIONS.get(name) if name in FUNCTIONS or name in _SAME else None
        made = made or _ops._INNER.get(name) or (getattr(F, name) if name in _SAME else None) or getattr(Tensor, name, None)
        made = made or (_ops._function(name) if name.startswith(tuple(_ops._FAMILIES)) else None)
    if plain is None and made is None:
        raise RuntimeError(f"Unknown builtin op: aten::{name}.")

    def call(*args: Any, **kwargs: Any) -> Any:
        if plain is not None and (made is None or _is_plain(name, args)):
            return plain(*args, **kwargs)
        return made(*args, **_options(kwargs))
    return call


def _is_plain(name: str, args: tuple) -> bool:
    if name in ANY_VALUE:
        return not args or not isinstance(args[0], Tensor)
    return not any(isinstance(a, Tensor) for a in args)


def prim(name: str) -> Callable:
    """The operator `prim::name`, as `ops.prim.name` in the text."""
    if name not in _PRIM:
        raise RuntimeError(f"Unknown builtin op: prim::{name}.")
    return _PRIM[name]
