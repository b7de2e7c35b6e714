"""What every tensor can do: conversions, copies, filling, comparison operators and logic."""
from __future__ import annotations

from typing import overload

import numpy as np

from .._arguments import flag
from .._core import device as dev
from .._core import dtype as dt
from .._core import program
from .._core.arrays import cast, to_float8
from .._core.aval import broadcast_shapes, result_dtype
from .._core.errors import class_name, not_implemented
from .._core.grad_mode import mode
from .._core.history import warn
from .._core.registry import OPS, Elementwise, Op, Plan, common_device
from .._core.rng_dtypes import cpp_type
from .._exchange import copied
from .._kinds import combination
from .._public import FUNCTIONS, MISSING, called, named, public
from .._tensor import Tensor, _plain_copy, apply
from .._writing import check_partly_same, same_shape
from .choosing import choose
from .complex_parts import joined
from .creation import _check_dtype, constant, filled, number_dtype, scalar_tensor
from .elements import held
from .known import compared
from .memory_formats import clone, laid_out, preserve_format, suggested_format
from .operators import in_place_operator, operator
from .pointwise import _plain_number, binary, number, only, operands

# -- dtype and device ----------------------------------------------------------------------------------------------------


def _convert(xp, x, dtype):
    if x.dtype.kind == "c" and dtype.category < dt.COMPLEX:
        x = x != 0 if dtype.category == dt.BOOL else x.real
    if x.dtype.kind in "fV" and dtype.np.kind in "iu":
        return _float_to_int(xp, x, dtype.np)
    if dtype in dt.FLOAT8:
        return to_float8(xp, x, dtype)
    if dtype is dt.complex32:  # NumPy and JAX have no such type: a complex64 of halves
        parts = [part.astype(np.float16).astype(np.float32) for part in ((x.real, x.imag) if x.dtype.kind == "c" else (x, xp.zeros_like(x)))]
        return joined(xp, *parts, np.complex64)
    if x.dtype == dtype.np:
        return x.astype(dtype.np)
    if dtype is dt.float16 or x.dtype == np.float16:  # torch's way goes through float32 too
        x = cast(xp, x, np.dtype(np.float32))
    return cast(xp, x, dtype.np)


def _float_to_int(xp, x, to):
    """C's conversion on x86-64, which torch's is: through int32 or int64, the lowest of which stands for what does not fit; then wrapping."""
    small = to.itemsize < 4 and not (to == np.uint8 and x.dtype == np.float64)
    through = np.int32 if small or to == np.int32 else np.int64
    lowest = np.iinfo(through).min
    if x.dtype.itemsize == 2:
        x = cast(xp, x, np.dtype(np.float32))
    if xp is np:
        return x.astype(through).astype(to)
    fits = (x >= float(lowest)) & (x < -float(lowest))
    return xp.where(fits, x, 0).astype(through).astype(to) if to.itemsize < 4 else xp.where(fits, x.astype(through), lowest).astype(to)


CONVERT = Op("to_copy", _convert, shape=lambda a, dtype: (a.shape, dtype), vjp=lambda xp, g: g, torch_name="ToCopyBackward0")


def to_dtype(t: Tensor, dtype: dt.dtype) -> Tensor:
    """t in another dtype; t itself when it has it."""
    have = t._value.aval.dtype
    if have is dtype:
        return t
    if have.category == dt.COMPLEX and dt.BOOL < dtype.category < dt.COMPLEX and t._value.aval.numel:
        warn("Casting complex values to real discards the imaginary part", once=True)
    out = apply(CONVERT, (t,), (dtype,))
    return out if t._layout is None else laid_out(out, t, preserve_format)


def without_imaginary(t: Tensor, dtype: dt.dtype | None) -> Tensor:
    """t, in a real dtype if it is complex and shall become that."""
    return to_dtype(t, dtype) if dtype is not None and _check_dtype(dtype).category < dt.COMPLEX == t.dtype.category else t


def to_device(t: Tensor, device) -> Tensor:
    """t on another device; t itself when it is there."""
    if t.device is device:
        return t
    from ..autograd.transfer import move
    out = move(t, device)
    return out if t._layout is None else laid_out(out, t, preserve_format)


