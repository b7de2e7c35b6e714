"""assert_close: two numbers, tensors, or containers of them are equal within tolerances."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._public import FUNCTIONS as F
from .._tensor import Tensor

__all__ = ["assert_allclose", "assert_close"]

_TOLERANCES = {dt.float16: (1e-3, 1e-5), dt.bfloat16: (1.6e-2, 1e-5), dt.float32: (1.3e-6, 1e-5), dt.float64: (1e-7, 1e-7)}

_OLDER = {dt.float16: (1e-3, 1e-3), dt.float32: (1e-4, 1e-5), dt.float64: (1e-5, 1e-8)}  # assert_allclose's
_SPARSE = {"torch.sparse_coo": ("COO", ("_indices",)), "torch.sparse_csr": ("CSR", ("crow_indices", "col_indices")),
           "torch.sparse_csc": ("CSC", ("ccol_indices", "row_indices")), "torch.sparse_bsr": ("BSR", ("crow_indices", "col_indices")),
           "torch.sparse_bsc": ("BSC", ("ccol_indices", "row_indices"))}


class _Mismatch(Exception):
    """What differs, where in the containers, and as which class of error."""

    def __init__(self, error: type[Exception], text: str, where: tuple = ()) -> None:
        super().__init__(text)
        self.error, self.text, self.where = error, text, where


def _fail(text: str, error: type[Exception] = AssertionError):
    raise _Mismatch(error, text)


def _tolerances(dtypes, rtol, atol) -> tuple[float, float]:
    if rtol is not None:
        return rtol, atol
    return _greatest([_TOLERANCES.get(d.to_real() if d.category == dt.COMPLEX else d, (0.0, 0.0)) for d in dtypes])


def _greatest(found: list[tuple[float, float]]) -> tuple[float, float]:
    return max(r for r, _ in found), max(a for _, a in found)


def _allowed(bound: float, equal: bool) -> str:
    return "" if equal else f" (up to {bound} allowed)"


def _need_both(rtol, atol) -> None:
    if (rtol is None) != (atol is None):
        _fail(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}.", ValueError)


def _numbers(actual, expected, rtol, atol, equal_nan: bool, check_dtype: bool) -> None:
    _need_both(rtol, atol)
    if check_dtype and type(actual) is not type(expected):
        _fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    kinds = {int: dt.int64, float: dt.float64, complex: dt.complex128}
    rtol, atol = _tolerances([kinds[type(x)] for x in (actual, expected)], rtol, atol)
    if actual == expected or (equal_nan and actual != actual and expected != expected):
        return
    _number_mismatch(actual, expected, rtol, atol)


def _number_mismatch(actual, expected, rtol, atol) -> None:
    difference = abs(actual - expected)
    if np.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    equal = rtol == 0 and atol == 0
    relative = difference / abs(expected) if expected != 0 else float("inf")
    _fail(f"Scalars are not {'equal' if equal else 'close'}!\n\nExpected {expected} but got {actual}.\n"
          f"Absolute difference: {difference}{_allowed(atol, equal)}\nRelative difference: {relative}{_allowed(rtol, equal)}")


def _host(t: Tensor) -> np.ndarray:
    made = t.detach().resolve_conj().cpu()
    return (made.to(dt.float32) if made.dtype.itemsize <= 2 and made.dtype.category == dt.FLOAT else made).numpy()


def _worst(differences: np.ndarray, name: str, bound: float, equal: bool) -> str:
    worst = int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))
    at = tuple(map(int, np.unravel_index(worst, differences.shape)))
    return f"Greatest {name} difference: {differences.flat[worst].item()} at index {at}{_allowed(bound, equal)}"


def _tensors(actual: Tensor, expected: Tensor, rtol, atol, equal_nan: bool, check_device: bool, check_dtype: bool, check_layout: bool,
             check_stride: bool) -> None:
    _need_both(rtol, atol)

    def same(name: str, a, b) -> None:
        if a != b:
            _fail(f"The values for attribute '{name}' do not match: {a} != {b}.")
    same("shape", actual.shape, expected.shape)
    if check_layout:
        same("layout", actual.layout, expected.layout)
    if check_stride:
        same("stride()", actual.stride(), expected.stride())
    if check_device:
        same("device", actual.device, expected.device)
    if check_dtype:
        same("dtype", actual.dtype, expected.dtype)
    if actual.device.type == expected.device.type == "meta":  # nothing but that can differ
        return None
    rtol, atol = _tolerances((actual.dtype, expected.dtype), rtol, atol)
    if actual.dtype is not expected.dtype:
        common = dt.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    actual, expected = (x.dequantize() if x._sparse and x.is_quantized else x for x in (actual, expected))
    if not (actual._sparse or expected._sparse):
        return _values(actual, expected, rtol, atol, equal_nan)
    if actual.layout is not expected.layout:
        return _values(*(x.to_dense() if x._sparse else x for x in (actual, expected)), rtol, atol, equal_nan)
    kind, places = _SPARSE[str(actual.layout)]
    if kind == "COO" and actual.sparse_dim() != expected.sparse_dim():
        _fail(f"The number of sparse dimensions in sparse COO tensors does not match: {actual.sparse_dim()} != {expected.sparse_dim()}")
    if actual._nnz() != expected._nnz():
        _fail(f"The number of specified values in sparse {kind} tensors does not match: {actual._nnz()} != {expected._nnz()}")
    for place in places:
        _values(getattr(actual, place)(), getattr(expected, place)(), 0, 0, False, f"Sparse {kind} {place.strip('_')}")
    _values(*(x._values() if kind == "COO" else x.values() for x in (actual, expected)), rtol, atol, equal_nan, f"Sparse {kind} values")


def _values(actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool, name: str | None = None) -> None:
    """Strided tensors of one type, element by element; `name` says which part of a sparse one they are."""
    for bound, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            _fail(f"{bound} must be greater than or equal to zero, but got {value}", RuntimeError)
    a, b = _host(actual), _host(expected)
    if a.dtype.kind in "bu":
        a, b = a.astype(np.int64), b.astype(np.int64)
    exact = a.dtype.kind == "i" and rtol == atol == 0  # floating point does not tell all whole numbers apart
    ok = a == b if exact else np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if ok.all():
        return
    if name is None and not a.ndim:
        x, y = (bool(actual), bool(expected)) if actual.dtype is dt.bool_ else (a.item(), b.item())
        return _number_mismatch(x, y, rtol, atol)
    equal = rtol == 0 and atol == 0
    wrong = int(a.size - ok.sum())
    with np.errstate(all="ignore"):
        absolute = np.where(ok, 0, np.abs(a - b))
        relative = np.where(ok, 0, np.abs(a - b) / np.abs(b).astype(np.float32 if a.dtype.kind == "i" else absolute.dtype))
        if a.dtype.kind == "i":
            relative = relative.astype(np.float32)
    _fail(f"{name or 'Tensor-likes'} are not {'equal' if equal else 'close'}!\n\nMismatched elements: {wrong} / {a.size} ({wrong / a.size:.1%})\n"
          f"{_worst(absolute, 'absolute', atol, equal)}\n{_worst(relative, 'relative', rtol, equal)}")


def _within(key, run: Callable[[], None]) -> None:
    """run, whose mismatch happened at `key` of a container."""
    try:
        run()
    except _Mismatch as error:
        error.where = (key, *error.where)
        raise


def _compare(actual: Any, expected: Any, allow_subclasses: bool, options: dict[str, Any]) -> None:
    actual, expected = (x.item() if isinstance(x, np.generic) and x.dtype.kind in "biufc" else x for x in (actual, expected))

    def again(a, b) -> Callable[[], None]:
        return lambda: _compare(a, b, allow_subclasses, options)

    def both(kind) -> bool:
        return isinstance(actual, kind) and isinstance(expected, kind)
    if both(Sequence) and not isinstance(actual, str) and not isinstance(expected, str):
        if len(actual) != len(expected):
            _fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (a, b) in enumerate(zip(actual, expected)):
            _within(i, again(a, b))
    elif both(Mapping):
        missing, more = [k for k in expected if k not in actual], [k for k in actual if k not in expected]
        if missing or more:
            _fail(f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(missing)}\n"
                  f"Additional keys in the actual mapping: {sorted(more)}")
        for key in expected:
            _within(key, again(actual[key], expected[key]))
    elif actual is None or expected is None:
        if actual is not expected:
            _fail(f"None mismatch: {actual} is not {expected}")
    elif both(bool):
        if actual is not expected:
            _fail(f"Booleans mismatch: {actual} is not {expected}")
    elif both((int, float, complex)) and not isinstance(actual, bool) and not isinstance(expected, bool):
        _numbers(actual, expected, options["rtol"], options["atol"], options["equal_nan"], options["check_dtype"])
    elif (both(Tensor) or both(np.ndarray) and {actual.dtype.kind, expected.dtype.kind} <= set("biufc")) and (allow_subclasses or type(actual) is type(expected)):
        _tensors(*(x if isinstance(x, Tensor) else F["as_tensor"](x) for x in (actual, expected)), **options)
    else:
        _fail(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", TypeError)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere; the tolerances follow from the dtypes."""
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_device": check_device, "check_dtype": check_dtype,
               "check_layout": check_layout, "check_stride": check_stride}
    try:
        _compare(actual, expected, allow_subclasses, options)
        return
    except _Mismatch as error:
        found = error
    text = found.text
    if found.where:
        text += "\n\nThe failure occurred for item " + "".join(f"[{key!r}]" for key in found.where)
    if found.error is AssertionError and msg is not None:
        text = msg(text) if callable(msg) else msg
    raise found.error(text)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """Older: assert_close without checks of device and dtype."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
                  "`torch.testing.assert_close()` instead. "
                  "You can find detailed upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.", FutureWarning, stacklevel=2)
    actual, expected = (x if isinstance(x, Tensor) else F["tensor"](x) for x in (actual, expected))
    if rtol is None and atol is None:
        rtol, atol = _greatest([_OLDER.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)])
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False, msg=msg or None)
