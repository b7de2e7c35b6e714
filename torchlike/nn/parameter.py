"""Tensors with a role in a Module: Parameter (trained), Buffer (kept), and their uninitialized forms for lazy modules."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchlike._tensor import Tensor


class _ParameterMeta(type(Tensor)):
    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module lists in `parameters()` when it is assigned as an attribute.

    A tensor of a user's own subclass keeps its class and is marked as a parameter instead.
    """

    _plain = True  # operations on parameters give plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            return Tensor._make_subclass(cls, _empty((0,)), requires_grad)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        shared = data.detach().requires_grad_(requires_grad)
        if type(shared) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(shared).__name__} was found instead. To use the type "
                "as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation.")
        shared._is_param = True
        return shared

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: int) -> tuple:
        state = {k: v for k, v in vars(self).items() if not k.startswith("_")} if hasattr(self, "__dict__") else {}
        if state:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: OrderedDict) -> Parameter:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: OrderedDict, state: dict) -> Parameter:
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


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet. `materialize` gives it one and changes its class."""

    cls_to_become: type
    _allowed_methods = ("materialize", "is_floating_point", "is_complex", "type", "half", "float", "double", "char",
                        "short", "int", "long", "cuda", "cpu", "to", "get_device", "_has_compatible_shallow_copy_type",
                        "detach", "copy_", "data", "device", "dtype", "requires_grad", "is_leaf", "grad", "grad_fn")

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor an empty storage of `shape`; device and dtype stay unless given."""
        self.data = _empty(shape, device=self.data.device if device is None else device,
                           dtype=self.data.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> tuple:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes.")

    def share_memory_(self) -> None:
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the "
                           "parameters before calling `module.share_memory()`.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: int) -> tuple:
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(func, "__name__", "") in cls._allowed_methods or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` "
            f"or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch functions")


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape the first forward decides."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return Tensor._make_subclass(cls, _empty((0,), device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape the first forward decides."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
                persistent: bool = True) -> UninitializedBuffer:
        made = Tensor._make_subclass(cls, _empty((0,), device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def is_lazy(param: Any) -> bool:
    """True for an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A Parameter with unset values, for a constructor that initializes it afterwards."""
    return Parameter(_empty(shape, device=device, dtype=dtype))


def _empty(shape: Any, device: Any = None, dtype: Any = None) -> Tensor:
    import torchlike as torch  # the factories live above this file

    return torch.empty(shape, device=device, dtype=dtype)
