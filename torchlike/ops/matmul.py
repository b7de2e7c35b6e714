"""Products of matrices: matmul and its kin, addmm forms, outer products, linear layers."""
from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np

from .._arguments import as_dim, need_tensor, need_tensors
from .._autocast import active as _autocast
from .._autocast import wrap as _follows_autocast
from .._core import dtype as dt
from .._core.arrays import sum_to
from .._core.aval import Aval, broadcast_shapes
from .._core.errors import class_name, not_implemented
from .._core.halves import widened
from .._core.history import warn
from .._core.registry import Elementwise, Op
from .._fields import Fields
from .._public import named, public
from .._tensor import Tensor, apply
from . import cpu_products, exact_products
from .elements import held, plain_number
from .operators import handed_on
from .pointwise import conj


def wide(xp, *arrays):
    """NumPy has no quick 16-bit products: take them in float32, as XLA's CPU backend does."""
    return [widened(a) for a in arrays] if xp is np else arrays


def _mm(xp, x, y):
    if xp is np and (x.dtype.itemsize < 4 or y.dtype.itemsize < 4):
        x, y = widened(x), widened(y)
    if x.dtype.kind in "iu":
        return exact_products.product(x, y) if xp is np else exact_products.product_xla(x, y)
    return xp.matmul(x, y)


def _unrounded_mm(xp, x, y):
    """The product, of 16-bit numbers in float32: as in torch, what is added to it comes before the rounding."""
    if xp is np or x.dtype.itemsize != 2:
        return _mm(xp, x, y)
    return xp.matmul(x, y, preferred_element_type=np.float32)


def _swap(x):
    return x.swapaxes(-1, -2)


def _float_mm(xp, x, y, plan):
    """x y of floats."""
    return cpu_products.product(x, y) if cpu_products.is_cpu(xp, plan) and cpu_products.serves(x, y) else _mm(xp, x, y)


def of_columns(xp, x, y, plan):
    """x^T y of floats: (..., k, m), (..., k, n) to (..., m, n)."""
    return all_of_columns(xp, x, [y], plan)[0]


def all_of_columns(xp, x, ys: list, plan) -> list:
    return cpu_products.of_columns(x, ys) if cpu_products.is_cpu(xp, plan) else [_mm(xp, _swap(x), y) for y in ys]


def _refuse_bools(a, b) -> None:
    if a.dtype is dt.bool_ and a.numel and b.numel:
        raise not_implemented("addmm_impl_cpu_", dt.bool_)


