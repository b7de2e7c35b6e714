"""Mutation check: plant one bug at a time in a copy of the kernels, run the tests on it, count the bugs caught.

    python tests/pallas_kernels/mutate.py [word]     only mutations whose file or text contains the word

Not collected by pytest: run it when a kernel changes, and write the figure into pallas_kernels/README.md.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
ATTENTION = "test_kernel_attention.py -k kernels_match"
REST = "test_kernel_operations.py -k kernels_match"
PLAIN = "test_kernel_operations.py -k references_match"  # pure JAX on every platform
TPU = "test_kernel_tpu.py"
LOWERING = "test_kernel_lowering.py -k other_kernels"  # what Triton's own verifier refuses

# (file, text that occurs once, replacement, tests to run)
MUTATIONS = [
    ("attention/tiles.py", "self.col[None] <= self.row[:, None]", "self.col[None] < self.row[:, None]", ATTENTION),
    (
        "attention/tiles.py",
        "visible = self.row_ok[:, None] & self.col_ok[None]",
        "visible = self.row_ok[:, None] & (self.col >= 0)[None]",
        ATTENTION,
    ),
    (
        "attention/tiles.py",
        "jnp.minimum(stop, first_row + rows + ",
        "jnp.minimum(stop, first_row + rows - 1 + ",
        ATTENTION,
    ),
    ("attention/tiles.py", "start = jnp.maximum(first_col - ", "start = jnp.maximum(first_col + 16 - ", ATTENTION),
    (
        "attention/tiles.py",
        "words = _random.row_keys(seed[0], seed[1], number)",
        "words = _random.row_keys(seed[0], seed[1], number % case.queries)",
        ATTENTION,
    ),
    (
        "attention/tiles.py",
        "return batch, head // group, index(ids), *tail",
        "return batch, head % self.case.key_heads, index(ids), *tail",
        ATTENTION,
    ),
    (
        "attention/tiles.py",
        "visible &= row_id[:, None] == col_id[None]",
        "visible &= row_id[:, None] >= col_id[None]",
        ATTENTION,
    ),
    (
        "attention/tiles.py",
        'visible &= (self.col < self.refs["key_lengths"][0])[None]',
        'visible &= (self.col <= self.refs["key_lengths"][0])[None]',
        ATTENTION,
    ),
    ("attention/tiles.py", "batch if shape[0] > 1 else 0,", "0,", ATTENTION),
    ("attention/gpu.py", "total = total * shrink + weight.sum(1)", "total = total + weight.sum(1)", ATTENTION),
    ("attention/gpu.py", "return acc * shrink[:, None] + update", "return acc + update", ATTENTION),
    ("attention/gpu.py", "out = acc / jnp.maximum(total, 1.0)[:, None]", "out = acc / total[:, None]", ATTENTION),
    ("attention/gpu.py", "lowest = jnp.finfo(jnp.float32).min", "lowest = -jnp.inf", ATTENTION),
    ("attention/gpu_backward.py", "reached, used = reached * kept, weight * kept", "used = weight * kept", ATTENTION),
    (
        "attention/gpu_backward.py",
        "return used, weight * (reached - delta[:, None])",
        "return used, weight * reached",
        ATTENTION,
    ),
    ("attention/gpu_backward.py", "bounds = every if save_scores else", "bounds = None or", ATTENTION),
    (
        "attention/gpu_backward.py",
        "jnp.int32(case.group),",
        "jnp.int32(1),",
        ATTENTION,
    ),
    ("attention/gpu_backward.py", "(dk * jnp.float32(case.scale))", "(dk * jnp.float32(1))", ATTENTION),
    (
        "attention/gpu_backward.py",
        "_compat.at(dcolumns_ref[0], g, slice(None))",
        "_compat.at(dcolumns_ref[0], 0, slice(None))",
        ATTENTION,
    ),
    (
        "attention/api.py",
        "delta = delta - jnp.where(total > 0, grad_lse, 0)",
        "delta = delta + 0 * grad_lse",
        ATTENTION,
    ),
    (
        "norm/gpu.py",
        "centre = jnp.where(column[None], centre - mean[:, None], 0.0)",
        "centre = centre - mean[:, None]",
        REST,
    ),
    ("norm/gpu.py", "(steps - first + programs - 1) // programs", "(steps - first) // programs", REST),
    ("norm/gpu.py", 'change = change + wide("grad_sum")', "change = change", REST),
    ("norm/gpu.py", "change = change - (scaled.sum(1) / case.columns)[:, None]", "change = change", REST),
    ("losses/gpu.py", "total = total * jnp.exp(top - new_top)", "total = total", REST),
    ("losses/gpu.py", "shown = jnp.where(inside, z, -jnp.inf)", "shown = z", REST),
    (
        "grouped/gpu.py",
        "first + jnp.arange(bm, dtype=jnp.int32) < end\n",
        "first + jnp.arange(bm, dtype=jnp.int32) < case.rows\n",
        REST,  # programs in order hide it: a later one writes those rows again
    ),
    (
        "grouped/gpu.py",
        "jnp.where((group < case.groups) & (first < end), ",
        "jnp.where(first < end, ",
        REST,
    ),
    (
        "grouped/tiles.py",
        "jnp.cumsum((ends - starts + block - 1) // block)",
        "jnp.cumsum((ends - starts) // block)",
        REST,
    ),
    ("recurrent/gpu.py", "passed = jnp.where(alive, passed, dh)", "passed = passed", REST),
    ("recurrent/gpu.py", "t = k if case.reverse else case.steps - 1 - k", "t = case.steps - 1 - k", REST),
    (
        "recurrent/cells.py",
        "return [dr, dz, dn], [dr, dz, dn * r], dh * z, None",
        "return [dr, dz, dn], [dr, dz, dn], dh * z, None",
        REST,
    ),
    ("norm/gpu.py", "row = _compat.Block((None, width), lambda i, w: (w, 0))", "row = _compat.Block((None, width), lambda i, w: (0, 0))", REST),
    ("norm/gpu.py", "row = _compat.Block((None, width), lambda p, w: (w, 0))", "row = _compat.Block((None, width), lambda p, w: (0, 0))", REST),
    ("norm/gpu.py", "return carry[0] + (grad * normal).sum(0),", "return (grad * normal).sum(0),", REST),
    ("norm/gpu.py", "change = change * inverse", "change = change", REST),
    ("losses/gpu.py", "known = (target == case.ignore_index) | (", "known = (", REST),
    ("losses/gpu.py", "weighted = weighted + z.sum()", "weighted = z.sum()", REST),
    ("losses/gpu.py", "picked = picked + jnp.where(", "picked = jnp.where(", REST),
    ("losses/api.py", "constant_values=0 if k else case.ignore_index", "constant_values=0", PLAIN),
    ("losses/api.py", "scale = lambda g: (g.astype(gradient.dtype) * gradient).astype(g.dtype)", "scale = lambda g: g", PLAIN),
    ("losses/api.py", "carry, (dw, db)) if wanted else carry), (loss, dx)", "carry, (0 * dw, db)) if wanted else carry), (loss, dx)", PLAIN),
    ("losses/reference.py", "hard = weight * scale * (1 - case.smoothing)", "hard = weight * scale", PLAIN),
    ("grouped/gpu.py", "(end - start + bm - 1) // bm, step", "(end - start) // bm, step", REST),
    ("grouped/gpu.py", "row_ok = (first + jnp.arange(bm, dtype=jnp.int32) < end)", "row_ok = (first + jnp.arange(bm, dtype=jnp.int32) < case.rows)", REST),
    ("grouped/gpu.py", "jnp.int32(steps), jnp.int32(0))", "steps, 0)", LOWERING),
    ("grouped/tiles.py", "count = -(-rows // block) + sizes.shape[0] + 1", "count = -(-rows // block)", REST),
    ("grouped/tpu.py", "jnp.where((jnp.arange(case.rows) < end)[:, None], out, 0)", "out", TPU),
    ("attention/tpu.py", "bias = bias / case.scale", "bias = bias", TPU),
    ("attention/tpu.py", "jnp.repeat(x, case.group, axis=1)", "jnp.tile(x, (1, case.group, 1, 1))", TPU),
    ("attention/tpu.py", "(case.batch, case.keys), wide, -2)", "(case.batch, case.keys), wide, -1)", TPU),
    ("recurrent/gpu.py", "u[2] = u[2] + bias", "u[0] = u[0] + bias", REST),
    ("recurrent/gpu.py", "t = case.steps - 1 - k if case.reverse else k", "t = k", REST),
    ("recurrent/gpu.py", "new_h = jnp.where(alive, new_h, h)", "new_h = new_h", REST),
    ("recurrent/gpu.py", "_compat.dot(u[g], weight[g], contract=(1, 0)", "_compat.dot(u[g], weight[g], contract=(1, 1)", REST),
    ("recurrent/cells.py", "dc = dc + dh * o * (1 - t * t)", "dc = dh * o * (1 - t * t)", REST),
]


def caught(file: str, old: str, new: str, tests: str) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "pallas_kernels", copy / "pallas_kernels", ignore=ignore)
        shutil.copytree(ROOT / "tests" / "pallas_kernels", copy / "tests" / "pallas_kernels", ignore=ignore)
        target = copy / "pallas_kernels" / file
        text = target.read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{file}: {old!r} occurs {text.count(old)} times")
        target.write_text(text.replace(old, new))
        name, *options = tests.split()
        environment = {**os.environ, "PYTHONPATH": directory}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            f"tests/pallas_kernels/{name}",
            *options,
        ]
        run = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment)
        if run.returncode not in (0, 1):
            raise SystemExit(run.stdout[-3000:])
        return run.returncode == 1


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [m for m in MUTATIONS if word in m[0] or word in m[1] or word == m[3].split()[0]]
    survivors = []
    for file, old, new, tests in chosen:
        found = caught(file, old, new, tests)
        print("caught  " if found else "SURVIVED", file, repr(old), "->", repr(new), flush=True)
        if not found:
            survivors.append(old)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} caught")


if __name__ == "__main__":
    main()
