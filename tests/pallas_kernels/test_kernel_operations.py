"""Every operation but attention: kernels in interpret mode, and the references, against plain float64 definitions."""
import jax
import jax.numpy as jnp
import kernel_naive
import kernel_oracle as oracle
import numpy as np
import pytest

import pallas_kernels
from pallas_kernels import _compat, specs

SPECS = [spec for op, group in specs.SMALL.items() if op != "attention" for spec in group]
names = lambda spec: f"{spec.op}-{spec.name}"


def run(spec, impl, arrays, cotangents):
    function = getattr(pallas_kernels, spec.op)

    def both(arrays, cotangents):
        call = lambda d: jax.tree.leaves(function(**{**arrays, **d}, **spec.static, impl=impl))
        out, pull = jax.vjp(call, {n: arrays[n] for n in spec.gradients})
        return out, pull([c.astype(o.dtype) for c, o in zip(cotangents, out, strict=True)])[0]

    return jax.jit(both)(arrays, cotangents)


def problem(spec):
    arrays = {k: jnp.asarray(v) for k, v in specs.inputs(spec).items()}
    function = getattr(pallas_kernels, spec.op)
    shapes = jax.eval_shape(lambda a: jax.tree.leaves(function(**a, **spec.static, impl="reference")), arrays)
    rng = np.random.default_rng(1)
    return arrays, [jnp.asarray(rng.standard_normal(s.shape), "float32").astype(s.dtype) for s in shapes]


def dtype_of(spec):
    return next(a.dtype for a in spec.arrays.values() if a.kind == "normal")


def check(spec, got, arrays, cotangents):
    outs, grads = got
    want_outs, want_grads = kernel_naive.expected(spec, arrays, cotangents)
    limit = oracle.LIMITS[dtype_of(spec)]
    for out, want in zip(outs, want_outs, strict=True):
        assert oracle.error(out, want) < limit
    for name in spec.gradients:
        assert grads[name].dtype == arrays[name].dtype
        assert oracle.error(grads[name], want_grads[name]) < 2 * limit, name


@pytest.mark.parametrize("spec", [s for s in SPECS if s.op in pallas_kernels.KERNELS], ids=names)
def test_kernels_match_float64(spec, small_blocks):
    arrays, cotangents = problem(spec)
    check(spec, run(spec, "interpret", arrays, cotangents), arrays, cotangents)


@pytest.mark.parametrize("spec", SPECS, ids=names)
def test_references_match_float64(spec):
    arrays, cotangents = problem(spec)
    check(spec, run(spec, "reference", arrays, cotangents), arrays, cotangents)


ONE_EACH = [group[0] for op, group in specs.SMALL.items() if op != "attention"]
KERNEL_EACH = [s for s in ONE_EACH if s.op in pallas_kernels.KERNELS]


@pytest.mark.parametrize("spec", KERNEL_EACH, ids=names)
def test_reversed_grid_is_bit_identical(spec, small_blocks):
    arrays, cotangents = problem(spec)
    straight = run(spec, "interpret", arrays, cotangents)
    with _compat.reversed_grid():
        backwards = run(spec, "interpret", arrays, cotangents)
    for a, b in zip(jax.tree.leaves(straight), jax.tree.leaves(backwards), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("spec", KERNEL_EACH, ids=names)
def test_x64_vmap_and_remat(spec, small_blocks):
    """64-bit types on, mapped over a batch of two, recomputed in the backward pass: the same numbers."""
    arrays, cotangents = problem(spec)
    plain = run(spec, "interpret", arrays, cotangents)
    function = jax.checkpoint(lambda a: jax.tree.leaves(
        getattr(pallas_kernels, spec.op)(**a, **spec.static, impl="interpret")))

    def both(arrays):
        floats = {n: arrays[n] for n in spec.gradients}
        out, pull = jax.vjp(lambda d: function({**arrays, **d}), floats)
        return out, pull([c.astype(o.dtype) for c, o in zip(cotangents, out, strict=True)])[0]

    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda a: jnp.stack([a, a]), arrays)
        mapped = jax.jit(jax.vmap(both))(stacked)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(mapped), strict=True):
        assert a.dtype == b.dtype
        assert oracle.error(b[1], a) < 1e-6


def test_inference_leaves_norms_to_xla():
    x = jnp.ones((300, 64))
    with _compat._dispatch.assumed_device(_compat._dispatch.H200):
        assert "norm_forward" not in str(jax.make_jaxpr(pallas_kernels.rms_norm)(x))
        trained = str(jax.make_jaxpr(jax.grad(lambda x: pallas_kernels.rms_norm(x).sum()))(x))
    assert "norm_forward" in trained and "norm_backward" in trained


@pytest.mark.parametrize(("error", "words", "call"), [
    (ValueError, r"weight must have shape \(6,\) \(the last 1 of x \(4, 6\)\), got \(5,\)",
     lambda k, x: k.layer_norm(x, jnp.ones(5))),
    (ValueError, r"axes must be between 1 and", lambda k, x: k.rms_norm(x, axes=3)),
    (ValueError, r"residual must be like x float32\(4, 6\), got float32\(6,\)", lambda k, x: k.rms_norm(x, residual=x[0])),
    (TypeError, "layer_norm: x must be floating, got int32", lambda k, x: k.layer_norm(x.astype("int32"))),
    (ValueError, r"channels of x \(4, 6\) must be a multiple of groups, got 4", lambda k, x: k.group_norm(x, 4)),
    (ValueError, r"bias must have shape \(6,\), got \(2,\)", lambda k, x: k.group_norm(x, 2, bias=jnp.ones(2))),
    (pallas_kernels.KernelUnavailable, "9000 columns are over 8192",
     lambda k, x: k.layer_norm(jnp.ones((2, 9000)), impl="interpret")),
])
def test_bad_norm_input(error, words, call):
    with pytest.raises(error, match=words):
        call(pallas_kernels, jnp.ones((4, 6)))
