"""What torch makes of numbers (and 0-dim tensors) beside tensors of 16-bit floats, which it computes with in 32 bits, and where it rounds to 16."""
from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .._core import dtype as dt
from .._core.arrays import cast
from .._core.registry import Elementwise, Form

NARROW = frozenset({dt.float16, dt.bfloat16})


def _others(avals: tuple, common: dt.dtype) -> list[bool]:
    """Which operands are of another type than the common one."""
    return [a is not None and (a.number or a.dtype is not common) for a in avals]


class Rounded(Elementwise):
    """A number is rounded to the 16 bits of the tensors first."""

    def form(self, avals: tuple, statics: tuple, common: dt.dtype) -> Form:
        form, others = super().form(avals, statics, common), _others(avals, common)
        if common not in NARROW or not any(others):
            return form
        host, run, kind = form.host, form.run, common.np
        return form._replace(
            host=lambda *arrays: host(*[np.asarray(x, kind) if other else x for x, other in zip(arrays, others)]),
            run=lambda xp, *arrays: run(xp, *[stepped(xp, cast(xp, x, kind)) if other else x for x, other in zip(arrays, others)]))


class Stepped(Rounded):
    """A formula of several steps, each of which PyTorch rounds to 16 bits: its kernel takes `rounded`, by which it does so."""

    def kernel_in(self, compute: dt.dtype) -> Callable:
        return functools.partial(self.kernel, rounded=_ROUNDED[compute]) if compute in NARROW else self.kernel


def _rounder(kind: np.dtype) -> Callable:
    def rounded(xp, x):
        return np.asarray(x.astype(kind)).astype(np.float32) if xp is np else cast(xp, stepped(xp, cast(xp, x, kind)), np.dtype(np.float32))
    return rounded


_ROUNDED = {t: _rounder(t.np) for t in NARROW}


def stepped(xp, x):
    """x, of 16 bits, rounded to them here: XLA goes on with what it has where it can."""
    if x.dtype.itemsize != 2 or x.dtype.kind in "iub" or xp is np:
        return x
    from jax import lax
    info = xp.finfo(x.dtype)
    return lax.reduce_precision(x, info.nexp, info.nmant)


class Scaled(Elementwise):
    """x + a * y: `a` is rounded to 16 bits, the sum once in the end. (torch does so for whole vectors; after the last one, some 30 elements at most,
    it rounds the product as well.)"""

    def form(self, avals: tuple, statics: tuple, common: dt.dtype) -> Form:
        form, others = super().form(avals, statics, common), _others(avals, common)
        if common not in NARROW:
            return form
        kernel, out, kind, wide = self.kernel, form.out.np, common.np, np.dtype(np.float32)

        def run(xp, *arrays):
            rounded = [stepped(xp, cast(xp, x, kind)) if other else x for x, other in zip(arrays, others)]
            return cast(xp, kernel(xp, *[cast(xp, x, wide) for x in rounded]), out)
        return form._replace(run=run, host=None)
