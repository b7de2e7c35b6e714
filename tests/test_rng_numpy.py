"""torchlike._core.rng against the installed torch: the same numbers, and the same state bytes after every call."""
# ruff: noqa: B023 - every lambda below is called before its loop goes on

import copy
import math
import os
import pickle
import random
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest
import torch

from torchlike._core import rng, rng_blocks, rng_discrete, rng_gamma, rng_normal, rng_twister, rng_uniform

BF16 = np.dtype(ml_dtypes.bfloat16)
PAIRS = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: BF16,
    torch.uint8: np.dtype(np.uint8),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.bool: np.dtype(np.bool_),
    torch.uint16: np.dtype(np.uint16),
    torch.uint32: np.dtype(np.uint32),
    torch.uint64: np.dtype(np.uint64),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
SIZES = [0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 1000]


def to_numpy(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(BF16)
    return tensor.numpy()


def to_torch(array):
    return (
        torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if array.dtype == BF16 else torch.from_numpy(array)
    )


def same(ours, theirs):
    """Equal dtype, shape and bits."""
    theirs = to_numpy(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(
        ours.reshape(-1).view(np.uint8), np.ascontiguousarray(theirs).reshape(-1).view(np.uint8)
    )


class Twins:
    """One generator of each kind, at the same state."""

    def __init__(self, seed=0):
        self.ours = rng.Generator().manual_seed(seed)
        self.theirs = torch.Generator().manual_seed(seed)

    def check(self, ours, theirs):
        """Call both twice; the values must be the same, and the states afterwards too."""
        for _ in range(2):
            same(ours(self.ours), theirs(self.theirs))
            assert self.ours.get_state_bytes() == to_numpy(self.theirs.get_state()).tobytes()


def empty(n, dtype):
    return torch.empty(n, dtype=dtype)


def error_of(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.type, str(caught.value)


def same_error(ours, theirs):
    assert error_of(ours) == error_of(theirs)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64, torch.complex128])
def test_rand_and_randn(dtype, n):
    Twins(n).check(lambda g: rng.rand(g, (n,), PAIRS[dtype]), lambda g: torch.rand(n, generator=g, dtype=dtype))
    Twins(n).check(lambda g: rng.randn(g, (n,), PAIRS[dtype]), lambda g: torch.randn(n, generator=g, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("low", "high"), [(0, 3), (-0.3, 0.7), (2, 3.7), (1, 1 + 2**-23), (5, 5), (-1e-3, 1), (-577.35, 577.35)]
)
def test_uniform(dtype, low, high):
    Twins(3).check(
        lambda g: rng.uniform(g, (40, 1000), low, high, PAIRS[dtype]),
        lambda g: torch.empty(40, 1000, dtype=dtype).uniform_(low, high, generator=g),
    )


def test_unit_uniforms_that_round_to_one_become_zero():
    values = rng.rand(rng.Generator().manual_seed(0), (100000,), BF16).astype(np.float32)
    assert values.max() < 1
    same(values.astype(BF16), torch.rand(100000, dtype=torch.bfloat16, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64, torch.complex128])
@pytest.mark.parametrize("n", [7, 100, 40000])
@pytest.mark.parametrize(("mean", "std"), [(0.5, 0.7), (0, 0.02), (-3.25, 1), (1, 0)])
def test_normal(dtype, n, mean, std):
    Twins(5).check(
        lambda g: rng.normal(g, (n,), mean, std, PAIRS[dtype]),
        lambda g: empty(n, dtype).normal_(mean, std, generator=g),
    )


def test_randn_float32_bits_over_many_samples():
    Twins(11).check(
        lambda g: rng.randn(g, (400, 1001), PAIRS[torch.float32]), lambda g: torch.randn(400, 1001, generator=g)
    )


@pytest.mark.parametrize("n", [5, 30])
def test_normal_of_tensors(n):
    weights = np.random.default_rng(0)
    mean = weights.standard_normal((n, 1)).astype(np.float32)
    std = weights.random((n, 3))
    tm, ts = torch.from_numpy(mean), torch.from_numpy(std)
    for a, b in (
        (mean, std),
        (std, mean**2),
        (mean, 0.7),
        (0.3, std),
        (0.3, std.astype(np.float32)),
        (std.astype(np.float16), std),
        (0.3, std.astype(BF16)),
    ):
        ta, tb = (to_torch(x) if isinstance(x, np.ndarray) else x for x in (a, b))
        Twins(1).check(lambda g: rng.normal_tensors(g, a, b), lambda g: torch.normal(ta, tb, generator=g))
    same_error(lambda: rng.normal_tensors(rng.Generator(), mean, -std - 1), lambda: torch.normal(tm, -ts - 1))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.bool])
