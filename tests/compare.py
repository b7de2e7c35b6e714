"""What a library did, in neutral terms (`observe`, `attempt`), and how two such outcomes compare (`differences`)."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RTOL = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-10, "complex64": 1e-5, "complex128": 1e-10}


@dataclass(frozen=True)
class Seen:
    """A tensor as seen from outside."""
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    contiguous: bool
    requires_grad: bool
    values: np.ndarray
    attributes: tuple[str, ...] = ()  # what its __dict__ shows


@dataclass(frozen=True)
class Raised:
    kind: str
    message: str


@dataclass(frozen=True)
class Difference:
    """`kind` is what a report groups by: missing, raised, not raised, class, type, dtype, shape, stride, grad, value"""
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def is_tensor(x: Any) -> bool:
    return hasattr(x, "requires_grad") and hasattr(x, "detach")


def leaf_name(x: Any) -> str:
    return str(x).split(".")[-1]


def to_numpy(x: Any) -> np.ndarray:
    x = x.detach()
    name = leaf_name(x.dtype)
    if getattr(x, "_is_zerotensor", bool)():  # torch's symbolic zero gradient has no memory to read
        return np.zeros(tuple(x.shape), name)
    if name == "bfloat16" or name.startswith("float8"):
        x = x.float()
    elif name.startswith("complex"):
        x = x.resolve_conj()
    return np.array(x.numpy())


def observe(x: Any) -> Any:
    """A neutral tree of anything an operation returns."""
    if is_tensor(x):
        if leaf_name(getattr(x, "layout", "strided")) != "strided":
            x = x.to_dense()
        return Seen(leaf_name(x.dtype), tuple(x.shape), tuple(x.stride()), x.is_contiguous(), x.requires_grad,
            to_numpy(x), tuple(vars(x)))
    if isinstance(x, np.ndarray):
        return Seen(str(x.dtype), x.shape, (), True, False, x)
    if isinstance(x, dict):
        return {key: observe(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        fields = getattr(x, "_fields", None) or [n for n in dir(type(x)) if _is_structseq_field(type(x), n)]
        seen = [observe(item) for item in x]
        return {"fields": sorted(fields), "items": seen} if fields else seen
    if x is None or isinstance(x, (bool, int, float, complex, str, Raised, Seen)):
        return x
    return leaf_name(x)


def _is_structseq_field(cls: type, name: str) -> bool:
    return hasattr(cls, "n_sequence_fields") and type(getattr(cls, name)).__name__ == "member_descriptor"


def raised(error: BaseException) -> Raised:
    return Raised(type(error).__name__.lstrip("_"), str(error))


def attempt(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """The observed result of a call, or what it raised."""
    try:
        return observe(function(*args, **kwargs))
    except Exception as error:  # every class is a legitimate outcome here: the other library must show the same
        return raised(error)


def accidental(outcome: Any) -> bool:
    """An error that is an accident of torch's CPU build: a kernel missing for a dtype, a failed assertion."""
    return isinstance(outcome, Raised) and any(words in outcome.message for words in (
        "not implemented for", "could not be found for", "INTERNAL ASSERT FAILED"))


