"""The first tier: a program operation by operation in NumPy.

A program's steps are bound once: each to its NumPy kernel and to the places of its arguments in one list of cells, which
holds the results, then the inputs, a None, and the numbers. What is large and read no more is dropped on the way, or written in place.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from time import perf_counter

import jax
import numpy as np

from . import device as _device
from . import observers
from .aval import BOOL, FLOAT, INT
from .overwrite import overwriting
from .silence import silently
from .traces import beside

LARGE = 1 << 14  # elements of a result that is dropped after its last use
WRITTEN = 1 << 12  # elements of an array of which a write into a part is no copy


class _Options:
    numpy_only = False


options = _Options()


def numpy_only() -> None:
    """From now on this process never asks JAX to compile or run anything (data-loading workers)."""
    options.numpy_only = True


class Failure:
    """Stands for a result whose kernel raised, or that depends on one. `instead`: what it would be had the write that failed not been asked for; None where
    something else failed."""

    __slots__ = ("error", "instead")

    def __init__(self, error: Exception, instead: np.ndarray | None = None):
        self.error, self.instead = error, instead


def _failed(error: Exception, plan, args: tuple) -> Failure:
    """Of an operation that raised: one at indices that are out of range has written nothing."""
    writes = isinstance(error, IndexError) and plan.single and plan.avals and plan.outs[0] is plan.avals[0]
    return Failure(error, args[0] if writes else None)


def kernel_of(plan) -> Callable:
    """A plan's NumPy kernel, or its own XLA executable where it has none: an array, or several for several results."""
    kernel = plan.numpy
    if kernel is not None:
        return kernel
    if options.numpy_only:
        raise RuntimeError(f"{plan.op.name} has no NumPy form, and a data-loading worker runs no JAX")

    def run(*args):
        with beside(), jax.default_device(_device.jax_device(_device.CPU)):
            outs = [np.asarray(o) for o in plan.xla(*args)]
        return outs[0] if plan.single else outs
    return run


def memory(array: np.ndarray):
    """What owns the memory that an array looks into."""
    while array.__class__ is np.ndarray and array.base is not None:
        array = array.base
    return array


def _written(plan) -> tuple:
    """Which arguments of an operation its kernel may change where nobody reads them later; it takes some size to be worth it."""
    found = plan.written
    if found is None:
        if plan.op.overwrites:
            found = (0,) if plan.outs[0].numel >= WRITTEN else ()
        else:
            found = tuple(i for i in plan.op.renewed(plan) if plan.avals[i].numel >= LARGE)
        plan.written = found
    return found


class HostProgram:
    """The steps of a program that its live results need, bound for these results."""

    __slots__ = ("steps", "plans", "numbers", "n_results", "overwrites")

    def __init__(self, info, live: tuple):
        n = out = self.n_results = info.n_results
        plans, refs, n_inputs = info.operations()
        none = n + n_inputs
        # where writes are in place, every cell is dropped in time: a forgotten view would keep its base from being written
        writes = self.overwrites = bool([plan for plan in plans if (plan.written if plan.written is not None else _written(plan))])
        self.plans: list = []  # of the steps
        numbers: list = []  # kinds; from the last to the first, as the steps: what one reads that no later one does, it reads last
        steps: list[tuple] = []
        read = set(live)
        large = set(range(none)) if writes else {i for i, a in enumerate([a for plan in plans for a in plan.outs]) if a.numel >= LARGE}  # are dropped in time
        for plan, where in zip(reversed(plans), reversed(refs)):
            outs = plan.outs
            out -= len(outs)
            if out not in read if plan.single else read.isdisjoint(range(out, out + len(outs))):
                numbers += [ref for ref in reversed(where) if ref is not None and ref.__class__ is not int]
                continue
            places, drops = [], ()
            if large:
                drops = tuple([i for i in range(out, out + len(outs)) if i in large and i not in read])
            for ref in reversed(where):
                if ref.__class__ is int:
                    if ref < 0:
                        ref = n + ~ref
                    if ref not in read:
                        read.add(ref)
                        if ref in large:
                            drops = (*drops, ref)
                    places.append(ref)
                elif ref is None:
                    places.append(none)
                else:
                    numbers.append(ref)
                    places.append(-len(numbers))  # of the cells, the numbers are the last
            kernel = plan._numpy or _bound(plan)
            self.plans.append(plan)
            places.reverse()
            if drops and plan.written and (taken := tuple([i for i in plan.written if places[i] in drops])):
                kernel = overwriting(kernel, taken)
            steps.append((kernel, places[0] if len(places) == 1 else itemgetter(*places) if places else None,
                          out if plan.single else slice(out, out + len(outs)), drops))
        self.steps, self.numbers = steps[::-1], numbers[::-1]
        self.plans.reverse()

    def cells(self, inputs: list, floats: Sequence, ints: Sequence) -> list:
        """The cells before a run; results are empty."""
        f, k = iter(floats), iter(ints)
        numbers = [next(f) if kind is FLOAT else next(k) if kind is INT else next(k) != 0 if kind is BOOL else complex(next(f), next(f))
                   for kind in self.numbers]
        return [None] * self.n_results + inputs + [None] + numbers

    def run(self, cells: list) -> None:
        """Fill the results' cells. Where a kernel raises, its results and all that depend on them become Failures."""
        steps = self._observed() if observers.watching else iter(self.steps)
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
            plans = {_place(step[2]): plan for step, plan in zip(self.steps, self.plans)}
            _fail(cells, out, _failed(error, plans[_place(out)], _arguments(where, cells)))
            self._run_isolated(steps, cells, plans)

    def _observed(self) -> Iterator:
        """The steps; whoever takes the next one has run the last."""
        for step, plan in zip(self.steps, self.plans):
            start = perf_counter()
            yield step
            observers.operation(plan, start)

    def _run_isolated(self, steps: Iterator, cells: list, plans: dict) -> None:
        """The rest of a program in which something failed."""
        for kernel, where, out, _ in steps:
            args = _arguments(where, cells)
            failures = [a for a in args if a.__class__ is Failure]
            if not failures:
                try:
                    cells[out] = kernel(*args)
                except Exception as error:
                    _fail(cells, out, _failed(error, plans[_place(out)], args))
                continue
            _fail(cells, out, Failure(failures[0].error))
            if all(f.instead is not None for f in failures):
                with contextlib.suppress(Exception):
                    _fail(cells, out, Failure(failures[0].error, kernel(*[a.instead if a.__class__ is Failure else a for a in args])))


def _place(out: int | slice) -> int:
    return out if out.__class__ is int else out.start


def _arguments(where, cells: list) -> tuple:
    return () if where is None else (cells[where],) if where.__class__ is int else where(cells)


def _fail(cells: list, out: int | slice, failure: Failure) -> None:
    if out.__class__ is slice:
        parts = failure.instead or [None] * (out.stop - out.start)
        cells[out] = [Failure(failure.error, part) for part in parts]
    else:
        cells[out] = failure


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
