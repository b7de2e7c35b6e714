"""`grouped_mm`: argument checks, choice of implementation, gradients."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from pallas_kernels import _check, _dispatch
from pallas_kernels._dispatch import Device, Impl
from pallas_kernels.grouped import reference
from pallas_kernels.grouped.tiles import Case


def grouped_mm(x: jax.Array, weight: jax.Array, group_sizes: jax.Array, *, impl: str | None = None) -> jax.Array:
    """Rows of x (M, K), sorted by group, times their group's matrix in weight (G, K, N): (M, N).

    group_sizes (G,) integers say how many rows each group has, in order; groups may be empty. Rows past the last group
    give 0 and get no gradient, rows that sizes ask for beyond M do not exist. Accumulates in float32. The gradients are
    grouped products too, to any order.
    """
    _check.arrays("grouped_mm", x=x, weight=weight, group_sizes=group_sizes)
    _check.integers("grouped_mm", group_sizes=group_sizes)
    if not jnp.issubdtype(x.dtype, jnp.floating) or weight.dtype != x.dtype:
        raise TypeError(f"grouped_mm: x and weight must have one floating dtype, got {x.dtype} and {weight.dtype}")
    if x.ndim != 2 or weight.ndim != 3 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"grouped_mm: x must be (M, K) and weight (G, K, N), got {x.shape} and {weight.shape}")
    if group_sizes.shape != weight.shape[:1]:
        raise ValueError(f"grouped_mm: group_sizes must have shape {weight.shape[:1]}, got {group_sizes.shape}")
    case = Case(*x.shape, weight.shape[2], weight.shape[0], str(x.dtype))
    if 0 in (case.rows, case.inner, case.columns, case.groups):
        return jnp.zeros((case.rows, case.columns), x.dtype)
    choice = _dispatch.choose("grouped_mm", IMPLEMENTATIONS, case, impl)
    name = choice.impl.name if choice.impl else None
    return _product(replace(case, interpret=choice.interpret), name, False, x, weight, group_sizes)


def _serve(which: str, case: Case, name: str | None, *arrays, **options):
    plain = partial(getattr(reference, which), case, **options)
    if name is None:
        return plain(*arrays)
    if name == "tpu":
        from pallas_kernels.grouped import tpu as module
    else:
        from pallas_kernels.grouped import gpu as module
    kernel = partial(getattr(module, which), case, **options)
    platforms = ("tpu",) if name == "tpu" else ("cuda",)
    return kernel(*arrays) if case.interpret else _dispatch.on_platforms(platforms, kernel, plain, *arrays)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _product(case: Case, name: str | None, transposed: bool, x, weight, sizes):
    return _serve("product", case, name, x, weight, sizes, transposed=transposed)


def _product_forward(case, name, transposed, x, weight, sizes):
    return _product(case, name, transposed, x, weight, sizes), (x, weight, sizes)


def _product_backward(case, name, transposed, residuals, gradient):
    x, weight, sizes = residuals
    rows = (gradient, x) if transposed else (x, gradient)
    return _product(case, name, not transposed, gradient, weight, sizes), _outer(case, name, *rows, sizes), None


_product.defvjp(_product_forward, _product_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _outer(case: Case, name: str | None, x, y, sizes):
    return _serve("outer", case, name, x, y, sizes)


def _outer_forward(case, name, x, y, sizes):
    return _outer(case, name, x, y, sizes), (x, y, sizes)


def _outer_backward(case, name, residuals, gradient):
    x, y, sizes = residuals
    return _product(case, name, True, y, gradient, sizes), _product(case, name, False, x, gradient, sizes), None


_outer.defvjp(_outer_forward, _outer_backward)


def _triton_supports(device: Device, case: Case) -> str | None:
    if case.dtype not in ("float32", "bfloat16", "float16"):
        return f"{case.dtype} is not supported"
    if device.platform == "cuda" and device.capability < 80:
        return f"compute capability {device.capability / 10} is under 8.0"
    size = max(case.rows * case.inner, case.rows * case.columns, case.groups * case.inner * case.columns)
    return None if size <= 2**31 else f"an array of {size} elements is over 2**31"


def _tpu_supports(device: Device, case: Case) -> str | None:
    if case.dtype not in ("float32", "bfloat16"):
        return f"{case.dtype} is not supported"
    return None


IMPLEMENTATIONS = (
    Impl("triton", ("cuda",), "pallas_kernels.grouped.gpu:product", _triton_supports, interpretable=True),
    Impl("tpu", ("tpu",), "pallas_kernels.grouped.tpu:product", _tpu_supports),
)
