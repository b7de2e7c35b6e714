"""Compiled products of one row: a linear layer with a bias, and attention of one query, as when text is generated token by token.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/one_row.py [--repeats 100] [--out benchmarks/results/one_row.md]

torchlike, real torch eager and `jax.jit` of the formula run in turn in one process; times are medians in microseconds, everything included.
"""
from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402

SHAPES = ((768, 768), (768, 3072), (3072, 768))
KEYS = (128, 512)
HEADS, SIZE = 12, 64


def linear(torch, x, w, b):
    return torch.nn.functional.linear(x, w, b)


def attention(torch, q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def formula(f):
    """f by hand in JAX."""
    import jax
    if f is linear:
        return jax.jit(lambda x, w, b: x @ w.T + b)
    return jax.jit(lambda q, k, v: jax.nn.softmax(q @ k.swapaxes(-1, -2) / SIZE**0.5, axis=-1) @ v)


def row(name: str, f, by_hand, shapes, repeats: int) -> str:
    import jax.numpy as jnp
    import torch as theirs

    import torchlike as ours
    theirs.set_num_threads(1)
    arrays = [theirs.randn(shape).numpy() for shape in shapes]
    a, b, c = [ours.tensor(x) for x in arrays], [theirs.tensor(x) for x in arrays], list(map(jnp.asarray, arrays))

    def run_theirs():
        with theirs.no_grad():
            return f(theirs, *b).numpy()
    runs = (lambda: f(ours, *a).numpy(), run_theirs, lambda: by_hand(*c).block_until_ready())
    times: list[list[float]] = [[], [], []]
    for k in range(repeats + 10):
        for run, taken in zip(runs, times):
            start = time.perf_counter()
            run()
            if k >= 10:
                taken.append(time.perf_counter() - start)
    us = [1e6 * statistics.median(taken) for taken in times]
    return f"| {name} | {us[0]:.0f} | {us[1]:.0f} | {us[2]:.0f} | {us[0] / us[1]:.2f} | {us[0] / us[2]:.2f} |"


def cases() -> Iterator[tuple]:
    for inputs, outputs in SHAPES:
        yield f"linear, {inputs} to {outputs}", linear, formula(linear), [(1, inputs), (outputs, inputs), (outputs,)]
    for keys in KEYS:
        yield f"attention, {HEADS} heads of {SIZE}, {keys} keys", attention, formula(attention), [(1, HEADS, n, SIZE) for n in (1, keys, keys)]


def main(doc: str, cases: Callable[[], Iterable[tuple]], repeats: int) -> None:
    """Print the table of cases: what, `f(torch, *tensors)`, by hand in JAX, the tensors' shapes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--out")
    options = parser.parse_args()
    from torchlike._core.program import tier
    lines = ["| what | torchlike | torch | jax.jit | torchlike / torch | torchlike / jax.jit |", "|---|---|---|---|---|---|"]
    with tier("compiled"):
        lines += [row(*case, options.repeats) for case in cases()]
    report(doc, lines, options.out)


if __name__ == "__main__":
    main(__doc__, cases, 100)