@public(function=False)
def to(self, *args, dtype=None, device=None, non_blocking: bool = False, copy: bool = False, memory_format=preserve_format, tensor=None) -> Tensor:
    """self with another dtype or device: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`."""
    flags = []
    for place, a in enumerate(args):
        if isinstance(a, (dt.dtype, type)) and dtype is None and tensor is None and not flags:
            dtype = _check_dtype(a)
        elif not place and device is None and (isinstance(a, (str, dev.device)) or isinstance(a, int) and not isinstance(a, bool)):
            device = a
        elif not place and isinstance(a, Tensor) and tensor is None:
            tensor = a
        elif place and isinstance(a, bool) and len(flags) < 2:
            flags.append(a)
        elif a is not None or tensor is not None or flags:
            raise combination("to", args, {n: x for n, x in {"dtype": dtype, "device": device}.items() if x is not None and not any(x is y for y in args)}, True)
    if flags:
        non_blocking, copy = flags[0], flags[1] if len(flags) > 1 else copy
    if non_blocking.__class__ is not bool or copy.__class__ is not bool:
        raise combination("to", args, {n: x for n, x in {"non_blocking": non_blocking, "copy": copy}.items() if x.__class__ is not bool}, True)
    if dtype is not None and not isinstance(dtype, (dt.dtype, type)):
        raise combination("to", args, {"dtype": dtype} | ({"device": device} if device is not None and device not in args else {}), True)
    if tensor is not None:
        dtype, device = tensor.dtype, tensor.device
    out = self
    if device is not None:
        out = to_device(out, dev.canonical(device))
    if dtype is not None:
        out = to_dtype(out, _check_dtype(dtype))
    if out is self and copy:
        out = self.clone(memory_format=memory_format) if not self._dispatches else apply(CONVERT, (self,), (self.dtype,))
    elif memory_format is not preserve_format and memory_format is not None:
        if self._dispatches:
            return out.contiguous(memory_format=memory_format)
        if out is not self:
            out = laid_out(out, out, memory_format)
        elif suggested_format(out) is not memory_format:
            out = clone(out, memory_format=memory_format)
    return out


def _caster(name, dtype):
    def f(self, *, memory_format=preserve_format) -> Tensor:
        return self.to(dtype=dtype, memory_format=memory_format) if memory_format is not preserve_format else to_dtype(self, dtype)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"self.to({dtype})."
    setattr(Tensor, name, f)


for _name, _dtype in (("float", dt.float32), ("double", dt.float64), ("half", dt.float16), ("bfloat16", dt.bfloat16), ("long", dt.int64),
                      ("int", dt.int32), ("short", dt.int16), ("char", dt.int8), ("byte", dt.uint8), ("bool", dt.bool_),
                      ("cfloat", dt.complex64), ("cdouble", dt.complex128), ("chalf", dt.complex32)):
    _caster(_name, _dtype)


@public(function=False)
def type_as(self, other: Tensor) -> Tensor:
    """self.type(other.type())."""
    return self.to(dtype=other.dtype, device=other.device)


@public(function=False)
def cpu(self, *, memory_format=preserve_format) -> Tensor:
    """self on the CPU."""
    return self.to(device=dev.CPU, memory_format=memory_format)


@public(function=False)
def cuda(self, device=None, non_blocking: bool = False, *, memory_format=preserve_format) -> Tensor:
    """self on the GPU."""
    device = dev.device("cuda" if device is None else device)
    if device.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return self.to(device=device, memory_format=memory_format)


_LACKING = {"xpu": AssertionError("Torch not compiled with XPU enabled"), "ipu": RuntimeError("PyTorch is not linked with support for ipu devices"),
            "mtia": AssertionError("Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in your python "
                                   "src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!")}


def _to_a_device_that_is_not_there(kind: str) -> None:
    def to(self, device=None, non_blocking: bool = False, *, memory_format=preserve_format) -> Tensor:
        """An error: there is no such device."""
        raise type(_LACKING[kind])(*_LACKING[kind].args)
    to.__name__ = to.__qualname__ = kind
    public(function=False)(to)


for _kind in _LACKING:
    _to_a_device_that_is_not_there(_kind)


# -- copies and filling --------------------------------------------------------------------------------------------------

_OVERWRITE = Op("overwrite", lambda xp, old, new: xp.broadcast_to(new, old.shape).astype(old.dtype), torch_name="CopyBackwards",
                shape=lambda old, new: (old.shape, old.dtype), vjp=lambda xp, g, plan: (xp.zeros_like(g), g))


