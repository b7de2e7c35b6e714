"""The first tier: a program operation by operation in NumPy.

A program's steps are bound once: each to its NumPy kernel and to the places of its arguments in one list of cells, which
holds the results, then the inputs, a None, and the numbers. What is large and read no more is dropped on the way, or written in place.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

import jax
import numpy as np

from . import device as _device
from .aval import BOOL, FLOAT, INT
from .overwrite import overwriting
from .silence import silently

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


def memory(array: np.ndarray):
    """What owns the memory that an array looks into."""
    while array.__class__ is np.ndarray and array.base is not None:
        array = array.base
    return array


def _needed(steps: list, live: tuple) -> set[int]:
    """Which steps the live results are computed by."""
    read, found = set(live), set()
    for k in range(len(steps) - 1, -1, -1):
        step = steps[k]
        if not read.isdisjoint(range(step.out, step.out + len(step.plan.outs))):
            found.add(k)
            read.update([r for r in step.refs if r.__class__ is int])
    return found


def _written(plan) -> tuple:
    """Which arguments of an operation its kernel may change where nobody reads them later; large ones are worth it."""
    if plan.op.overwrites:
        return (0,) if plan.outs[0].numel >= LARGE else ()
    return tuple(i for i in plan.op.renewed(plan) if plan.avals[i].numel >= LARGE)


class HostProgram:
    """The steps of a program, bound for some live results."""

    __slots__ = ("steps", "numbers", "n_results", "overwrites")

    def __init__(self, info, live: tuple):
        n = self.n_results = info.n_results
        none = n + len(info.input_avals)
        self.numbers = numbers = []  # kinds
        writers = {k: found for k, s in enumerate(info.steps) if (found := _written(s.plan))}  # which of their arguments they may change
        self.overwrites = bool(writers)  # then every cell is dropped in time: a forgotten view would keep its base from being written
        last_use: dict[int, int] = dict.fromkeys(range(n, none), -1) if writers else {}  # of large results
        steps: list[tuple | None] = []
        needed = _needed(info.steps, live)
        for k, step in enumerate(info.steps):
            if k not in needed:
                numbers += [ref for ref in step.refs if ref is not None and ref.__class__ is not int]
                steps.append(None)
                continue
            plan, where = step.plan, []
            for ref in step.refs:
                if ref.__class__ is int:
                    ref = ref if ref >= 0 else n + ~ref
                    if ref in last_use:
                        last_use[ref] = k
                    where.append(ref)
                elif ref is None:
                    where.append(none)
                else:
                    numbers.append(ref)
                    where.append(none + len(numbers))
            out, outs = step.out, plan.outs
            for i, a in enumerate(outs, out):
                if writers or a.numel >= LARGE:
                    last_use[i] = k
            steps.append((plan._numpy or _bound(plan), where[0] if len(where) == 1 else itemgetter(*where) if where else None,
                          out if plan.single else slice(out, out + len(outs)), ()))
        drops: dict[int, list[int]] = {}
        for i in last_use.keys() - live:
            drops.setdefault(last_use[i], []).append(i)
        drops.pop(-1, None)  # inputs that nothing reads
        for k, dropped in drops.items():
            kernel, where, out, _ = steps[k]
            if k in writers:
                refs = [r if r.__class__ is not int or r >= 0 else n + ~r for r in info.steps[k].refs]
                if places := tuple(i for i in writers[k] if refs[i].__class__ is int and refs[i] in dropped):
                    kernel = overwriting(kernel, places)
            steps[k] = (kernel, where, out, dropped)
        self.steps = [step for step in steps if step is not None]

    def cells(self, inputs: list, floats: Sequence, ints: Sequence) -> list:
        """The cells before a run; results are empty."""
        f, k = iter(floats), iter(ints)
        numbers = [next(f) if kind is FLOAT else next(k) if kind is INT else next(k) != 0 if kind is BOOL else complex(next(f), next(f))
                   for kind in self.numbers]
        return [None] * self.n_results + inputs + [None] + numbers

    def run(self, cells: list) -> None:
        """Fill the results' cells. Where a kernel raises, its results and all that depend on them become Failures."""
        steps = iter(self.steps)
        try:
            for kernel, where, out, drops in steps:
                if where.__class__ is int:
                    cells[out] = kernel(cells[where])
                elif where is None:
                    cells[out] = kernel()
                else:
                    cells[out] = kernel(*where(cells))
                for i in drops:
                    cells[i] = None
        except Exception as error:
            _fail(cells, out, Failure(error))
            self._run_isolated(steps, cells)

    def _run_isolated(self, steps: Iterator, cells: list) -> None:
        """The rest of a program in which something failed."""
        for kernel, where, out, _ in steps:
            args = () if where is None else (cells[where],) if where.__class__ is int else where(cells)
            failure = next((a for a in args if a.__class__ is Failure), None)
            try:
                if failure is None:
                    cells[out] = kernel(*args)
            except Exception as error:
                failure = Failure(error)
            if failure is not None:
                _fail(cells, out, failure)


def _fail(cells: list, out: int | slice, failure: Failure) -> None:
    cells[out] = [failure] * (out.stop - out.start) if out.__class__ is slice else failure


def _bound(plan) -> Callable:
    """A plan's kernel; one that cannot even be made raises when it runs."""
    try:
        return kernel_of(plan)
    except Exception as error:
        def fail(*args, error=error):
            raise error
        return fail


def is_foreign(plan) -> bool:
    """Whether a plan has no NumPy kernel."""
    try:
        return plan.numpy is None
    except Exception:  # it raises when it runs, so that only what depends on it is lost
        return False


def bind(info, live: tuple) -> HostProgram:
    """A program's steps for these live results."""
    bound = info.hosts.get(live)
    if bound is None:
        bound = HostProgram(info, live)
        if info.seen > 1:  # most programs that are seen once are never seen again
            info.hosts[live] = bound
    return bound


def run(bound: HostProgram, live: tuple, cells: list) -> list:
    """The live results of a program, as host arrays or Failures."""
    silently(bound.run, cells)
    return [cells[i] for i in live]
