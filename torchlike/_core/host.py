"""The first tier: a program operation by operation in NumPy.

A program's steps are bound once: each to its NumPy kernel and to the places of its arguments in one list of cells, which
holds the results, then the inputs, a None, and the numbers. What is large and read no more is dropped on the way.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

import jax
import numpy as np

from . import device as _device
from .aval import BOOL, FLOAT, INT

LARGE = 1 << 14  # elements of a result that is dropped after its last use


class _Options:
    numpy_only = False


options = _Options()


def numpy_only() -> None:
    """From now on this process never asks JAX to compile or run anything (data-loading workers)."""
    options.numpy_only = True


class Failure:
    """Stands for a result whose kernel raised, or that depends on one."""

    __slots__ = ("error",)

    def __init__(self, error: Exception):
        self.error = error


def kernel_of(plan) -> Callable:
    """A plan's NumPy kernel, or its own XLA executable where it has none: an array, or several for several results."""
    kernel = plan.numpy
    if kernel is not None:
        return kernel
    if options.numpy_only:
        raise RuntimeError(f"{plan.op.name} has no NumPy form, and a data-loading worker runs no JAX")

    def run(*args):
        with jax.enable_x64(True), jax.default_device(_device.jax_device(_device.CPU)):
            outs = [np.asarray(o) for o in plan.xla(*args)]
        return outs[0] if plan.single else outs
    return run


class HostProgram:
    """The steps of a program, bound for some live results."""

    __slots__ = ("steps", "numbers", "n_results")

    def __init__(self, info, live: tuple):
        n = self.n_results = info.n_results
        none = n + len(info.input_avals)
        self.numbers = numbers = []  # kinds
        last_use: dict[int, int] = {}  # of large results
        self.steps = steps = []
        for k, step in enumerate(info.steps):
            plan, where = step.plan, []
            for ref in step.refs:
                if ref.__class__ is int:
                    if ref < 0:
                        ref = n + ~ref
                    elif ref in last_use:
                        last_use[ref] = k
                    where.append(ref)
                elif ref is None:
                    where.append(none)
                else:
                    numbers.append(ref)
                    where.append(none + len(numbers))
            out, outs = step.out, plan.outs
            for i, a in enumerate(outs, out):
                if a.numel >= LARGE:
                    last_use[i] = k
            steps.append((plan._numpy or _bound(plan), where[0] if len(where) == 1 else itemgetter(*where) if where else None,
                          out if plan.single else slice(out, out + len(outs)), ()))
        drops: dict[int, list[int]] = {}
        for i in last_use.keys() - live:
            drops.setdefault(last_use[i], []).append(i)
        for k, dropped in drops.items():
            steps[k] = (*steps[k][:3], dropped)

    def cells(self, inputs: list, floats: Sequence, ints: Sequence) -> list:
        """The cells before a run; results are empty."""
        f, k = iter(floats), iter(ints)
        numbers = [next(f) if kind is FLOAT else next(k) if kind is INT else next(k) != 0 if kind is BOOL else complex(next(f), next(f))
                   for kind in self.numbers]
        return [None] * self.n_results + inputs + [None] + numbers

    def run(self, cells: list) -> None:
        """Fill the results' cells. An exception of a kernel passes through."""
        for kernel, where, out, drops in self.steps:
            if where.__class__ is int:
                cells[out] = kernel(cells[where])
            elif where is None:
                cells[out] = kernel()
            else:
                cells[out] = kernel(*where(cells))
            for i in drops:
                cells[i] = None

    def run_isolated(self, cells: list) -> None:
        """As `run`; where a kernel raises, its results and all that depend on them become Failures."""
        for kernel, where, out, _ in self.steps:
            args = () if where is None else (cells[where],) if where.__class__ is int else where(cells)
            made = next((a for a in args if a.__class__ is Failure), None)
            if made is None:
                try:
                    made = kernel(*args)
                except Exception as error:
                    made = Failure(error)
            if out.__class__ is slice and made.__class__ is Failure:
                made = [made] * (out.stop - out.start)
            cells[out] = made


def _bound(plan) -> Callable:
    """A plan's kernel; one that cannot even be made raises when it runs."""
    try:
        return kernel_of(plan)
    except Exception as error:
        def fail(*args, error=error):
            raise error
        return fail


def run(info, live: tuple, inputs: list, floats: Sequence, ints: Sequence) -> list:
    """The live results of a program, as host arrays or Failures."""
    bound = info.hosts.get(live)
    if bound is None:
        bound = HostProgram(info, live)
        if info.seen > 1:  # most programs that are seen once are never seen again
            info.hosts[live] = bound
    with np.errstate(all="ignore"):
        cells = bound.cells(inputs, floats, ints)
        try:
            bound.run(cells)
        except Exception:  # the results that do not depend on it are not lost
            cells = bound.cells(inputs, floats, ints)
            bound.run_isolated(cells)
    return [cells[i] for i in live]
