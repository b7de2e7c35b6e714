"""The attention kernels in interpret mode, and the reference, against dense float64 NumPy."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import kernel_oracle as oracle
import numpy as np
import pytest

import pallas_kernels
from pallas_kernels import _compat, specs
from pallas_kernels.attention import api, gpu, gpu_backward, reference

SPECS = specs.SMALL["attention"]


def program(spec, impl, wrap=lambda f: f):
    """(arrays, cotangents) to output, log-sum-exp and gradients by name."""
    attend = wrap(lambda a: pallas_kernels.attention(**a, **spec.static, return_logsumexp=True, impl=impl))

    def both(arrays, grad, grad_lse):
        floats = {n: arrays[n] for n in spec.gradients}
        (out, lse), pull = jax.vjp(lambda d: attend({**arrays, **d}), floats)
        return out, lse, pull((grad.astype(out.dtype), grad_lse))[0]

    return both


def run(spec, impl, problem, **options):
    return oracle.jit(program(spec, impl, **options))(*problem)


def problem(spec, seed=0):
    """Arrays, and cotangents of output and log-sum-exp."""
    arrays = specs.inputs(spec, seed)
    rng = np.random.default_rng(seed + 1)
    b, h, t, _ = spec.arrays["query"].shape
    grad = rng.standard_normal((b, h, t, spec.arrays["value"].shape[-1])).astype("float32")
    grad = grad.astype(spec.arrays["query"].dtype).astype("float32")
    return arrays, grad, rng.standard_normal((b, h, t)).astype("float32")


def check(spec, got, arrays, grad, grad_lse):
    out, lse, grads = got
    want, want_lse, want_grads = oracle.attention(
        arrays, spec.static, np.asarray(grad, np.float64), np.asarray(grad_lse, np.float64)
    )
    limit = oracle.LIMITS[spec.arrays["query"].dtype]
    assert oracle.error(out, want) < limit
    blind = ~np.isfinite(want_lse)
    assert (np.isneginf(np.asarray(lse)) == blind).all()
    assert not np.asarray(out)[blind].any()
    assert oracle.error(np.where(blind, 0, lse), np.where(blind, 0, want_lse)) < limit
    for name in spec.gradients:
        assert grads[name].dtype == arrays[name].dtype
        # Scores of 1e4 in float32 carry absolute errors of 1e-3 into the exponent.
        assert oracle.error(grads[name], want_grads[name]) < (1e-2 if spec.name == "huge" else 1.5 * limit), name


# "exact" and "causal" have options that others have too; the tests after this one run the rest.
ELSEWHERE = ("exact", "causal", "grouped", "bias_full", "bias_columns", "everything")


@pytest.mark.parametrize("spec", [s for s in SPECS if s.name not in ELSEWHERE], ids=str)
def test_kernels_match_float64(spec, small_blocks):
    given = problem(spec)
    check(spec, run(spec, "interpret", given), *given)


@pytest.mark.parametrize("name", ["bias_columns", "bias_full"])
def test_kernels_match_in_any_order(name, small_blocks):
    """Programs in the opposite order, under 64-bit types, recomputed in the backward pass: not a bit changes."""
    spec = specs.small("attention", name)
    given = problem(spec)
    straight = run(spec, "interpret", given)
    check(spec, straight, *given)
    with _compat.reversed_grid(), jax.enable_x64(True):
        backwards = run(spec, "interpret", given, wrap=jax.checkpoint)
    for a, b in zip(jax.tree.leaves(straight), jax.tree.leaves(backwards), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


def test_kernels_match_under_vmap(small_blocks):
    spec = specs.small("attention", "grouped")
    each = [problem(spec, seed) for seed in range(3)]
    mapped = oracle.jit(jax.vmap(program(spec, "interpret")))(*jax.tree.map(lambda *a: np.stack(a), *each))
    for i, given in enumerate(each):
        check(spec, jax.tree.map(lambda a, i=i: np.asarray(a)[i], mapped), *given)


def test_kernels_match_with_each_others_residuals(small_blocks):
    """The backward kernels after the reference's forward pass, and the reference's after the kernel's."""
    spec = specs.small("attention", "everything")
    arrays, grad, grad_lse = given = problem(spec)
    _, case, operands = canonical(spec, arrays)
    card = replace(case, interpret=True)
    forwards = (partial(gpu.forward, card), partial(reference.attend, case))
    backwards = (partial(reference.attend_backward, case), partial(gpu_backward.backward, card))
    saved = [oracle.jit(forward)(operands) for forward in forwards]
    for a, b in zip(*saved, strict=True):
        assert a.dtype == b.dtype and oracle.error(a, b) < 2e-6
    for (out, top, total), backward in zip(saved, backwards, strict=True):
        delta = (grad * out).sum(-1) - jnp.where(total > 0, grad_lse, 0)
        grads = oracle.jit(partial(backward, bias_gradient=True))(operands, top, total, delta, grad)
        named = dict(zip(spec.gradients, grads, strict=True))
        check(spec, (out, reference.logsumexp(top, total), named), *given)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_reference_matches_float64(spec):
    given = problem(spec)
    check(spec, run(spec, "reference", given), *given)


