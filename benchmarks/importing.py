"""`import torchlike` in fresh processes, beside `import jax` (which it needs) and `import torch`.

    taskset -c 0 python benchmarks/importing.py [--turns 11] [--out benchmarks/results/importing.md]

From bytecode, as after an installation; the three take turns, times are medians.
"""
from __future__ import annotations

import argparse
import compileall
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402

CONTENDERS = ("torchlike", "jax.numpy", "torch")
CODE = """
import sys, time
before, start = set(sys.modules), time.perf_counter()
import {}
print(time.perf_counter() - start, len(set(sys.modules) - before), "torch" in sys.modules)
"""


def seconds(name: str) -> tuple[float, int, bool]:
    """Time, modules loaded, and whether torch is one of them."""
    out = subprocess.run([sys.executable, "-c", CODE.format(name)], cwd=HERE.parent.parent, capture_output=True, text=True, check=True).stdout.split()
    return float(out[0]), int(out[1]), out[2] == "True"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    for package in ("torchlike", "pallas_kernels"):
        compileall.compile_dir(HERE.parent.parent / package, quiet=1)
    taken: dict[str, list] = {name: [] for name in CONTENDERS}
    for name in CONTENDERS:
        seconds(name)  # files come into memory
    for _ in range(arguments.turns):
        for name in CONTENDERS:
            taken[name].append(seconds(name))
    lines = ["| import | seconds (median) | fastest | slowest | modules | torch among them |", "|---|---|---|---|---|---|"]
    for name, rows in taken.items():
        times = [r[0] for r in rows]
        lines.append(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} | {max(times):.2f} | {rows[0][1]} | {'yes' if rows[0][2] else 'no'} |")
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
