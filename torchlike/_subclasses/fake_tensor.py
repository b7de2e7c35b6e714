"""Fake tensors: shape, dtype, strides, device and gradients of tensors that have no data.

A FakeTensor holds a tensor on `meta` and says that it is on another device, which need not be there. Its class begins to dispatch when the first
FakeTensorMode is made: programs that only ask `isinstance(x, FakeTensor)` pay nothing for it.
"""
from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _leaves
from .._core.aval import aval
from .._core.device import META as _META
from .._core.device import default_device
from .._core.device import device as Device
from .._core.dtype import bool_, from_numpy_dtype, get_default_dtype, int64
from .._core.grad_mode import mode as grad_mode
from .._core.layout import Layout
from .._core.program import META_ARRAY
from .._dispatch.held import Outline, make_wrapper, named_device, prepare
from .._ops import OpOverload, aten
from .._plainly import _disabled_torch_function_impl, plain_function
from .._plainly import state as overriding
from .._tensor import Tensor
from ..nn.parameter import Parameter
from ..ops.creation import empty
from ..ops.ranges import empty_strided
from ..ops.staged_draws import without_data
from ..utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from ..utils._pytree import tree_leaves, tree_map, tree_map_only
from ._exceptions import DataDependentOutputException, DynamicOutputShapeException, FakeTensorDeviceMismatchError, UnsupportedFakeTensorException

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorConverter", "FakeTensorDeviceMismatchError",
           "FakeTensorMode", "UnsupportedFakeTensorException", "is_fake", "unset_fake_temporarily"]

_FACTORIES = frozenset("zeros ones full empty empty_strided rand randn randint randperm normal arange range eye linspace logspace tril_indices triu_indices".split())
_OF_DATA = frozenset("tensor as_tensor asarray from_numpy scalar_tensor frombuffer".split())  # what these make has data, which is small as a rule
_DECIDED_BY_DATA = frozenset("_local_scalar_dense equal allclose is_nonzero".split())
_SIZED_BY_DATA = frozenset("nonzero _unique2 unique_dim unique_consecutive masked_select bincount".split())
_KEPT = 1  # of how many elements a constant is known
_REFUSED = "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. Found in {}({})"


class FakeTensor(Tensor):
    """A tensor without data of a FakeTensorMode. FakeTensor(mode, elem, device): `elem`, on `meta`, as if it were on `device`."""

    __torch_function__ = _disabled_torch_function_impl
    fake_device: Device
    fake_mode: FakeTensorMode
    elem: Tensor
    constant: Tensor | None  # the data after all, of a number that the program wrote down

    @staticmethod
    def __new__(cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any, constant: Tensor | None = None) -> FakeTensor:
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        made = make_wrapper(cls, elem.shape, elem.dtype, _placed(device), elem.stride(), elem.storage_offset(), False)
        made.elem, made.fake_mode, made.fake_device, made.constant = elem.detach(), fake_mode, made.device, constant
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return _text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def tolist(self) -> Any:
        """The numbers, where they are known; DataDependentOutputException else."""
        return [x.tolist() for x in self] if self.ndim else self.item()

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """t without its data."""
        return fake_mode.from_tensor(t)

    def __deepcopy__(self, memo: dict) -> FakeTensor:
        if id(self) not in memo:
            made = memo[id(self)] = FakeTensor(self.fake_mode, self.elem.clone(), self.fake_device, self.constant)
            made.requires_grad_(self.requires_grad)
            vars(made).update({name: x for name, x in vars(self).items() if name == "_is_param"})
        return memo[id(self)]


