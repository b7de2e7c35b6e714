"""Results written into tensors that are there, by functions in place and by `out=`, with torch's checks."""
from __future__ import annotations

import warnings
from collections.abc import Sequence

from ._core import dtype as dt
from ._core.aval import NUMBERS, broadcast_shapes, result_dtype
from ._core.errors import class_name
from ._core.grad_mode import mode
from ._core.layout import extent, is_dense, partly_same
from ._core.registry import OPS
from ._out import refuse_dtype
from ._plainly import refuses_out
from ._resize import keep_place, resize
from ._tensor import Tensor, _plain_copy, apply


def refuse_cast(self: Tensor, args: tuple) -> None:
    """torch's error when the common type of an in-place operation's operands does not fit into self."""
    avals = [a._value.aval if isinstance(a, Tensor) else NUMBERS.get(type(a)) for a in (self, *args)]
    same_shape(self, broadcast_shapes(*(a.shape for a in avals if a is not None)))
    common = result_dtype(*avals)
    if not dt.can_cast(common, self.dtype):
        raise RuntimeError(f"result type {common.short} can't be cast to the desired output type {self.dtype.short}") from None


def same_shape(written: Tensor, shape: tuple) -> None:
    """torch's error where what is to be written has another shape, the operands' broadcast."""
    if written._value.aval.shape != shape:
        raise RuntimeError(f"output with shape {list(written.shape)} doesn't match the broadcast shape {list(shape)}")


def write_into(self: Tensor, result: Tensor, stays: bool = False, repeats: bool = False) -> Tensor:
    """In-place assignment with torch's checks of shape and dtype. A result without a derivative ends the gradient, or, as after torch's
    logical functions, leaves self where it `stays` in the graph. `repeats` lets several elements of self share their memory."""
    mine, new = self._value.aval, result._value.aval
    if mine.shape != new.shape:
        same_shape(self, broadcast_shapes(mine.shape, new.shape))
        result = result.expand(mine.shape)
    if mine.dtype is not new.dtype:
        if not dt.can_cast(new.dtype, mine.dtype):
            raise RuntimeError(f"result type {new.dtype.short} can't be cast to the desired output type {mine.dtype.short}")
        result = result.to(mine.dtype)
    if result._edge is None and self._edge is not None and mode.enabled:
        result = _plain_copy(result) if stays else apply(OPS["overwrite"], (self, result))
        if stays:
            result._edge, result._out = self._edge, self._out
    return self._assign(_plain_copy(result) if result is self else result, repeats)


_SHARED = ("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
           "Please clone() the tensor before performing the operation.")


def check_partly_same(written: Tensor, sources) -> None:
    """torch's error for a write that would change what it still has to read."""
    st = written._storage
    for x in sources:
        if isinstance(x, Tensor) and x._storage is st and x is not written and x.dtype is written.dtype and partly_same(written._strided(), x._strided()):
            raise RuntimeError(_SHARED)


def check_apart(written: Tensor, sources) -> None:
    """torch's error for a write into anything that is read, by functions which refuse that also where it is the same elements."""
    st = written._storage
    for source in sources:
        for x in source if isinstance(source, (list, tuple)) else (source,):
            if not isinstance(x, Tensor) or x is not written and (st is None or x._storage is not st or x.dtype is not written.dtype):
                continue
            a, b = written._strided(), x._strided()
            if x is written and x.numel() or is_dense(a) and is_dense(b) and a.offset < extent(b) and b.offset < extent(a):  # as torch looks
                raise RuntimeError(_SHARED)


def fill_out(out: Tensor, result: Tensor, said: bool = True, name: str = "", place: int = 0) -> Tensor:
    """Write result number `place` of function `name` into an `out=` tensor, resizing it as torch does; that is said, as torch says it, unless
    a factory does it."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name and f'{name}(): '}argument 'out' must be Tensor, not {class_name(out)}")
    if out._sparse and result._sparse:
        return out.become(result, name)
    if mode.enabled and (out.requires_grad or result.requires_grad):
        whose = f"{name.removesuffix('_of_all')}(): " if name else ""
        raise RuntimeError(f"{whose}functions with out=... arguments don't support automatic differentiation, but one of the "
                           "arguments requires grad.")
    if refuses_out:
        refuses_out[0](name.removesuffix("_of_all"), out, result)
    have, new = out._value.aval, result._value.aval
    if have.dtype is not new.dtype:
        refuse_dtype(name, place, new.dtype, have.dtype)
        result = result.to(have.dtype)
    if have.shape != new.shape:
        if have.numel and said:
            warnings.warn(f"An output with one or more elements was resized since it had shape {list(have.shape)}, which does "
                          f"not match the required output shape {list(new.shape)}. This behavior is deprecated, and in a future PyTorch release "
                          "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, "
                          "to zero elements with t.resize_(0).", stacklevel=3)
        out._check_write()
        layout = result._layout if result._storage is None else None
        if out._storage is None:
            out._value, out._layout, out._writes = result._current(), layout, out._writes + 1
            keep_place(out)
            return out
        resize(out, new.shape, None if layout is None else layout.strides)
    return out._assign(result)


def fill_outs(outs: Sequence[Tensor], results: tuple, name: str) -> tuple | None:
    """`fill_out` of several results; the outputs, in torch's type for them. What copies views has none."""
    targets = tuple(outs)
    if len(targets) != len(results):
        raise TypeError(f"{name}(): expected {len(results)} tensors in out, got {len(targets)}")
    for place, (out, result) in enumerate(zip(targets, results)):
        fill_out(out, result, name=name, place=place)
    if not hasattr(results, "_fields"):
        return None if name.endswith("_copy") else targets
    return getattr(type(results), "into_out", type(results))(*targets)