def overwrite(self: Tensor, new: Tensor, repeats: bool = False, node: str = "", *inputs: Tensor) -> Tensor:
    """self's content becomes new's (same shape and dtype); self stays in the graph it was in. `node`: how that is shown, after self and `inputs`."""
    self._check_write(repeats)
    # a copy is a node of its own, never its source's; inside of vmap, what each example has of its own it goes on having
    if mode.enabled and (self._edge is not None or new._edge is not None) or program.state.program.__class__ is not program.Program:
        new = apply(_OVERWRITE, (self, new))
        if node:
            named(new, node, self, *inputs)
    return self._assign(new, repeats)


@public(function=False)
def copy_(self, other: Tensor | float, non_blocking: bool = False) -> Tensor:
    """self = other, broadcast and cast."""
    if non_blocking is not False:
        flag(non_blocking)
    self._check_write(other is self)
    if not isinstance(other, Tensor):
        if not isinstance(other, (int, float, complex, np.generic)):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {class_name(other)}")
        other = other.item() if isinstance(other, np.generic) else other
        other = scalar_tensor(other, dtype=number_dtype(other), device=self.device)
    if other is self:
        return overwrite(self, _plain_copy(self), True)
    if self._storage is not None:
        check_partly_same(self, (other,))
    if other.device is not self.device:
        other = to_device(other, self.device)
    other = to_dtype(other, self.dtype)
    if other._value.aval.shape != self._value.aval.shape:
        same_shape(self, broadcast_shapes(self._value.aval.shape, other._value.aval.shape))
        other = other.expand(self._value.aval.shape)
    return overwrite(self, _plain_copy(other))


@public(function=False)
def fill_(self, value) -> Tensor:
    """All elements become value."""
    self._check_write(True)
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
        return filled_by(self, value)
    return overwrite(self, filled(self._value.aval.shape, value, self.dtype, self.device), True, "FillBackward2")


def filled_by(self: Tensor, value) -> Tensor:
    """`fill_` by a tensor without dimensions, as assignments do it of numbers, too."""
    if not isinstance(value, Tensor):
        made = filled(self._value.aval.shape, value, self.dtype, self.device)
        return overwrite(self, made, True, "FillBackward3", made)
    spread = to_dtype(to_device(value, self.device) if value.device is not self.device else value, self.dtype).expand(self._value.aval.shape)
    return overwrite(self, _plain_copy(spread), True, "FillBackward3", value)


FUNCTIONS["fill_"] = called(copied(fill_))


@public(method=False)
def fill(input, value) -> Tensor:
    """A tensor like input filled with value."""
    return named(input.clone().fill_(value), f"FillBackward{int(isinstance(value, Tensor))}", input, *([value] if isinstance(value, Tensor) else []))


@public()
def zero_(input) -> Tensor:
    """All elements become zero."""
    input._check_write(True)
    a = input._value.aval
    return overwrite(input, constant(a.shape, 0, a.dtype, a.device), True, "ZeroBackward0")


# -- comparison and logic ------------------------------------------------------------------------------------------------

eq = binary("eq", lambda xp, x, y: x == y, None, promote="bool", numbers=("other",), ufunc=np.equal)
ne = binary("ne", lambda xp, x, y: x != y, None, promote="bool", numbers=("other",), names=("not_equal",), ufunc=np.not_equal)
lt = binary("lt", lambda xp, x, y: x < y, None, promote="bool", numbers=("other",), real=True, names=("less",), ufunc=np.less)
le = binary("le", lambda xp, x, y: x <= y, None, promote="bool", numbers=("other",), real=True, names=("less_equal",), ufunc=np.less_equal)
gt = binary("gt", lambda xp, x, y: x > y, None, promote="bool", numbers=("other",), real=True, names=("greater",), ufunc=np.greater)
ge = binary("ge", lambda xp, x, y: x >= y, None, promote="bool", numbers=("other",), real=True, names=("greater_equal",), ufunc=np.greater_equal)
logical_and = binary("logical_and", lambda xp, x, y: xp.logical_and(x, y), None, promote="bool", ufunc=np.logical_and)
logical_or = binary("logical_or", lambda xp, x, y: xp.logical_or(x, y), None, promote="bool", ufunc=np.logical_or)
logical_xor = binary("logical_xor", lambda xp, x, y: xp.logical_xor(x, y), None, promote="bool", ufunc=np.logical_xor)
_LOGICAL_NOT = Elementwise("logical_not", lambda xp, x: xp.logical_not(x), promote="bool")


