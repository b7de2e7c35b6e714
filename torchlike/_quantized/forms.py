"""What torch's functions do with quantized tensors, by their names."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .._arguments import as_dim
from .._core import dtype as dt
from .._public import FUNCTIONS
from .._tensor import Tensor
from .._valueless import finish, look_for, look_in
from ..nn import functional
from ..ops.memory_formats import channels_last
from .kernels import STORED
from .quantizers import NO_STRIDES, PerChannel, PerTensor
from .tensor import FORMS, Quantized, quantized


def _strided(name: str) -> Callable:
    """A function that picks elements or arranges them, on the integers."""
    def form(input: Quantized, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input._quantizer, PerTensor):
            raise RuntimeError(NO_STRIDES)
        made = getattr(Tensor, name)(input._held, *args, **kwargs)
        return input._like(made) if isinstance(made, Tensor) else tuple(map(input._like, made))
    form.__name__ = name
    return form


for _name in ("permute", "transpose", "t", "movedim", "moveaxis", "swapaxes", "swapdims", "expand", "narrow", "unfold", "as_strided", "diagonal",
              "index_select", "flip", "repeat", "split", "chunk", "unbind", "tensor_split", "adjoint", "split_with_sizes", "hsplit",
              "vsplit", "tile"):
    FORMS[_name] = _strided(_name)


def _kept(name: str) -> Callable:
    """A function whose result has the same elements in the same order: channels are checked anew."""
    def form(input: Quantized, *args: Any, **kwargs: Any) -> Quantized:
        return input._like(getattr(Tensor, name)(input._held, *args, **kwargs))
    form.__name__ = name
    return form


for _name in ("view", "reshape", "flatten", "ravel", "unflatten", "contiguous", "clone", "detach", "alias", "cpu", "cuda", "pin_memory"):
    if hasattr(Tensor, _name):
        FORMS[_name] = _kept(_name)


def _as_shape_of(name: str) -> Callable:
    """A function of a tensor, perhaps a quantized one, and the shape of another."""
    def form(input: Tensor, other: Tensor) -> Tensor:
        return getattr(input, name.removesuffix("_as"))(other.shape)
    form.__name__ = name
    return form


for _name in ("expand_as", "reshape_as", "view_as"):
    FORMS[_name] = _as_shape_of(_name)


def squeeze(input: Quantized, *dims: Any, **kwargs: Any) -> Quantized:
    """Without dimensions of size 1."""
    made, quantizer = Tensor.squeeze(input._held, *dims, **kwargs), input._quantizer
    if isinstance(quantizer, PerChannel):
        axis = quantizer.axis
        dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims or tuple(kwargs.values()) or range(input.ndim)
        gone = [as_dim(d, input.ndim) for d in dims if input.shape[d] == 1]
        if axis in gone:
            raise RuntimeError("Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors.")
        quantizer = quantizer.along(axis - sum(d < axis for d in gone))
    return quantized(made, quantizer)


def unsqueeze(input: Quantized, dim: int) -> Quantized:
    """With a dimension of size 1 more."""
    made, quantizer = input._held.unsqueeze(dim), input._quantizer
    if isinstance(quantizer, PerChannel):
        quantizer = quantizer.along(quantizer.axis + (as_dim(dim, made.ndim) <= quantizer.axis))
    return quantized(made, quantizer)


def select(input: Quantized, dim: int, index: int) -> Quantized:
    """One index along a dimension; along the channels, with one scale."""
    made, quantizer, dim = input._held.select(dim, index), input._quantizer, as_dim(dim, input.ndim)
    if isinstance(quantizer, PerChannel):
        quantizer = _one(quantizer, index) if dim == quantizer.axis else quantizer.along(quantizer.axis - (dim < quantizer.axis))
    return quantized(made, quantizer)


def _one(quantizer: PerChannel, index: int) -> PerTensor:
    if quantizer.zero_points.dtype.is_floating_point:
        raise RuntimeError("Expected a per-channel tensor with integer zero points")
    return PerTensor(quantizer.scales[index].item(), quantizer.zero_points[index].item(), quantizer.dtype)


def getitem(input: Quantized, index: Any) -> Quantized:
    """Elements by indices, slices and masks; of a tensor by channels one index or slices."""
    quantizer = input._quantizer
    if isinstance(quantizer, PerTensor):
        return input._like(input._held[index])
    places = index if isinstance(index, tuple) else (index,)
    if any(not (p is None or isinstance(p, (int, slice))) or isinstance(p, bool) for p in places):
        raise RuntimeError("Indexing is only supported for per-Tensor quantized Tensors.")
    made, dim, axis = input._held[index], 0, quantizer.axis
    for p in places:
        if p is None:
            axis += dim <= quantizer.axis
            continue
        if dim < quantizer.axis:
            axis -= isinstance(p, int)
        elif dim == quantizer.axis:
            if isinstance(p, int):
                return quantized(made, _one(quantizer, p))
            part = PerChannel(quantizer.scales[p], quantizer.zero_points[p], quantizer.axis, quantizer.dtype)
            if len(part.scales) == 1 and not part.zero_points.dtype.is_floating_point:
                return quantized(made, _one(part, 0))
        dim += 1
    return quantized(made, (quantizer if quantizer.axis >= dim else part).along(axis))


def setitem(input: Quantized, index: Any, value: Any) -> None:
    """Write numbers, which are quantized as the tensor is."""
    value = value if isinstance(value, Tensor) else FUNCTIONS["tensor"](float(value))
    if any(not (i is None or i is ... or isinstance(i, (int, slice))) or isinstance(i, bool) for i in (index if isinstance(index, tuple) else (index,))):
        input._held[index] = _placed(input, value)
        return
    part = getitem(input, index)
    while value.ndim > part.ndim and value.shape[0] == 1:
        value = value[0]
    copy_(part, value)


def _placed(input: Quantized, values: Tensor) -> Tensor:
    """The integers of numbers that are written at indices."""
    if isinstance(values, Quantized):
        raise RuntimeError("Value argument for quantized input_put should not be quantized")
    if not isinstance(input._quantizer, PerTensor):
        raise RuntimeError("index_put for quantized tensors is currently only supported for per tensor quantized tensors")
    return input._quantizer.quantize(values.detach())


def index_put_(self: Quantized, indices: Any, values: Tensor, accumulate: bool = False) -> Quantized:
    """Write numbers at indices, quantized as the tensor is."""
    if accumulate:
        raise RuntimeError("index_put for quantized tensors is currently only supported for accumulate=False")
    self._held.index_put_(indices, _placed(self, values))
    return self


def index_put(input: Quantized, indices: Any, values: Tensor, accumulate: bool = False) -> Quantized:
    """The same on a copy."""
    return index_put_(input.clone(), indices, values, accumulate)


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Numbers, quantized as self is, or integers with what they stand for."""
    if not isinstance(self, Quantized):
        raise RuntimeError("Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor from a "
                           "quantized Tensor")
    if not isinstance(src, Quantized):
        if src.dtype is not dt.float32:
            raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
        if not _in_one_piece(self._held, src):
            raise RuntimeError("Quantized copy only works with contiguous and NHWC Tensors")
        self._held.copy_(self._quantizer.quantize(src.detach().expand(self.shape)))
        return self
    if type(self._quantizer) is not type(src._quantizer):
        raise RuntimeError("Quantized Copy only works with same qscheme")
    if self.dtype is not src.dtype:
        raise RuntimeError("Expected self.scalar_type() == src.scalar_type() to be true, but got false.")
    self._held.copy_(src._held)
    self._quantizer = src._quantizer
    return self


