"""Compiled products with transpositions: left sides and results that are transposed, gradients, layers on few rows.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/cpu_products.py [--repeats 60] [--out benchmarks/results/cpu_products.md]

torchlike, real torch eager and `jax.jit` of the same formula run in turn in one process; times are medians in microseconds, everything included.
"""
from __future__ import annotations

from collections.abc import Iterator

from one_row import linear, main


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


def cases() -> Iterator[tuple]:
    import jax
    swap = lambda x: x.swapaxes(-1, -2)  # noqa: E731
    in_order = lambda x: getattr(x, "contiguous", lambda: x)()  # noqa: E731
    pairs = (
        ("x^T y", plain(lambda x, y: swap(x * 2) @ y),
         (((784, 2048), (784, 10)), ((512, 512), (512, 64)), ((768, 384), (768, 128)), ((4, 512, 512), (4, 512, 64)))),
        ("(x y)^T", plain(lambda x, y: in_order(swap(x @ y))),
         (((64, 512), (512, 512)), ((64, 2048), (2048, 64)), ((300, 300), (300, 300)), ((256, 64), (64, 784)))),
        ("gradients of x^T y^T", gradients(lambda x, y: swap(x) @ swap(y)), (((512, 64), (512, 512)), ((128, 1024), (128, 128)))),
        ("gradients of x y", gradients(lambda x, y: x @ y), (((4, 512, 512), (4, 512, 64)), ((64, 784), (784, 256)))))
    for what, (f, by_hand), shapes in pairs:
        for x, y in shapes:
            yield f"{what}, x {x}, y {y}", f, by_hand, [x, y]
    by_hand = jax.jit(lambda x, w, b: x @ w.T + b)
    for rows in (4, 16, 32, 128):
        for n in (512, 2048):
            yield f"linear on {rows} rows, {n} to {n}", linear, by_hand, [(rows, n), (n, n), (n,)]


if __name__ == "__main__":
    main(__doc__, cases, 60)
