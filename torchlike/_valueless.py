"""Tensors without a Value: they hold strided tensors, and operations on them are made of operations on these.

Recording, autograd and compilation know nothing of them: whatever would read one as a strided tensor gets `Refused`, and `torchlike._public` asks
then for the function's form for such arguments. Strided tensors pay nothing for that.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar, NoReturn

from ._core import program
from ._core.registry import Op
from ._core.value import Value
from ._exchange import exchange
from ._public import Refused, is_wrapped, looking
from ._tensor import Tensor

FACTS = ("size", "dim", "ndimension", "numel", "nelement", "element_size", "is_floating_point", "is_complex", "is_signed", "get_device", "ndim", "itemsize",
         "is_cuda", "is_cpu", "is_meta", "is_tpu", "is_mkldnn", "is_quantized", "is_vulkan", "is_mps", "is_xpu", "is_nested", "is_ipu", "is_xla", "is_ort",
         "is_maia", "is_mtia", "is_pinned", "is_conj", "is_neg", "storage_offset", "__len__")


class Valueless(Tensor):
    """Base of the kinds, which define `_aval`."""

    _sparse = True
    backend = ""  # torch's name of the kind of tensor, in errors
    forms: ClassVar[dict[str, Callable]] = {}  # by torch's name: what runs where an argument is of this kind

    @property
    def _value(self) -> NoReturn:
        self.refuse(_asked())

    def _current(self) -> NoReturn:
        self.refuse(_asked())

    def _host_array(self) -> NoReturn:
        self.refuse(_asked())

    def refuse(self, name: str) -> NoReturn:
        """torch's error for an operation that there is not for this layout."""
        raise Refused(name, self.backend + self.device.type.upper(), self.forms)

    def facts(self) -> Tensor:
        """A strided tensor of the same shape, dtype and device without elements."""
        return Tensor._of(Value(self._aval, program.META_ARRAY))


def _asked() -> str:
    """What was about to read such a tensor: the operation in a caller's hands, else the caller's own name."""
    frame = sys._getframe(2)
    names = []
    while frame is not None and len(names) < 3:
        op = frame.f_locals.get("op")
        if isinstance(op, Op):
            return op.name
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names[0]


def finish(cls: type) -> type:
    """The class as users see it: its forms as methods, every other method of Tensor refused."""
    for name in FACTS:
        if name not in cls.__dict__:
            setattr(cls, name, _fact(name, isinstance(vars(Tensor).get(name), property)))
    for name, x in vars(Tensor).items():
        if getattr(cls, name, None) is not x or name in ("grad", "_grad") or not (isinstance(x, property) or isinstance(x, FunctionType)):
            continue
        if name in _OPERATORS:
            setattr(cls, name, _operator(name, cls.forms, *_OPERATORS[name]))
        elif name in cls.forms:
            setattr(cls, name, cls.forms[name])
        elif not name.startswith("_") or name in _OTHER_DUNDERS:
            setattr(cls, name, _refusal(name, isinstance(x, property)))
    cls.__name__ = cls.__qualname__ = "Tensor"
    cls.__module__ = "torch"
    return cls


def look_for(forms: dict[str, Callable]) -> None:
    """Methods of Tensor that look at their arguments themselves look for arguments of a kind with these forms, too."""
    for name in forms:
        if not name.startswith("__"):
            look_in(vars(Tensor).get(name))


def look_in(f: Any) -> None:
    """The same for one function."""
    if f.__class__ is FunctionType and not hasattr(f, "_looks") and not is_wrapped(f):
        exchange(f, looking)
        f._looks = True


_OPERATORS = {"__add__": ("add", False), "__radd__": ("add", True), "__sub__": ("sub", False), "__rsub__": ("sub", True), "__mul__": ("mul", False),
              "__rmul__": ("mul", True), "__truediv__": ("div", False), "__rtruediv__": ("div", True), "__floordiv__": ("floor_divide", False),
              "__matmul__": ("matmul", False), "__rmatmul__": ("matmul", True), "__neg__": ("neg", False), "__abs__": ("abs", False), "__pow__": ("pow", False),
              "__iadd__": ("add_", False), "__isub__": ("sub_", False), "__imul__": ("mul_", False), "__itruediv__": ("div_", False)}
_OTHER_DUNDERS = {"__rpow__", "__rfloordiv__", "__mod__", "__rmod__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__and__", "__or__", "__xor__",
                  "__invert__", "__getitem__", "__setitem__", "__contains__", "__float__", "__int__", "__index__", "__complex__", "__dlpack__", "__ipow__",
                  "__ifloordiv__", "__imod__", "__iand__", "__ior__", "__ixor__", "__lshift__", "__rshift__", "__array_wrap__"}
_ATEN = {"__eq__": "eq.Tensor", "__ne__": "ne.Tensor", "__lt__": "lt.Tensor", "__le__": "le.Tensor", "__gt__": "gt.Tensor", "__ge__": "ge.Tensor",
         "__setitem__": "copy_", "__getitem__": "as_strided", **dict.fromkeys(("squeeze", "narrow", "split", "chunk", "diagonal", "T"), "as_strided")}


def _fact(name: str, is_property: bool) -> Any:
    if is_property:
        return property(lambda self: getattr(self.facts(), name))
    return lambda self, *args, **kwargs: getattr(self.facts(), name)(*args, **kwargs)


def _operator(name: str, forms: dict[str, Callable], function: str, reflected: bool) -> Callable:
    def call(self, *other):
        form = forms.get(function)
        if form is None:
            self.refuse(function)
        return form(*other, self) if reflected else form(self, *other)
    call.__name__ = name
    return call


def _refusal(name: str, is_property: bool) -> Any:
    def refuse(self, *args, **kwargs):
        self.refuse(_ATEN.get(name, name.strip("_") if name.startswith("__") else name))
    refuse.__name__ = name
    return property(refuse) if is_property else refuse
