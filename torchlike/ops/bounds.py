"""Bounds: clamp and its kin."""


from .._core import dtype as dt
from .._core.errors import class_name, not_implemented
from .._core.registry import OPS, Elementwise
from .._public import public
from .._tensor import Tensor, apply
from .choosing import choose
from .elements import held, plain_number, rounded
from .limits import within


def _clamp_keeps(xp, x, low, high):
    inside = True
    if low is not None:
        inside = x >= low
    return inside if high is None else (x <= high) & inside


_CLAMP = Elementwise("clamp", within, real=NotImplementedError("clamp is not supported for complex types"), torch_name="ClampBackward1", grads=(
    lambda xp, g, x, low, high: choose(xp, _clamp_keeps(xp, x, low, high), g, xp.zeros((), g.dtype)),
    lambda xp, g, x, low, high: choose(xp, (x < low) & (True if high is None else low < high), g, xp.zeros((), g.dtype)),
    lambda xp, g, x, low, high: choose(xp, (x > high) | (False if low is None else low > high), g, xp.zeros((), g.dtype))))
for _op in (_CLAMP, *map(OPS.get, ("maximum", "minimum", "fmax", "fmin"))):
    _op.compares = True


@public(inplace=True, out=True, names=("clip",))
def clamp(input, min=None, max=None) -> Tensor:
    """input limited to [min, max]; bounds are numbers or tensors, either may be missing."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is not None and max is not None and not (_is_number(min) and _is_number(max)) and isinstance(min, Tensor) != isinstance(max, Tensor):
        raise TypeError(f"clamp() received an invalid combination of arguments - got (Tensor, {class_name(min)}, {class_name(max)})")
    if input.dtype is dt.bool_ and all(x is None or x.__class__ is bool for x in (min, max)):
        which = "clamp" if min is not None and max is not None else "clamp_max" if min is None else "clamp_min"
        raise not_implemented(f"{which}_scalar_cpu", dt.bool_)
    return apply(_CLAMP, (input, _bound(min, input.dtype), _bound(max, input.dtype)))


def _is_number(x) -> bool:
    """Whether torch takes x for a number: tensors without dimensions and gradient pass for one."""
    return x.__class__ is not bool and (not isinstance(x, Tensor) or (not x._aval.shape and not x.requires_grad))


def _bound(x, dtype: dt.dtype):
    """A bound in a form that input's dtype holds, where that is the result's."""
    if x is None or isinstance(x, Tensor):
        return x
    if (x.__class__ is float or x.__class__ is int) and dtype.category == dt.FLOAT and -65504 <= x <= 65504:
        return rounded(x, dtype)
    x = plain_number(x)
    return held(x, dtype) if (x.__class__, dtype.category) in ((int, dt.INT), (int, dt.FLOAT), (float, dt.FLOAT)) else x


def _need_bound(name: str, x) -> None:
    if x is None:
        raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, NoneType)")


@public(inplace=True, out=True)
def clamp_min(input, min) -> Tensor:
    """maximum(input, min)."""
    _need_bound("clamp_min", min)
    return clamp(input, min=min)


@public(inplace=True, out=True)
def clamp_max(input, max) -> Tensor:
    """minimum(input, max)."""
    _need_bound("clamp_max", max)
    return clamp(input, max=max)
