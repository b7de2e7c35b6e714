"""The first losses of each example under real torch and under torchlike, from the same seed, side by side.

    python benchmarks/example_losses.py [--write FILE]

Each example runs as a person would run it, with its own defaults, for the first 50 steps.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ("digits.py", "char_gpt.py", "char_lstm.py")
LOSS = re.compile(r"step +(\d+)  loss (\S+)")
SHOWN = (1, 2, 5, 10, 20, 30, 40, 50)


def losses(name: str, steps: int, torchlike: bool) -> tuple[dict[int, float], float]:
    """The loss of every step that the example prints, and the seconds it took in all."""
    options = ["--seed", "0", "--log-every", "1", "--steps", str(steps)]
    options += [] if name == "digits.py" else ["--generate", "1"]
    launcher = ["-m", "torchlike.run"] if torchlike else []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *launcher, str(ROOT / "examples" / name), *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise SystemExit(f"{name} failed under {'torchlike' if torchlike else 'torch'}:\n{done.stderr[-3000:]}")
    return {int(n): float(x) for n, x in LOSS.findall(done.stdout)}, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", choices=EXAMPLES)
    parser.add_argument("--write", type=Path, help="also write the tables to this file")
    args = parser.parse_args()
    lines = []
    for name in EXAMPLES if args.only is None else (args.only,):
        (real, real_seconds), (ours, our_seconds) = (losses(name, args.steps, which) for which in (False, True))
        worst = max(abs(real[n] - ours[n]) / real[n] for n in real)
        shown = [n for n in SHOWN if n in real]
        table = [
            f"`{name}`, loss after step" + "".join(f" | {n}" for n in shown),
            "---" + "|---" * len(shown),
            "torch" + "".join(f" | {real[n]:.5f}" for n in shown),
            "torchlike" + "".join(f" | {ours[n]:.5f}" for n in shown),
        ]
        lines += [f"| {row} |" for row in table]
        lines += ["", f"Largest relative difference over {len(real)} steps: {worst:.1e}. "
                  f"The run took {real_seconds:.0f} s under torch, {our_seconds:.0f} s under torchlike.", ""]  # fmt: skip
        print("\n".join(lines[-7:]), flush=True)
    if args.write is not None:
        args.write.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
