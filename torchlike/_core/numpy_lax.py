"""Evaluating a jaxpr with NumPy alone: the engine's first tier on the CPU.

A program seen for the first time runs here rather than paying an XLA compilation, and data-loading workers compute
without JAX. Integers wrap as in XLA; narrow floats are computed in float32 and rounded; NaN, signed zero and division
by zero follow XLA. scipy is imported only by the programs that need it.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import (  # noqa: F401  each registers its rules
    numpy_lax_control,
    numpy_lax_conv,
    numpy_lax_dot,
    numpy_lax_elementwise,
    numpy_lax_gather,
    numpy_lax_linalg,
    numpy_lax_random,
    numpy_lax_reduce,
    numpy_lax_scatter,
    numpy_lax_shape,
    numpy_lax_special,
    numpy_lax_window,
)
from .numpy_lax_rules import Lacks, Program, build
from .silence import silently

_built: list = []  # the jaxpr that `supported` looked at last, with its program; compile_jaxpr takes it


def _program(closed_jaxpr) -> Program:
    for jaxpr, program in _built[:]:
        if jaxpr is closed_jaxpr:
            _built.clear()
            return program
    return silently(build, closed_jaxpr)


def supported(closed_jaxpr) -> str | None:
    """None, or the name of the first primitive that has no NumPy rule."""
    try:
        _built[:] = [(closed_jaxpr, _program(closed_jaxpr))]
    except Lacks as lack:
        return str(lack)
    return None


def compile_jaxpr(closed_jaxpr) -> Callable:
    """A function of NumPy arrays that evaluates `closed_jaxpr`; a list of arrays, which may alias the arguments and
    are not to be written to. NotImplementedError names a primitive without a rule (see `supported`)."""
    try:
        program = _program(closed_jaxpr)
    except Lacks as lack:
        raise NotImplementedError(f"no NumPy rule for {lack}") from None

    def run(*arrays) -> list[np.ndarray]:
        if len(arrays) != program.n_inputs:
            raise TypeError(f"expected {program.n_inputs} arrays, got {len(arrays)}")
        return [x if x.__class__ is np.ndarray else np.asarray(x) for x in silently(program, arrays)]
    return run
