"""Compiled products with transpositions: left sides and results that are transposed, gradients, layers on few rows.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/cpu_products.py [--repeats 60] [--out benchmarks/results/cpu_products.md]

torchlike, real torch eager and `jax.jit` of the same formula run in turn in one process; times are medians in microseconds, everything included.
"""
from __future__ import annotations

import argparse

from one_row import report, row


def gradients(f):
    """Of f's two arguments, where all of its result has the gradient 1, in torch's API and by hand."""
    def run(torch, x, y):
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        with torch.enable_grad():
            gx, gy = torch.autograd.grad(f(x, y).sum(), (x, y))
        return gx + gy.reshape(-1)[0]

    def by_hand():
        import jax

        def both(x, y):
            gx, gy = jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)
            return gx + gy.reshape(-1)[0]
        return jax.jit(both)
    return run, by_hand()


def plain(f):
    import jax
    return (lambda torch, x, y: f(x, y)), jax.jit(f)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--out")
    options = parser.parse_args()
    from torchlike._core.program import tier
    swap = lambda x: x.swapaxes(-1, -2)  # noqa: E731
    in_order = lambda x: getattr(x, "contiguous", lambda: x)()  # noqa: E731
    cases = [(f"x^T y, x {x}, y {y}", plain(lambda x, y: swap(x * 2) @ y), x, y)
             for x, y in (((784, 2048), (784, 10)), ((512, 512), (512, 64)), ((768, 384), (768, 128)), ((4, 512, 512), (4, 512, 64)))]
    cases += [(f"(x y)^T, x {x}, y {y}", plain(lambda x, y: in_order(swap(x @ y))), x, y)
              for x, y in (((64, 512), (512, 512)), ((64, 2048), (2048, 64)), ((300, 300), (300, 300)), ((256, 64), (64, 784)))]
    cases += [(f"gradients of x^T y^T, x {x}, y {y}", gradients(lambda x, y: swap(x) @ swap(y)), x, y)
              for x, y in (((512, 64), (512, 512)), ((128, 1024), (128, 128)))]
    cases += [(f"gradients of x y, x {x}, y {y}", gradients(lambda x, y: x @ y), x, y) for x, y in (((4, 512, 512), (4, 512, 64)), ((64, 784), (784, 256)))]
    lines = ["| what | torchlike | torch | jax.jit | torchlike / torch | torchlike / jax.jit |", "|---|---|---|---|---|---|"]
    with tier("compiled"):
        for name, (f, by_hand), x, y in cases:
            lines.append(row(name, f, [x, y], options.repeats, by_hand))
        import jax
        layer = lambda torch, x, w, b: torch.nn.functional.linear(x, w, b)  # noqa: E731
        for rows in (4, 16, 32, 128):
            for inputs, outputs in ((512, 512), (2048, 2048)):
                lines.append(row(f"linear on {rows} rows, {inputs} to {outputs}", layer, [(rows, inputs), (outputs, inputs), (outputs,)], options.repeats,
                                 jax.jit(lambda x, w, b: x @ w.T + b)))
    report(__doc__, lines, options.out)


if __name__ == "__main__":
    main()
