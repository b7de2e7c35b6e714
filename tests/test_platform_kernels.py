"""torchlike's operations on a GPU or TPU: the registry takes the kernels of pallas_kernels, and only there.

Without a card: plans for one are lowered for it, and what is registered runs with the references (which other tests
hold against the kernels) beside the operation's own formula.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import pallas_kernels
import torchlike  # noqa: F401  (defines the operations)
from pallas_kernels import _compat
from torchlike._core import dtype as dt
from torchlike._core.aval import FLOAT, aval
from torchlike._core.device import CPU, device
from torchlike._core.registry import OPS
from torchlike.nn._functional.attention import fused

_INT = dt.int64
CUDA, TPU = device("cuda", 0), device("tpu", 0)
CASES = {  # operation: (shapes of its inputs; a pair names a dtype, None is absent), statics, results that users see
    "native_layer_norm": (((1024, 96), (96,), (96,)), (1, 1e-5), 1),
    "rms_norm": (((1024, 96), (96,)), (1, 1e-5), 1),
    "cross_entropy": (((24, 1100), ((24,), _INT), (1100,)), (-100, "mean", 0.1), 1),
    "attention": (((1, 4, 40, 32), (1, 2, 40, 32), (1, 2, 40, 32), (40, 40), None, FLOAT), (0.2, False), 1),
    "fused_attention": (((1, 2, 40, 32), (1, 2, 40, 32), (1, 2, 40, 32), None), (0.2, True), 1),
    "grouped_mm": (((40, 16), (3, 16, 24), ((3,), _INT)), (), 1),
    "gru_sequence": (((5, 20, 8), (2, 20, 16), (48, 8), (48, 16), (48,), (48,), ((5, 20, 1), dt.bool_)), (1, True), 2),
    "rnn_sequence": (((5, 20, 8), (2, 20, 16), (16, 8), (16, 16), (16,), None, None), (0, False, True), 2),
    "lstm_sequence": (((5, 20, 8), *[(1, 20, 16)] * 2, (64, 8), (64, 16), None, None, ((5, 20, 1), dt.bool_)), (0, False), 3),
}
FORWARD_IS_XLA = ("native_layer_norm", "rms_norm")


def plan_of(op, where, shapes, statics):
    def one(s):
        if s is None or s is FLOAT:
            return s
        return aval(*s, where) if isinstance(s[0], tuple) else aval(s, dt.float32, where)

    return OPS[op].plan(tuple(map(one, shapes)), statics)


def backward_of(plan):
    """The plan of the derivative in every floating input, for gradients of the results that users see."""
    needs = tuple(a is not None and not a.number and a.dtype.category == dt.FLOAT for a in plan.avals)
    if plan.op.name == "cross_entropy":
        needs = (True, False, False)
    ins, outs = plan.saved(needs)
    seen = CASES[plan.op.name][2] if plan.op.name in CASES else 1
    gradients = [o if k < seen else None for k, o in enumerate(plan.outs)]
    return plan.op.backward.plan((*(plan.avals[i] for i in ins), *(plan.outs[i] for i in outs), *gradients), (plan, needs))


def structs(plan):
    return [
        None if a is None else jax.ShapeDtypeStruct(a.shape, a.dtype.np) for a in plan.avals
    ]


def lowered(plan, platform):
    with jax.enable_x64(True):
        return _compat.lower_for(platform, plan.compiled, *structs(plan))


@pytest.mark.parametrize("op", CASES)
def test_a_gpu_gets_the_kernels(op):
    shapes, statics, _ = CASES[op]
    plan = plan_of(op, CUDA, shapes, statics)
    kernels = (_compat.TRITON_TARGET, "__cudnn$", "cudnn_rnn", "rnn_forward")
    text = {"forward": lowered(plan, "cuda"), "backward": lowered(backward_of(plan), "cuda")}
    found = {name for name, module in text.items() if any(k in module for k in kernels)}
    assert found == ({"backward"} if op in FORWARD_IS_XLA else {"forward", "backward"})


@pytest.mark.parametrize("op", CASES)
def test_a_cpu_keeps_its_own_form(op):
    shapes, statics, _ = CASES[op]
    plan = plan_of(op, CPU, shapes, statics)
    with jax.enable_x64(True):
        for each in (plan, backward_of(plan)):
            text = jax.jit(each.compiled).lower(*structs(each)).as_text()
            assert "custom_call" not in text.replace("Sharding", "") or "triton" not in text


def test_a_tpu_gets_the_shipped_kernels():
    for op in ("attention", "grouped_mm"):
        shapes, statics, _ = CASES[op]
        if op == "attention":
            shapes = ((1, 4, 256, 128), (1, 4, 256, 128), (1, 4, 256, 128), None, None, FLOAT)
        if op == "grouped_mm":
            shapes = ((256, 128), (3, 128, 256), ((3,), _INT))
        assert _compat.TPU_TARGET in lowered(plan_of(op, TPU, shapes, statics), "tpu"), op


@pytest.mark.parametrize("op", CASES)
def test_what_is_registered_agrees_with_the_formula(op):
    """Forward and backward: same arguments, same meaning of each."""
    shapes, statics, seen = CASES[op]
    plan = plan_of(op, CPU, shapes, statics)
    draw = np.random.default_rng(0)

    def array(a):
        if a is None or a is FLOAT:
            return None if a is None else 1.0
        if a.dtype is dt.bool_:
            return np.arange(a.shape[0])[:, None, None] < draw.integers(1, 6, a.shape[1])[None, :, None]
        if a.dtype is _INT:
            return np.asarray([11, 11, 33]) if op == "grouped_mm" else draw.integers(0, 1100, a.shape)
        return draw.standard_normal(a.shape).astype("float32")

    with jax.enable_x64(True):
        inputs = [array(a) for a in plan.avals]
        plain = jax.jit(plan.jax)(*inputs)
        backward = backward_of(plan)
        needs = backward.statics[1]
        ins, outs = plan.saved(needs)
        gradients = [draw.standard_normal(o.shape).astype("float32") if k < seen else None for k, o in enumerate(plan.outs)]
        saved = [*(inputs[i] for i in ins), *(plain[i] for i in outs), *gradients]
        want = jax.jit(backward.jax)(*saved)
        for each, args, expected in ((plan, inputs, plain[:seen]), (backward, saved, want)):
            kernel = each.op.device_kernels.get("cuda")
            if kernel is None:
                assert op in FORWARD_IS_XLA
                continue
            with pallas_kernels.override("reference"):
                got = jax.jit(lambda *a, kernel=kernel, each=each: kernel(*a, *each.statics))(*args)
            for a, b in zip([got] if each.single else got, expected, strict=False):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_a_negative_scale_reaches_the_kernels_as_a_negated_query():
    """torch allows it; `pallas_kernels.attention` refuses it as a likely mistake."""
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal((1, 2, n, 8)).astype("float32") for n in (5, 7, 7)]
    want = torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, arrays), scale=-0.3)
    got = jax.jit(lambda *a: fused(jnp, *a, None, -0.3, False))(*arrays)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("name, statics", [("convolution", ((2, 1), ((1, 1), (0, 0)), (1, 2), 2)), ("conv_transpose", ((2, 1), (1, 0), (1, 0), (1, 2), 2))])
def test_convolutions_with_a_bias_on_a_gpu(name, statics, kind):
    """As the CPU's; 16-bit floats are multiplied as they are."""
    draw, kind = np.random.default_rng(0), jnp.dtype(kind)
    x, w, b = (draw.standard_normal(shape).astype(kind) for shape in ((2, 4, 6, 7), (4, 2, 3, 3), (4,)))
    kernel = OPS[name].device_kernels["cuda"]
    run = lambda *a: kernel(*a, *statics)  # noqa: E731
    assert {str(v.aval.dtype) for eqn in jax.make_jaxpr(run)(x, w, b).eqns if eqn.primitive.name == "conv_general_dilated" for v in eqn.outvars} == {kind.name}
    want = OPS[name].device_kernels["cpu"](*map(jnp.asarray, (x, w, b)), *statics)
    np.testing.assert_allclose(run(x, w, b).astype("float32"), want.astype("float32"), rtol=1e-5 if kind.itemsize == 4 else 2e-2, atol=1e-5 if kind.itemsize == 4 else 6e-2)


