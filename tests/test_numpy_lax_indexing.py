"""The NumPy evaluation of gathers, scatters and indexed updates equals XLA's."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from numpy_lax_check import agree, floats, integers

ROW, COLUMN, WILD = np.array([2, 0, 2]), np.array([1, 4, 0]), np.array([5, -7, 1, 0, -1])


def test_indexing():
    x, i3 = floats(3, 5, 4), integers(3, 2, 4, low=0, high=5)
    one = floats(1, 6, 2)
    modes = ["clip", "fill", "promise_in_bounds"]
    cases = {
        "rows": (lambda x, i: x[i], x, ROW),
        "columns": (lambda x, i: x[:, i], x, COLUMN),
        "last": (lambda x, i: x[..., i], x, ROW),
        "pairs": (lambda x, i, j: x[i, j], x, ROW, COLUMN),
        "apart": (lambda x, i, j: x[i, :, j], x, ROW, ROW),
        "all three": (lambda x, i, j: x[i, j, i], x, ROW, COLUMN),
        "outer": (lambda x, i, j: x[i[:, None], j], x, ROW, COLUMN),
        "with slice": (lambda x, i: x[i, 1:3], x, ROW),
        "stepped": (lambda x, i: x[::2, i, 1], x, COLUMN),
        "one": (lambda x, i: x[i], x, np.int64(2)),
        "negative": (lambda x, i: x[i, -1], x, np.int64(-1)),
        "new axis": (lambda x, i: x[i, None, :, 2], x, ROW),
        "matrix of rows": (lambda x, i: x[i], x, np.stack([ROW, ROW])),
        "size 1": (lambda x, i: x[:, i], one, np.array([[3, 5]])),
        "uint8": (lambda x, i: x[i], x, ROW.astype(np.uint8)),
        "uint64": (lambda x, i: jnp.take(x, i, 0, mode="clip"), x, ROW.astype(np.uint64)),
        "along 1": (lambda x, i: jnp.take_along_axis(x, i, 1), x, i3),
        "along 2": (lambda x, i: jnp.take_along_axis(x, i, 2), x, np.tile(ROW, (3, 5, 1))),
        "along 0": (lambda x, i: jnp.take_along_axis(x, i, 0), x, np.tile(np.array([[[1]], [[2]]]), (1, 5, 4))),
        "diagonal": (lambda x: jnp.diagonal(x, 0, 0, 1), x),
        "one wild": (lambda x, i: x.at[i].get(mode="fill"), x, np.int64(9)),
        "transposed": (lambda x, i: x.T[i], x, ROW),
        "vmapped": (lambda x, i: jax.vmap(lambda r, k: r[k])(x, i), x, ROW),
        "vmapped slice": (lambda x, i: jax.vmap(lambda r, k: lax.dynamic_slice(r, (k, 0), (2, 3)))(x, i), x, COLUMN),
        "vmapped last": (lambda x, i: jax.vmap(lambda r, k: r[k], (2, 0), 1)(x, i), x, np.array([0, 1, 4, 2])),
        "onehot": (lambda i: jax.nn.one_hot(i, 6), COLUMN),
    }
    for mode in modes[:2]:
        cases[f"take {mode}"] = lambda x, i, m=mode: jnp.take(x, i, 1, mode=m), x, WILD
        cases[f"pairs {mode}"] = lambda x, i, j, m=mode: x.at[i, j].get(mode=m), x, WILD, WILD[::-1]
        cases[f"along {mode}"] = (
            lambda x, i, m=mode: jnp.take_along_axis(x, i, 1, mode=m),
            x,
            np.tile(WILD[:, None], (3, 1, 4)),
        )
        cases[f"ints {mode}"] = lambda x, i, m=mode: jnp.take(x, i, 0, mode=m), integers(3, 2), WILD
    agree(cases, grad_scale=1.0)


def _window_gather(mode, batching=False):
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 3), collapsed_slice_dims=(1,), start_index_map=(2, 0))
    if batching:
        numbers = lax.GatherDimensionNumbers(
            offset_dims=(0,),
            collapsed_slice_dims=(),
            start_index_map=(1,),
            operand_batching_dims=(0, 2),
            start_indices_batching_dims=(1, 0),
        )
        return lambda x, i: lax.gather(x, i, numbers, (1, 2, 1), mode=mode)
    return lambda x, i: lax.gather(x, i, numbers, (2, 1, 2), mode=mode)


@pytest.mark.parametrize("mode", [lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP])
def test_general_gather_and_scatter(mode):
    x, i = floats(3, 5, 4), integers(4, 3, 2, low=-2, high=5)
    cases = {"window": (_window_gather(mode), x, i), "batching": (_window_gather(mode, True), x, i[..., :1])}
    for name in ("scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=(1, 3), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(2, 0)
        )
        cases[name] = (
            lambda x, i, u, f=getattr(lax, name), n=numbers: f(
                x, i, lax.stop_gradient(u) if f is lax.scatter_mul else u, n, mode=mode
            ),
            x,
            i,
            floats(4, 2, 3, 2),
        )
    agree(cases, scale=1.0, grad_scale=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16, ml_dtypes.bfloat16])
def test_updates(dtype):
    x, i3 = (10 * floats(3, 5, 4)).astype(dtype), np.argsort(floats(3, 5, 4), 1)
    u = (10 * floats(3, 5, 4, seed=5)).astype(dtype)
    cases = {}
    for op in ("set", "add", "multiply", "min", "max"):

        def at(x, where, u, op=op, **kw):
            return getattr(x.at[where], op)(u, **kw)

        some = np.array([2, 0, 1]) if op == "set" else ROW
        cases |= {
            f"{op} rows": (lambda x, i, u, at=at: at(x, i, u), x, some, u),
            f"{op} columns": (lambda x, i, u, at=at: at(x, (slice(None), i), u[:, :3]), x, np.array([1, 4, 0]), u),
            f"{op} pairs": (lambda x, i, j, u, at=at: at(x, (i, j), u[:, 0]), x, ROW, COLUMN, u),
            f"{op} one": (lambda x, i, u, at=at: at(x, i, u[0]), x, np.int64(1), u),
            f"{op} slice": (lambda x, u, at=at: at(x, (slice(1, 3), slice(None, None, 2)), u[:2, :3]), x, u),
            f"{op} dropped": (
                lambda x, i, u, at=at: at(x, i, u[np.array([0, 1, 2, 0])], mode="drop"),
                x,
                np.array([7, 1, -9, 0]),
                u,
            ),
            f"{op} dropped one": (lambda x, i, u, at=at: at(x, i, u[0], mode="drop"), x, np.int64(7), u),
            f"{op} clipped": (lambda x, i, u, at=at: at(x, i, u[:2], mode="clip"), x, np.array([7, 1]), u),
        }
    cases["along"] = lambda x, i, u: jnp.put_along_axis(x, i, u, 1, inplace=False), x, i3, u
    agree(cases, ulps=2, scale=1.0)


def test_update_gradients():
    x, u = floats(3, 5, 4), floats(3, 4, seed=5)
    cases = {
        op: (lambda x, u, i, j, op=op: getattr(x.at[i, j], op)(u), x, u, ROW, COLUMN)
        for op in ("set", "add", "min", "max")
    }
    agree(
        cases | {"dynamic": (lambda x, u, i: lax.dynamic_update_slice(x, u[None], (i, i, i)), x, u, np.int32(1))},
        grad_scale=1.0,
    )
