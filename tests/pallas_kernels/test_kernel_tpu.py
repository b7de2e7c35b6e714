"""The kernels JAX ships for TPU, in TPU interpret mode, with our padding, masks and head groups around them."""

import jax
import kernel_oracle as oracle
import kernel_torch
import numpy as np
from jax.experimental.pallas import tpu as pltpu

import pallas_kernels
from pallas_kernels import _dispatch, specs


def test_attention(monkeypatch):
    hidden = {"query_lengths": True, "key_lengths": True}
    spec = specs._attention("all", 2, 4, 35, 16, s=40, kv=2, bias=(0, 1, 1, 1), causal=True, **hidden)
    arrays = specs.inputs(spec)
    b, h, t, _ = arrays["query"].shape
    grad = np.random.default_rng(1).standard_normal((b, h, t, arrays["value"].shape[-1])).astype("float32")
    # Interpret mode runs the TPU branch on the CPU, which the choice by platform would not take.
    monkeypatch.setattr(_dispatch, "on_platforms", lambda platforms, kernel, reference, *args: kernel(*args))

    def call(d):
        return pallas_kernels.attention(**{**arrays, **d}, **spec.static, impl="tpu")

    with _dispatch.assumed_device(_dispatch.TPU), pltpu.force_tpu_interpret_mode():
        both = oracle.jit(lambda d: (lambda out, pull: (out, pull(grad)[0]))(*jax.vjp(call, d)))
        out, grads = both({n: arrays[n] for n in spec.gradients})
    want, _, want_grads = oracle.attention(arrays, spec.static, np.asarray(grad, np.float64), np.zeros((b, h, t)))
    assert oracle.error(out, want) < 2e-6
    for key, value in grads.items():
        assert oracle.error(value, want_grads[key]) < 3e-6, key


def test_grouped_products():
    from pallas_kernels.grouped import tiles, tpu

    spec = specs.small("grouped_mm", "tails")
    arrays = specs.inputs(spec)
    grad = np.random.default_rng(1).standard_normal((70, 37)).astype("float32")
    want, want_grads = kernel_torch.expected(spec, arrays, [grad])
    case = tiles.Case(70, 24, 37, 5, "float32", interpret=True)
    x, weight, sizes = arrays.values()

    @oracle.jit
    def products(x, weight, sizes, grad):
        forward = tpu.product(case, x, weight, sizes, transposed=False)
        return forward, tpu.product(case, grad, weight, sizes, transposed=True), tpu.outer(case, x, grad, sizes)

    for got, right in zip(products(x, weight, sizes, grad), (want[0], want_grads["x"], want_grads["weight"]), strict=True):
        assert oracle.error(got, right) < 2e-6
