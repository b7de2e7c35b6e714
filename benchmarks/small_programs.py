"""Loops that look at each result of a few small operations: microseconds of processor time a round, beside real torch.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/small_programs.py [--out benchmarks/results/small_programs.md]

Each library runs the loops in a process of its own, in turns; the least time of all turns counts, once the loop has run for a while. `first sights` are
programs that do not return: another shape in each round.
"""
from __future__ import annotations

import argparse
import gc
import importlib
import itertools
import json
import sys
import time
from pathlib import Path

import numpy

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402
from turns import LIBRARIES, least  # noqa: E402


def three_operations(torch, n: int) -> None:
    x = torch.ones(3, 4)
    for _ in range(n):
        (x * 2 + 1).sum(1).tolist()


def rows(torch, n: int) -> None:
    x = torch.rand(n, 4)
    for i in range(n):
        (x[i] * 2).sum().item()


def elements(torch, n: int) -> None:
    x = torch.rand(n)
    for i in range(n):
        x[i].item()


def sums_by_element(torch, n: int) -> None:
    a, b, c = torch.rand(n), torch.rand(n), torch.zeros(n)
    for i in range(n):
        c[i] = a[i] + b[i]


def products_by_element(torch, n: int) -> None:
    a, b, c = torch.rand(10, n // 100), torch.rand(n // 100, 10), torch.zeros(10, 10)
    for i in range(10):
        for j in range(10):
            for k in range(n // 100):
                c[i, j] += a[i, k] * b[k, j]


def sums_by_row(torch, n: int) -> None:
    rows, places, sums = torch.rand(n, 10), torch.randint(0, 27, (n,)).tolist(), torch.zeros(27, 10)
    for i in range(n):
        sums[places[i]] += rows[i]


def padded_rows(torch, n: int) -> None:
    lengths = torch.randint(1, 50, (n,)).tolist()
    sequences = [torch.arange(k) for k in range(50)]
    for first in range(0, n, 32):
        batch, mask = torch.zeros(32, 50, dtype=torch.int64), torch.zeros(32, 50, dtype=torch.bool)
        for i, k in enumerate(lengths[first:first + 32]):
            batch[i, :k] = sequences[k]
            mask[i, :k] = True
        batch.numpy(), mask.numpy()


def images(torch, n: int) -> None:
    """What torchvision's ToTensor and Normalize do to each image of a batch."""
    image = numpy.zeros((32, 32, 3), numpy.uint8)
    for _ in range(n // 32):
        batch = []
        for _ in range(32):
            x = torch.from_numpy(image.copy()).view(32, 32, 3).permute(2, 0, 1).contiguous().to(torch.float32).div(255)
            mean, deviation = torch.as_tensor((0.5, 0.5, 0.5)), torch.as_tensor((0.2, 0.2, 0.2))
            assert not (deviation == 0).any()
            batch.append(x.clone().sub_(mean.view(-1, 1, 1)).div_(deviation.view(-1, 1, 1)))
        torch.stack(batch).numpy()


def new_tensors(torch, n: int) -> None:
    for i in range(n):
        a = torch.tensor([float(i), 2.0, 3.0])
        float(((a + 1) * a)[0])


def comparisons(torch, n: int) -> None:
    a = torch.rand(10)
    for i in range(n):
        torch.equal(a, a + i), torch.allclose(a, a), bool((a > 0.5).any())


def branches(torch, n: int) -> None:
    x = torch.rand(8)
    for _ in range(n):
        y = x * 2
        (y.max() if y[0] > y[1] else y.min()).item()


def policy(torch, n: int) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    x = torch.rand(1, 4)
    with torch.no_grad():
        for _ in range(n):
            torch.distributions.Categorical(logits=model(x)).sample().item()


def moved_distribution(torch, n: int) -> None:
    p, moved, b = torch.rand(n // 50, 51), torch.zeros(n // 50, 51), torch.rand(n // 50) * 49
    for j in range(50):
        low = (b + 0.01 * j).floor().long()
        for i in range(n // 50):
            moved[i, low[i]] += p[i, j] * (low[i].float() - b[i])


def distances_of_words(torch, n: int) -> None:
    a, b, d = torch.randint(0, 4, (n // 20,)), torch.randint(0, 4, (20,)), torch.zeros(n // 20 + 1, 21)
    for i in range(1, n // 20 + 1):
        for j in range(1, 21):
            d[i, j] = torch.min(torch.stack([d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]).float()]))


def advantages(torch, n: int) -> None:
    rewards, values, gains, last = torch.rand(n + 1, 4), torch.rand(n + 1, 4), torch.zeros(n + 1, 4), 0
    for k in reversed(range(n)):
        gains[k] = last = rewards[k] + 0.99 * values[k + 1].reshape(1, -1) - values[k] + 0.94 * last


_sizes = itertools.count(1)


def first_sights(torch, n: int) -> None:
    for size in itertools.islice(_sizes, n):
        (torch.ones(3, size) * 2 + 1).sum(1).tolist()


LOOPS = {f.__name__.replace("_", " "): (f, n) for f, n in (
    (three_operations, 2000), (rows, 1000), (elements, 5000), (sums_by_element, 3000), (products_by_element, 3000),
    (sums_by_row, 3000), (padded_rows, 3200), (images, 320), (new_tensors, 1000), (comparisons, 500), (branches, 500), (policy, 300),
    (moved_distribution, 1000), (distances_of_words, 400), (advantages, 500), (first_sights, 300))}


def serve(library: str) -> None:
    """For each line read, run every loop once: microseconds a round."""
    torch = importlib.import_module(library)
    torch.manual_seed(0)
    gc.disable()  # a collection of all that was imported would hit one loop or another
    for _ in sys.stdin:
        found = {}
        for name, (loop, n) in LOOPS.items():
            loop(torch, n)
            start = time.process_time()
            loop(torch, n)
            found[name] = [1e6 * (time.process_time() - start) / n]
        gc.collect()
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--serve")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    best = least(HERE, arguments.turns)
    lines = ["| loop | torch us | torchlike us | ratio |", "|---|---|---|---|"]
    for loop in LOOPS:
        theirs, ours = (best[name][loop][0] for name in LIBRARIES)
        lines.append(f"| {loop} | {theirs:.1f} | {ours:.1f} | {ours / theirs:.1f} |")
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