def test_random_default_range(dtype):
    Twins(2).check(lambda g: rng.random_(g, (1001,), PAIRS[dtype]), lambda g: empty(1001, dtype).random_(generator=g))


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (torch.uint8, 3, 256), (torch.int8, -128, 127), (torch.int16, -5, 700), (torch.bool, 0, 2),
        (torch.int32, -(2**31), 2**31 - 1), (torch.int32, 0, 2**28 - 1), (torch.int32, 0, 2**28),
        (torch.int64, 0, 10), (torch.int64, 0, 2**28 + 1), (torch.int64, 0, 2**32), (torch.int64, -(2**62), 2**62 + 5),
        (torch.int64, -(2**63), 2**63 - 1), (torch.int64, -7, -3), (torch.uint16, 0, 2**16),
        (torch.uint32, 5, 2**32), (torch.uint64, 0, 2**63 - 1),
        (torch.float32, 0, 100), (torch.float32, 0, 2**28), (torch.float32, 2**25 + 1, 2**25 + 100),
        (torch.float32, 0, 2**33 - 1), (torch.float32, 0, 2**63 - 1), (torch.float32, -(2**63), 2**63 - 1),
        (torch.float64, 0, 2**63 - 1), (torch.float64, -(2**60) - 1, 2**60 + 1), (torch.float64, -5, 5001),
        (torch.bfloat16, 0, 1023), (torch.bfloat16, 300, 1023), (torch.bfloat16, -60001, 65505),
        (torch.bfloat16, 0, 2**33 - 1), (torch.bfloat16, 257, 1001), (torch.bfloat16, -1023, 100),
        (torch.float16, -5000, 5001), (torch.float16, -60001, 65505), (torch.float16, 0, 1023),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*out of bounds:UserWarning")
def test_randint(dtype, low, high):
    Twins(4).check(
        lambda g: rng.randint(g, low, high, (3, 1001), PAIRS[dtype]),
        lambda g: torch.randint(low, high, (3, 1001), generator=g, dtype=dtype),
    )


@pytest.mark.parametrize(
    ("dtype", "low"),
    [
        (torch.int64, 5), (torch.int64, -5), (torch.int64, -(2**63)), (torch.int32, -7), (torch.uint8, 250),
        (torch.bool, 0), (torch.bool, 1), (torch.uint16, 3), (torch.uint32, 3), (torch.float32, 5),
        (torch.float32, -(2**63)), (torch.float64, -100), (torch.bfloat16, -300), (torch.bfloat16, -(2**63)),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*out of bounds:UserWarning")
def test_random_from(dtype, low):
    Twins(6).check(
        lambda g: rng.random_(g, (1001,), PAIRS[dtype], low),
        lambda g: empty(1001, dtype).random_(low, None, generator=g),
    )


def test_random_warns_where_floats_lose_integers():
    for low, high, dtype in ((0, 2**25, torch.float32), (-(2**25), 3, torch.float32), (0, 300, torch.bfloat16)):
        with pytest.warns(UserWarning) as theirs:
            empty(3, dtype).random_(low, high)
        with pytest.warns(UserWarning) as ours:
            rng.random_(rng.Generator(), (3,), PAIRS[dtype], low, high)
        assert [str(w.message) for w in ours] == [str(w.message).split(" (Triggered")[0] for w in theirs]


@pytest.mark.parametrize("n", [0, 1, 2, 10, 1000, 1024, 1025, 1026, 5000, 70001])
def test_randperm(n):
    Twins(n).check(lambda g: rng.randperm(g, n), lambda g: torch.randperm(n, generator=g))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_randperm_dtypes(dtype):
    Twins(8).check(
        lambda g: rng.randperm(g, 100, PAIRS[dtype]), lambda g: torch.randperm(100, generator=g, dtype=dtype)
    )


def test_randperm_inside_out_order_equals_its_plain_loop(monkeypatch):
    from torchlike._core import rng_permutation

    monkeypatch.setattr(rng_permutation, "_INSIDE_OUT", 0)
    for n in (0, 5, 1024, 9000):
        want = list(range(n))
        for i, word in enumerate(rng.Generator().manual_seed(n).words64(n).tolist()):
            j = word % (i + 1)
            want[i], want[j] = want[j], want[i]
        assert rng.randperm(rng.Generator().manual_seed(n), n).tolist() == want


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.bool])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0, 1 - 1e-17, 0.3, 2**-40])
def test_bernoulli_scalar(dtype, p):
    Twins(9).check(
        lambda g: rng.bernoulli_scalar(g, (2, 501), p, PAIRS[dtype]),
        lambda g: torch.empty(2, 501, dtype=dtype).bernoulli_(p, generator=g),
    )


