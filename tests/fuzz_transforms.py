"""Random functions under random compositions of torch.func's transforms, on real torch and on torchlike.

    python tests/fuzz_transforms.py --functions 1000 --seed 0

Results in float64 are compared, and that there is one; what real torch refuses is left alone.
"""
import argparse
import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import numpy as np  # noqa: E402

HUGE = 1e12  # results beyond are left alone: what is left of their digits is another in each order of operations


def _written(x):
    y = x.clone()
    y[..., 0] = y[..., -1] * 2
    return y.mul_(1.5)


def _swapped(t, x):
    y = x.clone()
    y[t.tensor([0, 1])] = x[t.tensor([1, 0])] * 3
    return y


def _definite(t, x):
    return x[..., :2, :2] + 3 * t.eye(2, dtype=t.float64)


# Functions of one tensor, and of two: `(torch, x)`, `(torch, x, z)`. What does not fit a shape raises in both libraries alike.
UNARY: list[Callable] = [
    *(lambda t, x, name=name: getattr(t, name)(x) for name in "sin cos tanh sigmoid neg abs square erf round frac sign atan sinc".split()),
    *(lambda t, x, name=name: getattr(t.nn.functional, name)(x) for name in "relu softplus gelu silu elu logsigmoid hardswish".split()),
    lambda t, x: x.clamp(-3, 3).exp(), lambda t, x: (x * x + 1).sqrt(), lambda t, x: t.log1p(x * x), lambda t, x: x.cumsum(-1),
    lambda t, x: x.cumprod(-1), lambda t, x: x.logcumsumexp(0), lambda t, x: x.softmax(-1), lambda t, x: x.log_softmax(0), lambda t, x: x.logsumexp(-1),
    lambda t, x: x.sort(-1)[0], lambda t, x: x.flip(0), lambda t, x: x.roll(1, -1), lambda t, x: x.mT, lambda t, x: x.sum(0),
    lambda t, x: x.mean(-1, keepdim=True), lambda t, x: x.max(-1)[0], lambda t, x: x.amax(-1), lambda t, x: x.prod(-1), lambda t, x: x.std(-1),
    lambda t, x: x.var(0), lambda t, x: x.tril() if x.ndim > 1 else x, lambda t, x: t.nn.functional.pad(x, (1, 0)), lambda t, x: x.unfold(-1, 2, 1),
    lambda t, x: x.reshape(-1), lambda t, x: x[..., 0], lambda t, x: x[..., 1:], lambda t, x: x.clone().tanh_(), lambda t, x: _written(x),
    lambda t, x: x.detach() + x, lambda t, x: x.diagonal(0, -2, -1), lambda t, x: (x + 0.1).norm(), lambda t, x: x.clamp(-0.5, 0.7),
    lambda t, x: t.where(x > 0, x, x * 0.1), lambda t, x: x.masked_fill(x.detach() > 0.5, 0.25), lambda t, x: x.topk(2, -1)[0],
    lambda t, x: x.unsqueeze(0).expand(2, *x.shape), lambda t, x: x[t.tensor([1, 0, 1])], lambda t, x: x.gather(-1, (x.detach() > 0).long()),
    lambda t, x: x.chunk(2, -1)[0], lambda t, x: t.stack([x, x * 2], -1), _swapped, lambda t, x: x.scatter(-1, (x.detach() > 0).long(), 0.5),
    lambda t, x: t.minimum(x, x.flip(-1)), lambda t, x: t.linalg.det(_definite(t, x)), lambda t, x: t.linalg.inv(_definite(t, x)),
    lambda t, x: x.repeat(*[1] * (x.ndim - 1), 2), lambda t, x: t.einsum("...i,...i->...", x, x),
    lambda t, x: t.nn.functional.conv1d(x.reshape(1, 1, -1), t.ones(1, 1, 2, dtype=t.float64)),
]
BINARY: list[Callable] = [
    lambda t, x, z: x + z, lambda t, x, z: x - z, lambda t, x, z: x * z, lambda t, x, z: x / (z * z + 1), lambda t, x, z: x @ z.mT, lambda t, x, z: t.maximum(x, z),
    lambda t, x, z: (x.abs() + 0.5) ** z.clamp(-2, 2), lambda t, x, z: t.atan2(x, z + 2), lambda t, x, z: t.cat([x, z], -1), lambda t, x, z: t.where(x > z, x, z),
    lambda t, x, z: t.lerp(x, z, 0.3), lambda t, x, z: t.outer(x.reshape(-1), z.reshape(-1)), lambda t, x, z: t.addcmul(x, x, z, value=0.5),
    lambda t, x, z: t.hypot(x, z + 2), lambda t, x, z: t.nn.functional.linear(x, z), lambda t, x, z: t.nn.functional.mse_loss(x, z),
    lambda t, x, z: x.index_add(0, t.tensor([0, 1]), z[:2]), lambda t, x, z: t.bmm(x.unsqueeze(0), z.mT.unsqueeze(0)),
]


