"""Questions about tensors and types: is_tensor, finfo, result_type, equal, allclose."""
from __future__ import annotations

import ml_dtypes
import numpy as np

from .._arguments import as_list, need_tensor, real
from .._core import device as dev
from .._core import dtype as dt
from .._core import program
from .._core.aval import NUMBERS, result_dtype
from .._core.errors import class_name, not_implemented
from .._core.history import warn
from .._core.registry import Elementwise
from .._core.shown import Shown
from .._public import FUNCTIONS, MISSING, called, public
from .._shared import is_shared, share
from .._tensor import Tensor, apply, as_tensor_value
from .creation import LAYOUT_NAMES
from .elements import plain_number


@public(method=False)
def is_tensor(obj) -> bool:
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


@public()
def is_floating_point(input) -> bool:
    """Whether the dtype is a floating type."""
    return input.dtype.is_floating_point


@public()
def is_complex(input) -> bool:
    """Whether the dtype is complex."""
    return input.dtype.is_complex


@public()
def is_signed(input) -> bool:
    """Whether the dtype is signed."""
    return input.dtype.is_signed


@public()
def is_nonzero(input) -> bool:
    """Whether a one-element tensor is not zero."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with " + ("no values" if not input.numel() else "more than one value") + " is ambiguous")
    return bool(input)


@public(method=False)
def is_inference(input) -> bool:
    """Whether the tensor was made under inference_mode."""
    return input.is_inference()


@public(method=False)
def numel(input) -> int:
    """The number of elements."""
    return input.numel()


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes as a vector."""
    return as_tensor_value(np.array(input.shape, np.int64))