@public(inplace=True, out=True)
def logical_not(input) -> Tensor:
    """True where input is zero or False."""
    return apply(_LOGICAL_NOT, (input,))


def bitwise(name, kernel):
    """Publish a bitwise operation of integers and bools."""
    shift = {"bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift"}.get(name)
    op = Elementwise(name, kernel, promote=only(f"{shift or name}_cpu", dt.INT if shift else dt.BOOL, dt.INT))

    def f(input: Tensor | float, other) -> Tensor:
        return apply(op, operands(name, input, other))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"torch.{name}(input, other), for integers and bools."
    return public(inplace=True, out=True)(f)


bitwise_and = bitwise("bitwise_and", lambda xp, x, y: x & y)
bitwise_or = bitwise("bitwise_or", lambda xp, x, y: x | y)
bitwise_xor = bitwise("bitwise_xor", lambda xp, x, y: x ^ y)
bitwise_left_shift = bitwise("bitwise_left_shift", lambda xp, x, y: xp.left_shift(x, y))
bitwise_right_shift = bitwise("bitwise_right_shift", lambda xp, x, y: xp.right_shift(x, y))
_BITWISE_NOT = Elementwise("bitwise_not", lambda xp, x: ~x)


@public(inplace=True, out=True)
def bitwise_not(input) -> Tensor:
    """~input, for integers and bools."""
    if input.dtype.category >= dt.FLOAT:
        raise not_implemented("bitwise_not_cpu", input.dtype)
    return apply(_BITWISE_NOT, (input,))


def _comparison(f, name):
    general, op = operator(f, "eq" if f is eq else name), OPS[f.__name__]

    def run(self, other):
        if self.__class__ is Tensor and not self._value.aval.ndim and (made := compared(op, self, other)) is not None:
            return made
        if other is None or isinstance(other, (str, bytes)):
            return NotImplemented
        return general(self, other)
    setattr(Tensor, name, run)


for _f, _name in ((eq, "__eq__"), (ne, "__ne__"), (lt, "__lt__"), (le, "__le__"), (gt, "__gt__"), (ge, "__ge__")):
    _comparison(_f, _name)
for _f, _name in ((bitwise_and, "and"), (bitwise_or, "or"), (bitwise_xor, "xor"), (bitwise_left_shift, "lshift"), (bitwise_right_shift, "rshift")):
    setattr(Tensor, f"__{_name}__", operator(_f, f"__{_name}__"))
    setattr(Tensor, f"__r{_name}__", operator(_f, f"__r{_name}__", reflected=True))
    setattr(Tensor, f"__i{_name}__", in_place_operator(_f.__name__ + "_", f"__i{_name}__"))


def _invert(self):
    if self.dtype.category >= dt.FLOAT:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


Tensor.__invert__ = _invert


def _pos(self) -> Tensor:
    if self.dtype is dt.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


Tensor.__pos__ = _pos
Tensor.__hash__ = lambda self: id(self)

_SIGN, _OTHERS = np.int16(-1 << 15), np.int16((1 << 15) - 1)  # bits of a 16-bit float


def _negated(xp, x):
    return (x.view(np.int16) ^ _SIGN).view(x.dtype) if xp is np and x.dtype.itemsize == 2 and dt.is_narrow(x.dtype) else -x


def _size(xp, x):
    return (x.view(np.int16) & _OTHERS).view(x.dtype) if xp is np and x.dtype.itemsize == 2 and dt.is_narrow(x.dtype) else xp.abs(x)


def sign_of(xp, x):
    """-1, 0 or 1 of real numbers; 0 of NaN."""
    if x.dtype == np.bool_:
        return x
    if xp is np and x.dtype.kind == "f" and x.__class__ is np.ndarray:
        return ((x > 0).view(np.int8) - (x < 0).view(np.int8)).astype(x.dtype)
    return xp.where(x != x, xp.zeros((), x.dtype), xp.sign(x))


def direction(xp, x):
    """x / |x|, of real numbers the sign; 0 at 0, with a derivative of 0."""
    if x.dtype.kind != "c":
        return sign_of(xp, x)
    none = x == 0
    return xp.where(none, xp.zeros((), x.dtype), x / xp.where(none, 1, xp.abs(x)))


_NEG = Elementwise("neg", _negated, grads=(lambda xp, g: -g,))
_ABS = Elementwise("abs", _size, promote=lambda common: (common.to_real(), common), grads=(
    lambda xp, g, x: g * direction(xp, x),))

