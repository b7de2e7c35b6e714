"""Convolutions on the CPU: torchlike's kernels, XLA's own, and real torch; milliseconds of processor time, the best of some runs.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/convolution.py [--wall] [--out benchmarks/results/convolution.md]
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import describe  # noqa: E402

# batch, channels, side, features, kernel, stride, padding, groups
SHAPES = [(64, 1, 28, 32, 3, 1, 0, 1), (64, 32, 26, 64, 3, 1, 0, 1), (32, 3, 32, 16, 3, 1, 1, 1), (32, 16, 32, 16, 3, 1, 1, 1),
          (32, 16, 32, 32, 3, 2, 1, 1), (32, 32, 16, 32, 3, 1, 1, 1), (32, 64, 8, 64, 3, 1, 1, 1), (32, 16, 32, 32, 1, 2, 0, 1), (32, 32, 16, 32, 1, 1, 0, 1),
          (8, 64, 56, 256, 1, 1, 0, 1), (16, 24, 28, 144, 1, 1, 0, 1),
          (8, 64, 56, 64, 3, 1, 1, 1), (8, 512, 7, 512, 3, 1, 1, 1), (4, 3, 224, 64, 7, 2, 3, 1), (2, 64, 112, 64, 3, 1, 1, 1),
          (16, 64, 32, 64, 3, 1, 1, 64), (16, 64, 32, 64, 3, 1, 1, 4), (64, 16, 14, 16, 5, 1, 2, 1), (16, 6, 14, 16, 5, 1, 0, 1), (4, 3, 224, 384, 16, 16, 0, 1),
          (4, 96, 56, 192, 2, 2, 0, 1), (4, 3, 224, 64, 11, 4, 2, 1)]


def contenders(shape):
    import jax
    import jax.numpy as jnp
    import numpy as np
    import torch

    from torchlike.nn._functional import conv, conv_cpu
    n, c, side, o, k, s, p, groups = shape
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((n, c, side, side), np.float32), rng.standard_normal((o, c // groups, k, k), np.float32)
    xt, wt = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    yt = torch.nn.functional.conv2d(xt, wt, None, s, p, 1, groups)
    g = rng.standard_normal(tuple(yt.shape), np.float32)
    gt = torch.tensor(g)
    geo = conv_cpu.Geometry(n, c, (side, side), o, (k, k), (s, s), ((p, p), (p, p)), (1, 1), groups)
    own = lambda x, w: conv._conv(jnp, x, w, None, geo.stride, geo.padding, geo.dilation, groups)  # noqa: E731
    forward, backward = jax.jit(lambda x, w: conv_cpu.convolve(x, w, geo)), jax.jit(lambda x, w, g: conv_cpu.gradients(x, w, g, geo, (True, True)))
    xla_forward, xla_backward = jax.jit(own), jax.jit(lambda x, w, g: jax.vjp(own, x, w)[1](g))
    x, w, g = jnp.array(x), jnp.array(w), jnp.array(g)
    for a, b in ((forward(x, w), yt.detach().numpy()), *zip(backward(x, w, g), [d.numpy() for d in torch.autograd.grad(yt, (xt, wt), gt, retain_graph=True)])):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * float(abs(b).max()))
    return geo, {"torch": (lambda: torch.nn.functional.conv2d(xt, wt, None, s, p, 1, groups),
                           lambda: torch.autograd.grad(yt, (xt, wt), gt, retain_graph=True)),
                 "ours": (lambda: forward(x, w).block_until_ready(), lambda: jax.block_until_ready(backward(x, w, g))),
                 "XLA": (lambda: xla_forward(x, w).block_until_ready(), lambda: jax.block_until_ready(xla_backward(x, w, g)))}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--wall", action="store_true", help="wall-clock time, for several threads")
    arguments = parser.parse_args()
    import numpy as np
    import torch

    from torchlike.nn._functional import conv_library, conv_patches, conv_pointwise
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    clock = time.perf_counter if arguments.wall else time.process_time
    lines = ["| batch, channels, side, features, kernel, stride, padding, groups | form of the forward | forward: torch, ours, XLA ms | ours / torch | ours / XLA |"
             " gradients: torch, ours, XLA ms | ours / torch | ours / XLA |", "|---|---|---|---|---|---|---|---|"]
    print("\n".join(lines))
    against_torch = []
    for shape in SHAPES:
        geo, runs = contenders(shape)
        best = {}
        for _ in range(arguments.runs):
            for name, pair in runs.items():
                for i, run in enumerate(pair):
                    start = clock()
                    run()
                    best[name, i] = min(best.get((name, i), 1e9), 1e3 * (clock() - start))
        whole = "windows tile" if conv_patches.serves(geo) else "single positions" if conv_pointwise.serves(geo) else ""
        left = not whole and conv_library.serves(geo, np.dtype(np.float32))
        form = whole or ("XLA's" if left else "depthwise" if geo.depthwise else "last axis" if geo.gathers_last else "all offsets")
        form += "" if left or whole else f", {geo.together} images" if geo.together > 1 else f", {geo.bands} bands" if geo.bands > 1 else ""
        cells = []
        for i in (0, 1):
            t, o, x = (best[name, i] for name in ("torch", "ours", "XLA"))
            cells.append(f"{t:.2f}, {o:.2f}, {x:.2f} | {o / t:.2f} | {o / x:.2f}")
            against_torch.append(o / t)
        lines.append(f"| {', '.join(map(str, shape))} | {form} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    lines.append(f"\nGeometric mean of ours / torch: {statistics.geometric_mean(against_torch):.2f}")
    print(lines[-1])
    if arguments.out:
        Path(arguments.out).write_text(f"{__doc__}\n{describe()}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
