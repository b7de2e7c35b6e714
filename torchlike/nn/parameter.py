"""Tensors with a role in a Module: Parameter (trained), Buffer (kept), and their forms without a shape yet."""
from __future__ import annotations

import os
import sys
from collections import OrderedDict
from typing import Any

from torchlike._core.history import HERE
from torchlike._fields import AttributesOf, fields
from torchlike._plainly import _disabled_torch_function_impl
from torchlike._shared import sent_by_file
from torchlike._tensor import Tensor
from torchlike.ops.objects import in_files

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy"]


class _ParameterMeta(type(Tensor)):
    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module lists in `parameters()` when it is assigned as an attribute.

    A tensor of a user's own subclass keeps its class and is marked as a parameter instead.
    """

    __torch_function__ = _disabled_torch_function_impl  # operations on parameters give plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            return Tensor._make_subclass(cls, _empty((0,)), requires_grad)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        shared = data.detach().requires_grad_(requires_grad)
        if type(shared) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(shared).__name__} was found instead. To use the "
                "type as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation.")
        shared._is_param = True
        return shared

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            copied = self.detach().clone()
            memo[id(self)] = (_adopt(Parameter, copied, self.requires_grad) if type(self) is Parameter
                              else type(self)(copied, self.requires_grad))
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: int) -> tuple:
        if in_files.apart is not None:
            return in_files.apart(self)
        state = dict(vars(self))
        if state:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: OrderedDict) -> Parameter:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: OrderedDict,
                                  state: dict) -> Parameter:
    parameter = Parameter(data, requires_grad)
    for name, value in state.items():
        setattr(parameter, name, value)
    return parameter


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is not Buffer:
            return super().__instancecheck__(instance)
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a Module registers as a buffer when it is assigned as an attribute.

    The object made is an ordinary tensor sharing `data`'s storage, marked as a buffer.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Tensor:
        data = _empty((0,)) if data is None else data
        marked = data.detach().requires_grad_(data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked


READERS = f"nn{os.sep}modules{os.sep}_state.py", f"nn{os.sep}init.py"  # files that read shapes as a program would


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet. `materialize` gives it one and changes its class.

    It may be moved, cast and asked for its dtype; every other use raises ValueError.
    """

    __dict__ = AttributesOf()  # a class before Tensor has a `__dict__` of its own else
    cls_to_become: type

    @classmethod
    def _make(cls, requires_grad: bool, device: Any, dtype: Any) -> Any:
        made = object.__new__(cls)
        made._held, made._trained = _empty((0,), device=device, dtype=dtype), requires_grad
        return made

    @property
    def _value(self) -> Any:
        """What every operation asks a tensor for."""
        name = type(self).__name__
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {_calling_function()}. This error happens when you are "
            f"using a `LazyModule` or explicitly manipulating `torch.nn.parameter.{name}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions")

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor an empty storage of `shape`; device and dtype stay unless given."""
        held, trained = (fields(self).pop(name) for name in ("_held", "_trained"))
        self.__class__ = self.cls_to_become
        fields(self).update(fields(_empty(shape, device=device or held.device, dtype=dtype or held.dtype)))
        self.requires_grad = trained

    @property
    def shape(self) -> tuple:
        reader = sys._getframe(1).f_code.co_filename
        if reader.startswith(HERE) and not reader.endswith(READERS):  # an operation
            return self._value
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes.")

    @property
    def data(self) -> Tensor:
        return self._held

    @data.setter
    def data(self, other: Tensor) -> None:
        self._held = other

    @property
    def requires_grad(self) -> bool:
        return self._trained

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._trained = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self._trained = requires_grad
        return self

    dtype = property(lambda self: self._held.dtype)
    device = property(lambda self: self._held.device)
    is_meta = property(lambda self: self._held.is_meta)
    is_cuda = property(lambda self: self._held.is_cuda)
    ndim = property(lambda self: self._held.ndim)
    nbytes = property(lambda self: self._held.nbytes)
    is_leaf = property(lambda self: True)
    grad_fn = property(lambda self: None)

    def _converted(self, result: Any) -> Any:
        """What a cast or move of the held tensor gives back."""
        return self if result is self._held else result

    def share_memory_(self) -> None:
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize "
                           "the parameters before calling `module.share_memory()`.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple:
        return type(self), (self.requires_grad, self.device, self.dtype)


def _on_held(name: str) -> Any:
    def method(self: UninitializedTensorMixin, *args: Any, **kwargs: Any) -> Any:
        return self._converted(getattr(self._held, name)(*args, **kwargs))

    method.__name__ = name
    return method


for _name in ("to", "cpu", "cuda", "type", "float", "double", "half", "bfloat16", "char", "short", "int", "long", "is_floating_point", "is_complex", "size",
              "get_device"):
    setattr(UninitializedTensorMixin, _name, _on_held(_name))


def _calling_function() -> str:
    """The name of the operation that the program called, where a frame has it."""
    frame, found = sys._getframe(2), "a function of torch"
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        name = frame.f_code.co_name.removesuffix("_property").lstrip("_")
        if name != "shape" and (name in vars(Tensor) or (name := f"__{name}__") in vars(Tensor)):
            found = name
        frame = frame.f_back
    return found


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape the first forward decides."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return cls._make(requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape the first forward decides."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
                persistent: bool = True) -> UninitializedBuffer:
        made = cls._make(requires_grad, device, dtype)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def _converted(self, result: Any) -> Any:
        """A module puts the result in the buffer's place: it has to be uninitialized too."""
        if result is self._held or not isinstance(result, Tensor):
            return super()._converted(result)
        return type(self)(self.requires_grad, result.device, result.dtype, self.persistent)


def is_lazy(param: Any) -> bool:
    """True for an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A Parameter with unset values, for a constructor that initializes it afterwards."""
    made = _empty(shape, device=device, dtype=dtype)
    return Parameter(made) if made._dispatches else _adopt(Parameter, made, True)


def _adopt(cls: type, fresh: Tensor, requires_grad: bool) -> Any:
    """A tensor nobody else holds as an instance of `cls`: unlike `_make_subclass`, without a storage to share."""
    made = object.__new__(cls)
    fields(made).update(fields(fresh))
    made.requires_grad = requires_grad
    return made


sent_by_file(Parameter)


def _empty(shape: Any, device: Any = None, dtype: Any = None) -> Tensor:
    import torchlike as torch  # the factories live above this file

    return torch.empty(shape, device=device, dtype=dtype)
