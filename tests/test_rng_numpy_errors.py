"""What torchlike._core.rng refuses, with torch's exception classes and messages."""
# ruff: noqa: B023 - every lambda below is called before its loop goes on

import ml_dtypes
import numpy as np
import pytest
import torch
from test_rng_numpy import FLOATS, PAIRS, empty, same_error

import torchlike
from torchlike._core import rng

ERRORS = [
    (lambda g, d: rng.exponential(g, (3,), -1.5, d), lambda e: e.exponential_(-1.5)),
    (lambda g, d: rng.exponential(g, (3,), float("nan"), d), lambda e: e.exponential_(float("nan"))),
    (lambda g, d: rng.geometric(g, (3,), 1.0, d), lambda e: e.geometric_(1.0)),
    (lambda g, d: rng.cauchy(g, (3,), 0, 0, d), lambda e: e.cauchy_(0, 0)),
    (lambda g, d: rng.log_normal(g, (3,), 0, -1, d), lambda e: e.log_normal_(0, -1)),
    (lambda g, d: rng.normal(g, (3,), 0, -1.5, d), lambda e: e.normal_(0, -1.5)),
    (lambda g, d: rng.uniform(g, (3,), 1, 0, d), lambda e: e.uniform_(1, 0)),
    (lambda g, d: rng.uniform(g, (3,), float("nan"), 0, d), lambda e: e.uniform_(float("nan"), 0)),
    (lambda g, d: rng.uniform(g, (3,), 0, 1e309, d), lambda e: e.uniform_(0, 1e309)),
    (lambda g, d: rng.bernoulli_scalar(g, (3,), 1.23456789, d), lambda e: e.bernoulli_(1.23456789)),
    (lambda g, d: rng.random_(g, (3,), d, 5, 3), lambda e: e.random_(5, 3)),
    (lambda g, d: rng.random_(g, (3,), d, 3, 3), lambda e: e.random_(3, 3)),
    (lambda g, d: rng.random_(g, (3,), d, 0, 2**63), lambda e: e.random_(0, 2**63)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("which", range(len(ERRORS)))
def test_parameter_errors(dtype, which):
    ours, theirs = ERRORS[which]
    same_error(lambda: ours(rng.Generator(), PAIRS[dtype]), lambda: theirs(empty(3, dtype)))


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (torch.uint8, -1, 3), (torch.uint8, 0, 300), (torch.int8, 0, 129), (torch.bool, 0, 3),
        (torch.int16, -40000, 2), (torch.int32, 0, 2**40), (torch.float16, 0, 65506), (torch.float16, -70000, 5),
        (torch.uint32, 0, 2**40), (torch.uint64, 0, None), (torch.float32, 2**25, None), (torch.complex64, 0, 5),
        (torch.complex64, 0, None), (torch.complex64, None, None), (torch.uint16, None, None),
        (torch.int32, -(2**63), None), (torch.bool, -(2**63), None), (torch.float16, -(2**63), None),
        (torch.bfloat16, 33554433, 33554532), (torch.float32, 33554433, 33554436),
    ],
)  # fmt: skip
def test_random_bounds_errors(dtype, low, high):
    args = () if low is None else (low, high)
    same_error(lambda: rng.random_(rng.Generator(), (3,), PAIRS[dtype], *args), lambda: empty(3, dtype).random_(*args))


def test_dtype_errors():
    g = rng.Generator()
    for dtype in (torch.int64, torch.complex64, torch.bool, torch.uint16, torch.float8_e5m2):
        d = PAIRS.get(dtype, np.dtype(ml_dtypes.float8_e5m2))
        e = empty(3, dtype)
        same_error(lambda: rng.exponential(g, (3,), 1, d), lambda: e.exponential_())
        same_error(lambda: rng.cauchy(g, (3,), 0, 1, d), lambda: e.cauchy_())
        same_error(lambda: rng.log_normal(g, (3,), 0, 1, d), lambda: e.log_normal_())
        if dtype != torch.complex64:
            same_error(lambda: rng.rand(g, (3,), d), lambda: e.uniform_())
            same_error(lambda: rng.randn(g, (3,), d), lambda: e.normal_())
        if dtype not in (torch.int64,):
            same_error(lambda: rng.randperm(g, 3, d), lambda: torch.randperm(3, dtype=dtype))
            same_error(lambda: rng.geometric(g, (3,), 0.5, d), lambda: e.geometric_(0.5))
        if dtype not in (torch.int64, torch.bool):
            same_error(lambda: rng.bernoulli_scalar(g, (3,), 0.5, d), lambda: e.bernoulli_(0.5))
            same_error(lambda: rng.bernoulli_tensor(g, np.ones(3), d), lambda: e.bernoulli_(torch.ones(3).double()))
    for p in ([0.1, 2.0], [0.1, float("nan")], [1, 0]):
        same_error(
            lambda: rng.bernoulli_tensor(g, np.array(p), np.dtype(np.float32)),
            lambda: empty(2, torch.float32).bernoulli_(torch.from_numpy(np.array(p))),
        )
    for n, dtype in (
        (-1, torch.int64),
        (257, torch.uint8),
        (129, torch.int8),
        (32769, torch.int16),
        (2050, torch.float16),
    ):
        same_error(lambda: rng.randperm(g, n, PAIRS[dtype]), lambda: torch.randperm(n, dtype=dtype))


@pytest.mark.parametrize(
    ("probs", "k", "replacement"),
    [
        ([-1.0, 2], 1, False), ([-1.0, 2], 1, True), ([-1.0, 2], 2, True), ([float("nan"), 2], 2, True),
        ([float("inf"), 2], 2, True), ([float("inf"), 2], 1, False), ([0.0, 0], 1, False), ([0.0, 0], 3, True),
        ([0.0, 1], 3, False), ([0.0, 1], 0, False), ([0.0, 1], -1, True), ([[[1.0]]], 1, False), (1.0, 1, False),
        ([1, 2], 1, False), ([True], 1, False), ([1j], 1, False), ([[0.0, 0], [1, 2]], 1, False), ([[], []], 1, True),
        ([[0.0, 0], [1, 2]], 3, True), ([[], []], 2, True), ([[], []], 2, False),
    ],
)  # fmt: skip
def test_multinomial_errors(probs, k, replacement):
    array = np.array(probs)
    same_error(
        lambda: rng.multinomial(rng.Generator(), array, k, replacement),
        lambda: torch.multinomial(torch.from_numpy(array), k, replacement),
    )
    same_error(
        lambda: torchlike.multinomial(torchlike.from_numpy(array), k, replacement),
        lambda: torch.multinomial(torch.from_numpy(array), k, replacement),
    )