@pytest.mark.parametrize("name", ["causal_blind", "everything"])
def test_reference_in_chunks_matches_float64(name, monkeypatch):
    """Loops over chunks, with recomputation, and the explicit backward pass that a kernel's residuals feed."""
    for constant, value in (("_CHUNK", 8), ("_UNROLL", 2), ("_WHOLE_ELEMENTS", 0), ("_KEEP_ELEMENTS", 8000)):
        monkeypatch.setattr(reference, constant, value)
    spec = specs.small("attention", name)
    arrays, grad, grad_lse = given = problem(spec)
    check(spec, run(spec, "reference", given), *given)
    _, case, operands = canonical(spec, arrays)

    def explicit(operands):
        out, top, total = reference.attend(case, operands)
        delta = (grad * out).sum(-1) - jnp.where(total > 0, grad_lse, 0)
        grads = reference.attend_backward(case, operands, top, total, delta, grad, bias_gradient="bias" in arrays)
        return out, top, total, grads

    out, top, total, grads = oracle.jit(explicit)(operands)
    named = dict(zip(("query", "key", "value", "bias"), grads, strict=True))
    check(spec, (out, reference.logsumexp(top, total), named), *given)


def canonical(spec, arrays):
    defaults = {
        "bias": None,
        "mask": None,
        "causal": False,
        "causal_offset": 0,
        "query_segments": None,
        "key_segments": None,
        "query_lengths": None,
        "key_lengths": None,
        "dropout": 0.0,
        "seed": None,
        "scale": None,
        "logsumexp": True,
    }
    return api._canonical(**{**defaults, **arrays, **spec.static})


def test_rows_masked_by_the_lowest_float_average_like_torch(small_blocks):
    """A row whose scores all carry finfo.min as a mask is not blind: every key weighs the same."""
    spec = specs.small("attention", "exact")
    arrays, _, _ = problem(spec)
    bias = np.full((1, 1, 32, 48), np.finfo("float32").min)
    for impl in ("interpret", "reference"):
        attend = oracle.jit(lambda bias, impl=impl: pallas_kernels.attention(**arrays, bias=bias, impl=impl))
        out = attend(bias)
        assert oracle.error(out, np.broadcast_to(arrays["value"].mean(2, keepdims=True), out.shape)) < 2e-6
        out = attend(np.full_like(bias, -np.inf))
        assert not np.asarray(out).any()


def test_poison_outside_the_lengths_is_never_read(small_blocks):
    """What lies past an array's end is NaN in interpret mode already; here the hidden keys themselves are NaN."""
    spec = specs.small("attention", "lengths")
    arrays, _, _ = problem(spec)
    attend = oracle.jit(lambda a: pallas_kernels.attention(**a, impl="interpret"))
    hidden = np.arange(40)[None, :] >= np.asarray(arrays["key_lengths"])[:, None]
    key = jnp.where(hidden[:, None, :, None], jnp.nan, arrays["key"])
    assert np.array_equal(attend(arrays), attend({**arrays, "key": key}))


def test_bias_gradient_costs_nothing_unless_asked(small_blocks):
    spec = specs.small("attention", "bias_full")
    arrays, _, _ = problem(spec)
    loss = lambda q, bias: pallas_kernels.attention(**{**arrays, "query": q, "bias": bias}, impl="interpret").sum()
    quadratic = "f32[2,2,21,37]"
    text = str(jax.make_jaxpr(jax.grad(loss, 0))(arrays["query"], arrays["bias"]))
    assert "attention_backward_queries" in text and quadratic not in text
    assert quadratic in str(jax.make_jaxpr(jax.grad(loss, 1))(arrays["query"], arrays["bias"]))


