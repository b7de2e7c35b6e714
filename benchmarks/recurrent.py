"""LSTM, GRU and plain RNN on the CPU against real torch eager: inference, and training (forward and backward).

    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/recurrent.py [--repeats 60] [--out benchmarks/results/recurrent.md]

The two run in turn in one process, a call of each, on one core; a ratio is the median of paired calls, below 1 is faster
than torch. Times are processor time, which a busy machine distorts less than elapsed time does. torchlike is told to compile at once;
by its own rule (compile_when.py) it runs such a layer in NumPy first.
"""
from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import describe  # noqa: E402

SHAPES = ((35, 20, 200), (64, 16, 128), (128, 1, 64))  # steps, batch, input and hidden size
KINDS = ("LSTM", "GRU", "RNN")


def calls(torch, kind: str, steps: int, batch: int, size: int):
    """(inference, training step): functions that return a number read from the result."""
    torch.manual_seed(0)
    model, x = getattr(torch.nn, kind)(size, size), torch.randn(steps, batch, size)
    weights, leaf = list(model.parameters()), torch.randn(steps, batch, size, requires_grad=True)

    def infer():
        with torch.no_grad():
            return model(x)[0][-1, 0, 0].item()

    def train():
        for w in (*weights, leaf):
            w.grad = None
        model(leaf)[0].sum().backward()
        return leaf.grad[0, 0, 0].item()
    return infer, train


def paired(a, b, repeats: int) -> tuple[float, float, float]:
    """Median milliseconds of `a` and of `b`, and the median of the ratios b / a of neighbouring calls."""
    for _ in range(6):
        a(), b()
    times = []
    for _ in range(repeats):
        row = []
        for run in (a, b):
            start = time.process_time()
            run()
            row.append(time.process_time() - start)
        times.append(row)
    first, second = zip(*times)
    return 1e3 * statistics.median(first), 1e3 * statistics.median(second), statistics.median(y / x for x, y in times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    import torch

    import torchlike
    from torchlike._core import program
    torch.set_num_threads(1)
    lines = ["| layer | steps, batch, size | torch: inference ms | torchlike / torch | torch: training ms | torchlike / torch |", "|---|---|---|---|---|---|"]
    for kind in arguments.kinds:
        for shape in SHAPES:
            theirs, ours = calls(torch, kind, *shape), calls(torchlike, kind, *shape)
            cells = []
            for a, b in zip(theirs, ours):
                with program.tier("compiled"):
                    before, after = a(), b()
                    if abs(before - after) > 1e-3 * (1 + abs(before)):
                        raise AssertionError(f"{kind} {shape}: torch says {before}, torchlike {after}")
                    first, _, ratio = paired(a, b, arguments.repeats)
                cells += [f"{first:.2f}", f"{ratio:.2f}"]
            lines.append(f"| {kind} | {', '.join(map(str, shape))} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    table = "\n".join(lines)
    if arguments.out:
        Path(arguments.out).write_text(f"{__doc__}\n{describe()}\n\n{table}\n")


if __name__ == "__main__":
    main()