def _pulled(t, f, which):
    def run(*args):
        y, pull = t.func.vjp(f, *args)
        return pull(y * 0.5 + 0.3)[which]
    return run


def _graded(t, f, which):
    def run(*args):
        g, value = t.func.grad_and_value(lambda *new: f(*new).sum(), argnums=which)(*args)
        return g + value
    return run


def _reverse(t, f, which):
    return t.func.jacrev(f, argnums=which)


def _forward(t, f, which):
    return t.func.jacfwd(f, argnums=which)


OTHER_WAY = {_reverse: _forward, _forward: _reverse}
# `(torch, function, which argument) -> function`
TRANSFORMS: list[Callable] = [
    lambda t, f, which: t.func.grad(lambda *args: f(*args).sum(), argnums=which),
    lambda t, f, which: lambda *args: t.func.vmap(f)(*(t.stack([x, x * 0.5 + 0.1]) for x in args)),
    lambda t, f, which: lambda a, b: t.func.vmap(f, in_dims=(-1, 0))(t.stack([a, a * 0.5], -1), t.stack([b, b * 0.7])),
    lambda t, f, which: lambda a, b: t.func.vmap(f, in_dims=(0, None))(t.stack([a, a * 0.5]), b),
    lambda t, f, which: lambda *args: t.func.vmap(f, out_dims=-1)(*(t.stack([x, x * 0.5 + 0.1]) for x in args)),
    lambda t, f, which: lambda *args: sum(t.func.jvp(f, args, tuple(x * 0.3 + 0.2 for x in args))),
    _pulled, _graded, _reverse, _forward,
    lambda t, f, which: t.func.hessian(lambda *args: f(*args).sum(), argnums=which),
]


def result(torch: Any, seed: int, other_way: bool = False) -> np.ndarray | Exception:
    """What the function of a seed gives, or what it raised. `other_way`: its Jacobians are taken forwards where they were backwards, and backwards."""
    r = random.Random(seed)
    steps = [(r.choice(UNARY), r.random()) if r.random() < 0.7 else (r.choice(BINARY), r.random(), r.random()) for _ in range(r.randint(1, 6))]
    transforms = [(r.choice(TRANSFORMS), r.randrange(2)) for _ in range(r.randint(1, 3))]
    shape = r.choice([(2, 3), (3, 2), (2, 2), (3, 3), (3,)])

    def f(*args):
        values = list(args)
        for step, at, *other in steps:
            given = [values[int(3 * at * len(values))] if at < 1 / 3 else values[-1], *(values[int(k * len(values))] for k in other)]
            values.append(step(torch, *given))
        return values[-1]
    for transform, which in transforms:
        f = (OTHER_WAY.get(transform, transform) if other_way else transform)(torch, f, which)
    numbers = np.random.default_rng(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*(torch.tensor(numbers.standard_normal(shape).tolist(), dtype=torch.float64) for _ in range(2))).detach().numpy()
    except Exception as error:
        return error


def check(oracle: Any, subject: Any, seed: int) -> str | None:
    """How the libraries differ, where real torch agrees with itself: some of its second derivatives do not."""
    want = result(oracle, seed)
    if isinstance(want, Exception) or not np.isfinite(want).all() or np.abs(want).max(initial=0) > HUGE:
        return None
    got = result(subject, seed)
    if isinstance(got, Exception):
        return f"{type(got).__name__}: {got}"
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if np.allclose(got, want, rtol=1e-7, atol=1e-9):
        return None
    again = result(oracle, seed, other_way=True)
    if not isinstance(again, Exception) and np.allclose(got, again, rtol=1e-7, atol=1e-9):
        return None
    return f"differs by {np.abs(got - want).max()} of {np.abs(want).max()}"


def main() -> None:
    import torch

    import torchlike
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--functions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = 0
    for seed in range(args.seed, args.seed + args.functions):
        if difference := check(torch, torchlike, seed):
            found += 1
            print(f"seed {seed}: {difference}", flush=True)
    print(f"{args.functions} functions, {found} differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
