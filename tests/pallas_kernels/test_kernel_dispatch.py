"""Choosing an implementation, tuned tables, dropout's random bits, and importing the package alone."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels import KernelUnavailable, _dispatch, _random, _tune
from pallas_kernels.attention import api, gpu
from pallas_kernels.attention.case import Case
from pallas_kernels.attention.tiles import Config

ROOT = Path(__file__).parents[2]


def case(**changes):
    plain = {
        "batch": 2,
        "heads": 8,
        "key_heads": 8,
        "queries": 1024,
        "keys": 1024,
        "head_size": 128,
        "value_size": 128,
        "dtype": "bfloat16",
        "causal": True,
        "offset": 0,
        "bias": None,
        "mask": None,
        "segments": False,
        "query_lengths": False,
        "key_lengths": False,
        "dropout": 0.0,
        "scale": 0.1,
        "logsumexp": False,
    }
    return Case(**{**plain, **changes})


@pytest.mark.parametrize(
    ("changes", "picked"),
    [
        ({}, "cudnn"),
        ({"bias": (1, 8, 1024, 1024)}, "triton"),
        ({"mask": (2, 1, 1, 1024)}, "triton"),
        ({"dropout": 0.1}, "triton"),
        ({"dtype": "float32"}, "triton"),
        ({"head_size": 36, "value_size": 36}, "triton"),
        ({"segments": True}, "triton"),
        ({"logsumexp": True}, "triton"),
        ({"offset": None}, "triton"),
        ({"queries": 1, "dtype": "float32"}, None),
        ({"dtype": "float64"}, None),
        ({"head_size": 512, "value_size": 512}, None),
        ({"queries": 2**17, "keys": 2**17, "bias": (1, 1, 2**17, 2**17)}, None),
    ],
)
def test_choice_on_a_card(changes, picked):
    with _dispatch.assumed_device(_dispatch.H200):
        choice = _dispatch.choose("attention", api.IMPLEMENTATIONS, case(**changes))
    assert (choice.impl.name if choice.impl else None) == picked
    skipped = [reason.partition(":")[0] for reason in choice.reasons]
    order = [i.name for i in api.IMPLEMENTATIONS]
    assert skipped == order[: order.index(picked)] if picked else skipped == order


def test_choice_elsewhere():
    choose = lambda **changes: _dispatch.choose("attention", api.IMPLEMENTATIONS, case(**changes)).impl
    assert choose() is None
    with _dispatch.assumed_device(_dispatch.TPU):
        assert choose().name == "tpu"
        assert choose(dropout=0.1) is None
    with _dispatch.assumed_device(_dispatch.Device("cuda", "Tesla V100", 70, 80)):
        assert choose() is None


def test_forcing(monkeypatch):
    pick = lambda impl=None, **changes: _dispatch.choose("attention", api.IMPLEMENTATIONS, case(**changes), impl)
    with _dispatch.assumed_device(_dispatch.H200):
        assert pick("triton").impl.name == "triton"
        with pytest.raises(KernelUnavailable, match="cudnn: dropout is not supported"):
            pick("cudnn", dropout=0.5)
        # Too few rows to pay, but asked for.
        assert pick("kernel", queries=1, dtype="float32").impl.name == "triton"
    assert pick("interpret").interpret and pick("interpret").impl.name == "triton"
    monkeypatch.setenv("PALLAS_KERNELS", "interpret")
    assert pick().interpret
    with _dispatch.override("reference"):
        assert pick().impl is None
        assert pick("interpret").interpret
    monkeypatch.setenv("PALLAS_KERNELS", "fast")
    with pytest.raises(ValueError, match="impl must be one of"):
        pick()


def test_tuned_rows_win_over_heuristics(tmp_path):
    kind = "Imaginary GPU 7"
    row = gpu.tuning_key("attention_forward", case())
    assert row == "attention_forward|bfloat16|T1024,S1024,D128|causal"
    _tune.table_path(kind, tmp_path).write_text(
        json.dumps({"rows": {row: {"config": {"block_q": 128, "block_k": 32, "num_warps": 8, "num_stages": 4}}}})
    )
    pick = lambda row: _tune.pick("attention_forward", row, Config, lambda: gpu.heuristic(case()), tmp_path)
    with _dispatch.assumed_device(_dispatch.Device("cuda", kind, 90, 1)):
        assert pick(row) == Config(128, 32, 8, 4)
        assert pick(row.replace("1024", "2048")) == gpu.heuristic(case())
        with _tune.forced(attention_forward=Config(16, 16, 1, 1)):
            assert pick(row) == Config(16, 16, 1, 1)
    assert gpu.tuning_key("f", case(queries=900)) == gpu.tuning_key("f", case(queries=1024))


def test_shipped_tables_are_sound():
    for path in (ROOT / "pallas_kernels" / "tuned").glob("*.json"):
        table = json.loads(path.read_text())
        assert path == _tune.table_path(table["device_kind"])
        for row in table["rows"].values():
            assert {"config", "us", "jax", "date"} <= row.keys()


def test_threefry_is_the_published_function():
    # Known answers of Random123's threefry2x32, 20 rounds.
    for words, want in (
        ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ):
        given = np.asarray(words, np.uint32)[:, None]  # one element each: NumPy warns of scalars that wrap
        assert tuple(int(w[0]) for w in _random.threefry_2x32(*given)) == want


def test_dropout_bits_are_even_and_independent():
    n, rate = 512, 0.25

    @jax.jit
    def drawn(number):
        seed = _random.seed_words(11)
        w0, w1 = (w[:, None] for w in _random.row_keys(seed[0], seed[1], number))
        return _random.keep(w0, w1, number, rate), _random.element_bits(w0, w1, number)

    keep, bits = (np.asarray(x) for x in drawn(np.arange(n)))
    spread = np.sqrt(rate * (1 - rate))
    assert abs(keep.mean() - (1 - rate)) < 4 * spread / n
    noise = (keep - keep.mean()) / spread
    for axis in (0, 1):
        assert np.abs(noise.mean(axis)).max() < 5 / np.sqrt(n)
        for lag in (1, 2, 16):
            assert abs((noise * np.roll(noise, lag, axis)).mean()) < 5 / n
    between = noise @ noise.T / n
    assert np.abs(between - np.diag(np.diag(between))).max() < 6.5 / np.sqrt(n)
    ones = [((bits >> b) & 1).mean() for b in range(32)]
    assert np.abs(np.asarray(ones) - 0.5).max() < 2.5 / n


def test_seeds_of_every_kind():
    assert np.array_equal(_random.seed_words(2**40 + 7), [7, 256])
    assert np.array_equal(_random.seed_words(-1), [2**32 - 1, 2**32 - 1])
    key = jax.random.key(3)
    assert np.array_equal(_random.seed_words(key), jax.random.key_data(key))
    assert np.array_equal(_random.seed_words(jnp.int32(5)), [5, 0])
    with jax.enable_x64(True):
        assert np.array_equal(_random.seed_words(jnp.asarray(2**40 + 7)), [7, 256])
    with pytest.raises(TypeError, match="seed must be an integer"):
        _random.seed_words("seven")


def test_imports_alone_and_without_pallas():
    code = (
        "import sys, pallas_kernels, jax.numpy as jnp; q = jnp.ones((1, 1, 4, 8)); pallas_kernels.attention(q, q, q);"
        "bad = [m for m in sys.modules if m.startswith(('torch', 'jax.experimental.pallas', 'jax._src.pallas'))];"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_only_the_compatibility_file_imports_a_back_end():
    allowed = {"_compat.py", "tpu.py"}
    for path in (ROOT / "pallas_kernels").rglob("*.py"):
        if path.name not in allowed:
            assert "pallas import" not in path.read_text().replace("pallas_kernels", ""), path
            assert "torch" not in path.read_text().replace("torch's", ""), path