def _matmul_shape(a, b):
    _refuse_bools(a, b)
    if a.ndim == 1 and b.ndim == 1:
        return (), a.dtype
    if a.ndim == 1:
        return (*b.shape[:-2], b.shape[-1]), a.dtype
    if b.ndim == 1:
        return a.shape[:-1], a.dtype
    return (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype


def _matmul_vjp(xp, g, x, y, needs, plan):
    gx = gy = None
    x2, y2 = (x[None, :] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
    g2 = g
    if x.ndim == 1:
        g2 = xp.expand_dims(g2, -1 if y.ndim == 1 else -2)
    if y.ndim == 1:
        g2 = xp.expand_dims(g2, -1)
    if needs[0]:
        gx = sum_to(xp, _float_mm(xp, g2, conj(xp, _swap(y2)), plan), x2.shape).reshape(x.shape)
    if needs[1]:
        if y2.ndim == 2 and x2.ndim > 2:  # one product over all rows instead of a sum of products
            n = math.prod(x2.shape[:-1])
            gy = of_columns(xp, conj(xp, x2.reshape(n, x2.shape[-1])), g2.reshape(n, g2.shape[-1]), plan).reshape(y.shape)
        else:
            gy = sum_to(xp, of_columns(xp, conj(xp, x2), g2, plan), y2.shape).reshape(y.shape)
    return gx, gy


# torch.matmul folds, unfolds and transposes around torch.bmm; printed graphs name the last of that by the operands' dimensions
_LAST_NODE = {(1, 2): "SqueezeBackward4", (2, 3): "CloneBackward0", (2, 4): "CloneBackward0", (2, 5): "CloneBackward0"}
MATMUL = Op("matmul", _mm, shape=_matmul_shape, vjp=_matmul_vjp,
            torch_name=lambda plan: _LAST_NODE.get((plan.avals[0].ndim, plan.avals[1].ndim), "UnsafeViewBackward0"))
UNROUNDED = Op("unrounded_matmul", _unrounded_mm, shape=lambda a, b: (_matmul_shape(a, b)[0], dt.float32),
               vjp=lambda xp, g, x, y, needs, plan: _matmul_vjp(xp, g.astype(x.dtype), x, y, needs, plan))
_NAMED = {name: Op(name, _mm, shape=_matmul_shape, vjp=_matmul_vjp) for name in ("mm", "bmm", "mv", "dot")}


def _cpu_matmul(x, y):
    if min(x.ndim, y.ndim) < 2 or not cpu_products.serves(x, y):
        return NotImplemented
    return cpu_products.product(x, y)


@UNROUNDED.kernel_for("cpu")
def _cpu_unrounded(x, y):
    return cpu_products.unrounded(x, y) if cpu_products.takes_bfloat16(x) and x.ndim == y.ndim == 2 else NotImplemented


for _op in (MATMUL, _NAMED["mm"], _NAMED["bmm"]):
    _op.kernel_for("cpu")(_cpu_matmul)
_NAMED["mm"].asks = "mm", ("self", 0), ("mat2", 1)
MATMUL.asks = _NAMED["bmm"].asks = "bmm", ("self", 0), ("mat2", 1)
_NAMED["dot"].asks = "_dot", ("self", 0), ("tensor", 1)


def _same_dtype(a: Tensor, b: Tensor) -> None:
    """torch's errors, which go by the function that a product ends in."""
    if a._value.aval.dtype is b._value.aval.dtype:
        return
    if b.ndim == 1:
        if a.ndim == 1:
            raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {a.dtype.short} and {b.dtype.short}")
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {b.dtype.short}, {a.dtype.short}, and {b.dtype.short}")
    if a.ndim > 2 and b.ndim > 2:
        need_scalar_type(a, b)
    raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype.c_name} != {b.dtype.c_name}")


def need_scalar_type(a: Tensor, b: Tensor) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.short} but found {b.dtype.short}")


def _same_dtypes(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    """Of addmm."""
    if isinstance(mat1, Tensor) and isinstance(mat2, Tensor):
        for name, t in (("self", input), ("mat1", mat1)):
            if t.dtype is not mat2.dtype:
                raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {t.dtype.short} and {mat2.dtype.short}")


@public(out=True)
def matmul(input, other: Tensor) -> Tensor:
    """The matrix product, with torch's rules for vectors and batches."""
    a, b = input._value.aval, other._value.aval if isinstance(other, Tensor) else None
    if b is None:
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not {class_name(other)}")
    if not a.ndim or not b.ndim:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 1:
        _same_dtype(input, other)
    k1, k2 = a.shape[-1], b.shape[-2] if b.ndim > 1 else b.shape[0]
    if k1 != k2:
        if a.ndim == 1 and b.ndim == 1:
            raise RuntimeError(f"inconsistent tensor size, expected tensor [{k1}] and src [{k2}] to have the same number of elements, but got {k1} "
                               f"and {k2} elements respectively")
        m = math.prod(a.shape[:-1])
        if b.ndim == 1:
            raise RuntimeError(f"size mismatch, got input ({m}), mat ({m}x{k1}), vec ({k2})")
        if b.ndim == 2:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k1} and {k2}x{b.shape[-1]})")
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{math.prod(broadcast_shapes(a.shape[:-2], b.shape[:-2]))}, "
                           f"{k1}] but got: [{math.prod(broadcast_shapes(a.shape[:-2], b.shape[:-2]))}, {k2}].")
    _same_dtype(input, other)
    if a.ndim == 2 and b.ndim == 2:
        return apply(_NAMED["mm"], (input, other))
    if a.ndim == 1 and b.ndim == 1:
        return apply(_NAMED["dot"], (input, other))
    if a.ndim == 2 and b.ndim == 1:
        return apply(_NAMED["mv"], (input, other))
    return apply(MATMUL, (input, other))


