"""Ordinary model families on one core: a training step and an inference forward under real torch (eager) and under torchlike (recorded).

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/model_speed.py [--only NAME ...] [--turns 5] [--out benchmarks/results/model_speed.md]

Needs timm, torchvision, diffusers, segmentation_models_pytorch and mambapy beside the packages of benchmarks/libraries.py, none of which may bring
another torch; a family whose package is missing is left out, with a line that says so. The models (benchmarks/model_families) run unmodified, each in two processes
(`python` and `python -m torchlike.run`) that take turns while the other waits; a step looks at one number of its result. Ratios are medians
over turns of the processes' CPU time. torchlike's programs are compiled when they are first seen, except in the families of many small programs
(SMALL), which run by torchlike's own rule. `until steady`: CPU seconds of the first steps (SETTLED; of small programs, as many as in SETTLING seconds),
compilation with an empty cache included; `programs`: executables made then, and `later`: how many were made afterwards, while steps were timed.
"""
from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent)]
MODULES = ("vision", "language", "tabular")
SMALL = {"ppo", "dqn", "maml", "pinn", "k_means", "gaussian_mixture", "n_body", "game_of_life", "heat", "heat_large", "style_transfer", "gpt2_generate", "llama_generate"}
AWAKE, TURN = 1, 0.15  # untimed steps of a turn, as the other's data is in the caches; seconds of the timed ones, which are two at least
SETTLED = 4  # steps until all is compiled
SETTLING = 12  # seconds that a family of small programs runs under torchlike until it is timed


def families() -> dict[str, str]:
    """Each family's module, in the files' order (read as text: this process imports no torch)."""
    found = {}
    for module in MODULES:
        tree = ast.parse((HERE.parent / "model_families" / f"{module}.py").read_text())
        found.update({f.name: module for f in tree.body if isinstance(f, ast.FunctionDef) and f.name[0] != "_"})
    return found


def compiled_programs() -> int:
    """How many programs torchlike has compiled in this process; 0 under real torch."""
    import torch
    if not hasattr(torch, "explain"):
        return 0
    from torchlike._core import history
    return len(history.compilations)


def serve(name: str) -> None:
    """Make one family's cases, then for each line read (a case's name) settle if it is new, else time one turn."""
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cases = getattr(importlib.import_module(f"model_families.{families()[name]}"), name)()
    print(json.dumps(list(cases)), flush=True)
    known = {}
    for line in sys.stdin:
        prepare, step = cases[line.strip()]
        prepare()
        if line not in known:
            start, before = time.process_time(), compiled_programs()
            times = settle(step, name not in SMALL)
            known[line] = max(2, round(TURN / min(times)))
            print(json.dumps([time.process_time() - start, compiled_programs() - before]), flush=True)
            continue
        for _ in range(AWAKE):
            step()
        before, start = compiled_programs(), time.process_time()
        for _ in range(known[line]):
            step()
        print(json.dumps([(time.process_time() - start) / known[line], compiled_programs() - before]), flush=True)


def settle(step, at_once: bool) -> list[float]:
    """Run `step` until its programs are compiled; the CPU seconds of each."""
    import torch
    times: list[float] = []
    compiling, ours = contextlib.nullcontext(), hasattr(torch, "explain")
    if at_once and ours:
        from torchlike._core import program
        compiling = program.tier("compiled")
    with compiling:
        while len(times) < SETTLED or (ours and not at_once and sum(times) < SETTLING):
            start = time.process_time()
            step()
            times.append(time.process_time() - start)
    return times


class Side:
    """A process that serves one family under one of the two libraries."""

    def __init__(self, name: str, torchlike: bool, cache: str) -> None:
        launcher = ["-m", "torchlike.run"] if torchlike else []
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", *launcher, str(HERE), "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, env=os.environ | {"TORCHLIKE_CACHE": cache, "HF_HUB_OFFLINE": "1"})
        self.cases = self.answer()

    def answer(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                self.errors.seek(0)
                raise RuntimeError((self.errors.read().strip().splitlines() or ["ended"])[-1])
            with contextlib.suppress(json.JSONDecodeError):  # what libraries print
                return json.loads(line)

    def ask(self, case: str):
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def measure(name: str, turns: int) -> list[str]:
    """The table's lines for one family."""
    lines = []
    with tempfile.TemporaryDirectory() as cache:
        sides = []
        try:
            for torchlike in (False, True):
                sides.append(Side(name, torchlike, cache))
            for case in sides[0].cases:
                first = [side.ask(case) for side in sides]
                results = [[side.ask(case) for side in sides] for _ in range(turns)]
                ratio = statistics.median(b[0] / a[0] for a, b in results)
                lines.append(f"| {name}, {case} | {1e3 * statistics.median(a[0] for a, _ in results):.1f} | {1e3 * statistics.median(b[0] for _, b in results):.1f} | "
                             f"{ratio:.2f} | {first[0][0]:.1f}, {first[1][0]:.1f} | {first[1][1]} | {sum(b[1] for _, b in results)} |")
        except RuntimeError as error:
            lines.append(f"| {name} | left out: {error} | | | | | |")
        for side in sides:
            side.end()
    return lines


def main() -> None:
    from environment import report
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--serve")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.serve)
    lines = ["| family, case | torch ms | torchlike ms | torchlike / torch | until steady: torch, torchlike s | programs | later |", "|---|---|---|---|---|---|---|"]
    ratios = {"train": [], "forward": []}
    for name in arguments.only or families():
        for line in measure(name, arguments.turns):
            print(line, flush=True)
            lines.append(line)
            cells = line.split(" | ")
            if "left out" not in line:
                ratios[cells[0].rpartition(" ")[2]].append(float(cells[3]))
    for case, found in ratios.items():
        if found:
            lines.append(f"\nGeometric mean of torchlike / torch, {case}: {statistics.geometric_mean(found):.2f}; more than 1.3 in {sum(r > 1.3 for r in found)} of {len(found)}")
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
