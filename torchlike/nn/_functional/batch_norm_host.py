"""Batch normalisation in NumPy, for the first tier: some channels at a time, so that all steps find them in the cache."""
from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...ops.totals import total

NEAR = 1 << 19  # elements of which all steps are done before the next ones are read
LONG = 1 << 13  # elements of a plane from which on NumPy goes through one by one as quickly as through all in a row


def serves(x: np.ndarray) -> bool:
    return x.size > 0 and x.dtype.char in "fd"


class _Channels:
    """The shape of an input (N, C, *spatial) as (N, C, points), and its channels, some at a time."""

    def __init__(self, x: np.ndarray):
        self.batch, self.channels, self.points = x.shape[0], x.shape[1], math.prod(x.shape[2:])
        self.count = x.dtype.type(self.batch * self.points)
        self.step = max(1, NEAR // max(1, self.batch * self.points))

    def __iter__(self) -> Iterator[slice]:
        for c in range(0, self.channels, self.step):
            yield slice(c, c + self.step)

    def planes(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.batch, self.channels, self.points)

    def each(self, numbers: np.ndarray) -> np.ndarray:
        """A number per channel for each of its elements."""
        return numbers[:, None] if self.points >= LONG else np.repeat(numbers, self.points).reshape(-1, self.points)

    def mean(self, part: np.ndarray) -> np.ndarray:
        """Per channel of (N, channels, points)."""
        return total(part[0] if len(part) == 1 else np.add.reduce(part, 0), (1,), False) / self.count

    def level(self, part: np.ndarray) -> np.ndarray:
        """The mean; of equal numbers exactly their number, which their rounded sum does not give."""
        mean, (n, _, points) = self.mean(part), part.shape
        first, some, last = part[0, :, 0], part[n // 2, :, points // 2], part[-1, :, -1]
        for c in np.flatnonzero((first == last) & (first == some) & (first != mean)):
            mean[c] = first[c] + self.mean(part[:, c:c + 1] - first[c])[0]
        return mean

    def centered(self, part: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> tuple:
        """(means, variances); what is left of the channels without their means goes to out."""
        mean = self.level(part)
        np.subtract(part, self.each(mean), out=out)
        return mean, self.mean(np.multiply(out, out, out=scratch[:, :out.shape[1]]))

    def scratch(self, x: np.ndarray) -> np.ndarray:
        return np.empty((self.batch, min(self.channels, self.step), self.points), x.dtype)


def train(x: np.ndarray, weight, bias, eps: float) -> list:
    """[normalised x, means, variances without correction]"""
    x, ch = np.ascontiguousarray(x), _Channels(x)
    y, scratch = np.empty(x.shape, x.dtype), ch.scratch(x)
    mean, var = np.empty(ch.channels, x.dtype), np.empty(ch.channels, x.dtype)
    planes, made = ch.planes(x), ch.planes(y)
    for c in ch:
        part = made[:, c]
        mean[c], var[c] = ch.centered(planes[:, c], part, scratch)
        scale = 1 / np.sqrt(var[c] + x.dtype.type(eps))
        part *= ch.each(scale if weight is None else scale * weight[c])
        if bias is not None:
            part += ch.each(bias[c])
    return [y, mean, var]


def gradients(g: np.ndarray, x: np.ndarray, weight, eps: float, needs: tuple) -> tuple:
    """Of x, the weight and the bias; None where it is not needed."""
    x, g, ch = np.ascontiguousarray(x), np.ascontiguousarray(g), _Channels(x)
    planes, given = ch.planes(x), ch.planes(g)
    gx = np.empty(x.shape, x.dtype) if needs[0] else None
    of_weight, of_bias = np.empty(ch.channels, x.dtype), np.empty(ch.channels, x.dtype)
    scratch, spare = ch.scratch(x), ch.scratch(x)
    for c in ch:
        part, upper = planes[:, c], given[:, c]
        centered = scratch[:, :part.shape[1]]
        _, var = ch.centered(part, centered, spare)
        rstd = 1 / np.sqrt(var + x.dtype.type(eps))
        mean_g = ch.mean(upper)
        mean_gy = ch.mean(np.multiply(upper, centered, out=spare[:, :part.shape[1]])) * rstd
        of_weight[c], of_bias[c] = mean_gy * ch.count, mean_g * ch.count
        if gx is not None:
            into = ch.planes(gx)[:, c]
            np.subtract(upper, ch.each(mean_g), out=into)
            centered *= ch.each(rstd * mean_gy)
            into -= centered
            into *= ch.each(rstd if weight is None else rstd * weight[c])
    return gx, of_weight if needs[1] else None, of_bias if needs[2] else None