def test_bernoulli_scalar_decides_ties_of_the_high_bits_by_the_low_ones():
    words = rng.Generator().manual_seed(0).words64(50) & np.uint64(2**53 - 1)
    for k, word in enumerate(words.tolist()):
        for p in (word * 2.0**-53, (word + 1) * 2.0**-53):
            Twins(0).check(
                lambda g, p=p: rng.bernoulli_scalar(g, (50,), p, PAIRS[torch.bool]),
                lambda g, p=p: empty(50, torch.bool).bernoulli_(p, generator=g),
            )
        got = rng.bernoulli_scalar(rng.Generator().manual_seed(0), (50,), (word + 1) * 2.0**-53, PAIRS[torch.bool])
        assert got[k]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("p_dtype", FLOATS)
def test_bernoulli_tensor(dtype, p_dtype):
    p = torch.linspace(0, 1, 600, dtype=torch.float64).reshape(3, 200).to(p_dtype)
    Twins(10).check(
        lambda g: rng.bernoulli_tensor(g, to_numpy(p), PAIRS[dtype]),
        lambda g: torch.empty(3, 200, dtype=dtype).bernoulli_(p, generator=g),
    )


def test_dropout_masks():
    """F.dropout and its relatives draw from the default generator with the scalar Bernoulli function."""
    x = torch.ones(7, 33, 5)
    drop = torch.nn.functional
    for call, shape in (
        (lambda: drop.dropout(x, 0.3) != 0, (7, 33, 5)),
        (lambda: torch.native_dropout(x, 0.3, True)[1], (7, 33, 5)),
        (lambda: drop.alpha_dropout(x, 0.3, True) > 0, (7, 33, 5)),
        (lambda: drop.dropout1d(x, 0.3) != 0, (7, 33, 1)),
        (lambda: drop.feature_alpha_dropout(x, 0.3, True) > 0, (7, 33, 1)),
    ):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(12)
            theirs = call()
        mask = rng.bernoulli_scalar(rng.Generator().manual_seed(12), shape, 1 - 0.3, PAIRS[torch.bool])
        same(np.ascontiguousarray(np.broadcast_to(mask, x.shape)), theirs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 5, 20, 1001, 40000])
def test_continuous_distributions(dtype, n):
    d = PAIRS[dtype]
    for lambd in (1, 1.7, 1e-3):
        Twins(n).check(
            lambda g: rng.exponential(g, (n,), lambd, d), lambda g: empty(n, dtype).exponential_(lambd, generator=g)
        )
    Twins(n).check(lambda g: rng.cauchy(g, (n,), 0.5, 2, d), lambda g: empty(n, dtype).cauchy_(0.5, 2, generator=g))
    Twins(n).check(
        lambda g: rng.log_normal(g, (n,), 0.5, 0.7, d), lambda g: empty(n, dtype).log_normal_(0.5, 0.7, generator=g)
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("p", [0.3, 0.001, 1e-10, 1e-17, 0.999])
def test_geometric(dtype, p):
    Twins(13).check(
        lambda g: rng.geometric(g, (501,), p, PAIRS[dtype]), lambda g: empty(501, dtype).geometric_(p, generator=g)
    )


def mixed(n, low, high):
    return torch.from_numpy(np.random.default_rng(n).uniform(low, high, n))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [0, 1, 3, 15, 40, 3000])
def test_poisson(dtype, n):
    """Rates of one kind and of both, equal and different ones, so many that they take more words than are made at a time."""
    for rates in (mixed(n, 0, 40), mixed(n, 0, 9), mixed(n, 10, 300), 10 ** mixed(n, 1, 9), torch.full((n,), 10.0), torch.full((n,), 2.5),
                  torch.full((n,), 70.0), mixed(n, 10, 14).round(), mixed(n, 0, 2).round(), torch.zeros(n)):  # fmt: skip
        rates = rates.to(dtype)
        Twins(n).check(lambda g: rng_discrete.poisson(g, rates.numpy()).astype(PAIRS[dtype]), lambda g: torch.poisson(rates, generator=g))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [0, 1, 3, 40, 3000])
