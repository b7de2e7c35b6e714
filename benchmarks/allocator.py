"""What keeping memory pages brings: training steps with and without it, in fresh processes, alternating.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/allocator.py [--out benchmarks/results/allocator.md]
    python benchmarks/allocator.py --compiling

What one heap for all threads costs where the compiler has several: with --compiling, seconds of a step that is compiled at first sight.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import describe  # noqa: E402


def compiling(name: str) -> None:
    """Seconds of the first step, compiled, and 0 in the place of its memory."""
    from models import torch_step

    import torchlike
    from torchlike._core import program
    step = torch_step(torchlike, name)
    start = time.perf_counter()
    with program.tier("compiled"):
        step().item()
    print(time.perf_counter() - start, 0)


def child(name: str) -> None:
    """Best milliseconds of processor time per step, and peak memory beyond the import's in MB."""
    from models import torch_step
    from training import _resident

    import torchlike
    base = _resident("VmRSS")
    step = torch_step(torchlike, name)
    for _ in range(8):
        step().item()
    best = 1e9
    for _ in range(20):
        start = time.process_time()
        step().item()
        best = min(best, time.process_time() - start)
    print(1e3 * best, (_resident("VmHWM") - base) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=["mlp", "cnn", "resnet", "gpt", "lstm"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child")
    parser.add_argument("--compiling", action="store_true")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.child:
        return (compiling if arguments.compiling else child)(arguments.child)
    environment, also = os.environ | ({"TORCHLIKE_CACHE": "off"} if arguments.compiling else {}), ["--compiling"] * arguments.compiling
    lines = ["| step | pages kept, ms | malloc as it is, ms | kept / as it is | peak memory MB: kept, as it is |", "|---|---|---|---|---|"]
    if arguments.compiling:
        lines = ["| step | compiled, one heap, s | malloc as it is, s | one heap / as it is |", "|---|---|---|---|"]
    for name in arguments.models:
        best, cached = {}, False
        for _ in range(arguments.rounds):
            for setting in ("on", "off") if best else ("off", "on", "off"):  # the first one only fills the disk cache
                out = subprocess.run([sys.executable, str(HERE), "--child", name, *also], env=environment | {"TORCHLIKE_MALLOC": setting}, capture_output=True,
                                     text=True, check=True).stdout.split()
                if best or cached:
                    best[setting] = min(best.get(setting, (1e9, 0)), tuple(map(float, out)))
                cached = True
        on, off = best["on"], best["off"]
        memory = "" if arguments.compiling else f" {on[1]:.0f}, {off[1]:.0f} |"
        lines.append(f"| {name} | {on[0]:.2f} | {off[0]:.2f} | {on[0] / off[0]:.2f} |{memory}")
        print(lines[-1], flush=True)
    if arguments.out:
        Path(arguments.out).write_text(f"{__doc__}\n{describe()}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
