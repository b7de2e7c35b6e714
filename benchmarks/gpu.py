"""Times the kernels of `pallas_kernels` on one GPU: ours, XLA, cuDNN and torch on the same inputs.

    python benchmarks/gpu.py [--ops attention,...] [--out DIR] [--budget SECONDS]   measure, print tables, write JSON
    python benchmarks/gpu.py --check                                                 correctness on the card alone, in a minute
    python benchmarks/gpu.py --quick                                                 a problem per operation; errors against XLA's result
    python benchmarks/gpu.py --tune attention                                        time every configuration instead
    python benchmarks/gpu.py --tiny                                                  the same code on a CPU, in seconds

Needs jax and, for its rows, torch. A contender that fails is a row with its reason. Times are wall-clock per call with
calls queued one behind the other, the same for both frameworks; CUPTI's kernel time stands beside ours where it works.
"""

import argparse
import functools
import importlib.metadata
import json
import os
import statistics
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch shares the card
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import gpu_contenders as contenders  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import pallas_kernels  # noqa: E402
from pallas_kernels import _dispatch, _tune, specs  # noqa: E402

OPERATIONS = tuple(specs.LARGE)
LIMIT = {"float32": 1e-5, "bfloat16": 1e-2, "float16": 2e-3}
QUICK = ("causal_d128_short", "bias_mask_d64", "d768", "d4096", "instance_56", "gpt2", "mixtral", "lstm_h256", "gru_h128", "gru_h64")
L2_BYTES = 120 << 20  # inputs are rotated over more than the cache holds


@dataclass
class Row:
    op: str
    spec: str
    mode: str  # forward or training
    contender: str
    us: float | None = None
    spread: float | None = None  # (slowest - quickest) / median over repetitions
    kernel_us: float | None = None  # CUPTI
    error: float | None = None
    repeatable: bool | None = None
    roofline: float | None = None
    reason: str = ""
    samples: list[float] = field(default_factory=list)


def short(reason: BaseException) -> str:
    return f"{type(reason).__name__}: {' '.join(str(reason).split())[:300]}"


class Clock:
    def __init__(self, seconds: float):
        self.end = time.perf_counter() + seconds

    def left(self) -> float:
        return self.end - time.perf_counter()


def queued(call, finish, enough: float, most: int = 200) -> float:
    """Microseconds per call, calls queued back to back for about `enough` seconds."""
    finish(call(0))
    start = time.perf_counter()
    finish(call(1))
    count = int(np.clip(enough / max(time.perf_counter() - start, 1e-6), 1, most))
    start = time.perf_counter()
    for i in range(count):
        last = call(i)
    finish(last)
    return (time.perf_counter() - start) / count * 1e6


def measure(row: Row, call, finish, repetitions: int, enough: float) -> None:
    for i in range(2):
        finish(call(i))
    row.samples = [queued(call, finish, enough) for _ in range(repetitions)]
    row.us = statistics.median(row.samples)
    row.spread = (max(row.samples) - min(row.samples)) / row.us


@functools.cache
def ceilings(tiny: bool) -> dict[str, float]:
    """Bytes per second of a copy, and floating-point operations per second of matrix products on random data."""
    n, m = (1 << 18, 256) if tiny else (1 << 30, 8192)
    seconds = lambda f, *args: queued(lambda i: f(*args), jax.block_until_ready, 0.01 if tiny else 0.2) / 1e6
    vector = jax.device_put(np.ones(n, np.float32))
    found = {"copy": 8 * n / seconds(jax.jit(lambda x: x + 1), vector)}
    for dtype, precision in (("bfloat16", None), ("float32", "highest")):
        a = jax.random.normal(jax.random.key(0), (m, m), dtype)
        found[dtype] = 2 * m**3 / seconds(jax.jit(lambda a, p=precision: jnp.dot(a, a, precision=p)), a)
    found["float16"] = found["bfloat16"]
    return found


def reference(spec: specs.Spec):
    options = {"impl": "reference"} if spec.op in pallas_kernels.KERNELS else {}
    return lambda **arrays: getattr(pallas_kernels, spec.op)(**arrays, **spec.static, **options)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def drawn(key, shape: tuple, dtype: str, scale: float):
    return (scale * jax.random.normal(key, shape, jnp.float32)).astype(dtype)


