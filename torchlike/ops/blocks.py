"""Elementwise formulas in NumPy, some elements at a time.

A formula of ten steps on a large array makes ten large arrays; the pages of each are asked of the system, and every step goes
through memory. Of a few thousand elements all steps stay in the cache, in memory that malloc keeps.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

BLOCK = 1 << 15  # elements


def in_blocks(f: Callable) -> Callable:
    """A kernel or derivative `(xp, *arrays and numbers)`, computed so in NumPy where its arrays are large and of one shape or one number each."""
    @functools.wraps(f)
    def run(xp, *given):
        if xp is not np:
            return f(xp, *given)
        size, shape, rank, parts = 0, (), 0, []
        for x in given:
            if x.__class__ is np.ndarray and x.ndim:
                if x.size == 1:  # one number for all
                    rank = max(rank, x.ndim)
                    parts.append(x.reshape(()))
                    continue
                if not shape:
                    shape = x.shape
                if x.shape != shape:
                    return f(np, *given)
                if x.size and not any(x.strides):  # one number, repeated: the gradient of a sum
                    x = x[(slice(0, 1),) * x.ndim].reshape(())
                elif x.flags.c_contiguous:
                    size = x.size
                else:
                    return f(np, *given)
            parts.append(x)
        if size < 2 * BLOCK or rank > len(shape):
            return f(np, *given)
        flat = [x.reshape(-1) if x.__class__ is np.ndarray and x.ndim else x for x in parts]
        out = None
        for i in range(0, size, BLOCK):
            part = f(np, *[x[i:i + BLOCK] if x.__class__ is np.ndarray and x.ndim else x for x in flat])
            if out is None:
                out = np.empty(size, part.dtype)
            out[i:i + BLOCK] = part
        return out.reshape(shape)
    return run
