"""Attention of long sequences, forward alone and with its gradients.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/long_attention.py [--repeats 12] [--out benchmarks/results/long_attention.md]

torchlike, real torch eager and `jax.jit` of the formula run in turn in one process; times are medians in microseconds, everything included.
"""
from __future__ import annotations

from collections.abc import Iterator

from one_row import main

SHAPES = ((8, 8, 256, 32), (4, 8, 512, 32), (1, 8, 512, 64), (2, 4, 1024, 32), (1, 4, 1024, 64), (1, 4, 2048, 64), (1, 2, 4096, 128))


def forward(causal: bool):
    def attend(torch, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return attend


def gradients(causal: bool):
    """The sum of the three gradients, where the result's is the result."""
    attend = forward(causal)

    def run(torch, *operands):
        q, k, v = (x.detach().requires_grad_() for x in operands)
        with torch.enable_grad():
            out = attend(torch, q, k, v)
            return sum(torch.autograd.grad(out, (q, k, v), out.detach()))
    return run


def by_hand(causal: bool, derived: bool):
    import jax
    import numpy as np

    def attend(q, k, v):
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
        if causal:
            scores = jax.numpy.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        return jax.nn.softmax(scores, axis=-1) @ v

    def run(q, k, v):
        out, pull = jax.vjp(attend, q, k, v)
        return sum(pull(out)) if derived else out
    return jax.jit(run)


def cases() -> Iterator[tuple]:
    for shape in SHAPES:
        for causal in (False, True):
            for derived in (False, True):
                name = f"{shape}{', causal' * causal}{', with gradients' * derived}"
                yield name, (gradients if derived else forward)(causal), by_hand(causal, derived), [shape] * 3


if __name__ == "__main__":
    main(__doc__, cases, 12)