def _reshape_from_tensor(input: Tensor, shape: Tensor) -> Tensor:
    """input.reshape, the sizes from a vector."""
    return input.reshape(shape.tolist())


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """0 up to the size of like's dimension (torchrec, fairseq)."""
    return as_tensor_value(np.arange(like.shape[dim]), like.device)


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input.data = from_` is allowed: both strided, both sparse_coo or both compressed, and on such devices."""
    def kind(x: Tensor) -> tuple:
        layout = x.layout.name
        return "compressed" if layout.startswith("sparse_") and layout != "sparse_coo" else layout, x.device.type, x.is_quantized
    return kind(input) == kind(from_)


FUNCTIONS.update(_has_compatible_shallow_copy_type=_has_compatible_shallow_copy_type,
                 _shape_as_tensor=_shape_as_tensor, _reshape_from_tensor=_reshape_from_tensor, _dim_arange=_dim_arange)


@public(function=True)
def is_same_size(input, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return need_tensor(input, "is_same_size", "'input' (position 1)").shape == other.shape


def _aval(x):
    if isinstance(x, Tensor):
        return x._value.aval
    try:
        return NUMBERS[type(plain_number(x))]
    except TypeError:
        raise TypeError(f"result_type(): argument must be Tensor or Number, not {class_name(x)}") from None


@public(method=False)
def result_type(*args, **named) -> dt.dtype:
    """The dtype of an arithmetic operation on two tensors or numbers."""
    words = next((words for words in (("tensor", "other"), ("scalar", "tensor"), ("scalar1", "scalar2")) if set(words[len(args):]) == set(named)), None)
    if words is None or len(args) > 2:
        raise TypeError("result_type() received an invalid combination of arguments")
    one, two = (*args, *(named[w] for w in words[len(args):]))
    return result_dtype(_aval(one), _aval(two))


@public(method=False)
def set_default_dtype(d) -> None:
    """The dtype of Python floats and of factories from now on."""
    program.set_default_dtype(d)


@public(method=False)
def set_default_tensor_type(t) -> None:
    """The older form of set_default_dtype."""
    warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and torch.set_default_device() as alternatives.",
         once=True)
    name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
    from .tensor_types import LEGACY  # these types are made later
    if name in LEGACY:
        LEGACY[name].need()
    short = name.rsplit(".", 1)[-1].removesuffix("Tensor")
    found = next((d for d in dt._by_name.values() if d.short == short), None)
    if found is None or not found.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_dtype(found)


def _asked_for(name: str, x) -> dt.dtype:
    """A dtype, or the one that a type of Python stands for."""
    d = {float: dt.float64, int: dt.int64, bool: dt.bool_, complex: dt.complex128}.get(x) if isinstance(x, type) else x
    if not isinstance(d, dt.dtype):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {class_name(x)}")
    return d


class finfo(metaclass=Shown):
    """torch.finfo: limits of a floating type."""

    __module__ = "torch"

    def __init__(self, type=MISSING):
        d = dt.get_default_dtype() if type is MISSING else _asked_for("finfo", type)
        if d.category < dt.FLOAT:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        info = ml_dtypes.finfo(d.to_real().np)
        self.bits = d.to_real().itemsize * 8
        self.max, self.min, self.eps = float(info.max), float(info.min), float(info.eps)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = {dt.bfloat16: 0.01}.get(d.to_real(), 1.0 if d in dt.FLOAT8 else float(10.0 ** -info.precision))
        self.dtype = d.to_real().name

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    __hash__ = None


class iinfo(metaclass=Shown):
    """torch.iinfo: limits of an integer type."""

    __module__ = "torch"

    def __init__(self, type):
        type = _asked_for("iinfo", type)
        if type.category > dt.INT or type in dt.NARROW:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type.category == dt.BOOL:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        info = np.iinfo(type.integers if type.is_quantized else type.np)
        self.bits, self.max, self.min, self._type = info.bits, int(info.max), int(info.min), type

    @property
    def dtype(self) -> str:
        """The type's name; NotImplementedError for quantized ones."""
        if self._type.is_quantized:
            raise not_implemented("dtype", self._type)
        return self._type.name

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other):
        return isinstance(other, iinfo) and self._type is other._type

    __hash__ = None


@public()
def equal(input, other: Tensor) -> bool:
    """Whether shapes and all elements are equal."""
    if not isinstance(other, Tensor):
        raise TypeError(f"equal(): argument 'other' (position 2) must be Tensor, not {class_name(other)}")
    for t in (input, other):
        if t._sparse:
            t.refuse("equal")
    if input.shape != other.shape:
        return False
    if not input.numel():
        return True
    if input.dtype is other.dtype and input.device.type == other.device.type == "cpu" and input._known() is not None and other._known() is not None:
        a, b = input._host_array(), other._host_array()
        few = slice(0, max(1, _FEW * len(a) // a.size)) if a.ndim else ()
        return bool((a[few] == b[few]).all()) and bool((a == b).all())  # most that differ do so at once
    return bool((input == other).all())


_FEW = 4096  # elements that are compared before all others
_ISCLOSE = Elementwise("isclose", lambda xp, x, y, *settings: _close(xp, x, y, *settings), promote="bool")


def _close(xp, x, y, rtol, atol, nan, kind, compare_only):
    near = x == y
    if nan:
        near = near | ((x != x) & (y != y))
    if compare_only:
        return near
    if x.dtype.kind in "iub":
        x, y = x.astype(kind), y.astype(kind)

    def step(r):  # 16-bit floats are rounded after each, as in torch: the sum of atol and the rest decides at its edge
        return r if r.dtype.itemsize == kind.itemsize or r.dtype.kind == "c" else r.astype(kind).astype(r.dtype)

    off, allowed = step(xp.abs(step(x - y))), step(atol + xp.abs(step(rtol * y)))
    return near | (xp.isfinite(off) & (off <= allowed))  # a complex difference may be infinite where its parts are not


@public()
def isclose(input, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + rtol * |other|."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.short} did not match {other.dtype.short}")
    rtol, atol = real(rtol, "isclose", "rtol", 3), real(atol, "isclose", "atol", 4)
    if not rtol >= 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if not atol >= 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    kind = dt.get_default_dtype() if input.dtype.category < dt.FLOAT else input.dtype.to_real()
    return apply(_ISCLOSE, (input, other), (float(rtol), float(atol), bool(equal_nan), kind.np, not rtol and not atol))


@public()
def allclose(input, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether isclose holds everywhere."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def _share_memory(self) -> Tensor:
    """Move the data into memory that other processes may share; views and aliases go along. On other devices than the CPU nothing moves."""
    if self._dispatches:
        return self
    if self.device.type == "meta":
        raise RuntimeError("_share_fd_: only available on CPU")
    share(self._ensure_storage())
    return self


def _is_on(kind: str) -> property:
    def ask(self) -> bool:
        return self.device.type == kind
    return property(ask)


def _never(self) -> bool:
    return False


def _itemsize(self) -> int:
    return self.dtype.itemsize


def _nbytes(self) -> int:
    return self.dtype.itemsize * self.numel()


def _is_inference(self) -> bool:
    return self._inference


def _is_pinned(self, device=None) -> bool:
    return False


def _pin_memory(self, device=None) -> Tensor:
    return self


def _is_shared(self) -> bool:
    return not self._dispatches and is_shared(self._storage)


for _name in ("is_cuda", "is_cpu", "is_meta", "is_tpu"):
    setattr(Tensor, _name, _is_on(_name[3:]))
for _name in ("is_sparse", "is_mkldnn", "is_quantized", "is_vulkan", "is_mps", "is_xpu", "is_nested", "is_sparse_csr", "is_ipu", "is_xla", "is_ort", "is_maia",
              "is_mtia"):
    setattr(Tensor, _name, property(_never))
Tensor._cdata = property(id)  # which tensor it is: pyro asks whether two names hold one
Tensor.itemsize, Tensor.nbytes = property(_itemsize), property(_nbytes)
Tensor.is_inference, Tensor.is_pinned, Tensor.pin_memory, Tensor.is_shared = _is_inference, _is_pinned, _pin_memory, _is_shared
Tensor.share_memory_ = _share_memory


@public()
def get_device(input) -> int:
    """The number of the tensor's device; -1 for the CPU."""
    return -1 if input.device.type == "cpu" else input.device.index


def _assert_tensor_metadata(a: Tensor, size=None, stride=None, dtype=None, *, device=None, layout=None) -> None:
    """RuntimeError unless the tensor has these sizes, strides, dtype, device and layout; None is not compared."""
    for name, wanted, found in (("sizes", size, a.shape), ("strides", stride, a.stride() if stride is not None else None)):
        if wanted is not None and tuple(as_list(wanted, "_assert_tensor_metadata", "size" if name == "sizes" else "stride")) != tuple(found):
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {list(wanted)}, Got: {list(found)}")
    if dtype is not None and a.dtype is not dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {dtype.short}, Got: {a.dtype.c_name}")
    if device is not None and a.device is not dev.canonical(device):
        raise RuntimeError(f"Tensor device mismatch! Expected: {dev.canonical(device)}, Got: {a.device}")
    if layout is not None and a.layout is not layout:
        raise RuntimeError(f"Tensor layout mismatch! Expected: {LAYOUT_NAMES[layout.name]}, Got: {LAYOUT_NAMES[a.layout.name]}")


FUNCTIONS["_assert_tensor_metadata"] = called(_assert_tensor_metadata)
