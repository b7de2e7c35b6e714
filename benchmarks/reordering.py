"""Compiled programs that read arrays across their rows: transposed copies of what is computed, norms and pools over permuted images.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/reordering.py [--repeats 60] [--out benchmarks/results/reordering.md]

torchlike, real torch eager and `jax.jit` of the same formula run in turn in one process; times are medians in microseconds, everything included.
"""
from __future__ import annotations

from collections.abc import Iterator

from one_row import main


def cases() -> Iterator[tuple]:
    import jax
    from jax import lax

    def norm(x):
        x = x.transpose(0, 2, 3, 1)
        mean, square = x.mean(-1, keepdims=True), (x * x).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(square - mean * mean + 1e-5)

    def pool(x):
        y = jax.nn.gelu(x, approximate=False).transpose(0, 3, 1, 2)
        return lax.reduce_window(y, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
    for n in (512, 1024):
        yield f"2 a^T, a ({n}, {n})", lambda torch, a: (a.t() * 2).contiguous(), jax.jit(lambda a: a.T * 2), [(n, n)]
        yield f"a + b^T, a and b ({n}, {n})", lambda torch, a, b: a + b.t(), jax.jit(lambda a, b: a + b.T), [(n, n), (n, n)]
    for n, channels, side in ((4, 192, 28), (4, 384, 14), (8, 64, 32)):
        images, last = (n, channels, side, side), (n, side, side, channels)
        yield (f"gelu of channels first, written last, {images}", lambda torch, x: torch.nn.functional.gelu(x.permute(0, 2, 3, 1)).contiguous(),
               jax.jit(lambda x: jax.nn.gelu(x.transpose(0, 2, 3, 1), approximate=False)), [images])
        yield (f"gelu of channels last, written first, {last}", lambda torch, x: torch.nn.functional.gelu(x).permute(0, 3, 1, 2).contiguous(),
               jax.jit(lambda x: jax.nn.gelu(x, approximate=False).transpose(0, 3, 1, 2)), [last])
        yield f"layer norm of channels, {images}", lambda torch, x: torch.nn.functional.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2]), jax.jit(norm), [images]
        yield (f"gelu of channels last, pooled, {last}", lambda torch, x: torch.nn.functional.avg_pool2d(torch.nn.functional.gelu(x).permute(0, 3, 1, 2), 2),
               jax.jit(pool), [last])


if __name__ == "__main__":
    main(__doc__, cases, 60)
