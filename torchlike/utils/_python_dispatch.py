"""torch.utils._python_dispatch: modes that stand before every leaf operation of the thread; classes of tensors that hold tensors."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .. import _leaves
from .._fields import ask
from .._tensor import Tensor
from ._pytree import tree_map_


class TorchDispatchMode:
    """Inside the block, leaf operations come as `__torch_dispatch__(self, func, types, args, kwargs)`: func is an operator of torch.ops.aten.

    Inside that method the mode is off and nothing is differentiated; the operations outside it are, with what the method returns.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it belongs to the machinery rather than to a program."""
        return False

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """A new one."""
        return cls(*args, **kwargs)

    def __enter__(self) -> TorchDispatchMode:
        _leaves.push(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _leaves.pop()


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls what was called."""

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    stack = _leaves.state.stack
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return list(_leaves.state.stack)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on."""
    return any(include_infra_modes or not one.is_infra_mode() for one in _leaves.state.stack)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    before, _leaves.state.stack = _leaves.state.stack, ()
    try:
        yield list(before)
    finally:
        _leaves.state.stack = before


class TensorWithFlatten(Protocol):
    """What a class has that says which tensors its instances hold, and how they are made of such."""

    def __tensor_flatten__(self) -> tuple[list[str], object]: ...

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Tensor], flatten_spec: object, outer_size: Any, outer_stride: Any) -> Tensor: ...


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether t is of a subclass that says which tensors it holds (`__tensor_flatten__`) and how it is made of them."""
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether t is such a subclass."""
    return issubclass(t, Tensor) and t is not Tensor and all(callable(getattr(t, name, None)) for name in ("__tensor_flatten__", "__tensor_unflatten__"))


def transform_subclass(t: Tensor, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None) -> Tensor:
    """t made anew of what `callback(name, tensor)` makes of the tensors that it holds."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    made = type(t).__tensor_unflatten__({name: callback(name, ask(t, name)) for name in names}, context, size, stride)
    if tuple(made.shape) != tuple(size):
        raise AssertionError(f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size}, but got: {made.shape}")
    if tuple(made.stride()) != tuple(stride):
        raise AssertionError(f"Expected return value from {type(t)}__tensor_unflatten__() to have stride equal to {stride}, but got: {made.stride()}")
    return made


def _letter(alias: Any) -> str | None:
    return None if alias is None or not alias.is_write else next(iter(alias.before_set))


def return_and_correct_aliasing(func: Callable, args: tuple, kwargs: dict, out: Any) -> Any:
    """What `__torch_dispatch__` returns for `func`: where that writes into an argument, the argument itself; else `out`.

    PyTorch also makes results of views share their input's storage. Here a tensor of such a class has no storage: what it holds has.
    """
    schema = getattr(func, "_schema", None)
    if schema is None:  # an operation of torchlike's own: it writes nothing
        return out
    wrong = []
    if not isinstance(out, (list, tuple)) and len(schema.returns) == 1 and func.is_view:
        tree_map_(lambda x: wrong.append(x) if not isinstance(x, (Tensor, type(None))) else None, out)
    if wrong:
        raise AssertionError(f"expected {func} to return a Tensor, but got a {type(wrong[0]).__name__}")
    if not schema.is_mutable:
        return out
    written = {}
    for i, a in enumerate(schema.arguments):
        if a.is_write:
            written[_letter(a.alias_info)] = args[i] if i < len(args) and not a.kwarg_only else kwargs[a.name]
    letters = [_letter(r.alias_info) for r in schema.returns]
    if not any(letters):
        return out
    if len(letters) == 1:
        return written[letters[0]]
    return type(out)(written.get(letter, x) for letter, x in zip(letters, out))
