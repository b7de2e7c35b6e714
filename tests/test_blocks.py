"""Elementwise formulas some elements at a time: the numbers of the whole."""
import inspect

import jax.numpy as jnp
import numpy as np

from torchlike.ops import blocks
from torchlike.ops.blocks import in_blocks

RNG = np.random.default_rng(0)


def _formula(xp, x, y, scale, turn):
    return (y * scale - x if turn else x * scale + y * y) > 0 if turn is None else x * scale + y


def test_the_same_numbers_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    seen = []

    def f(xp, x, y, scale, turn):
        seen.append(x.size)
        return _formula(xp, x, y, scale, turn)
    x, y, scale = RNG.standard_normal((7, 43)), RNG.standard_normal((7, 43)), np.asarray(1.5)
    for turn in (None, False):
        assert np.array_equal(in_blocks(f)(np, x, y, scale, turn), _formula(np, x, y, scale, turn))
    assert set(seen) == {64, 7 * 43 % 64}


def test_a_repeated_number_is_no_array(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    x, g = RNG.standard_normal((7, 43)), np.broadcast_to(np.asarray(2.0), (7, 43))
    shapes = set()

    def f(xp, g, x):
        shapes.add((np.shape(g), x.shape))
        return g * x
    assert np.array_equal(in_blocks(f)(np, g, x), g * x)
    assert shapes == {((), (64,)), ((), (7 * 43 % 64,))}
    assert in_blocks(f)(np, g, g).shape == (7, 43)


def test_one_number_of_any_rank_is_no_array(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    x, shapes = RNG.standard_normal((7, 43)), set()

    def f(xp, w, x):
        shapes.add((w.shape, x.shape))
        return w * x
    w = np.full((1, 1), 3.0)
    assert np.array_equal(in_blocks(f)(np, w, x), w * x)
    assert shapes == {((), (64,)), ((), (7 * 43 % 64,))}
    assert in_blocks(f)(np, w[None], x).shape == (1, 7, 43) and in_blocks(f)(np, w, w).shape == (1, 1)


def test_what_is_small_strided_or_of_several_shapes_is_computed_at_once(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    seen = []

    def f(xp, x, y):
        seen.append(x.size)
        return x + y
    for x, y in ((np.ones(100), np.ones(100)), (np.ones((200, 2))[:, 0], np.ones(200)), (np.ones((20, 20)), np.ones(20)), (np.ones(()), np.ones(()))):
        assert np.array_equal(in_blocks(f)(np, x, y), x + y)
    assert seen == [100, 200, 400, 1]


def test_jax_arrays_and_names_pass():
    f = in_blocks(_formula)
    assert list(inspect.signature(f).parameters) == ["xp", "x", "y", "scale", "turn"]
    assert f(jnp, jnp.ones(9), 2.0, 1.0, False).tolist() == [3.0] * 9
