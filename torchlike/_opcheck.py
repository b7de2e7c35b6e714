"""torch.library.opcheck: whether a program's own operation does what its schema, its function for shapes and its derivative say."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from . import library
from ._compile import compile
from ._ops import OpOverload, OpOverloadPacket
from ._tensor import Tensor
from .autograd.engine import grad
from .autograd.grad_mode import no_grad
from .ops.queries import allclose
from .testing import assert_close
from .utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten


class OpCheckError(Exception):
    """A check of an operation failed."""


class MetadataMismatchError(RuntimeError):
    """The function for shapes gives another one than the operation."""


def _definition(op: OpOverload) -> library.CustomOpDef | None:
    """That of an operator which the program registered."""
    return getattr(op, "definition", None)


def _written(op: Any) -> list[bool]:
    """For each parameter, whether the schema says that it is written."""
    text = str(op._schema)
    inside = text[text.index("(") + 1:text.rindex("->")].rstrip().removesuffix(")")
    return [bool(re.search(r"\(\w*!", part)) for part in re.split(r",\s*(?![^\[(]*[\])])", inside) if part.strip() != "*"]


def _copies(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The same arguments with tensors of their own, so that no check sees what the one before did."""
    return tree_map(lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x, (args, kwargs))


def _tensors(x: Any) -> list[Tensor]:
    return [y for y in tree_leaves(x) if isinstance(y, Tensor)]


def _schema(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    args, kwargs = _copies(args, kwargs)
    parameters = op._schema.arguments
    given = {**dict(zip([a.name for a in parameters], args)), **kwargs}
    before = {name: [t.detach().clone() for t in _tensors(x)] for name, x in given.items()}
    out = op(*args, **kwargs)
    written = dict(zip([a.name for a in parameters], _written(op)))
    for name, x in given.items():
        if written[name]:
            continue
        for old, new in zip(before[name], _tensors(x)):
            if not allclose(old, new.detach(), rtol=0, atol=0, equal_nan=True):
                raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
        for made in _tensors(out):
            if made.numel() and any(made is t or made.untyped_storage().data_ptr() == t.untyped_storage().data_ptr() for t in _tensors(x)):
                raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")


def _autograd_registration(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    """A kernel registered for a device whose own operations carry gradients would better be no operation: its gradients are not seen."""
    args, kwargs = _copies(args, kwargs)
    given = _tensors((args, kwargs))
    if not any(t.requires_grad for t in given) or (made := _definition(op)) is None or made._init_fn or made._backward or any(
            key == "composite" or key.startswith("Autograd") for key in made._kernels):
        return
    if any(t.requires_grad and all(t is not x for x in given) for t in _tensors(made._run(*args, **kwargs))):
        raise AssertionError(f"{made._qualname}: at least one output of this operator has requires_grad=True but the operator does not have an autograd kernel "
                             "defined at an autograd key (e.g. DispatchKey::Autograd).")


def _need_fake(op: Any, out: Any) -> None:
    made = _definition(op)
    if made is not None and made._fake is None and "composite" not in made._kernels and _tensors(out):
        raise RuntimeError(f"There was no fake impl registered for {made!r}. This is necessary for torch.compile/export/fx tracing to work. Please use "
                           f"`{made.__name__}.register_fake` to add an fake impl.")


def _fake(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    args, kwargs = _copies(args, kwargs)
    with no_grad():
        out = op(*args, **kwargs)
        _need_fake(op, out)
        shapes_only = tree_map(lambda x: x.detach().to("meta") if isinstance(x, Tensor) else x, (args, kwargs))
        with library.unknown_sizes() as unknown:
            fake = op(*shapes_only[0], **shapes_only[1]) if _tensors(out) else out
    made, said = _tensors(out), _tensors(fake)
    found = next((text for a, b in zip(made, said) if (text := _difference(a, b, unknown))), None)
    if found is None and len(made) != len(said):
        found = f"{len(made)} tensors and {len(said)}"
    if found:
        raise MetadataMismatchError(f"When comparing the output of {op} on FakeTensor and concrete Tensors, found mismatched tensor metadata: {found}")


def _difference(real: Tensor, fake: Tensor, unknown: set[int]) -> str | None:
    open_sizes = len(real.shape) == len(fake.shape) and any(n in unknown for n in fake.shape)
    if real.shape != fake.shape and not (open_sizes and all(n == m or m in unknown for n, m in zip(real.shape, fake.shape))):
        return f"Shapes {real.shape} and {fake.shape} are not equal!"
    if real.dtype is not fake.dtype:
        return f"Dtypes {real.dtype} and {fake.dtype} are not equal!"
    if open_sizes or not real.numel():
        return None
    for i, (n, a, b) in enumerate(zip(real.shape, real.stride(), fake.stride())):
        if n > 1 and a != b:
            return f"Stride mismatch! Strides are {real.stride()} and {fake.stride()} (mismatched at {i})!"
    return None


def _compiled(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    """The same results, writes and gradients by torch.compile, the first time and replayed."""
    leaves, structure = tree_flatten((args, kwargs))

    def call(*leaves: Any) -> Any:
        given, named = tree_unflatten(list(leaves), structure)
        return op(*given, **named)

    def outcome(f: Callable) -> list[Tensor]:
        copies = _copies(tuple(leaves), {})[0]
        wanted = [x for x in copies if isinstance(x, Tensor) and x.requires_grad]
        out = _tensors(f(*(x.view_as(x) if isinstance(x, Tensor) and x.requires_grad else x for x in copies)))
        sums = [t.sum() for t in out if t.requires_grad]
        return [t.detach() for t in (*out, *_tensors(copies), *(g for g in (grad(sum(sums), wanted, allow_unused=True) if sums else ()) if g is not None))]

    expected = outcome(call)
    _need_fake(op, expected[:1] if _returns(op) else [])
    compiled = compile(call)
    for _ in range(3):
        assert_close(outcome(compiled), expected, equal_nan=True, **close)


def _returns(op: Any) -> bool:
    text = str(op._schema)
    return "Tensor" in text[text.rindex("->"):]


_CHECKS: dict[str, Callable] = {"test_schema": _schema, "test_autograd_registration": _autograd_registration, "test_faketensor": _fake,
                                "test_aot_dispatch_static": _compiled, "test_aot_dispatch_dynamic": _compiled}


def opcheck(op: Any, args: tuple, kwargs: dict[str, Any] | None, test_utils: str | Sequence[str], raise_exception: bool, rtol: float | None,
            atol: float | None) -> dict[str, Any]:
    """See `torch.library.opcheck`."""
    if (rtol is None) != (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    if isinstance(op, library.CustomOpDef):
        op = op._opoverload
    elif isinstance(op, OpOverloadPacket):
        op = op.default
    if not isinstance(op, OpOverload):
        raise ValueError(f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}")
    names = tuple(_CHECKS) if test_utils == "ALL" else (test_utils,) if isinstance(test_utils, str) else test_utils
    if not isinstance(names, (tuple, list)) or not set(names) <= _CHECKS.keys():
        raise ValueError(f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {tuple(_CHECKS)} but it was not")
    found: dict[str, Any] = {}
    for name in names:
        try:
            _CHECKS[name](op, tuple(args), kwargs or {}, {} if rtol is None else {"rtol": rtol, "atol": atol})
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)") from error
            found[name] = error
    return found