def test_binomial(dtype, n):
    for count, p in ((mixed(n, 0, 100), mixed(n, 0, 1)), (mixed(n, 100, 900), mixed(n, 0.2, 0.8)), (torch.full((n,), 40.0), mixed(n, 0, 1).round()),
                     (torch.full((n,), 40.0), torch.full((n,), 0.3)), (mixed(n, 0, 5), torch.full((n,), 0.5))):  # fmt: skip
        count, p = count.floor().to(dtype), p.to(dtype)
        Twins(n).check(lambda g: rng_discrete.binomial(g, count.numpy(), p.numpy()).astype(PAIRS[dtype]),
                       lambda g: torch.binomial(count, p, generator=g))  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1, 3, 40, 700])
def test_infinite_counts_and_rates(n):
    for dtype in (torch.float32, torch.float64):
        for of in (math.inf, 1e300) if dtype is torch.float64 else (math.inf,):
            count, p = torch.full((n,), of, dtype=dtype), mixed(n, 0.0, 1.0).to(dtype)
            count[1::2], p[::3], p[1::4] = 10, 0, 1e-320 if dtype is torch.float64 else 1e-42
            Twins(n).check(lambda g: rng_discrete.binomial(g, count.numpy(), p.numpy()).astype(PAIRS[dtype]), lambda g: torch.binomial(count, p, generator=g))
    rates = torch.full((n,), math.inf, dtype=torch.float64)
    for finite in (rates[:0], rates[1::2]):  # PyTorch's result is what the processor makes of the integer
        finite[:] = 20
        Twins(n).check(lambda g: np.where(rates.numpy() < np.inf, rng_discrete.poisson(g, rates.numpy()), 7),
                       lambda g: torch.where(rates < math.inf, torch.poisson(rates, generator=g), 7))
        assert (rng_discrete.poisson(rng.Generator(), rates.numpy())[rates.numpy() == np.inf] == np.inf).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [0, 1, 3, 40, 3000])
def test_standard_gamma(dtype, n):
    tiny = torch.finfo(dtype).tiny
    for shapes in (mixed(n, 0, 4), mixed(n, 0.01, 1), mixed(n, 1.3, 9), mixed(n, 3, 50), 10 ** mixed(n, -3, 6), torch.ones(n), torch.full((n,), 2.5),
                   mixed(n, 0, 1).round()):  # fmt: skip
        shapes = shapes.to(dtype)
        Twins(n).check(lambda g: np.maximum(rng_gamma.standard_gamma(g, shapes.numpy()).astype(PAIRS[dtype]), PAIRS[dtype].type(tiny)),
                       lambda g: torch._standard_gamma(shapes, generator=g))  # fmt: skip


def test_gamma_samples_use_the_normal_that_was_kept_back():
    shapes = torch.full((100,), 3.0)
    for kept in (1, 2):
        twins = Twins(kept)
        twins.check(lambda g: rng.randn(g, (kept,), PAIRS[torch.float32]), lambda g: torch.randn(kept, generator=g))
        twins.check(lambda g: rng_gamma.standard_gamma(g, shapes.numpy()).astype(np.float32), lambda g: torch._standard_gamma(shapes, generator=g))


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial(dtype):
    weights = torch.from_numpy(np.random.default_rng(3).random((3, 60)) * 3).to(dtype)
    weights[1, ::2] = 0
    for row in (weights, weights[0], weights[:0]):
        for k, replacement in ((1, False), (1, True), (5, False), (20, False), (500, True)):
            Twins(k).check(
                lambda g: rng.multinomial(g, to_numpy(row), k, replacement),
                lambda g: torch.multinomial(row, k, replacement, generator=g),
            )
    flat = torch.from_numpy(np.random.default_rng(3).random(5000) + 1e-3).to(torch.float32)
    for k in (1, 100, 4999):
        Twins(k).check(lambda g: rng.multinomial(g, flat.numpy(), k), lambda g: torch.multinomial(flat, k, generator=g))


def test_states_travel_both_ways():
    twins = Twins(7)
    state = lambda: bytearray(to_numpy(twins.theirs.get_state()).tobytes())
    for draws in (0, 1, 3, 623, 624, 5):
        torch.rand(draws, generator=twins.theirs)
        torch.randn(3, generator=twins.theirs)
        twins.ours.set_state_bytes(bytes(state()))
        assert twins.ours.get_state_bytes() == bytes(state())
        twins.check(
            lambda g: rng.randn(g, (3,), PAIRS[torch.float64]),
            lambda g: torch.randn(3, generator=g, dtype=torch.float64),
        )
        fresh = torch.Generator()
        fresh.set_state(torch.frombuffer(bytearray(twins.ours.get_state_bytes()), dtype=torch.uint8))
        twins.theirs = fresh
        twins.check(lambda g: rng.randn(g, (5,), PAIRS[torch.float32]), lambda g: torch.randn(5, generator=g))
    for wrong in (bytes(5056), bytes(10), bytes(5048), b""):
        same_error(
            lambda: twins.ours.set_state_bytes(wrong),
            lambda: twins.theirs.set_state(torch.tensor(list(wrong), dtype=torch.uint8)),
        )