def _of_class(cls: type, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    modes = [t.fake_mode for t in tree_leaves((args, kwargs or {})) if isinstance(t, FakeTensor)]
    other = next((m for m in modes if m is not modes[0]), None)
    if other is not None:
        raise AssertionError(f"Mixing fake modes NYI {other} vs {modes[0]}")
    return modes[0].dispatch(func, types, args, kwargs)


@functools.cache
def _begin() -> None:
    """FakeTensor is a class that dispatches from now on."""
    FakeTensor.__torch_dispatch__ = classmethod(_of_class)
    prepare(FakeTensor)
    without_data.append(_undrawn)


def _undrawn(parameters: Sequence[Tensor], device: Any, shape: tuple, kind: Any) -> FakeTensor | None:
    """What stands for random numbers in the mode, or of fake parameters."""
    mode = next((m for m in reversed(_leaves.state.stack) if isinstance(m, FakeTensorMode)), None)
    held = [_leaves.shown(t._current()) for t in parameters if not t._sparse]
    mode = next((t.fake_mode for t in held if isinstance(t, FakeTensor)), mode)
    if mode is None:
        return None
    with without_modes():
        return mode._fake(empty(shape, dtype=from_numpy_dtype(kind), device=_META), device)


class _Factories:
    """The TorchFunctionMode of a FakeTensorMode: what makes tensors of no tensor."""

    def __init__(self, fake: FakeTensorMode) -> None:
        self.fake = fake

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), dict(kwargs or {})
        fake = self.fake
        if name in _FACTORIES and kwargs.get("out") is None and not any(isinstance(x, Tensor) for x in tree_leaves(args)):
            device, wants = _device_of(kwargs), kwargs.pop("requires_grad", False)
            with without_modes():
                made = fake._fake(plain_function(func)(*args, **{**kwargs, "device": _META}), device)
            return made.requires_grad_() if wants else made
        if name in _OF_DATA and not any(isinstance(x, FakeTensor) for x in tree_leaves((args, kwargs))):
            device, wants = _device_of(kwargs), kwargs.pop("requires_grad", False)
            kwargs.pop("device", None)
            with without_modes():
                made = fake._constant(plain_function(func)(*args, **kwargs), device)
            return made.requires_grad_() if wants else made
        return func(*args, **kwargs)


def _device_of(kwargs: dict) -> Any:
    given = kwargs.get("device")
    return default_device() if given is None else given


@contextlib.contextmanager
def without_modes() -> Iterator[None]:
    """A block in which no mode sees functions or operators."""
    modes, overriding.modes = overriding.modes, ()
    try:
        with _disable_current_modes():
            yield
    finally:
        overriding.modes = modes


