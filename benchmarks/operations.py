"""Single operations, forward and with their gradients, beside real torch on the CPU.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/operations.py [--only WORD] [--out benchmarks/results/operations.md]

Both compute in one process, in turns, from the same inputs, and every result is looked at; milliseconds of processor time, each the
median of its runs. torchlike compiles an operation once that is worth it, after some hundred sights of one of a millisecond
(compile_when.py); here it is told to compile at once, which the seconds of the first four sights show. A time includes recording and starting the
program, some 30 us.
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402
from operation_cases import CASES  # noqa: E402

import torchlike  # noqa: E402
from torchlike._core import program  # noqa: E402

SIGHTS = 4  # before anything is timed
RUNS, SECONDS = 7, 0.25  # timed at least, and for so long
SLOW = 1.5  # times torch's time from which a case is listed by name


def look(out) -> None:
    """Wait for a result, as reading it would."""
    for each in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(each, torchlike.Tensor):
            array = program.concrete(each._current())
            if hasattr(array, "block_until_ready"):
                array.block_until_ready()


def runner(torch, run, arrays, grad: bool):
    """A function that does one case once."""
    tensors = [torch.tensor(a) for a in arrays]
    if not grad:
        return lambda: look(run(torch, *tensors))
    leaves = [t.requires_grad_() for t in tensors if t.is_floating_point()]

    def both():
        outs = run(torch, *tensors)
        outs = [o for o in (outs if isinstance(outs, (tuple, list)) else (outs,)) if o.requires_grad]
        look(torch.autograd.grad(outs, leaves, [torch.ones_like(o) for o in outs], allow_unused=True)[0])
    return both


def measure(run, arrays, grad: bool, real) -> tuple[float, float, float]:
    """Milliseconds of torch and of torchlike, and seconds of torchlike's first sights."""
    contenders = [runner(module, run, [a.copy() for a in arrays], grad) for module in (real, torchlike)]
    contenders[0]()
    start = time.perf_counter()
    for _ in range(SIGHTS):
        contenders[1]()
    first = time.perf_counter() - start
    times: tuple[list, list] = [], []
    end = time.perf_counter() + SECONDS
    while len(times[0]) < RUNS or time.perf_counter() < end:
        for each, run_once in zip(times, contenders):
            start = time.process_time()
            run_once()
            each.append(1e3 * (time.process_time() - start))
    return statistics.median(times[0]), statistics.median(times[1]), first


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="cases whose family or name has this word")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    import numpy as np
    import torch as real

    real.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    ratios: dict[str, list[float]] = {}
    slow = []
    for family, name, run, inputs, grad in CASES:
        if arguments.only not in family and arguments.only not in name:
            continue
        rng = np.random.default_rng(0)
        arrays = [rng.standard_normal(i).astype(np.float32) if isinstance(i, tuple) else i(rng) for i in inputs]
        for with_gradients in (False, True) if grad and inputs else (False,):
            with program.tier("compiled"):
                torchs, ours, first = measure(run, arrays, with_gradients, real)
            ratios.setdefault(family, []).append(ours / torchs)
            row = f"| {family} | {name}{', with gradients' if with_gradients else ''} | {torchs:.2f} | {ours:.2f} | {ours / torchs:.2f} | {first:.1f} |"
            print(row, file=sys.stderr, flush=True)
            if ours > SLOW * torchs:
                slow.append((ours / torchs, row))
    lines = ["| family | cases | geometric mean of torchlike / torch | median | slowest |", "|---|---|---|---|---|"]
    for family, found in ratios.items():
        lines.append(f"| {family} | {len(found)} | {statistics.geometric_mean(found):.2f} | {statistics.median(found):.2f} | {max(found):.2f} |")
    every = [r for found in ratios.values() for r in found]
    lines += [f"| all | {len(every)} | {statistics.geometric_mean(every):.2f} | {statistics.median(every):.2f} | {max(every):.2f} |", "",
              f"Slower than {SLOW} times torch's time:", "", "| family | operation | torch ms | torchlike ms | ratio | first sights s |", "|---|---|---|---|---|---|"]
    report(__doc__, lines + [row for _, row in sorted(slow, reverse=True)], arguments.out)


if __name__ == "__main__":
    main()
