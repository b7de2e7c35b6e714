"""Many systems of two to four equations side by side: LAPACK is called for one after the other, which takes six times as long."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np

LARGEST, MANY = 4, 1 << 8  # equations, and columns of the right-hand side; systems from which on this pays


def are_small(a, b) -> bool:
    """Whether `solve_small` serves these matrices a and right-hand sides b, whose batch dimensions are equal."""
    n, columns = b.shape[-2:]
    return a.dtype.kind == "f" and 1 < n <= LARGEST and 0 < columns <= LARGEST and a.size >= MANY * n * n


def solve_small(a, b) -> list:
    """[x with a x = b, 1-based position of a zero pivot or 0], by elimination with LAPACK's choice of pivots."""
    n, columns = b.shape[-2:]
    left, right = (jnp.moveaxis(m.reshape(-1, *m.shape[-2:]), 0, -1) for m in (a, b))
    rows = [[left[i, j] for j in range(n)] for i in range(n)]
    made = [[right[i, j] for j in range(columns)] for i in range(n)]
    position = jnp.zeros(left.shape[-1], np.int32)
    for k in range(n):
        for i in range(k + 1, n):  # the largest comes up
            larger = abs(rows[i][k]) > abs(rows[k][k])
            for m in (rows, made):
                m[k], m[i] = ([jnp.where(larger, q, p) for p, q in zip(m[k], m[i])], [jnp.where(larger, p, q) for p, q in zip(m[k], m[i])])
        position = jnp.where((position == 0) & (rows[k][k] == 0), k + 1, position)
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [p if j <= k else p - factor * q for j, (p, q) in enumerate(zip(rows[i], rows[k]))]  # what is below the diagonal is not read again
            made[i] = [p - factor * q for p, q in zip(made[i], made[k])]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            made[k] = [p - rows[k][j] * q for p, q in zip(made[k], made[j])]
        made[k] = [p / rows[k][k] for p in made[k]]
    out = jnp.stack([x for row in made for x in row], -1)
    return [out.reshape(b.shape), position.reshape(a.shape[:-2])]