@pytest.mark.parametrize("where, relaxed", [(CUDA, "DEFAULT"), (TPU, "HIGH")])
def test_float32_products_are_as_precise_as_the_settings_say(where, relaxed):
    """Matrix products in float32 until TF32 is allowed; convolutions the other way round; 16 bits as they come."""
    backends = torchlike.backends

    def precisions(op, *inputs):
        statics = {"matmul": (), "convolution": ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)}[op]
        avals = [aval(s, d, where) for s, d in inputs]
        plan = OPS[op].plan((*avals, None) if op == "convolution" else tuple(avals), statics)
        back = backward_of(plan) if inputs[0][1] is dt.float32 and op == "matmul" else plan
        texts = [str(jax.make_jaxpr(p.compiled)(*(a and jax.ShapeDtypeStruct(a.shape, a.dtype.np) for a in p.avals))) for p in (plan, back)]
        return [set(re.findall(r"Precision\.(\w+)", t)) for t in texts]
    matrices, images = (((6, 5), dt.float32), ((5, 7), dt.float32)), (((1, 3, 8, 8), dt.float32), ((4, 3, 3, 3), dt.float32))
    halves = tuple((s, dt.bfloat16) for s, _ in matrices)
    one = lambda name: [{name}] * 2  # noqa: E731
    assert precisions("matmul", *matrices) == one("HIGHEST")
    assert precisions("convolution", *images) == one(relaxed)
    assert precisions("matmul", *halves) == [set()] * 2
    try:
        torchlike.set_float32_matmul_precision("high")
        backends.cudnn.allow_tf32 = False
        assert precisions("matmul", *matrices) == one(relaxed)
        assert precisions("convolution", *images) == one("HIGHEST")
        backends.cuda.matmul.fp32_precision = "ieee"
        backends.cudnn.conv.fp32_precision = "tf32"
        assert precisions("matmul", *matrices) == one("HIGHEST")
        assert precisions("convolution", *images) == one(relaxed)
    finally:
        torchlike.set_float32_matmul_precision("highest")
        backends.cudnn.allow_tf32 = True