@pytest.mark.parametrize("seed", [0, 1, -1, -(2**63), 2**64 - 1, 2**32, 2**32 + 5, 67280421310721])
def test_seeds(seed):
    twins = Twins(seed)
    assert twins.ours.initial_seed() == twins.theirs.initial_seed()
    assert twins.ours.get_state_bytes() == to_numpy(twins.theirs.get_state()).tobytes()
    twins.check(lambda g: rng.rand(g, (700,), PAIRS[torch.float32]), lambda g: torch.rand(700, generator=g))


def test_seed_rules():
    for wrong in (2**64, -(2**63) - 1, 1.5, "a", None, True, np.int64(4)):
        same_error(lambda: rng.Generator().manual_seed(wrong), lambda: torch.Generator().manual_seed(wrong))
    ours, theirs = rng.Generator(), torch.Generator()
    assert ours.initial_seed() == theirs.initial_seed() == rng.DEFAULT_SEED
    assert ours.device == str(theirs.device)
    assert ours.get_state_bytes() == to_numpy(theirs.get_state()).tobytes()
    first, second = ours.seed(), ours.seed()
    assert first != second == ours.initial_seed()
    # Seeding anew forgets the normal sample that was kept back.
    rng.randn(ours, (1,), PAIRS[torch.float32])
    assert ours.next_normal is not None
    assert ours.manual_seed(3).next_normal is None


def test_a_generator_is_made_without_numpy_s_own_seed():
    """torchsde makes one for each number that it draws."""
    def seconds(make):
        times = []
        for _ in range(7):  # the least, as garbage may be collected in some
            before = time.process_time()
            for _ in range(20):
                make()
            times.append(time.process_time() - before)
        return min(times)
    assert seconds(rng.Generator) < seconds(lambda: np.random.MT19937(0)) / 3
    assert rng.Generator().get_state_bytes() == torch.Generator().get_state().numpy().tobytes()


def test_copies_continue_alike():
    gen = rng.Generator().manual_seed(5)
    rng.randn(gen, (3,), PAIRS[torch.float32])
    for other in (gen.clone_state(), pickle.loads(pickle.dumps(gen)), copy.deepcopy(gen)):
        assert other.get_state_bytes() == gen.get_state_bytes()
        rng.rand(other, (1,), PAIRS[torch.float32])
        assert other.get_state_bytes() != gen.get_state_bytes()
    before = gen.get_state_bytes()
    with gen.fork() as inside:
        assert inside is gen
        rng.rand(gen, (5,), PAIRS[torch.float32])
    assert gen.get_state_bytes() == before


def test_threads_share_one_stream_without_losing_a_call():
    gen = rng.Generator().manual_seed(0)
    parts, threads = [], []
    for _ in range(4):
        threads.append(
            threading.Thread(
                target=lambda: parts.extend(rng.rand(gen, (70000,), PAIRS[torch.float32]) for _ in range(3))
            )
        )
        threads[-1].start()
    for thread in threads:
        thread.join()
    whole = rng.rand(rng.Generator().manual_seed(0), (12, 70000), PAIRS[torch.float32])
    assert {part.tobytes() for part in parts} == {row.tobytes() for row in whole}


FORK = """
import os, sys, threading, numpy as np
from torchlike._core import rng
stop = threading.Event()
def draw():
    while not stop.is_set():
        rng.rand(rng.default_generator, (200000,), np.dtype(np.float32))
thread = threading.Thread(target=draw)
thread.start()
for _ in range(5):
    child = os.fork()
    if not child:
        rng.rand(rng.default_generator, (3,), np.dtype(np.float32))
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stop.set()
thread.join()
"""


