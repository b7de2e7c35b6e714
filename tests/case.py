"""The vocabulary of the case table: tensor specifications, samples and cases, and how a case is called.

Nothing here knows which library runs: every function takes the `torch` module (real torch or torchlike) it shall use.
"""
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Any

import numpy as np

ALL_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
              "complex64", "complex128")
INT_DTYPES = ("uint8", "int8", "int16", "int32", "int64")
REAL_DTYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class TensorSpec:
    """A tensor described without a library. `kind`: uniform, distinct (a shuffled range), spd, data (given literally).

    `layout`: contiguous, transposed (last two), strided (every second element), expanded (first dimension),
    channels_last.
    `sweep`: takes part in the dtype sweep; by default those written as float32 do.
    """
    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    kind: str = "uniform"
    data: Any = None
    layout: str = "contiguous"
    grad: bool = True
    sweep: bool = True

    @property
    def differentiable(self) -> bool:
        return self.grad and self.dtype.startswith(("float", "bfloat", "complex"))


@dataclass(frozen=True)
class Name:
    """A dotted name of the library that runs, such as a dtype: `Name("float32")`."""
    path: str


@dataclass(frozen=True)
class Sample:
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One row of the table. Which variants (method, `f_`, `out=`, vmap) exist is asked of real torch, not written down;
    a flag set to False says that the variant makes no sense for this row. `strides`: exact strides must agree."""
    name: str
    samples: tuple[Sample, ...]
    fn: Callable | None = None
    errors: tuple[Sample, ...] = ()
    grad: bool = True
    gradgrad: bool = True
    method: bool = True
    inplace: bool = True
    out: bool = True
    vmap: bool = True
    dtypes: tuple[str, ...] = ()
    strides: bool = False
    values: bool = True
    tol: float = 1.0
    tag: str = ""

    @property
    def id(self) -> str:
        return self.name + (f"-{self.tag}" if self.tag else "")

    @property
    def leaf(self) -> str:
        return self.name.rsplit(".", 1)[-1]


def t(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0, **more: Any) -> TensorSpec:
    return TensorSpec(shape, dtype, low, high, **more)


def ints(*shape: int, low: int = 0, high: int = 5, dtype: str = "int64", **more: Any) -> TensorSpec:
    return TensorSpec(shape, dtype, low, high, **{"sweep": False, **more})


def bools(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "bool", sweep=False)


def pos(*shape: int, low: float = 0.25, high: float = 3.0, **more: Any) -> TensorSpec:
    return TensorSpec(shape, low=low, high=high, **more)


def cplx(*shape: int, **more: Any) -> TensorSpec:
    return TensorSpec(shape, "complex64", **{"sweep": False, **more})


def distinct(*shape: int, **more: Any) -> TensorSpec:
    return TensorSpec(shape, kind="distinct", **more)


def lit(data: Any, dtype: str = "float32", **more: Any) -> TensorSpec:
    return TensorSpec(np.shape(data), dtype, kind="data", data=data, **{"sweep": False, **more})


def s(*args: Any, **kwargs: Any) -> Sample:
    return Sample(args, kwargs)


def case(name: str, *samples: Sample, **flags: Any) -> Case:
    return Case(name, samples, **flags)


# ------------------------------------------------------------------------------------------------- building inputs
def array(spec: TensorSpec, seed: int) -> np.ndarray:
    """The values of a specification; bfloat16 ones as float32 (NumPy has no bfloat16)."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype("float32" if spec.dtype == "bfloat16" or spec.dtype.startswith("float8") else spec.dtype)
    if spec.kind == "data":
        return np.array(spec.data, dtype=dtype).reshape(spec.shape)
    if spec.kind == "distinct":
        count = int(np.prod(spec.shape))
        steps = rng.permutation(count) if dtype.kind in "ui" else rng.permutation(count) / 4 - 2
        return steps.reshape(spec.shape).astype(dtype)
    if spec.kind == "spd":
        root = rng.uniform(-1, 1, spec.shape)
        if dtype.kind == "c":
            root = root + 1j * rng.uniform(-1, 1, spec.shape)
        return (root @ np.swapaxes(root, -1, -2).conj() + 2 * np.eye(spec.shape[-1])).astype(dtype)
    if dtype.kind == "b":
        return rng.random(spec.shape) < 0.5
    if dtype.kind in "ui":
        low = max(ceil(spec.low), 0) if dtype.kind == "u" else ceil(spec.low)
        return rng.integers(low, max(floor(spec.high), low) + 1, spec.shape).astype(dtype)
    values = rng.uniform(spec.low, spec.high, spec.shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(spec.low, spec.high, spec.shape)
    return np.asarray(values, dtype=dtype)


def tensor(torch: Any, spec: TensorSpec, seed: int) -> Any:
    """A fresh leaf tensor of the specification, with its layout."""
    shape = list(spec.shape)
    if spec.layout == "transposed":
        shape[-1], shape[-2] = shape[-2], shape[-1]
    elif spec.layout == "strided":
        shape[-1] *= 2
    elif spec.layout == "expanded":
        shape[0] = 1
    x = torch.from_numpy(np.asarray(array(replace(spec, shape=tuple(shape)), seed)))
    if str(x.dtype).split(".")[-1] != spec.dtype:
        x = x.to(getattr(torch, spec.dtype))
    if spec.layout == "transposed":
        x = x.transpose(-1, -2)
    elif spec.layout == "strided":
        x = x[..., ::2]
    elif spec.layout == "expanded":
        x = x.expand(spec.shape)
    elif spec.layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
    return x.detach()


def specs(tree: Any) -> Iterator[TensorSpec]:
    """The tensor specifications of a sample's arguments, in order."""
    if isinstance(tree, TensorSpec):
        yield tree
    elif isinstance(tree, Sample):
        yield from specs((tree.args, tree.kwargs))
    elif isinstance(tree, dict):
        yield from specs(tuple(tree.values()))
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from specs(item)


def fill(torch: Any, tree: Any, tensors: Iterator[Any]) -> Any:
    """`tree` with every specification replaced by the next of `tensors`, and every Name looked up."""
    if isinstance(tree, TensorSpec):
        return next(tensors)
    if isinstance(tree, Name):
        return lookup(torch, tree.path)
    if isinstance(tree, dict):
        return {key: fill(torch, value, tensors) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(fill(torch, item, tensors) for item in tree)
    return tree


def retyped(tree: Any, change: Callable[[TensorSpec], TensorSpec]) -> Any:
    """`tree` with every specification changed."""
    if isinstance(tree, TensorSpec):
        return change(tree)
    if isinstance(tree, Sample):
        return Sample(retyped(tree.args, change), retyped(tree.kwargs, change))
    if isinstance(tree, dict):
        return {key: retyped(value, change) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(retyped(item, change) for item in tree)
    return tree


def with_dtype(sample: Sample, dtype: str) -> Sample:
    return retyped(sample, lambda spec: replace(spec, dtype=dtype) if spec.sweep and spec.dtype == "float32" else spec)


def in_double(sample: Sample) -> Sample:
    wider = {"float32": "float64", "complex64": "complex128"}
    return retyped(sample, lambda spec: replace(spec, dtype=wider.get(spec.dtype, spec.dtype)))


def seed_of(*parts: Any) -> int:
    return zlib.crc32("/".join(map(str, parts)).encode())


# ------------------------------------------------------------------------------------------------------- calling
def lookup(torch: Any, path: str) -> Any:
    """The object a row names: `torch.add`, `Tensor.view`, `nn.functional.relu`, `linalg.norm`."""
    found = torch
    for part in path.removeprefix("torch.").split("."):
        found = getattr(found, part)
    return found


def function_of(torch: Any, row: Case) -> Callable:
    """The row as a function of its arguments. A property of Tensor (`Tensor.mT`) is a function of the tensor."""
    if row.fn is not None:
        return lambda *args, **kwargs: row.fn(torch, *args, **kwargs)
    if row.name.startswith("Tensor."):
        def member(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = getattr(self, row.leaf)
            return found(*args, **kwargs) if callable(found) else found
        return member
    return lookup(torch, row.name)


def inputs(torch: Any, row: Case, sample: Sample, requires_grad: bool = False) -> list[Any]:
    """Fresh tensors for the sample; the same numbers at every call and in every library."""
    made = []
    for index, spec in enumerate(specs(sample)):
        x = tensor(torch, spec, seed_of(row.id, index, spec.shape))
        made.append(x.requires_grad_() if requires_grad and spec.differentiable else x)
    return made


def call(torch: Any, function: Callable, sample: Sample, tensors: list[Any]) -> Any:
    feed = iter(tensors)
    args = fill(torch, sample.args, feed)
    return function(*args, **fill(torch, sample.kwargs, feed))