_NEG.steps = _ABS.steps = True  # of 16-bit floats the sign changes, in which nothing is rounded


@public(inplace=True, out=True, names=("negative",))
def neg(input) -> Tensor:
    """-input."""
    if input.dtype is dt.bool_:
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
                           "`~` or `logical_not()` operator instead.")
    return apply(_NEG, (input,))


@public(inplace=True, out=True, names=("absolute",))
def abs(input) -> Tensor:
    """|input|; real for complex input."""
    if input.dtype is dt.bool_:
        raise not_implemented("abs_cpu", dt.bool_)
    return apply(_ABS, (input,))


_abs_in_place = Tensor.abs_


def abs_(input) -> Tensor:
    """input = |input|; not of complex tensors, which cannot hold it."""
    if isinstance(input, Tensor) and input.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return _abs_in_place(input)


for _name in ("abs_", "absolute_"):
    setattr(Tensor, _name, abs_)
    FUNCTIONS[_name] = abs_
Tensor.__reversed__ = lambda self: self.flip(0) if self.ndim else self
Tensor.__neg__ = lambda self: neg(self)
Tensor.__abs__ = lambda self: abs(self)

class _Where(Op):
    """where(condition, x, y): the condition takes no part in promotion."""

    pointwise = True

    def make(self, avals, statics):
        device = common_device(self, avals, statics)
        out = result_dtype(*avals[1:])
        kind = out.np

        def run(xp, c, x, y):
            return choose(xp, c, cast(xp, x, kind), cast(xp, y, kind))
        return Plan(self, avals, statics, (broadcast_shapes(*(a.shape for a in avals)), out), run, device)


def _where_vjp(xp, g, c, plan):
    zero = xp.zeros((), g.dtype)
    return None, choose(xp, c, g, zero), choose(xp, c, zero, g)


WHERE = _Where("where", lambda xp, c, x, y: xp.where(c, x, y), vjp=_where_vjp, torch_name="WhereBackward0")


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Tensor | float, other: Tensor | float) -> Tensor: ...
@public(out=True)
def where(condition: Tensor, input: Tensor | float = MISSING, other=MISSING) -> Tensor | tuple[Tensor, ...]:
    """input where condition holds, other elsewhere; with one argument, the indices where it holds."""
    if input is MISSING and other is MISSING:
        return condition.nonzero(as_tuple=True)
    if input is MISSING or other is MISSING:
        raise combination("where", (condition,) if input is MISSING else (condition, input), {} if other is MISSING else {"other": other})
    parts = [x if isinstance(x, Tensor) else _plain_number(number(x)) for x in (input, other)]
    if condition.dtype is not dt.bool_:
        if condition.dtype is not dt.uint8:
            raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.short}")
        warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of PyTorch. "
             "Use a boolean condition instead.", once=True)
    return apply(WHERE, (condition, *parts))


def _where_method(self, *args, **kwargs) -> Tensor:
    """self where condition holds, other elsewhere: `where(condition, other)`."""
    given = dict(zip(("condition", "other"), args), **kwargs)
    if len(args) > 2 or given.keys() != {"condition", "other"}:
        raise combination("where", args, kwargs)
    return FUNCTIONS["where"](given["condition"], self, given["other"])


Tensor.where = _where_method


def _masked_fill_repeating(self, mask: Tensor, value) -> Tensor:
    from .indexing import put_repeating
    where = mask.expand(self.shape).nonzero(as_tuple=True)
    return put_repeating(self, where, tuple(range(self.ndim)), value if isinstance(value, Tensor) else scalar_tensor(value, dtype=self.dtype, device=self.device))


@public(inplace=True, repeating=_masked_fill_repeating)
def masked_fill(input, mask: Tensor, value) -> Tensor:
    """value where mask holds, input elsewhere; the dtype of input."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"masked_fill(): argument 'mask' (position 2) must be Tensor, not {class_name(mask)}")
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {cpp_type(mask.dtype.np)}")
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
        known = value._current().array
        if known.__class__ is np.ndarray and value.dtype is not input.dtype:
            held(known.item(), input.dtype)  # torch's error where it does not fit
    else:
        value = held(value, input.dtype)
    made = to_dtype(apply(WHERE, (mask, value, input)), input.dtype)
    made = named(made, "MaskedFillBackward1", input, value) if isinstance(value, Tensor) else named(made, "MaskedFillBackward0", input)
    made._layout = None  # torch fills a contiguous copy
    return made

