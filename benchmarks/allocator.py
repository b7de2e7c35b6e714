"""What keeping memory pages brings: training steps with and without it, in fresh processes, alternating.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/allocator.py [--out benchmarks/results/allocator.md]
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
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child)
    lines = ["| step | pages kept, ms | malloc as it is, ms | kept / as it is | peak memory MB: kept, as it is |", "|---|---|---|---|---|"]
    for name in arguments.models:
        best, cached = {}, False
        for _ in range(arguments.rounds):
            for setting in ("on", "off") if best else ("off", "on", "off"):  # the first one only fills the disk cache
                out = subprocess.run([sys.executable, str(HERE), "--child", name], env=os.environ | {"TORCHLIKE_MALLOC": setting}, capture_output=True, text=True,
                                     check=True).stdout.split()
                if best or cached:
                    best[setting] = min(best.get(setting, (1e9, 0)), tuple(map(float, out)))
                cached = True
        on, off = best["on"], best["off"]
        lines.append(f"| {name} | {on[0]:.2f} | {off[0]:.2f} | {on[0] / off[0]:.2f} | {on[1]:.0f}, {off[1]:.0f} |")
        print(lines[-1], flush=True)
    if arguments.out:
        Path(arguments.out).write_text(f"{__doc__}\n{describe()}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