def _in_one_piece(*tensors: Tensor) -> bool:
    """Whether all lie in memory in one piece, in the order of their dimensions or all with channels last."""
    return all(t.is_contiguous() for t in tensors) or all(t.ndim == 4 and t.is_contiguous(memory_format=channels_last) for t in tensors)


def fill_(self: Quantized, value: Any) -> Quantized:
    """One number everywhere."""
    return copy_(self, FUNCTIONS["full"](tuple(self.shape), float(value), dtype=dt.float32, device=self.device))


def masked_fill(input: Quantized, mask: Tensor, value: Any) -> Quantized:
    """The number where the mask is True."""
    return masked_fill_(input.clone(), mask, value)


def masked_fill_(self: Quantized, mask: Tensor, value: Any) -> Quantized:
    """The number where the mask is True, in place."""
    if not isinstance(self._quantizer, PerTensor):
        raise RuntimeError("masked_fill__quantized_cpu for quantized tensors is currently only supported for per tensor quantized tensors")
    self._held.masked_fill_(mask, self._quantizer.place(float(value)))
    return self


def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Another device. Another type is refused, as in torch: `dequantize` gives numbers."""
    kinds = [a for a in (*args, *kwargs.values()) if isinstance(a, (dt.dtype, Tensor))]
    if isinstance(input, Quantized):
        for kind in kinds:
            kind = kind.dtype if isinstance(kind, Tensor) else kind
            if kind is not input.dtype:
                raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8" if kind.name not in STORED else
                                   "Expected self.scalar_type() == src.scalar_type() to be true, but got false.")
        args = [a for a in args if not isinstance(a, (dt.dtype, Tensor))]
        kwargs = {name: x for name, x in kwargs.items() if name != "dtype" and x is not None}
        made = input._held.to(*args, **kwargs) if args or kwargs else input._held
        return input if made is input._held else input._like(made)
    raise RuntimeError("empty_strided not supported on quantized tensors yet")


def _conversion(name: str) -> Callable:
    def form(input: Quantized, *args: Any, **kwargs: Any) -> Tensor:
        return to(input, dt.by_name(name))
    form.__name__ = name
    return form


# -- comparing -----------------------------------------------------------------------------------------------------------------


def _numbers(x: Any) -> Any:
    return x.dequantize() if isinstance(x, Quantized) else x


def _comparison(name: str) -> Callable:
    def form(input: Any, other: Any, **kwargs: Any) -> Tensor:
        return FUNCTIONS[name](_numbers(input), _numbers(other), **kwargs)
    form.__name__ = name
    return form


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both hold the same integers that stand for the same."""
    if not isinstance(input, Quantized) or not isinstance(other, Quantized) or not input._quantizer.same(other._quantizer):
        return False
    return input._held.equal(other._held)