class Problem:
    """One spec's inputs, in copies that together overflow the cache, and the cotangent of its output."""

    def __init__(self, spec: specs.Spec, tiny: bool):
        self.spec = spec
        size = sum(int(np.prod(a.shape)) * jnp.dtype(a.dtype).itemsize for a in spec.arrays.values())
        copies = 1 if tiny else int(np.clip(-(-L2_BYTES // max(size, 1)), 1, 8))
        large = {n: a for n, a in spec.arrays.items() if a.kind == "normal"}  # drawn on the card: the host takes minutes over all of them
        small = replace(spec, arrays={n: a for n, a in spec.arrays.items() if n not in large})
        keys = iter(jax.random.split(jax.random.key(9), copies * len(large) + 16))
        made = [
            {n: drawn(next(keys), a.shape, a.dtype, a.scale) for n, a in large.items()} | jax.device_put(specs.inputs(small, seed))
            for seed in range(copies)
        ]
        self.arrays = [{n: arrays[n] for n in spec.arrays} for arrays in made]
        shapes = jax.tree.leaves(jax.eval_shape(lambda arrays: reference(spec)(**arrays), spec.shapes()))
        self.cotangents = [drawn(next(keys), s.shape, str(s.dtype), 1.0) for s in shapes]

    def forward(self, function):
        return jax.jit(lambda arrays, cotangents: jax.tree.leaves(function(**arrays)))

    def training(self, function):
        def run(arrays, cotangents):
            fixed = {k: v for k, v in arrays.items() if k not in self.spec.gradients}
            call = lambda d: jax.tree.leaves(function(**fixed, **d))
            out, pull = jax.vjp(call, {k: arrays[k] for k in self.spec.gradients})
            return out, pull([c.astype(o.dtype) for c, o in zip(cotangents, out, strict=True)])[0]

        return jax.jit(run)

    def modes(self):
        return ("forward", "training") if self.spec.gradients else ("forward",)

    def of_mode(self, expected, mode: str):
        """The part of what `expected` gives that a program of `mode` computes."""
        return expected[0] if expected is not None and mode == "forward" and self.spec.gradients else expected

    def expected(self):
        """The reference's program, outputs and gradients, computed in float64 where that is affordable; they are given in float32."""
        wide = "float64" if self.spec.flops < 1e12 else "float32"
        widen = lambda x: x.astype(wide) if jnp.issubdtype(x.dtype, jnp.floating) else x
        function = self.training(reference(self.spec)) if self.spec.gradients else self.forward(reference(self.spec))
        narrow = lambda x: x.astype(jnp.float32)
        program = jax.jit(lambda *given: jax.tree.map(narrow, function(*jax.tree.map(widen, given))))
        with jax.enable_x64(wide == "float64"):
            return program.lower(self.spec.shapes(), self.cotangents).compile()


@jax.jit
def largest_error(got, want):
    """The largest of the norms of differences, each relative to the expected array's norm. An array that should be zero
    but for rounding (the gradient of a bias that moves all scores of a row: in float64 1e-15 of the largest array) is
    held against the largest; the gradient of a mean over many classes, 1e-8 of its loss, is not."""
    size = lambda x: jnp.linalg.norm(x.ravel()) / max(x.size, 1) ** 0.5
    wanted = jnp.stack([size(b) for b in jax.tree.leaves(want)])
    largest = jnp.maximum(wanted.max(), 1e-30)
    scales = jnp.where(wanted < 1e-10 * largest, largest, wanted)
    errors = []
    for a, b, scale in zip(jax.tree.leaves(got), jax.tree.leaves(want), scales, strict=True):
        a = a.astype(jnp.float32)
        bad = ~jnp.isfinite(a).all()
        errors.append(jnp.where(bad, jnp.inf, size(a - b) / scale))
    return jnp.max(jnp.stack(errors))


@jax.jit
def same(got, again):
    return jnp.stack([(a == b).all() for a, b in zip(*map(jax.tree.leaves, (got, again)), strict=True)]).all()


def race(spec: specs.Spec, compiled: dict, ceiling: dict, clock: Clock, tiny: bool) -> list[Row]:
    if "failed" in compiled:
        return [Row(spec.op, spec.name, "forward", "ours", reason=compiled["failed"])]
    problem, rows = compiled["problem"], []
    both, missing = None, ""
    try:
        program = compiled["expected"].result(timeout=max(clock.left(), 1))
        both = jax.block_until_ready(program(problem.arrays[0], problem.cotangents))
    except Exception as reason:  # noqa: BLE001  a row must never end the run
        missing = f"no expected values: {short(reason)}"
    for mode in problem.modes():
        expected = problem.of_mode(both, mode)
        dtype = next(a.dtype for a in spec.arrays.values() if a.kind == "normal")
        for name, program in compiled[mode].items():
            row = Row(spec.op, spec.name, mode, name)
            rows.append(row)
            if clock.left() < 0:
                row.reason = "not reached within the budget"
                continue
            try:
                program = program.result(timeout=max(clock.left(), 1))
                run = lambda i, p=program: p(problem.arrays[i % len(problem.arrays)], problem.cotangents)
                got = run(0)
                if expected is None:
                    row.reason = missing
                elif not spec.static.get("dropout") or name == "ours":
                    row.error = float(largest_error(got, expected))
                if name == "ours":
                    row.repeatable = bool(same(got, run(0)))
                if row.error is not None and not row.error < LIMIT[dtype]:
                    row.reason = f"wrong: relative error {row.error:.2e}; not timed"
                    continue
                measure(row, run, jax.block_until_ready, 2 if tiny else 4, 0.0 if tiny else 0.03)
                row.kernel_us = None if tiny else cupti(program, problem)
            except Exception as reason:  # noqa: BLE001
                row.reason = short(reason)
        rows += race_torch(spec, problem, mode, clock, tiny)
    for row in rows:
        if row.us:
            training = row.mode == "training"
            flops = spec.flops + training * spec.backward_flops
            moved = spec.moved + training * spec.backward_moved
            row.roofline = max(moved / ceiling["copy"], flops / ceiling[dtype]) * 1e6 / row.us
    return rows


def cupti(program, problem: Problem) -> float | None:
    """Sum of kernel times of one call; None where CUPTI is refused."""
    try:
        from jax.experimental.mosaic.gpu import profiler

        _, milliseconds = profiler.measure(program)(problem.arrays[0], problem.cotangents)
        return None if milliseconds is None else milliseconds * 1e3
    except Exception:  # noqa: BLE001  the wall clock stands without it
        return None


def race_torch(spec: specs.Spec, problem: Problem, mode: str, clock: Clock, tiny: bool) -> list[Row]:
    device = "cpu" if tiny else "cuda"
    try:
        functions = contenders.torch_contenders(spec)
        if not functions:
            return []
        import torch

        inputs = [{k: contenders.to_torch(v, device) for k, v in arrays.items()} for arrays in problem.arrays]
        cotangents = [contenders.to_torch(c, device) for c in problem.cotangents]
    except Exception as reason:  # noqa: BLE001
        return [Row(spec.op, spec.name, mode, "torch", reason=short(reason))]
    finish = (lambda out: None) if tiny else (lambda out: torch.cuda.synchronize())
    rows = []
    for name, function in functions.items():
        row = Row(spec.op, spec.name, mode, name)
        rows.append(row)
        if clock.left() < 0:
            row.reason = "not reached within the budget"
            continue

        def run(i, function=function):
            arrays = dict(inputs[i % len(inputs)])
            if mode == "forward":
                with torch.no_grad():
                    return function(**arrays)
            leaves = [arrays[k].detach().requires_grad_() for k in spec.gradients]
            out = function(**arrays | dict(zip(spec.gradients, leaves, strict=True)))
            outs = out if isinstance(out, tuple) else (out,)
            return torch.autograd.grad(outs, leaves, [c.to(o.dtype) for c, o in zip(cotangents, outs, strict=True)])

        try:
            measure(row, run, finish, 2 if tiny else 4, 0.0 if tiny else 0.03)
        except Exception as reason:  # noqa: BLE001
            row.reason = short(reason)
    return rows


def compile_all(chosen: list[specs.Spec], tiny: bool, pool: ThreadPoolExecutor, clock: Clock, quick: bool = False) -> list[dict]:
    """Programs of every contender, being compiled in the pool; a failure surfaces at `.result()`."""

    def start(spec):
        problem = Problem(spec, tiny)
        functions = contenders.jax_contenders(spec, "interpret" if tiny and spec.impl else spec.impl)

        def in_time(job, *given):
            if clock.left() < 0:
                raise TimeoutError("not reached within the budget")
            return job(*given)

        def build(mode, function):
            return getattr(problem, mode)(function).lower(spec.shapes(), problem.cotangents).compile()

        programs = {
            mode: {name: pool.submit(in_time, build, mode, function) for name, function in functions.items()}
            for mode in problem.modes()
        }
        expected = programs[problem.modes()[-1]]["xla"] if quick else pool.submit(in_time, problem.expected)
        return {"problem": problem, "expected": expected, **programs}

    def one(spec):
        try:
            return start(spec)
        except Exception as reason:  # noqa: BLE001  inputs that do not fit, say
            return {"failed": short(reason)}

    return [one(spec) for spec in chosen]


def jobs_of(compiled: dict) -> list[Future]:
    if "failed" in compiled:
        return []
    return [compiled["expected"], *(job for mode in compiled["problem"].modes() for job in compiled[mode].values())]


def small_checks(ops: list[str], pool: ThreadPoolExecutor, clock: Clock) -> list[Row]:
    """Every SMALL spec through our kernel on the card, against the reference in float64."""

    def one(spec):
        row = Row(spec.op, f"small {spec.name}", "training" if spec.gradients else "forward", "ours")
        if clock.left() < 0:
            row.reason = "not reached within the budget"
            return row
        try:
            problem = Problem(spec, tiny=True)
            call = contenders.jax_contenders(spec, spec.impl)["ours"]
            got = getattr(problem, row.mode)(call)(problem.arrays[0], problem.cotangents)
            row.error = float(largest_error(got, problem.expected()(problem.arrays[0], problem.cotangents)))
            dtype = next(a.dtype for a in spec.arrays.values() if a.kind == "normal")
            row.reason = (
                "" if row.error < LIMIT[dtype] or spec.name == "huge" else f"wrong: relative error {row.error:.2e}"
            )
        except Exception as reason:  # noqa: BLE001
            row.reason = short(reason)
        return row

    return list(pool.map(one, [spec for op in ops for spec in specs.SMALL[op]]))


def tune(op: str, chosen: list[specs.Spec], tiny: bool, pool: ThreadPoolExecutor, clock: Clock, out: Path) -> list[Row]:
    """Time each candidate configuration of each kernel of `op`; write the winners as a table for this card."""
    from pallas_kernels.candidates import CANDIDATES

    def build(problem, kernel, mode, config):
        with _tune.forced(**{kernel: config}), _tune.recorded() as picked:
            function = contenders.jax_contenders(problem.spec, "interpret" if tiny else problem.spec.impl)["ours"]
            lowered = getattr(problem, mode)(function).lower(problem.spec.shapes(), problem.cotangents)
        return lowered.compile(), dict(picked)[kernel]

    rows, table = [], {}
    problems = [Problem(spec, tiny) for spec in chosen if spec.impl == "triton"]
    for kernel, candidates in CANDIDATES[op].items():
        mode = "training" if kernel.endswith(("backward", "outer")) else "forward"
        jobs = [
            (problem, config, pool.submit(build, problem, kernel, mode, config))
            for problem in problems
            for config in candidates
        ]
        for problem, config, job in jobs:
            row = Row(op, problem.spec.name, kernel, str(config))
            rows.append(row)
            try:
                if clock.left() < 0:
                    raise TimeoutError("not reached within the budget")
                program, key = job.result()
                measure(
                    row,
                    lambda i, p=program, q=problem: p(q.arrays[i % len(q.arrays)], q.cotangents),
                    jax.block_until_ready,
                    1 if tiny else 3,
                    0.0 if tiny else 0.03,
                )
                if key not in table or row.us < table[key]["us"]:
                    table[key] = {
                        "config": asdict(config),
                        "us": round(row.us, 1),
                        "jax": jax.__version__,
                        "date": time.strftime("%Y-%m-%d"),
                    }
            except Exception as reason:  # noqa: BLE001
                row.reason = short(reason)
    kind = jax.devices()[0].device_kind
    path = out / _tune.table_path(kind).name
    path.write_text(json.dumps({"device_kind": kind, "rows": {**_tune.table(kind), **table}}, indent=1))
    print(f"wrote {path}; copy it to pallas_kernels/tuned/ to use it")
    return rows


def tables(rows: list[Row]) -> None:
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault((row.op, row.spec, row.mode), []).append(row)
    for row in rows:
        if row.reason:
            print(f"- {row.op} {row.spec} {row.mode} {row.contender}: {row.reason}")
    print(
        f"\n{'op':22}{'spec':24}{'mode':10}{'ours us':>10}{'xla/ours':>10}{'best other':>22}{'best/ours':>11}"
        f"{'roof':>7}{'error':>10}  repeatable"
    )
    for (op, spec, mode), group in groups.items():
        times = {r.contender: r.us for r in group if r.us}
        mine = next((r for r in group if r.contender == "ours"), None)
        others = {k: v for k, v in times.items() if k != "ours"}
        if mine is None or mine.us is None:
            continue
        best = min(others, key=others.get) if others else ""
        xla = f"{times['xla'] / mine.us:.2f}" if "xla" in times else "-"
        ratio = f"{others[best] / mine.us:.2f}" if best else "-"
        error = "-" if mine.error is None else f"{mine.error:.1e}"
        print(
            f"{op:22}{spec:24}{mode:10}{mine.us:10.1f}{xla:>10}{best:>22}{ratio:>11}{mine.roofline or 0:7.0%}{error:>10}"
            f"  {mine.repeatable}"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default=",".join(OPERATIONS))
    parser.add_argument("--tune", choices=sorted(pallas_kernels.KERNELS))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--budget", type=float, default=520.0, help="seconds after which no further row is started")
    args = parser.parse_args(arguments)
    here = _dispatch.device()
    if not args.tiny and here.platform != "cuda":
        parser.error(f"no CUDA device (found {here.kind}); --tiny runs the same code on a CPU")
    ops = [args.tune] if args.tune else args.ops.split(",")
    if unknown := set(ops) - set(OPERATIONS):
        parser.error(f"unknown operations {sorted(unknown)}; known: {sorted(OPERATIONS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    clock = Clock(args.budget)
    chosen = [spec for op in ops for spec in (specs.TINY if args.tiny else specs.LARGE)[op] if not args.quick or spec.name in QUICK]
    path = args.out / "pallas_kernels_gpu.json"
    torch = {"torch": importlib.metadata.version("torch")} if contenders.HAVE_TORCH else {}
    about = {"device": here.kind, "jax": jax.__version__, **torch}
    print(", ".join(f"{name} {version}" for name, version in about.items()))
    rows: list[Row] = []

    def keep(more: list[Row]) -> None:
        """After every problem: what is measured stays, whatever happens to the rest."""
        rows.extend(more)
        path.write_text(json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=1))

    with ThreadPoolExecutor(1 if args.tiny else 12) as pool:
        if args.tune:
            keep(tune(args.tune, chosen, args.tiny, pool, clock, args.out))
        elif args.check:
            keep(small_checks(ops, pool, clock))
        else:
            compiled = compile_all(chosen, args.tiny, pool, clock, args.quick)
            # A compiler at work, autotuning on the card, would disturb the clock.
            wait([job for made in compiled for job in jobs_of(made)], timeout=args.budget * 0.45)
            print(f"{sum(job.done() for made in compiled for job in jobs_of(made))} programs of {sum(map(len, map(jobs_of, compiled)))} after"
                  f" {args.budget - clock.left():.0f} s", flush=True)
            about["ceilings"] = ceiling = ceilings(args.tiny)  # not before: they too want the card to themselves
            print(
                f"copy {ceiling['copy'] / 1e12:.3g} TB/s, products "
                + ", ".join(f"{k} {ceiling[k] / 1e12:.3g} TFLOP/s" for k in ("bfloat16", "float32"))
            )
            for spec in chosen:
                keep(made := race(spec, compiled.pop(0), ceiling, clock, args.tiny))
                print(" ".join(f"{r.mode} {r.contender} {r.us:.0f};" if r.us else f"{r.mode} {r.contender} -;" for r in made), spec.op, spec.name, flush=True)
        pool.shutdown(wait=False, cancel_futures=True)
    tables(rows)
    if args.check:
        print(f"worst errors: {sorted((row.error, row.op, row.spec) for row in rows if row.error is not None)[-12:]}")
    print(f"{len(rows)} rows, {sum(bool(row.reason) for row in rows)} with a reason, in {path}, {args.budget - clock.left():.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