TAKEN_OVER = """
import os, signal, numpy as np
from torchlike._core import rng, rng_uniform
rng_uniform._KERNEL.spent(1)
assert rng_uniform._KERNEL.call is not None
child = os.fork()
if not child:
    signal.alarm(30)
    rng.rand(rng.default_generator, (2 * rng_uniform.LARGE,), np.dtype(np.float32))
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""  # and XLA ran nothing else in this process


@pytest.mark.parametrize("program", [FORK, TAKEN_OVER], ids=["while another thread of the parent draws", "where XLA draws for the parent"])
def test_a_forked_child_can_draw(program):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_dataloader_seeds():
    from torch.utils.data._utils.worker import _generate_state

    twins = Twins(21)
    base = rng.base_seed(twins.ours)
    assert base == torch.empty((), dtype=torch.int64).random_(generator=twins.theirs).item()
    assert rng.worker_seed(base, 3) == base + 3
    assert rng.numpy_worker_seed(base, 3) == _generate_state(base, 3)


def test_long_mixed_sequences_stay_in_step():
    p = torch.rand(37)
    weights = torch.rand(2, 9)
    f32, f64, i64 = PAIRS[torch.float32], PAIRS[torch.float64], PAIRS[torch.int64]
    calls = [
        lambda n, d: (lambda g: rng.rand(g, (n,), PAIRS[d]), lambda g: torch.rand(n, generator=g, dtype=d)),
        lambda n, d: (lambda g: rng.randn(g, (n,), PAIRS[d]), lambda g: torch.randn(n, generator=g, dtype=d)),
        lambda n, d: (lambda g: rng.normal(g, (n,), 0.1, 2, PAIRS[d]), lambda g: empty(n, d).normal_(0.1, 2, generator=g)),
        lambda n, d: (lambda g: rng.randint(g, -3, n + 1, (n,), i64), lambda g: torch.randint(-3, n + 1, (n,), generator=g)),
        lambda n, d: (lambda g: rng.random_(g, (n,), PAIRS[d]), lambda g: empty(n, d).random_(generator=g)),
        lambda n, d: (lambda g: rng.randperm(g, n), lambda g: torch.randperm(n, generator=g)),
        lambda n, d: (
            lambda g: rng.bernoulli_scalar(g, (n,), 0.4, PAIRS[d]), lambda g: empty(n, d).bernoulli_(0.4, generator=g)
        ),
        lambda n, d: (lambda g: rng.bernoulli_tensor(g, p.numpy(), f32), lambda g: torch.bernoulli(p, generator=g)),
        lambda n, d: (lambda g: rng.exponential(g, (n,), 2, f64), lambda g: empty(n, torch.float64).exponential_(2, generator=g)),
        lambda n, d: (lambda g: rng.log_normal(g, (n,), 0, 1, PAIRS[d]), lambda g: empty(n, d).log_normal_(0, 1, generator=g)),
        lambda n, d: (lambda g: rng.cauchy(g, (n,), 0, 1, PAIRS[d]), lambda g: empty(n, d).cauchy_(0, 1, generator=g)),
        lambda n, d: (
            lambda g: rng.multinomial(g, weights.numpy(), 4, n % 2 == 0),
            lambda g: torch.multinomial(weights, 4, n % 2 == 0, generator=g),
        ),
    ]  # fmt: skip
    for seed in range(3):
        choose, twins = random.Random(seed), Twins(seed)
        for _ in range(150):
            n = choose.choice([0, 1, 2, 3, 7, 15, 16, 17, 40, 700])
            twins.check(*choose.choice(calls)(n, choose.choice(FLOATS)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_few_normals_again_and_again(dtype):
    """Many small draws in turn are served from tables of the words ahead; other draws in between move what a block joins."""
    twins, choose = Twins(3), random.Random(5)
    for _ in range(300):
        n, other = choose.choice([16, 33, 100, 256, 512]), choose.choice([0, 0, 0, 1, 3, 40, 700])
        twins.check(lambda g: rng.normal(g, (n,), 0.0, 0.3, PAIRS[dtype]), lambda g: empty(n, dtype).normal_(0, 0.3, generator=g))
        twins.check(lambda g: rng.randint(g, 0, 9, (other,), PAIRS[torch.int64]), lambda g: torch.randint(0, 9, (other,), generator=g))


def test_functions_of_arrays_are_the_c_librarys():
    """SciPy's xlogy and NumPy's complex exponential call it; should a release no longer do so, doubles would differ in their last bit."""
    x = np.concatenate((np.random.default_rng(0).random(20000), [2.0**-53, 1.0, 5e-324]))
    angles, powers = 2 * np.pi * x, np.concatenate((40 * x - 20, [-800.0, 709.5]))
    for ours, function, at in ((rng_normal.log(x), math.log, x), (rng_normal.cos_sin(angles)[0], math.cos, angles),
                               (rng_normal.cos_sin(angles)[1], math.sin, angles), (rng_normal.exp(powers), math.exp, powers)):  # fmt: skip
        assert np.array_equal(ours, rng_normal.libm(function, at))
    assert rng_normal.exp(np.array([1000.0]))[0] == np.inf


def test_state_is_set_back_among_the_words_ahead():
    twins = Twins(1)
    for n in (5, 600, 20, 623, 624, 1, 3000):
        torch.rand(n, generator=twins.theirs)
        rng.rand(twins.ours, (n,), PAIRS[torch.float32])
        state, theirs = twins.ours.get_state_bytes(), twins.theirs.get_state()
        assert state == to_numpy(theirs).tobytes()
        rng.rand(twins.ours, (1000,), PAIRS[torch.float32])
        twins.ours.set_state_bytes(state)
        twins.theirs.set_state(theirs)
        twins.check(lambda g: rng.randn(g, (100,), PAIRS[torch.float32]), lambda g: torch.randn(100, generator=g))


@pytest.mark.parametrize("before", [0, 1, 624])
def test_words_that_were_only_looked_at_leave_no_trace(before):
    twins = Twins(4)
    torch.rand(before, generator=twins.theirs)
    twins.ours.words(before)
    ahead = twins.ours.peek(5000).copy()
    twins.ours.skip(0)
    assert twins.ours.get_state_bytes() == to_numpy(twins.theirs.get_state()).tobytes()
    assert np.array_equal(twins.ours.words(5000), ahead)


@pytest.fixture
def taken_over():
    """XLA makes normals from here on."""
    for kernel in NORMALS:
        kernel.spent(1)
        assert kernel.call is not None


NORMALS = rng_blocks.PAIRS, rng_blocks.MIDDLE_BLOCKS, rng_blocks.LARGE_BLOCKS


@pytest.mark.parametrize("kernel, in_numpy", list(zip(NORMALS, (rng_blocks.pairs32, rng_blocks.blocks32, rng_blocks.blocks32))), ids=["pairs", "blocks", "many blocks"])
def test_normals_are_the_same_from_xla(taken_over, kernel, in_numpy):
    """Once many were drawn XLA makes them; nobody can tell."""
    words = np.random.default_rng(0).integers(0, 2**32, kernel.structs[0].shape, dtype=np.uint32)
    words[:4] = words[-4:] = 0, 1, 2**24 - 1, 2**24
    assert np.array_equal(np.asarray(kernel.call(words)).view(np.int32), in_numpy(words).view(np.int32))


@pytest.mark.parametrize("sizes", [(16, 700), (16, 5000), (1000, 60000)], ids=str)
def test_normals_of_many_sizes_in_turn(taken_over, sizes):
    """Some of what is made for one draw serves the next, wherever its blocks start."""
    twins, choose = Twins(3), random.Random(5)
    for _ in range(200):
        n, other = choose.randrange(*sizes), choose.choice([0, 0, 0, 16, 5, 700])
        n = n // 16 * 16 if choose.random() < 0.6 else n
        mean, std = choose.choice([(0, 1), (0, 0.3), (0.5, 2)])
        twins.check(lambda g: rng.normal(g, (n,), mean, std, PAIRS[torch.float32]), lambda g: torch.empty(n).normal_(mean, std, generator=g))
        twins.check(lambda g: rng.rand(g, (other,), PAIRS[torch.float32]), lambda g: torch.rand(other, generator=g))
        if choose.random() < 0.02:
            twins.ours.manual_seed(other)
            twins.theirs.manual_seed(other)


@pytest.mark.parametrize("isa", ["AVX2", "SSE4_2"])
def test_normals_where_there_is_no_fused_multiply_add(isa):
    """XLA's kernel is taken where it gives NumPy's bits, and else refused: torch's numbers either way."""
    program = """
import numpy as np, torch
from torchlike._core import rng, rng_blocks
from torchlike._core.rng_generator import Generator
kernels = rng_blocks.PAIRS, rng_blocks.MIDDLE_BLOCKS, rng_blocks.LARGE_BLOCKS
for kernel in kernels:
    kernel.spent(1)
generator, n = Generator(), rng_blocks.LARGE + 5
generator.manual_seed(3)
ours = rng.normal(generator, (n,), 0.5, 2.0, np.dtype(np.float32))
theirs = torch.empty(n).normal_(0.5, 2.0, generator=torch.Generator().manual_seed(3)).numpy()
np.testing.assert_allclose(ours, theirs, rtol=3e-7, atol=1e-7)
print([(k.call is not None, k.refused) for k in kernels])
"""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"XLA_FLAGS": f"--xla_cpu_max_isa={isa}", "TORCHLIKE_CACHE": "off"},
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"{[(isa == 'AVX2', isa != 'AVX2')] * 3}\n"


