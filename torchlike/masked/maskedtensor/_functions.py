"""What functions make of masked tensors: values of the data, under the mask that all of them share."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._public import FUNCTIONS, first_name
from ..._tensor import Tensor
from .. import _ops
from .core import MaskedTensor, _data, _made, is_masked_tensor

_UNARY = frozenset("""
    abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp clip conj_physical
    cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg negative
    isfinite positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc
""".split())
_BINARY = frozenset("""
    add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod logaddexp logaddexp2
    mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum minimum fmax fmin
    not_equal isclose
""".split())
_OPERATORS = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "floordiv": "floor_divide", "mod": "remainder", "invert": "bitwise_not",
              "rtruediv": "div", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
_VIEWS = frozenset("""t transpose swapaxes view reshape view_as reshape_as expand expand_as unsqueeze unfold split chunk narrow flatten select
                      __getitem__ cat concat stack contiguous index_select""".split())
_CONVERSIONS = frozenset("to type double float half long int short char bool cpu cuda".split())
_REDUCTIONS = frozenset("sum mean amin amax argmin argmax prod all norm var std".split())


def call(func: Callable, args: tuple, kwargs: dict) -> Any:
    """func of arguments among which are masked tensors; NotImplemented where nobody knows what it would mean."""
    name = first_name(func)
    plain = name.strip("_") if name.startswith("__") else name.removesuffix("_")
    plain = _OPERATORS.get(plain, plain) if name.startswith("__") else plain
    if name in _VIEWS:
        return _viewed(func, args, kwargs)
    if plain in _UNARY:
        return _unary(func, args, kwargs)
    if plain in _BINARY:
        return _binary(func, args, kwargs)
    if name in _REDUCTIONS:
        return _reduced(name, *args, **kwargs)
    if name in _CONVERSIONS:
        made = func(_data(args[0]), *args[1:], **kwargs)
        return _made(made, args[0]._masked_mask.to(made.device))
    if name == "__get__":
        return _attribute(func, *args)
    found = _OTHERS.get(name)
    return NotImplemented if found is None else found(*args, **kwargs)


def _unary(func: Callable, args: tuple, kwargs: dict) -> MaskedTensor:
    if any(isinstance(x, Tensor) for x in args[1:]):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    made = func(_data(args[0]), *args[1:], **kwargs)
    return args[0] if made is args[0]._masked_data else _made(made, args[0]._masked_mask)


def _binary(func: Callable, args: tuple, kwargs: dict) -> MaskedTensor:
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    if any(isinstance(x, Tensor) for x in args[2:]):
        raise TypeError("MaskedTensor binary ops do not support Tensor arguments aside from the lhs and rhs")
    masks = [x._masked_mask for x in args[:2] if is_masked_tensor(x)]
    _need_equal(masks, "Input masks must match. If you need support for this, please open an issue on Github.")
    made = func(*map(_data, args))
    if made is _data(args[0]):  # in place
        return args[0]
    return _made(made, masks[0].expand_as(made))


def _attribute(func: Callable, self: MaskedTensor, *rest: Any) -> Any:
    """A property: what says something of the data, and `data` and `real`, which lie under the same mask."""
    found = func(self._masked_data, *rest)
    if not isinstance(found, Tensor):
        return found
    return _made(found, self._masked_mask) if func in (Tensor.data.__get__, Tensor.real.__get__) else NotImplemented


def _need_equal(masks: Sequence[Tensor], said: str) -> None:
    first, *others = masks
    if any(m is not first and (m.dim() != first.dim() or not FUNCTIONS["eq"](m, first).all().item()) for m in others):
        raise ValueError(said)


def _viewed(func: Callable, args: tuple, kwargs: dict) -> Any:
    """func of the data and of the masks."""
    def of(part: Callable) -> Any:
        def taken(x: Any) -> Any:
            return part(x) if is_masked_tensor(x) else type(x)(map(taken, x)) if x.__class__ in (list, tuple) else x
        return func(*map(taken, args), **{k: taken(x) for k, x in kwargs.items()})
    data, mask = of(lambda x: x._masked_data), of(lambda x: x._masked_mask)
    return _made(data, mask) if isinstance(data, Tensor) else tuple(map(_made, data, mask))


def _reduced(name: str, input: MaskedTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> MaskedTensor:
    data, mask = input._masked_data, input._masked_mask
    where = {} if dim is None else {"dim": dim, "keepdim": keepdim}
    if name == "all":
        made = data.masked_fill(~mask, True).all(**where)
    else:
        made = getattr(_ops, name)(data, **where, **({} if dtype is None else {"dtype": dtype}), mask=mask)
    left = mask
    for d in sorted([] if dim is None else [d % mask.dim() for d in (dim if isinstance(dim, (list, tuple)) else [dim])], reverse=True):
        left = left.any(d, keepdim)
    return _made(made, mask.any() if dim is None else left)


def _where(condition: Tensor, input: Any, other: Any) -> MaskedTensor:
    masks = [x._masked_mask if is_masked_tensor(x) else FUNCTIONS["ones_like"](x, dtype=condition.dtype) for x in (input, other)]
    where = FUNCTIONS["where"]
    return _made(where(condition, _data(input), _data(other)), where(condition, *masks))


def _item(self: MaskedTensor) -> Any:
    if not self._masked_mask.item():
        raise ValueError("__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor")
    return self._masked_data.item()


def _copy(self: MaskedTensor, other: Any) -> MaskedTensor:
    _need_equal([self._masked_mask, other._masked_mask], "args[0] mask and args[1] mask must match but do not")
    self._masked_data.copy_(other._masked_data)
    return self


def _refusing(name: str, said: str) -> Callable:
    def refuse(self: MaskedTensor, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f".{name}() is not supported for tensor subclasses{said}")
    return refuse


def _grad(outputs: Any, inputs: Any, grad_outputs: Any = None, **options: Any) -> tuple:
    """torch.autograd.grad."""
    from ...autograd import grad
    several = lambda x: x if isinstance(x, (list, tuple)) else [x]  # noqa: E731
    given = None if grad_outputs is None else [x.to_tensor(0) if is_masked_tensor(x) else x for x in several(grad_outputs)]
    inputs = several(inputs)
    found = grad([_data(x) for x in several(outputs)], [_data(x) for x in inputs], given, **options)
    return tuple(_made(g, x._masked_mask) if is_masked_tensor(x) and g is not None else g for g, x in zip(found, inputs))


_OTHERS: dict[str, Callable] = {
    "clone": lambda self, **kwargs: _made(self._masked_data.clone(**kwargs), self._masked_mask),
    "detach": lambda self: _made(self._masked_data.detach(), self._masked_mask),
    "ones_like": lambda self, **kwargs: _made(FUNCTIONS["ones_like"](self._masked_data, **kwargs), self._masked_mask),
    "softmax": lambda self, dim, dtype=None: _made(_ops.softmax(self._masked_data, dim, dtype=dtype, mask=self._masked_mask), self._masked_mask),
    "element_size": lambda self: self._masked_data.element_size(), "storage_offset": lambda self: self._masked_data.storage_offset(),
    "to_dense": lambda self: self, "where": _where, "item": _item, "copy_": _copy, "grad": _grad,
    "__bool__": lambda self: bool(_item(self)), "__float__": lambda self: float(_item(self)), "__int__": lambda self: int(_item(self)),
    "tolist": _refusing("tolist", ", got MaskedTensor"), "numpy": _refusing("numpy", ".")}