def differences(want: Any, got: Any, *, strides: bool | None = False, values: bool = True, tol: float = 1.0,
                where: str = "result", none_is_zero: bool = False, floor: float = 0.0) -> list[Difference]:
    """Everything in which `got` departs from `want`, both outcomes of `attempt`.

    `strides`: True, exactly equal; False, contiguous where torch's are; None, of no interest. `floor`: the least
    relative tolerance of floating values, for results that went through a coarser dtype than their own.
    """
    again = {"strides": strides, "values": values, "tol": tol, "none_is_zero": none_is_zero, "floor": floor}
    if isinstance(got, Raised) and not isinstance(want, Raised):
        missing = got.kind in ("AttributeError", "ImportError") or "unexpected keyword" in got.message
        return [Difference("missing" if missing else "raised", f"{where} {got.kind}: {got.message[:300]}")]
    if isinstance(want, Raised):
        if not isinstance(got, Raised):
            return [Difference("not raised", f"{where} should raise {want.kind}: {want.message[:200]}")]
        if want.kind != got.kind:
            return [Difference("class", f"{where} raises {got.kind} ({got.message[:200]}), "
                                        f"torch {want.kind} ({want.message[:200]})")]
        return []
    if none_is_zero and (want is None) != (got is None):
        other = want if got is None else got
        zero = isinstance(other, Seen) and not np.any(np.where(np.isnan(other.values), 0, other.values))
        return [] if zero else [Difference("grad", f"{where} is None on one side and not zero on the other")]
    if isinstance(want, Seen) and isinstance(got, Seen):
        return list(_tensor_differences(want, got, where, strides, values, tol, floor))
    if type(want) is not type(got):
        return [Difference("type", f"{where} is {_short(got)}, torch {_short(want)}")]
    if isinstance(want, dict):
        if want.keys() != got.keys():
            return [Difference("type", f"{where} has {list(got)}, torch {list(want)}")]
        return [d for key in want for d in differences(want[key], got[key], where=f"{where}.{key}", **again)]
    if isinstance(want, list):
        if len(want) != len(got):
            return [Difference("type", f"{where} has {len(got)} items, torch {len(want)}")]
        return [d for i, (w, g) in enumerate(zip(want, got)) for d in differences(w, g, where=f"{where}[{i}]", **again)]
    if isinstance(want, (float, complex)):
        return [] if close(want, got, 1e-5 * tol) else [Difference("value", f"{where} is {got!r}, torch {want!r}")]
    return [] if want == got else [Difference("value", f"{where} is {_short(got)}, torch {_short(want)}")]


def _tensor_differences(want: Seen, got: Seen, where: str, strides: bool | None, values: bool, tol: float,
                        floor: float):
    if want.dtype != got.dtype:
        yield Difference("dtype", f"{where} is {got.dtype}, torch {want.dtype}")
    if want.shape != got.shape:
        yield Difference("shape", f"{where} is {got.shape}, torch {want.shape}")
        return
    if strides and want.stride != got.stride:
        yield Difference("stride", f"{where} is {got.stride}, torch {want.stride} (shape {want.shape})")
    elif strides is False and want.contiguous and not got.contiguous:
        yield Difference("stride", f"{where} is not contiguous: {got.stride}, torch {want.stride}")
    if want.requires_grad != got.requires_grad:
        yield Difference("grad", f"{where}.requires_grad is {got.requires_grad}, torch {want.requires_grad}")
    if want.attributes != got.attributes:
        yield Difference("value", f"{where}.__dict__ has {got.attributes}, torch {want.attributes}")
    if values and not close(want.values, got.values, max(RTOL[want.dtype], floor) * tol if want.dtype in RTOL else 0.0):
        yield Difference("value", f"{where} is {_short(got)}, torch {_short(want)}")


def close(want: Any, got: Any, rtol: float) -> bool:
    """Equal to `rtol`, relative to each element and to the largest finite one (rounding of sums scales with it)."""
    want, got = np.asarray(want), np.asarray(got)
    if not rtol:
        return bool(np.array_equal(want, got))
    wide = np.complex128 if "c" in want.dtype.kind + got.dtype.kind else np.float64
    want, got = want.astype(wide), got.astype(wide)
    finite = np.abs(want[np.isfinite(want)])
    scale = min(float(finite.max()), 1e30) if finite.size else 0.0
    return bool(np.allclose(got, want, rtol=rtol, atol=rtol * max(scale, 0.1), equal_nan=True))


def _short(x: Any) -> str:
    if isinstance(x, Seen):
        return np.array2string(x.values, threshold=12, precision=6, max_line_width=400).replace("\n", "")
    return repr(x)[:200]
