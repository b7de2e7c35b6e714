"""Microseconds per small operation, everything included (record, look up, run), against real torch, alternating.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/record_path.py [--out benchmarks/results/record_path.md]
"""
from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402

OPERATIONS = 1000


def chain(torch, grad: bool) -> float:
    """Seconds per addition of 16 numbers in a chain of OPERATIONS, the result read at the end."""
    x, y = torch.ones(16, requires_grad=grad), torch.ones(16)
    start = time.perf_counter()
    z = x
    for _ in range(OPERATIONS):
        z = z + y
    z.detach().numpy()
    return (time.perf_counter() - start) / OPERATIONS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    import torch

    import torchlike
    from torchlike._core import program
    torch.set_num_threads(1)
    lines = ["| small add | torch us (best, median) | torchlike us (best, median) | ratio of medians |", "|---|---|---|---|"]
    for grad in (False, True):
        with program.tier("compiled"):  # what a longer loop comes to
            for _ in range(40):
                chain(torch, grad)
                chain(torchlike, grad)
        theirs, ours = [], []
        for _ in range(arguments.repeats):
            theirs.append(1e6 * chain(torch, grad))
            ours.append(1e6 * chain(torchlike, grad))
        a, b = statistics.median(theirs), statistics.median(ours)
        lines.append(f"| {'with' if grad else 'no'} grad | {min(theirs):.2f}, {a:.2f} | {min(ours):.2f}, {b:.2f} | {b / a:.2f} |")
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
