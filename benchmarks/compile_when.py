"""When a program that returns should be compiled: what a step takes in NumPy and compiled, what compiling it takes, and what each rule costs.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/compile_when.py [--out benchmarks/results/compile_when.md]

First table: the training steps of models.py in turns of five, in NumPy and compiled (the fastest of each), beside the estimates of
`_core/costs.py`. Second table: a rule compiles a loop once LASTS times what it lost in NumPy, by the estimates, is what its
compilation costs. For loops of 10 to 100,000 steps, all lengths (on a logarithmic scale) alike, it shows the time of the whole loop
against the best that was possible, to compile at once or never: the geometric mean over lengths and models, and each model's worst.
"""
from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
os.environ["TORCHLIKE_CACHE"] = "off"
from environment import report  # noqa: E402
from models import MODELS, torch_step  # noqa: E402

import torchlike  # noqa: E402
from torchlike._core import executor, history  # noqa: E402

RULES = (1, 2, 3, 5, 10, 30, 60)
LENGTHS = [10 ** (1 + k / 20) for k in range(81)]


def measure(name: str, turns: int) -> dict:
    """Seconds of a step in both tiers and of its compilation, and the estimates."""
    step = torch_step(torchlike, name)
    fastest = {"numpy": math.inf, "compiled": math.inf}
    with executor.tier("compiled"):
        for _ in range(3):
            step().item()
    info = history.entries[-1].info
    seconds = max(e.seconds for e in history.entries if e.info is info)
    compiled = info.executables, info.chosen
    for _ in range(turns):
        for tier in fastest:
            info.executables, info.chosen = compiled if tier == "compiled" else ([], {})
            with executor.tier(tier):
                for _ in range(5):
                    start = time.perf_counter()
                    step().item()
                    fastest[tier] = min(fastest[tier], time.perf_counter() - start)
    return {"name": name, **fastest, "compile": seconds, "gain": info.gain, "estimate": info.compile_seconds}


def regrets(m: dict, lasts: float) -> list[float]:
    """Times of loops of all lengths under a rule, against the best."""
    first = max(executor.SIGHTS_HEAVY, m["estimate"] / (lasts * m["gain"]))
    found = []
    for n in LENGTHS:
        ours = n * m["numpy"] if n <= first else first * m["numpy"] + m["compile"] + (n - first) * m["compiled"]
        found.append(ours / min(n * m["numpy"], m["compile"] + n * m["compiled"]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    measured = [measure(name, arguments.turns) for name in MODELS]
    lines = ["| step | NumPy ms | compiled ms | saved ms | estimate | compilation s | estimate | compiled after steps |", "|---|---|---|---|---|---|---|---|"]
    for m in measured:
        after = math.ceil(max(executor.SIGHTS_HEAVY, m["estimate"] / (executor.LASTS * m["gain"])))
        lines.append(f"| {m['name']} | {1e3 * m['numpy']:.2f} | {1e3 * m['compiled']:.2f} | {1e3 * (m['numpy'] - m['compiled']):.2f} | {1e3 * m['gain']:.2f} |"
                     f" {m['compile']:.1f} | {m['estimate']:.1f} | {after} |")
    lines += ["", "| LASTS | mean | " + " | ".join(f"{m['name']}, worst" for m in measured) + " |", "|---" * (2 + len(measured)) + "|"]
    for lasts in RULES:
        found = [regrets(m, lasts) for m in measured]
        mean = math.exp(sum(math.log(r) for rs in found for r in rs) / sum(map(len, found)))
        lines.append(f"| {lasts}{' (ours)' if lasts == executor.LASTS else ''} | {mean:.2f} | " + " | ".join(f"{max(rs):.1f}" for rs in found) + " |")
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
