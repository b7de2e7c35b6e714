"""Whole training steps: torchlike recorded eager and compiled, real torch eager and torch.compile, and hand-written jax.jit.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/training.py [--turns 8] [--out benchmarks/results/training.md]

The five train in processes of their own, in turns of ten steps while the others wait (in one process the threads of one would spin
beside the next, and each step would find the others' data in the caches); ratios are medians over turns. torchlike compiles a loop
once that is worth it (compile_when.py says after how many steps); here it is told to compile at once. First steps and peak
memory are measured in processes of their own, with an empty cache and with a warm one, the first steps under torchlike's own rule;
memory is resident memory beyond what the process has with the model in it: the peak of 8 steps once 24 have run (with programs
from a warm cache; jit compiles), and the peak of the first 24 with an empty cache, compilation included.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402
from models import MODELS, jax_step, torch_step  # noqa: E402

SETTLED = 24  # steps
CONTENDERS = ("torch", "torch.compile", "recorded", "compiled", "jit")
AWAKE, TURN = 3, 10  # steps of a turn: untimed (caches are another's, and its threads may still spin), and timed


def contender(kind: str, name: str):
    """A function that trains one step and returns the loss as a number."""
    if kind == "jit":
        import torchlike  # noqa: F401  (the model's initial values come from it)
        step = jax_step(name)
        return lambda: float(step())
    if kind.startswith("torch"):
        import torch
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
        step = torch_step(torch, name, torch.compile if kind == "torch.compile" else None)
    else:
        import torchlike
        step = torch_step(torchlike, name)
        step = torchlike.compile(step) if kind == "compiled" else step
    return lambda: step().item()


def compiling(kind: str):
    """torchlike compiles programs at their first sight inside."""
    if kind not in ("recorded", "torchlike"):
        return contextlib.nullcontext()
    from torchlike._core import program
    return program.tier("compiled")


def serve(kind: str, name: str) -> None:
    """Train until told to stop: SETTLED steps, then for each line read AWAKE steps more and their TURN after them, timed."""
    step = contender(kind, name)
    with compiling(kind):
        for _ in range(SETTLED):
            step()
    print("ready", flush=True)
    for _ in sys.stdin:
        for _ in range(AWAKE):
            step()
        times = []
        for _ in range(TURN):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


def steady(name: str, turns: int) -> dict[str, float]:
    """Medians of the turns' ratios, each turn's time being its median step."""
    running = {}
    for kind in CONTENDERS:
        running[kind] = subprocess.Popen([sys.executable, str(HERE), "--serve", kind, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if running[kind].stdout.readline() != "ready\n":
            raise RuntimeError(f"{kind} cannot train {name}")
    times: dict[str, list[float]] = {kind: [] for kind in CONTENDERS}
    for _ in range(turns):
        for kind, process in running.items():
            process.stdin.write("go\n")
            process.stdin.flush()
            times[kind].append(statistics.median(json.loads(process.stdout.readline())))
    for process in running.values():
        process.communicate()
    ratio = lambda a, b: statistics.median(x / y for x, y in zip(times[a], times[b]))
    return {"torch_ms": 1e3 * statistics.median(times["torch"]), "recorded/jit": ratio("recorded", "jit"),
            "recorded/torch": ratio("recorded", "torch"), "recorded/torch.compile": ratio("recorded", "torch.compile"), "compiled/jit": ratio("compiled", "jit")}


def child(name: str, backend: str, steps: int) -> None:
    """Seconds of the first step and of the first `steps` steps; peak memory beyond the import's in the first SETTLED, and in 8 after them."""
    if backend == "jax":
        import jax

        import torchlike  # noqa: F401  (the model's initial values come from it)
        jax.numpy.ones(2).sum().block_until_ready()
        step, value = jax_step(name), float
    else:
        module = __import__(backend)
        if backend == "torch":
            module.set_num_threads(1)
        module.randn(2).sum().item()
        step, value = torch_step(module, name), lambda t: t.item()
    base = _resident("VmRSS")
    start = time.perf_counter()
    value(step())
    first = time.perf_counter() - start
    for _ in range(steps - 1):
        value(step())
    total = time.perf_counter() - start
    with compiling(backend):
        for _ in range(SETTLED - steps):
            value(step())
    start_up = (_resident("VmHWM") - base) / 1024
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    for _ in range(8):
        value(step())
    print(json.dumps({"first": first, "total": total, "start": start_up, "peak": (_resident("VmHWM") - base) / 1024}))


def _resident(which: str) -> int:
    """Kilobytes of this process's memory now (VmRSS) or at its peak (VmHWM)."""
    with open("/proc/self/status") as f:
        return int(next(line.split()[1] for line in f if line.startswith(which)))


def cold(name: str, backend: str, cache: str, steps: int = 8) -> dict:
    environment = os.environ | {"TORCHLIKE_CACHE": cache}
    out = subprocess.run([sys.executable, str(HERE), "--child", name, backend, str(steps)], env=environment, capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--serve", nargs=2)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(*arguments.serve)
    if arguments.child:
        return child(arguments.child[0], arguments.child[1], int(arguments.child[2]))
    lines = ["| step | torch eager ms | recorded / jit | recorded / torch | recorded / torch.compile | compile / jit | first step / jit's, cold | warm |"
             " first 8 steps / jit's, cold | warm |"
             " peak memory of steps: torch, torchlike, jit (MB) | torchlike / torch | the same with compilation |", "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    against_torch = []
    for name in arguments.models:
        r = steady(name, arguments.turns)
        against_torch.append(r["recorded/torch"])
        with tempfile.TemporaryDirectory() as cache:
            by_hand, ours = cold(name, "jax", cache), cold(name, "torchlike", cache)
            warm, theirs = cold(name, "torchlike", cache), cold(name, "torch", cache)
        lines.append(f"| {name} | {r['torch_ms']:.2f} | {r['recorded/jit']:.2f} | {r['recorded/torch']:.2f} | {r['recorded/torch.compile']:.2f} | {r['compiled/jit']:.2f} | "
                     f"{ours['first'] / by_hand['first']:.2f} | {warm['first'] / by_hand['first']:.2f} | {ours['total'] / by_hand['total']:.2f} | "
                     f"{warm['total'] / by_hand['total']:.2f} | {theirs['peak']:.0f}, {warm['peak']:.0f}, {by_hand['peak']:.0f} | {warm['peak'] / theirs['peak']:.2f} | "
                     f"{theirs['start']:.0f}, {ours['start']:.0f}, {by_hand['start']:.0f} |")
        print(lines[-1], flush=True)
    lines.append(f"\nGeometric mean of recorded / torch: {statistics.geometric_mean(against_torch):.2f} (times; below 1 is faster than torch eager)")
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
