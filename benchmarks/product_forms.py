"""Forms in which XLA's CPU backend can be given a product: x^T y of random shapes, and layers on few rows. `ops/cpu_products.py` chooses among them.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/product_forms.py [--seconds 60] [--out benchmarks/results/product_forms.md]

For each form: the geometric mean of its time over that of the best one for the shape, and the worst. Shapes and forms take turns in one process.
"""
from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402

SIZES = (10, 16, 32, 64, 100, 128, 192, 256, 300, 384, 512, 768, 784, 1024, 2048)
BATCHES = (0, 0, 0, 2, 4, 8, 16, 48)
ROWS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
LEAST, MOST, ELEMENTS = 1e6, 6e8, 4e6  # arithmetic of a product, and elements of an array


def forms():
    from jax.lax import optimization_barrier as apart

    from torchlike.ops import cpu_products
    turn = cpu_products.swap
    columns = {"x^T y as XLA has it": lambda x, y: turn(x) @ y, "x transposed apart": lambda x, y: apart(turn(x)) @ y,
               "y and the result transposed apart": lambda x, y: turn(apart(apart(turn(y)) @ x)), "as chosen": lambda x, y: cpu_products.of_columns(x, [y])[0]}
    rows = {"x w^T as XLA has it": lambda x, w: x @ w.T, "(w x^T)^T": lambda x, w: apart(w @ x.T).T, "as chosen": cpu_products.of_rows}
    return columns, rows


def shapes(draw: random.Random, few: bool):
    while True:
        if few:
            m, k, n = draw.choice(ROWS), draw.choice(SIZES), draw.choice(SIZES)
            x, y = (m, k), (n, k)
            batch = 1
        else:
            b, k, m, n = draw.choice(BATCHES), *(draw.choice(SIZES) for _ in range(3))
            lead, batch = (b,) if b else (), max(b, 1)
            x, y = (*lead, k, m), (*lead, k, n)
        if LEAST < 2 * batch * k * m * n < MOST and batch * max(k * m, k * n, m * n) < ELEMENTS:
            yield x, y, 2 * batch * k * m * n


def table(kinds: dict, draw: random.Random, few: bool, seconds: float) -> list[str]:
    import jax
    import numpy as np
    random_numbers = np.random.default_rng(0)
    ratios: dict[str, list[float]] = {name: [] for name in kinds}
    end = time.monotonic() + seconds
    for x_shape, y_shape, work in shapes(draw, few):
        if time.monotonic() > end:
            break
        x, y = (jax.device_put(random_numbers.standard_normal(shape, np.float32)) for shape in (x_shape, y_shape))
        runs = {name: jax.jit(f) for name, f in kinds.items()}
        best = dict.fromkeys(runs, float("inf"))
        count = max(1, int(2e-3 / (work / 6e10)))
        for _ in range(5):
            for name, run in runs.items():
                run(x, y).block_until_ready()
                start = time.perf_counter()
                for _ in range(count):
                    last = run(x, y)
                last.block_until_ready()
                best[name] = min(best[name], time.perf_counter() - start)
        quickest = min(best.values())
        for name, taken in best.items():
            ratios[name].append(taken / quickest)
    some = next(iter(ratios.values()))
    return [f"| {len(some)} shapes | mean | worst |", "|---|---|---|",
            *[f"| {name} | {statistics.geometric_mean(of):.2f} | {max(of):.1f} |" for name, of in ratios.items()], ""]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60, help="for each of the two tables")
    parser.add_argument("--out")
    options = parser.parse_args()
    columns, rows = forms()
    draw = random.Random(0)
    report(__doc__, [*table(columns, draw, False, options.seconds), *table(rows, draw, True, options.seconds)], options.out)


if __name__ == "__main__":
    main()