def test_words_are_the_same_from_xla():
    """Once many were drawn XLA makes them, whole pieces at a time; nobody can tell, whatever else is drawn, saved or seeded in between."""
    rng_twister.pieces(1 << 26)
    assert rng_twister.pieces(rng_twister.PIECE) is not None
    twins = Twins(8)
    for k, n in enumerate((3 * rng_twister.PIECE + 7, 10, rng_twister.PIECE // 2, 700, rng_twister.PIECE, 5, 1, rng_twister.PIECE - 1, 2 * rng_twister.PIECE)):
        assert np.array_equal(twins.ours.words(n) & 0x7FFFFFFF, torch.empty(n, dtype=torch.int32).random_(generator=twins.theirs).numpy()), (k, n)
        state = twins.ours.get_state_bytes()
        assert state == to_numpy(twins.theirs.get_state()).tobytes(), (k, n)
        if k == 3:
            twins.ours.set_state_bytes(state)
        if k == 5:
            twins.ours.manual_seed(9)
            twins.theirs.manual_seed(9)
    looked_at = Twins(9)
    looked_at.ours.peek(rng_twister.PIECE)
    assert looked_at.ours.get_state_bytes() == to_numpy(looked_at.theirs.get_state()).tobytes()
    assert np.array_equal(looked_at.ours.words(3) & 0x7FFFFFFF, torch.empty(3, dtype=torch.int32).random_(generator=looked_at.theirs).numpy())


def test_what_tells_whether_a_kernel_is_exact(taken_over):
    for kernel in NORMALS:
        assert kernel.exact(kernel.call)
        assert not kernel.exact(lambda words: np.nextafter(np.asarray(kernel.call(words)), np.float32(2)))  # noqa: B023 - called at once


def test_normals_of_many_sizes_are_torch_s(taken_over):
    twins, sizes = Twins(5), np.random.default_rng(0).choice([1, 15, 16, 17, 50, 100, 500, 513, 1000, 1037, 4000, 5000, 20000, 40001], 600)
    sizes = np.append(sizes, [3 * rng_blocks.LARGE + 1, rng_blocks.MIDDLE - 5, rng_blocks.MIDDLE - 20, rng_blocks.MIDDLE + 16])
    for k, n in enumerate(sizes.tolist()):
        if k % 7 == 0:
            twins.ours.words(n)
            torch.empty(n, dtype=torch.int32).random_(generator=twins.theirs)
            continue
        mean, std = ((0.0, 1.0), (0.5, 2.0))[k % 2]
        ours = rng.normal(twins.ours, (n,), mean, std, np.dtype(np.float32))
        assert np.allclose(to_numpy(torch.empty(n).normal_(mean, std, generator=twins.theirs)), ours, rtol=3e-7, atol=1e-7), (k, n)
    assert twins.ours.get_state_bytes() == to_numpy(twins.theirs.get_state()).tobytes()


def test_uniform_numbers_are_the_same_from_xla():
    """Once many were drawn XLA makes those of large draws; nobody can tell."""
    rng_uniform._KERNEL.spent(1)
    call = rng_uniform._KERNEL.call
    assert call is not None and rng_uniform._is_exact(call)
    assert not rng_uniform._is_exact(lambda *args: np.nextafter(np.asarray(call(*args)), np.float32(2)))
    twins, large = Twins(6), np.zeros(rng_uniform.LARGE, np.uint32)
    for low, high, taken in ((0, 1, True), (-0.1, 0.1, True), (0, 0.3, True), (2, 3, True), (1, 1.0000002, False), (1e-9, 1, False), (0, 1e-38, False), (2, 2, False)):
        assert (rng_uniform.floats(large, np.float32(low), np.float32(high)) is not None) == taken
        for n in (rng_uniform.LARGE - 1, rng_uniform.LARGE, 2 * rng_uniform.LARGE + 5):
            twins.check(lambda g: rng.uniform(g, (n,), low, high, PAIRS[torch.float32]), lambda g: torch.empty(n).uniform_(low, high, generator=g))
    twins.check(lambda g: rng.rand(g, (3, rng_uniform.LARGE), PAIRS[torch.float32]), lambda g: torch.rand(3, rng_uniform.LARGE, generator=g))


def test_multinomial_of_many_rows():
    """Rows are looked at some at a time; those before a wrong one have drawn."""
    weights = np.random.default_rng(0).random((300, 1000), dtype=np.float32)
    twins = Twins(6)
    twins.check(lambda g: rng.multinomial(g, weights, 7, True), lambda g: torch.multinomial(torch.tensor(weights), 7, True, generator=g))
    weights[200] = 0
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        rng.multinomial(twins.ours, weights, 7, True)
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        torch.multinomial(torch.tensor(weights), 7, True, generator=twins.theirs)
    twins.check(lambda g: rng.rand(g, (3,), np.dtype(np.float32)), lambda g: torch.rand(3, generator=g))
