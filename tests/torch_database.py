"""PyTorch's own database of operations and modules (torch.testing._internal), read for its sample inputs.

An entry gives a function of torch and samples for it. `subject_of` finds the function of the library under test, `converted`
turns a sample into its tensors: the same memory, strides and requirement of gradients.
"""
import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.opinfo import core

# For each sample it looks through the stack's source files for a unittest.TestCase: three quarters of the time of these tests, and there is none.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

OPERATIONS = {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db}
MODULES = {entry.module_cls.__name__: entry for entry in module_db}
NAMESPACES = ("", "nn.functional", "linalg", "special", "fft", "Tensor", "_C._nn")
BY_BITS = {torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8}  # NumPy has no such types


def lookup(library: Any, path: str) -> Any:
    return functools.reduce(getattr, filter(None, path.split(".")), library)


class Unconverted(Exception):
    """A sample that the library under test has no counterpart of."""


class Converter:
    """Samples of torch as samples of another library; each tensor once."""

    def __init__(self, subject: Any):
        self.subject, self.tensors = subject, {}

    def __call__(self, x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            if id(x) not in self.tensors:
                self.tensors[id(x)] = self._tensor(x)
            return self.tensors[id(x)]
        if isinstance(x, (torch.dtype, torch.memory_format, torch.layout)):
            return lookup(self.subject, str(x).removeprefix("torch."))
        if isinstance(x, torch.device):
            return self.subject.device(str(x))
        if isinstance(x, torch.Generator):
            return self.subject.Generator().manual_seed(x.initial_seed())
        if isinstance(x, (tuple, list)):
            parts = [self(part) for part in x]
            return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        if isinstance(x, dict):
            return {key: self(value) for key, value in x.items()}
        if isinstance(x, types.FunctionType):
            return translated(x, self.subject)
        if callable(x) and (path := path_of(x)):
            return lookup(self.subject, path)
        if type(x).__module__.startswith("torch"):
            return self._object(x)
        return x

    def _object(self, x: Any) -> Any:
        if dataclasses.is_dataclass(x):
            return getattr(self.subject.nn, type(x).__name__)(**{field.name: self(getattr(x, field.name)) for field in dataclasses.fields(x)})
        if not isinstance(x, torch.nn.PairwiseDistance):
            raise Unconverted(type(x).__name__)
        return self.subject.nn.PairwiseDistance(x.norm, x.eps, x.keepdim)

    def _tensor(self, x: torch.Tensor) -> Any:
        if x.layout != torch.strided or x.ndim > 64:  # NumPy's most
            raise Unconverted(f"{x.layout} of {x.ndim} dimensions")
        if x.is_meta:
            return self.subject.empty(tuple(x.shape), dtype=self(x.dtype), device="meta")
        memory = x.detach().resolve_conj().resolve_neg()
        strides = memory.stride()
        n = 1 + sum((size - 1) * stride for size, stride in zip(memory.shape, strides)) if memory.numel() else 0
        kind, contiguous = memory.dtype, memory.is_contiguous()
        memory = (memory if contiguous else memory.as_strided((n,), (1,))).clone()
        made = self.subject.from_numpy(memory.view(BY_BITS.get(kind, kind)).numpy())
        if kind in BY_BITS:
            made = made.view(self(kind))
        if not contiguous:
            made = made.as_strided(tuple(x.shape), strides)
        made = made.detach()
        if isinstance(x, torch.nn.Parameter):
            return self.subject.nn.Parameter(made, requires_grad=x.requires_grad)
        return made.requires_grad_() if x.requires_grad else made


def path_of(function: Any) -> str | None:
    """Where torch has a function: 'nn.functional.relu'."""
    name = getattr(function, "__name__", "")
    for namespace in NAMESPACES:
        for known in (name.removeprefix("_"), name):  # nn.functional.threshold calls itself _threshold
            if known and getattr(lookup(torch, namespace), known, None) is function:
                return f"{namespace}.{known}"
    return None


def translated(function: Callable, subject: Any) -> Callable:
    """A function of the database's own, with the other library in torch's place."""
    if function.__name__ == "freeze_rng_state":
        return subject.random.fork_rng

    def other(x: Any) -> Any:
        if x is torch:
            return subject
        if isinstance(x, types.ModuleType) and x.__name__.startswith("torch."):
            return lookup(subject, x.__name__.removeprefix("torch."))
        if isinstance(x, types.FunctionType) and x.__module__.startswith("torch.testing"):
            return translated(x, subject)
        if callable(x) and (path := path_of(x)):
            return lookup(subject, path)
        return x

    names = set(_names(function.__code__))
    scope = {name: other(value) if name in names else value for name, value in function.__globals__.items()}
    cells = function.__closure__ and tuple(types.CellType(other(cell.cell_contents)) for cell in function.__closure__)
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _names(code: types.CodeType):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def subject_of(op: Any, subject: Any) -> Callable:
    """The function of the library under test that an entry is about."""
    function = op.op
    if isinstance(function, functools.partial):
        return functools.partial(translated(function.func, subject), *function.args, **function.keywords)
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        return translated(function, subject)
    return lookup(subject, path_of(function) or (op.name if hasattr(subject, op.name.split(".")[0]) else f"Tensor.{op.name}"))


def tensors_in(x: Any) -> list:
    """The tensors of nested tuples, lists and dictionaries, of whichever library."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (tuple, list)):
        return [t for part in x for t in tensors_in(part)]
    return [x] if hasattr(x, "requires_grad") and hasattr(x, "detach") else []
