"""Runs programs of third-party PyTorch libraries under real torch and under torchlike and compares what they print.

    python -m venv ENV
    ENV/bin/pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
    ENV/bin/pip install accelerate==1.15.0 captum==0.9.0 einops==0.8.2 gpytorch==1.15.2 lightning==2.6.6 \
        pyro-ppl==1.9.2 pytorch-ignite==0.5.5 safetensors==0.8.0 sentence-transformers==6.2.0 skorch==1.4.0 \
        stable-baselines3==2.9.2 tensordict==0.14.3 torch-geometric==2.8.1 \
        torchao==0.18.0 torchdiffeq==0.2.5 torchmetrics==1.9.0 torchopt==0.7.3 torchrl==0.14.1 transformers==5.23.0 x-transformers==2.31.10 -e .
    OMP_NUM_THREADS=1 ENV/bin/python benchmarks/libraries.py [--only NAME ...] [--write FILE]

torchvision must not be installed there: its wheel on PyPI needs CUDA's build of torch, and transformers and timm import
it when they find it. Its programs run in an environment of their own, with torch==2.13.0 and torchvision==0.28.0 from PyPI
(--only torchvision_models torchvision_transforms torchvision_detection), those of ultralytics==8.4.190 there as well (--only ultralytics).
The libraries are unmodified. Each program of benchmarks/libraries runs in a fresh process in an empty
folder, as `python program.py` and as `python -m torchlike.run program.py`. Every word and every number that it prints
is compared, line by line. The first line of its docstring says what it exercises, the rest why a line may differ.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path

from environment import describe
from public_programs import ROOT, Outcome, difference, last_line, numbers, words

PROGRAMS = Path(__file__).resolve().parent / "libraries"
DISTRIBUTIONS = {  # the package's name
    "ignite": "pytorch-ignite",
    "pyro": "pyro-ppl",
    "sentence_transformers": "sentence-transformers",
    **{f"torchvision_{part}": "torchvision" for part in ("detection", "models", "transforms")},
}
ROUNDING = 1e-4  # a line whose numbers differ by more, relatively, is shown
SHOWN = 3  # lines shown per program
HEADING = f"""Programs of third-party libraries, unmodified, under real torch and under torchlike: what they print, compared.

    OMP_NUM_THREADS=1 python benchmarks/libraries.py --write benchmarks/results/libraries.md

The programs are [here](../libraries). `yes`: every word and number printed is the same; `to 2e-05`: the same words, and
the largest relative difference of a number; `NO`: some line differs in a word or by more than {ROUNDING:.0e}; those
lines follow the table. Seconds are one run each on a shared machine with other work on it, with Python's start, the
imports and, for torchlike, all compilation with an empty cache.

"""


def run(program: Path, torchlike: bool, limit: float = 120) -> Outcome:
    """Runs a copy of `program` alone in a new folder: beside the others, `import einops` would find einops.py."""
    launcher = ["-m", "torchlike.run"] if torchlike else []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(program, f"{folder}/program.py")
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [sys.executable, *launcher, "program.py"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT) if torchlike else "", "PYTHONWARNINGS": "ignore"},
                capture_output=True,
                text=True,
                timeout=limit,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return Outcome(124, limit, "", f"not done after {limit:.0f} seconds")
        return Outcome(done.returncode, time.perf_counter() - start, done.stdout, done.stderr)


def apart(x: str, y: str) -> float:
    """The largest relative difference of two lines' numbers; infinite where their words differ."""
    if words(x) != words(y):
        return float("inf")
    return max(map(difference, numbers(x), numbers(y)), default=0.0)


def compare(real: Outcome, ours: Outcome) -> tuple[str, list[str]]:
    """What the table says of two runs, and the lines that differ by more than rounding."""
    for name, outcome in {"torch": real, "torchlike": ours}.items():
        if outcome.code != 0:
            return "NO", [f"fails under {name}: {last_line(outcome)}"]
    pairs = list(zip_longest(real.output.splitlines(), ours.output.splitlines(), fillvalue="(no line)"))
    differences = [apart(x, y) for x, y in pairs]
    far = [f"torch:     {x}\ntorchlike: {y}" for (x, y), d in zip(pairs, differences) if d > ROUNDING]
    if far:
        return f"NO: {len(far)} of {len(pairs)} lines", far
    worst = max(differences, default=0.0)
    return (f"to {worst:.0e}" if worst else "yes"), []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="names of the libraries to run")
    parser.add_argument("--logs", type=Path, help="folder for the full output of every run")
    parser.add_argument("--write", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    rows = ["| library | what is exercised | same | torch s | torchlike s |", "|---|---|---|---|---|"]
    notes = []
    print("\n".join(rows), flush=True)
    for program in sorted(PROGRAMS.glob("*.py")):
        name = program.stem
        if args.only and name not in args.only:
            continue
        exercised, _, reason = ast.get_docstring(ast.parse(program.read_text())).partition("\n")
        distribution = DISTRIBUTIONS.get(name, name)
        try:
            library = f"{distribution} {version(distribution)}"
        except PackageNotFoundError:
            library, result = distribution, "not installed | |"
        else:
            real, ours = run(program, torchlike=False), run(program, torchlike=True)
            same, lines = compare(real, ours)
            result = f"{same} | {real.seconds:.1f} | {ours.seconds:.1f}"
            if lines:
                more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
                notes.append("\n".join([f"\n{name}: {' '.join(reason.split())}\n", "```", *lines[:SHOWN], *more, "```"]))
            if args.logs is not None:
                args.logs.mkdir(parents=True, exist_ok=True)
                for label, outcome in {"torch": real, "torchlike": ours}.items():
                    (args.logs / f"{name}.{label}.txt").write_text(f"{outcome.output}\n--- stderr\n{outcome.errors}")
        rows.append(f"| {library} | {exercised} | {result} |")
        print(rows[-1], flush=True)
    print("\n".join(notes))
    if args.write is not None:
        args.write.write_text(HEADING + "\n".join([*rows, "", describe(), *notes]) + "\n")
    return int(bool(notes))


if __name__ == "__main__":
    sys.exit(main())