class FakeTensorMode(TorchDispatchMode):
    """Makes fake tensors (`from_tensor`). Inside a block of it every tensor that is made is fake, and no operation computes anything.

    `allow_non_fake_inputs`: tensors with data may meet fake ones; else that is an AssertionError. Sizes are numbers: `shape_env` has to be None
    (NotImplementedError).
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False, shape_env: Any = None, static_shapes: bool | None = None,
                 export: bool = False) -> None:
        if shape_env is not None:
            raise NotImplementedError("torchlike: fake tensors of symbolic sizes (shape_env=). Leave it out: sizes are numbers then.")
        super().__init__()
        _begin()
        self.allow_fallback_kernels, self.allow_non_fake_inputs, self.shape_env, self.static_shapes = allow_fallback_kernels, allow_non_fake_inputs, None, True
        self.export = export
        self.fake_tensor_converter = FakeTensorConverter()
        self._factories, self._outer = _Factories(self), []

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __enter__(self) -> FakeTensorMode:
        from .. import overrides
        super().__enter__()
        overrides.install()
        overrides._install_methods()
        overriding.modes = (*overriding.modes, self._factories)
        return self

    def __exit__(self, *exc: object) -> None:
        from .. import overrides
        overriding.modes = overriding.modes[:-1]
        overrides._remove_methods()
        super().__exit__(*exc)

    def from_tensor(self, tensor: Tensor, *, static_shapes: bool | None = None, source: Any = None, symbolic_context: Any = None, trace: bool = True) -> FakeTensor:
        """The fake tensor of a tensor: always the same one as long as both live."""
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    # -- operators -----------------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self.dispatch(func, types, args, kwargs)

    def dispatch(self, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """What an operator makes of fake tensors."""
        kwargs = dict(kwargs or {})
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        fakes, name = [t for t in given if isinstance(t, FakeTensor)], func.overloadpacket.__name__
        other = next((t for t in fakes if t.fake_mode is not self), None)
        if other is not None:
            raise AssertionError(f"Mixing fake modes NYI {other.fake_mode} vs {self}")
        if len(fakes) != len(given):
            if not self.allow_non_fake_inputs and func.namespace != "torchlike":  # those of torchlike's own get zeros of the engine's
                raise AssertionError(_REFUSED.format(func, ", ".join([*map(_shown, args), *(f"{k}={_shown(x)}" for k, x in kwargs.items())])))
            if not fakes and writes(func):
                return func(*args, **kwargs)
            args, kwargs = tree_map(self._taken, (args, kwargs))
            fakes = [t for t in tree_leaves((args, kwargs)) if isinstance(t, FakeTensor)]
        known = bool(fakes) and all(t.constant is not None for t in fakes)
        if name in _DECIDED_BY_DATA:
            if known:
                return func(*tree_map_only(FakeTensor, _data, args), **tree_map_only(FakeTensor, _data, kwargs))
            raise DataDependentOutputException(func)
        if name in _SIZED_BY_DATA:
            raise DynamicOutputShapeException(func)
        if name in ("index", "index_put", "index_put_") and any(t.dtype.name == "bool" for t in args[1] if t is not None):
            raise DynamicOutputShapeException(aten.nonzero.default)
        device = self._device(func, fakes, kwargs)
        on_meta = {k: _META if isinstance(x, Device) else x for k, x in kwargs.items()}
        if "statics" in on_meta:
            on_meta["statics"] = tuple(_META if isinstance(x, Device) else x for x in on_meta["statics"])
        holders = {id(t.elem): t for t in fakes}
        made = func(*tree_map_only(FakeTensor, _elem, args), **tree_map_only(FakeTensor, _elem, on_meta))
        constant = self._computed(func, args, kwargs, fakes, known, made)

        def wrap(x: Any) -> Any:
            return holders[id(x)] if id(x) in holders else self._fake(x, device, constant)
        made = tree_map_only(Tensor, wrap, made)
        if writes(func):
            for t in fakes:
                _follow(t)
        return made

    def _computed(self, func: OpOverload, args: tuple, kwargs: dict, fakes: list, known: bool, made: Any) -> Tensor | None:
        """A small result of known numbers as a number."""
        if writes(func):
            for t in fakes:
                if any(t is a for a in args[:1]) or any(t is x for x in kwargs.values()):
                    t.constant = None
            return None
        if not known or not isinstance(made, Tensor) or made.numel() > _KEPT or not _repeats(func):
            return None
        return func(*tree_map_only(FakeTensor, _data, args), **tree_map_only(FakeTensor, _data, kwargs))

    def _taken(self, x: Any) -> Any:
        return self.from_tensor(x) if isinstance(x, Tensor) and not isinstance(x, FakeTensor) else x

    def _device(self, func: OpOverload, fakes: list, kwargs: dict) -> Any:
        """Where a result is: where the call says, else where the tensors are. Numbers on the CPU go with any other."""
        if kwargs.get("device") is not None:
            return kwargs["device"]
        found, number = None, False
        for t in fakes:
            alone = t.fake_device.type == "cpu" and not t.ndim
            if found is None or number and t.fake_device != found:
                found, number = t.fake_device, alone
            elif t.fake_device == found:
                number = number and alone
            elif not alone:
                raise FakeTensorDeviceMismatchError(f"Expected all tensors to be on the same device, but found at least two devices, {found} and {t.fake_device}!")
        return Device("cpu") if found is None else found

    def _fake(self, x: Tensor, device: Any, constant: Tensor | None = None) -> FakeTensor:
        if isinstance(x, FakeTensor):
            return x
        return FakeTensor(self, x if x.device.type == "meta" else x.to("meta"), device, constant)

    def _constant(self, t: Tensor, device: Any = None) -> FakeTensor:
        """A tensor that a program made of numbers."""
        if isinstance(t, FakeTensor):
            return t
        return FakeTensor(self, _without_data(t), t.device if device is None else device, t.detach() if t.numel() <= _KEPT else None)


class FakeTensorConverter:
    """Which fake tensor is which tensor's."""

    def __init__(self) -> None:
        self._made: weakref.WeakValueDictionary[int, FakeTensor] = weakref.WeakValueDictionary()
        self._known: dict[int, weakref.ref] = {}

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, *rest: Any, **named: Any) -> FakeTensor:
        """t without its data; UnsupportedFakeTensorException for sparse and quantized ones."""
        if t._sparse:
            raise UnsupportedFakeTensorException("torchlike: fake tensors are strided: sparse and quantized tensors have none")
        key, known = id(t), self._known.get(id(t))
        made = self._made.get(key)
        if made is not None and known is not None and known() is t:
            return made
        with without_modes():
            made = FakeTensor(fake_mode, t.elem if isinstance(t, FakeTensor) else _without_data(t), t.device)
            if isinstance(t, Parameter):
                made._is_param = True
            if t.requires_grad:
                made.requires_grad_()
                if not t.is_leaf:
                    before, grad_mode.enabled = grad_mode.enabled, True
                    try:
                        made = made.clone()
                    finally:
                        grad_mode.enabled = before
            if t.is_leaf and t.grad is not None:
                made.grad = self.from_real_tensor(fake_mode, t.grad)
        self._made[key] = made
        self._known[key] = weakref.ref(t, lambda _, known=self._known, key=key: known.pop(key, None))
        return made