@public(out=True)
def mm(input, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    return _mm_by(_NAMED["mm"], input, mat2)


def _mm_by(op: Op, input: Tensor, mat2: Tensor) -> Tensor:
    if not isinstance(mat2, Tensor):
        need_tensor(mat2, "mm", "'mat2' (position 2)")
    a, b = input._value.aval, mat2._value.aval
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"{'self' if a.ndim != 2 else 'mat2'} must be a matrix")
    _check_mm(input, mat2)
    return apply(op, (input, mat2))


def _check_mm(a: Tensor, b: Tensor) -> None:
    if a._value.aval.shape[1] != b._value.aval.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})")
    _same_dtype(a, b)


@public(out=True)
def bmm(input, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices."""
    return _bmm_by(_NAMED["bmm"], input, mat2)


def _bmm_by(op: Op, input: Tensor, mat2: Tensor) -> Tensor:
    if not isinstance(mat2, Tensor):
        need_tensor(mat2, "bmm", "'mat2' (position 2)")
    a, b = input._value.aval, mat2._value.aval
    if a.ndim != 3 or b.ndim != 3:
        raise RuntimeError(f"{'batch1' if a.ndim != 3 else 'batch2'} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
                           f"[{b.shape[0]}, {b.shape[1]}].")
    _same_dtype(input, mat2)
    return apply(op, (input, mat2))


@public(out=True)
def mv(input, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {1}, {input.ndim}, {vec.ndim}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({input.shape[0]}), mat ({input.shape[0]}x{input.shape[1]}), vec ({vec.shape[0]})")
    _same_dtype(input, vec)
    return apply(_NAMED["mv"], (input, vec))


@public(out=True)
def dot(input, tensor: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    _same_dtype(input, tensor)
    if input.shape != tensor.shape:
        n, m = input.shape[0], tensor.shape[0]
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} and {m} "
                           "elements respectively")
    return apply(_NAMED["dot"], (input, tensor))


@public(out=True)
def vdot(input, other: Tensor) -> Tensor:
    """dot with the first vector conjugated."""
    return named(dot(input.conj(), other), "VdotBackward0", input, other)


@public(out=True)
def inner(input, other: Tensor) -> Tensor:
    """Products summed over the last dimensions."""
    if not isinstance(other, Tensor):
        raise TypeError(f"inner(): argument 'other' (position 2) must be Tensor, not {class_name(other)}")
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}")
    return tensordot(input, other, ([-1], [-1]))


@public(out=True, names=("ger",))
def outer(input, vec2: Tensor) -> Tensor:
    """input[:, None] * vec2[None, :]."""
    for t, position in ((input, "self"), (vec2, "vec2")):
        if t.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {position}, but got {t.ndim}-D")
    return input.unsqueeze(1) * vec2.unsqueeze(0)


UNREAD = Elementwise("unread", lambda xp, x: xp.zeros_like(x), grads=(lambda xp, g: xp.zeros_like(g),))


def _add_product(input, product, beta, alpha) -> Tensor:
    """beta * input + alpha * product; with beta 0, input counts as zero even where it is NaN."""
    shape, whole = input._value.aval.shape, product._value.aval.shape
    if shape != whole and (len(shape) > len(whole) or any(a != b and a != 1 for a, b in zip(reversed(shape), reversed(whole)))):
        input.expand(whole)  # raises
    beta, alpha = plain_number(beta), plain_number(alpha)
    kind = max(input.dtype.category, product.dtype.category)
    if kind < dt.FLOAT:  # the factors become numbers of the elements' kind
        beta, alpha = (bool(beta), bool(alpha)) if kind == dt.BOOL else (int(beta), int(alpha))
    elif kind == dt.FLOAT and complex in (beta.__class__, alpha.__class__):
        beta, alpha = (held(x, product.dtype) for x in (beta, alpha))
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return apply(UNREAD, (input,)) + product if input.requires_grad else product
    return (input if beta == 1 else input * beta) + product


def _sum_with(input, by, name: str, a: Tensor, b: Tensor, beta, alpha) -> Tensor:
    """beta * input + alpha * (a @ b), of 16-bit numbers with one rounding in the end."""
    if not (isinstance(a, Tensor) and a.dtype.itemsize == 2 and a.dtype.category == dt.FLOAT and input.dtype is a.dtype):
        return _add_product(input, by(_NAMED[name], a, b), beta, alpha)
    return _add_product(input.float(), by(UNROUNDED, a, b), beta, alpha).to(a.dtype)


@public(inplace=True, out=True)
def addmm(input, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2)."""
    _same_dtypes(input, mat1, mat2)
    return named(_sum_with(input, _mm_by, "mm", mat1, mat2, beta, alpha), "AddmmBackward0", input, mat1, mat2)


@public(inplace=True, out=True)
def addmv(input, mat: Tensor, vec: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    if mat.ndim == 2 and vec.ndim == 1 and mat.shape[1] == vec.shape[0] and (input.dtype is not mat.dtype or input.dtype is not vec.dtype):
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {input.dtype.short}, {mat.dtype.short}, and {vec.dtype.short}")
    product = mv(mat, vec)
    if input.ndim > 1 or input.numel() not in (1, mat.shape[0]):
        raise RuntimeError(f"size mismatch, got input ({input.shape[0] if input.ndim else 1}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})")
    return named(_add_product(input, product, beta, alpha), "AddmvBackward0", input, mat, vec)


@public(inplace=True, out=True)
def baddbmm(input, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2)."""
    if input.dtype is not batch1.dtype:
        raise RuntimeError(f"Input dtypes must be the same, got: input {input.dtype.c_name}, batch1: {batch1.dtype.c_name}, batch2: "
                           f"{batch2.dtype.c_name}")
    return named(_sum_with(input, _bmm_by, "bmm", batch1, batch2, beta, alpha), "BaddbmmBackward0", input, batch1, batch2)


@public(inplace=True, out=True)
def addbmm(input, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta * input + alpha * the sum of batch1 @ batch2 over the batch."""
    _same_dtypes(input, batch1, batch2)
    return named(_add_product(input, bmm(batch1, batch2).sum(0, dtype=batch1.dtype), beta, alpha), "AddbmmBackward0", input, batch1, batch2)


@public(inplace=True, out=True)
def addr(input, vec1: Tensor, vec2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""
    for x, name in ((beta, "beta"), (alpha, "alpha")):
        if isinstance(x, (float, complex)) and all(t.dtype.category < dt.FLOAT for t in (input, vec1, vec2)):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
        if isinstance(x, bool) and not all(t.dtype is dt.bool_ for t in (input, vec1, vec2)):
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    return _add_product(input, outer(vec1, vec2), beta, alpha)


def linear_kernel(xp, x, w, b):
    product = _mm if b is None else _unrounded_mm
    if x.ndim > 2:
        y = product(xp, x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), w.T)
        y = y.reshape(*x.shape[:-1], w.shape[0])
    else:
        y = product(xp, x, w.T)
    if b is None:
        return y
    return y + b if x.dtype.itemsize != 2 else (y + b).astype(x.dtype)


def _linear_numpy(x, w, b=None):
    """As linear_kernel, by fewer steps: small layers' own time is less than that of a few calls."""
    if x.dtype.itemsize < 4 or x.ndim > 2:
        return linear_kernel(np, x, w, b)
    y = np.matmul(x, w.T)
    return y if b is None else np.add(y, b, out=y)


def _linear_vjp(xp, g, x, w, needs, plan):
    n = math.prod(x.shape[:-1])
    rows = g.reshape(n, g.shape[-1])
    gx = gw = gb = None
    if needs[0]:
        gx = _float_mm(xp, rows, conj(xp, w), plan).reshape(x.shape)
    if needs[1]:
        gw = of_columns(xp, rows, conj(xp, x.reshape(n, x.shape[-1])), plan)
    if len(needs) > 2 and needs[2]:
        gb = xp.sum(*wide(xp, rows), axis=0)
    return gx, gw, gb


def _linear_shape(x, w, b=None):
    _refuse_bools(x, w)
    return (*x.shape[:-1], w.shape[0]), x.dtype


LINEAR = Op("linear", linear_kernel, shape=_linear_shape, numpy=_linear_numpy, vjp=_linear_vjp,
            torch_name=lambda plan: "AddmmBackward0" if len(plan.avals[0].shape) == 2 else "ViewBackward0")
LINEAR.edge_order = 2, 0, 1
LINEAR.asks = "addmm", ("self", 2), ("mat1", 0), ("mat2", 1)
LINEAR_ALONE = Op("linear_alone", lambda xp, x, w: linear_kernel(xp, x, w, None), shape=_linear_shape, numpy=_linear_numpy, vjp=_linear_vjp,
                  torch_name=lambda plan: "MmBackward0" if len(plan.avals[0].shape) == 2 else "UnsafeViewBackward0")
LINEAR_ALONE.asks = _NAMED["mm"].asks


@LINEAR.kernel_for("cpu")
@LINEAR_ALONE.kernel_for("cpu")
def _cpu_linear(x, w, b=None):
    rows = math.prod(x.shape[:-1])
    if rows == 1 and b is not None:
        y = _unrounded_mm(jnp, w, x.reshape(-1))  # XLA is slow with the row first: benchmarks/one_row.py
    elif rows == 1 or not cpu_products.takes(x):
        return NotImplemented
    else:
        y = cpu_products.of_rows(x.reshape(rows, x.shape[-1]), w)
    y = y.reshape(*x.shape[:-1], w.shape[0])
    return (y if b is None else y + b).astype(x.dtype)


@_follows_autocast
def linear(input, weight, bias=None) -> Tensor:
    """input @ weight.T + bias: (*, in) to (*, out); weight (out, in), or (in,) for a single output."""
    if not (isinstance(input, Fields) and isinstance(weight, Fields) and
            _fits_linear(input._value.aval, weight._value.aval, None if bias is None else bias._value.aval)):
        return _odd_linear(input, weight, bias)
    return apply(LINEAR_ALONE, (input, weight)) if bias is None else apply(LINEAR, (input, weight, bias))


@functools.lru_cache(maxsize=4096)
def _fits_linear(x: Aval, w: Aval, b: Aval | None) -> bool:
    return (x.ndim > 0 and w.ndim == 2 and x.shape[-1] == w.shape[1] and x.dtype is w.dtype and
            (b is None or (b.shape == w.shape[:1] and b.dtype is x.dtype)))


def _odd_linear(input, weight, bias) -> Tensor:
    """A vector as weight, a bias that broadcasts, and torch's errors."""
    for t, name, i in ((input, "input", 1), (weight, "weight", 2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"linear(): argument '{name}' (position {i}) must be Tensor, not {class_name(t)}")
    x, w = input._value.aval, weight._value.aval
    if not x.ndim or not w.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {w.ndim}D")
    if w.ndim == 1:
        if bias is not None and (bias.ndim or x.ndim == 2):
            raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
        out = matmul(input, weight)
        return out if bias is None else out + bias
    if w.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {w.ndim}D")
    in_place = bias is not None and x.ndim > 2 and not input.is_contiguous()  # torch adds the bias to the finished product
    if bias is not None and not in_place:
        for name, t in (("self", bias), ("mat1", input)):
            if t.dtype is not w.dtype:
                raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {t.dtype.short} and {w.dtype.short}")
    if x.shape[-1] != w.shape[1]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({math.prod(x.shape[:-1])}x{x.shape[-1]} and {w.shape[1]}x{w.shape[0]})")
    if x.dtype is not w.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {x.dtype.c_name} != {w.dtype.c_name}")
    if bias is not None:
        b, out = bias._value.aval, (*x.shape[:-1], w.shape[0])
        if b.shape != (w.shape[0],) and (b.ndim > len(out) or any(m not in (1, n) for m, n in zip(b.shape[::-1], out[::-1]))):
            bias.expand(math.prod(out[:-1]), out[-1])  # raises, as of the product of matrices that torch makes of it
        if b.dtype is not x.dtype and in_place:
            return apply(LINEAR_ALONE, (input, weight)).add_(bias)
    return apply(LINEAR_ALONE, (input, weight)) + bias


@public(method=False, out=True)
def tensordot(a, b, dims=2) -> Tensor:
    """Products summed over the last `dims` dimensions of a and the first of b, or over listed pairs."""
    if isinstance(dims, (int, np.integer)) or (isinstance(dims, Tensor) and dims.numel() == 1):
        n = int(dims)
        if n < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={n}")
        if n > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={n}")
        da, db = list(range(-n, 0)), list(range(n))
    else:
        da, db = (list(d) if isinstance(d, (tuple, list)) else [d] for d in (dims.tolist() if isinstance(dims, Tensor) else dims))
    if len(da) != len(db):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    said = list(zip(da, db))
    da, db = [as_dim(d, a.ndim) for d in da], [as_dim(d, b.ndim) for d in db]
    for i, j, (k, m) in zip(da, db, said):
        if a.shape[i] == b.shape[j]:
            continue
        if 1 not in (a.shape[i], b.shape[j]):
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {k} and second has size {b.shape[j]} in dim {m}")
        if a.shape[i] == 1:  # repeated along the other's elements, whose sum it is multiplied with
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        else:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
    if a.ndim == b.ndim == len(da) == 1:
        return dot(a, b)
    fa, fb = [i for i in range(a.ndim) if i not in da], [i for i in range(b.ndim) if i not in db]
    rows, columns, k = [a.shape[i] for i in fa], [b.shape[i] for i in fb], math.prod(a.shape[i] for i in da)
    left = a.permute(fa + da).reshape(math.prod(rows), k) if a.ndim else a.reshape(1, 1)
    right = b.permute(db + fb).reshape(k, math.prod(columns)) if b.ndim else b.reshape(1, 1)
    return mm(left, right).reshape(rows + columns)


@public(method=False, out=True)
def chain_matmul(*matrices) -> Tensor:
    """The product of several matrices, in the cheapest order."""
    need_tensors(matrices)
    warn("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, whose argument is a list.", once=True)
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    return multi_dot(matrices)


def multi_dot(matrices) -> Tensor:
    """linalg.multi_dot: the cheapest order by dynamic programming."""
    matrices = list(matrices)
    n = len(matrices)
    need_tensors(matrices)
    if n == 1:
        return matrices[0]
    sizes = [m.shape[0] if m.ndim == 2 else 1 for m in matrices] + [matrices[-1].shape[1] if matrices[-1].ndim == 2 else 1]
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], cut[i][j] = min((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))

    def product(i, j):
        return matrices[i] if i == j else matmul(product(i, cut[i][j]), product(cut[i][j] + 1, j))
    return product(0, n - 1)


def _operator_matmul(self, other):
    if other.__class__ is Tensor and not _autocast[0]:  # the common cases in as little Python as possible
        a, b = self._value.aval, other._value.aval
        if a.ndim == 2 and a.dtype is b.dtype and 0 < b.ndim <= 2 and a.shape[1] == b.shape[0]:
            return apply(_NAMED["mm" if b.ndim == 2 else "mv"], (self, other))
    if isinstance(other, Tensor):
        return matmul(self, other)
    return handed_on("__matmul__", self, other) if hasattr(other, "__torch_function__") else NotImplemented


def _reflected_matmul(self, other):
    if isinstance(other, Tensor):
        return matmul(other, self)
    return handed_on("__rmatmul__", self, other) if hasattr(other, "__torch_function__") else NotImplemented


Tensor.__matmul__, Tensor.__rmatmul__ = _operator_matmul, _reflected_matmul