def isclose(input: Tensor, other: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """RuntimeError."""
    raise RuntimeError("isclose is not supported for quantized inputs.")


def result_type(tensor1: Any, tensor2: Any) -> dt.dtype:
    """RuntimeError but for two of one type."""
    return dt.promote_types(*(x.dtype for x in (tensor1, tensor2)))


def share_memory_(self: Quantized) -> Quantized:
    """Move the integers into memory that other processes may share."""
    self._held.share_memory_()
    return self


def resize(input: Quantized, *size: Any) -> Quantized:
    """Another shape, of a copy."""
    input._uniform()
    return input._like(input._held.resize(*size))


def resize_(self: Quantized, *size: Any, **kwargs: Any) -> Quantized:
    """Another shape, in place."""
    self._uniform()
    self._held.resize_(*size, **kwargs)
    return self


# -- computing -----------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> Callable:
    return FUNCTIONS.get(name) or getattr(functional, name)


def _by_numbers(name: str) -> Callable:
    """Computed on the numbers, and quantized as the argument is."""
    def form(input: Quantized, *args: Any, **kwargs: Any) -> Quantized:
        given = inspect.signature(_plain(name)).bind(input, *args, **kwargs).arguments
        inplace = given.pop("inplace", False)
        input._uniform()
        made = input._like(input._quantizer.quantize(_plain(name)(input.dequantize(), **dict(list(given.items())[1:]))))
        return input.adopt(made) if inplace else made
    form.__name__ = name
    return form


def _into(name: str, scale: float, zero_point: int) -> Callable:
    """Computed on the numbers, and quantized for the function's range."""
    def form(input: Quantized, inplace: bool = False, *_: Any) -> Quantized:
        kind = input.dtype.name
        made = PerTensor(scale if kind != "qint32" else scale / (1 << 24), zero_point - (128 if kind == "qint8" else 0) if kind != "qint32" else 0, input.dtype)
        result = quantized(made.quantize(_plain(name)(input.dequantize())), made)
        return input.adopt(result) if inplace else result
    form.__name__ = name
    return form


def clamp(input: Quantized, min: Any = None, max: Any = None) -> Quantized:
    """Numbers within bounds, which are quantized as the tensor is."""
    quantizer = input._uniform()
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [None if x is None else quantizer.place(float(x)) for x in (min, max)]
    return input._like(input._held.clamp(*bounds))


def relu(input: Quantized, inplace: bool = False) -> Quantized:
    """Numbers under zero as zero."""
    made = input._held.clamp(min=input._uniform().zero_point)
    return relu_(input) if inplace else input._like(made)


def relu_(input: Quantized) -> Quantized:
    """relu in place."""
    input._held.clamp_(min=input._uniform().zero_point)
    return input


def hardtanh(input: Quantized, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Quantized:
    """Numbers within bounds."""
    made = clamp(input, min_val, max_val)
    return input.adopt(made) if inplace else made


def relu6(input: Quantized, inplace: bool = False) -> Quantized:
    """Numbers from 0 to 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def _ordered(name: str) -> Callable:
    """A function of the order of elements, on the integers."""
    def form(input: Quantized, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, Quantized) for a in args):
            input.refuse(name)
        input._uniform()
        made = (getattr(functional, name) if "pool" in name else FUNCTIONS[name])(input._held, *args, **kwargs)
        return input._like(made) if isinstance(made, Tensor) else type(made)((input._like(made[0]), made[1]))
    form.__name__ = name
    return form


def cat(tensors: Any, dim: int = 0) -> Quantized:
    """Joined, quantized as the first one is."""
    first = tensors[0]
    for x in tensors:
        if x.dtype is not first.dtype:
            raise RuntimeError("All dtypes must be the same.")
        if not isinstance(x._quantizer, PerTensor):
            raise RuntimeError("Only per-tensor quantization is supported in 'cat'!")
    quantizer = first._quantizer
    return first._like(FUNCTIONS["cat"]([x._held if x._quantizer.same(quantizer) else quantizer.quantize(x.dequantize()) for x in tensors], dim))


def stack(tensors: Any, dim: int = 0) -> Quantized:
    """Joined along a new dimension."""
    return cat([x.unsqueeze(dim) for x in tensors], dim)


def _averaging(name: str) -> Callable:
    """Means of windows: of the integers, rounded once."""
    def form(input: Quantized, *args: Any, **kwargs: Any) -> Quantized:
        zero_point = input._uniform().zero_point
        made = getattr(functional, name)(input._held.to(dt.float64) - zero_point, *args, **kwargs)
        return input._like((made.to(dt.float32) + zero_point).round().to(input._held.dtype))
    form.__name__ = name
    return form


def pad(input: Quantized, pad: Any, mode: str = "constant", value: float | None = None) -> Quantized:
    """Numbers around the edges, quantized as the tensor is."""
    number = input._uniform().place(float(value or 0.0))
    return input._like(functional.pad(input._held, pad, mode, number if mode == "constant" else None))


def max_pool1d(input: Quantized, *args: Any, **kwargs: Any) -> Quantized:
    """The largest elements of windows."""
    input._uniform()
    return input._like(functional.max_pool1d(input._held.to(dt.float64), *args, **kwargs).to(input._held.dtype))  # doubles hold every integer


def interpolate(input: Quantized, size: Any = None, scale_factor: Any = None, mode: str = "nearest", *args: Any, **kwargs: Any) -> Quantized:
    """The nearest elements, or of images means of them."""
    if mode == "bilinear" and input.ndim == 4:
        zero_point = input._uniform().zero_point
        made = functional.interpolate(input._held.to(dt.float32), size, scale_factor, mode, *args, **kwargs) - zero_point
        return input._like((made.round() + zero_point).to(input._held.dtype))
    if not mode.startswith("nearest"):
        input.refuse(f"upsample_{mode}2d")
    made = functional.interpolate(input._held.to(dt.float64), size, scale_factor, mode, *args, **kwargs)  # doubles hold every integer
    return quantized(made.to(input._held.dtype), input._uniform())


def empty_like(input: Quantized, **options: Any) -> Quantized:
    """Memory for as many numbers."""
    kind = options.get("dtype")
    if kind is not None and kind is not input.dtype:
        raise RuntimeError("It is currently not supported to specify a dtype that doesn't match the input tensor's dtype via empty_like.  Specified: "
                           f"{kind.c_name} Input tensor's dtype: {input.dtype.c_name}")
    return input._like(FUNCTIONS["empty_like"](input._held))


def full_like(input: Quantized, fill_value: Any, **options: Any) -> Quantized:
    """One number everywhere."""
    return fill_(empty_like(input), fill_value)


def ones_like(input: Quantized, **options: Any) -> Quantized:
    """One everywhere."""
    return full_like(input, 1.0)


for _name in ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool"):
    FORMS[_name] = _conversion({"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64", "short": "int16", "char": "int8",
                                "byte": "uint8"}.get(_name, _name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    FORMS[_name] = FORMS[f"__{_name}__"] = _comparison(_name)
for _name in ("mean", "std", "leaky_relu", "threshold"):
    FORMS[_name] = _by_numbers(_name)
for _name in ("max", "min", "amax", "amin", "sort", "topk", "max_pool2d", "msort"):
    FORMS[_name] = _ordered(_name)
for _name in ("avg_pool2d", "adaptive_avg_pool2d", "avg_pool3d", "adaptive_avg_pool3d"):
    FORMS[_name] = _averaging(_name)
FORMS.update({"sigmoid": _into("sigmoid", 1 / 256, 0), "hardsigmoid": _into("hardsigmoid", 1 / 256, 0), "tanh": _into("tanh", 2 / 256, 128)})
for _f in (squeeze, unsqueeze, select, copy_, share_memory_, resize, resize_, index_put, index_put_,
           fill_, masked_fill, masked_fill_, to, equal, isclose, result_type, clamp, relu, relu_, hardtanh, relu6, cat, stack, pad, max_pool1d, interpolate, empty_like,
           full_like, ones_like):
    FORMS[_f.__name__] = _f
FORMS.update({"__getitem__": getitem, "getitem": getitem, "__setitem__": setitem, "concat": cat, "concatenate": cat, "clip": clamp, "allclose": isclose})
for _name in ("T", "H", "mT", "mH"):
    setattr(Quantized, _name, property(lambda self, name=_name: _strided("t")(self) if name in "TH" and self.ndim == 2 else _strided("transpose")(self, -2, -1)))
finish(Quantized)
for _name in ("__getitem__", "__setitem__", *(f"__{n}__" for n in ("eq", "ne", "lt", "le", "gt", "ge"))):
    setattr(Quantized, _name, FORMS[_name])
Quantized.__hash__ = Tensor.__hash__
look_for(FORMS)
for _name in FORMS:
    if hasattr(functional, _name):
        look_in(getattr(functional, _name))