def _without_data(t: Tensor) -> Tensor:
    return empty_strided(tuple(t.shape), tuple(t.stride()), dtype=t.dtype, device=_META)


def _placed(given: Any) -> Device:
    """A device, which need not be there, with its number."""
    device = Device(given)
    return named_device(Device(device.type, 0) if device.index is None and device.type not in ("cpu", "meta") else device)


def _elem(t: FakeTensor) -> Tensor:
    return t.elem


def _data(t: FakeTensor) -> Tensor:
    return t.constant


@functools.cache
def writes(func: OpOverload) -> bool:
    """Whether an operator writes into an argument."""
    schema = getattr(func, "_schema", None)
    return schema is not None and schema.is_mutable


@functools.cache
def _repeats(func: OpOverload) -> bool:
    """Whether an operator makes the same of the same."""
    return not any(tag.name.startswith("nondeterministic") for tag in func.tags)


def _follow(t: FakeTensor) -> None:
    """t after a write that may have changed its shape (`resize_`, `t_`)."""
    if t.shape != t.elem.shape or t.stride() != t.elem.stride():
        t._value = Outline(aval(tuple(t.elem.shape), t.dtype, t._value.aval.device), META_ARRAY)
        t._layout = Layout(tuple(t.elem.shape), tuple(t.elem.stride()), t.elem.storage_offset())


def _shown(x: Any) -> str:
    if isinstance(x, Tensor) and not isinstance(x, FakeTensor):
        return _plain_shown(x)
    return "[" + ", ".join(map(_shown, x)) + "]" if isinstance(x, list) else str(x)


def _text(t: FakeTensor) -> str:
    facts = [] if t.fake_device.type == "cpu" else [f"device='{t.fake_device}'"]
    facts.append(f"size=({', '.join(map(str, t.shape))}{',' * (t.ndim == 1)})")
    if t.dtype is not get_default_dtype():
        facts.append(f"dtype={t.dtype}")
    if t.grad_fn is not None:
        facts.append(f"grad_fn=<{type(t.grad_fn).__name__}>")
    elif t.requires_grad:
        facts.append("requires_grad=True")
    text = f"FakeTensor(..., {', '.join(facts)})"
    return f"Parameter({text})" if isinstance(t, Parameter) else text


def _plain_shown(x: Tensor) -> str:
    named = "" if x.dtype in (get_default_dtype(), int64, bool_) else f", dtype={x.dtype}"
    text = f"tensor([...], size=({', '.join(map(str, x.shape))}{',' * (x.ndim == 1)}){named}{', requires_grad=True' if x.requires_grad else ''})"
    return f"Parameter containing:\n{text}" if isinstance(x, Parameter) else text


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """A block without the mode that makes fake tensors, if there is one."""
    found = next((m for m in reversed(_leaves.state.stack) if isinstance(m, FakeTensorMode)), None)
    before, _leaves.state.stack = _leaves.state.stack, tuple(m for m in _leaves.state.stack if not isinstance(m, FakeTensorMode))
    modes, overriding.modes = overriding.modes, tuple(m for m in overriding.modes if not isinstance(m, _Factories))
    try:
        yield found
    finally:
        _leaves.state.stack, overriding.modes = before, modes


def is_fake(x: object) -> bool:
    """Whether x is a fake tensor, or a wrapper that holds one."""
    if isinstance(x, FakeTensor):
        return True
    if isinstance(x, Tensor) and hasattr(type(x), "__tensor_flatten__"):
        return any(is_fake(getattr(x, name)) for name in x.__tensor_flatten__()[0])
    return False
