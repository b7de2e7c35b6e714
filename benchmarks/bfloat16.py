"""Training steps under autocast to bfloat16 on the CPU, beside those in float32: torchlike recorded, and real torch eager.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/bfloat16.py [--turns 4] [--out benchmarks/results/bfloat16.md]

The two train in processes of their own, in turns; a time is the least of the turns' medians. torchlike is told to compile at once.
"""
from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402
from models import MODELS, torch_step  # noqa: E402
from turns import least  # noqa: E402

SETTLED, TURN = 6, 10  # steps before the first turn, and of a turn


def serve(library: str) -> None:
    """Train each model TURN steps in either precision, for each line read."""
    torch, compiles = importlib.import_module(library), contextlib.nullcontext()
    if library == "torchlike":
        from torchlike._core.program import tier
        compiles = tier("compiled")
    steps = {f"{name}, {autocast}": torch_step(torch, name, autocast=autocast) for name in MODELS for autocast in (False, True)}
    with compiles:
        for _ in range(SETTLED):
            for step in steps.values():
                step().item()
        for _ in sys.stdin:
            found = {}
            for name, step in steps.items():
                times = []
                for _ in range(TURN):
                    start = time.perf_counter()
                    step().item()
                    times.append(time.perf_counter() - start)
                found[name] = [1e3 * statistics.median(times)]
            print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--serve")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.serve)
    times = least(HERE, arguments.turns)
    lines = ["| step | torch ms, float32 | bfloat16 | torchlike ms, float32 | bfloat16 | torchlike / torch, float32 | bfloat16 |", "|---|---|---|---|---|---|---|"]
    for name in MODELS:
        torch, ours = ([times[library][f"{name}, {autocast}"][0] for autocast in (False, True)] for library in ("torch", "torchlike"))
        lines.append(f"| {name} | {torch[0]:.2f} | {torch[1]:.2f} | {ours[0]:.2f} | {ours[1]:.2f} | {ours[0] / torch[0]:.2f} | {ours[1] / torch[1]:.2f} |")
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