def test_remat_and_second_derivatives(small_blocks):
    spec = specs.small("attention", "causal")
    arrays, _, _ = problem(spec)

    def squared(impl, wrap):
        f = wrap(lambda q, k, v: pallas_kernels.attention(q, k, v, **spec.static, impl=impl))
        loss = lambda q, k, v: jnp.sin(f(q, k, v)).sum()
        first = jax.grad(loss, (0, 1, 2))
        second = jax.grad(lambda *a: sum((g**2).sum() for g in first(*a)), (0, 1, 2))
        return oracle.jit(lambda *a: (first(*a), second(*a)))(*(arrays[n] for n in ("query", "key", "value")))

    kernels, plain = squared("interpret", jax.checkpoint), squared("reference", lambda f: f)
    for a, b in zip(jax.tree.leaves(kernels), jax.tree.leaves(plain), strict=True):
        assert oracle.error(a, b) < 5e-6


def test_float64():
    spec = specs.small("attention", "everything")
    arrays, grad, grad_lse = problem(spec)
    with jax.enable_x64(True):
        double = {k: v.astype("float64") if v.dtype == jnp.float32 else v for k, v in arrays.items()}
        got = oracle.jit(lambda a: pallas_kernels.attention(**a, **spec.static))(double)
    want, _, _ = oracle.attention(double, spec.static, np.asarray(grad, np.float64), np.asarray(grad_lse, np.float64))
    assert got.dtype == np.float64 and oracle.error(got, want) < 1e-12


def test_forward_mode_and_hessian_of_the_reference():
    spec = specs.small("attention", "causal_wide")
    arrays, _, _ = problem(spec)
    f = lambda q: pallas_kernels.attention(q, arrays["key"], arrays["value"], **spec.static).sum()

    def both(q):
        direction = jnp.cos(q)
        (slope, bend) = (jax.jvp(g, (q,), (direction,))[1] for g in (f, jax.grad(f)))
        return slope, (jax.grad(f)(q) * direction).sum(), bend

    slope, same, bend = oracle.jit(both)(arrays["query"])
    assert abs(slope - same) < 1e-4
    assert np.isfinite(bend).all()


def test_leading_dimensions_and_decoding_offset():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 3, 4, n, 8)).astype("float32") for n in (1, 9, 9))
    bias = rng.standard_normal((3, 1, 1, 9)).astype("float32")

    @oracle.jit
    def results(q, k, v, bias, offset):
        attend = pallas_kernels.attention
        whole = attend(q, k, v, bias=bias, causal=True, causal_offset=offset)
        one = attend(q[0, 0], k[0, 0], v[0, 0])
        head = attend(q[0, 0, 0], k[0, 0, 0], v[0, 0, 0])
        return whole, one, head, attend(q[:, :, :, :0], k, v), attend(q, k[..., :0, :], v[..., :0, :])

    out, one, head, no_rows, no_keys = results(q, k, v, bias, jnp.int32(5))
    flat = lambda x: np.asarray(x).reshape(6, 4, *x.shape[3:])
    want, _, _ = oracle.attention(
        {"query": flat(q), "key": flat(k), "value": flat(v), "bias": np.tile(np.asarray(bias), (2, 1, 1, 1))},
        {"causal": True, "causal_offset": 5},
        np.zeros((6, 4, 1, 8)),
        np.zeros((6, 4, 1)),
    )
    assert oracle.error(flat(out), want) < 2e-6
    assert oracle.error(head, one[0]) < 1e-6
    assert no_rows.shape == (2, 3, 4, 0, 8)
    assert not np.asarray(no_keys).any()


def test_reference_memory_is_linear_in_length():
    def bytes_used(length):
        x = jax.ShapeDtypeStruct((1, 16, length, 8), "float32")
        loss = lambda q, k, v: pallas_kernels.attention(q, k, v).sum()
        return jax.jit(jax.grad(loss, (0, 1, 2))).lower(x, x, x).compile().memory_analysis().temp_size_in_bytes

    short, long = bytes_used(2048), bytes_used(4096)
    assert long < 2.5 * short
    assert long < 16 * 4096 * 4096 * 4 / 8
