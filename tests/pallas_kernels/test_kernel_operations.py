"""Every operation but attention: kernels in interpret mode, and the references, against plain float64 definitions."""

from functools import partial

import jax
import jax.numpy as jnp
import kernel_oracle as oracle
import kernel_torch
import numpy as np
import pytest

import pallas_kernels
from pallas_kernels import _compat, specs
from pallas_kernels.losses import gpu as losses_kernels
from pallas_kernels.losses import reference as losses_reference
from pallas_kernels.norm import gpu as norm_kernels
from pallas_kernels.norm import reference as norm_reference
from pallas_kernels.recurrent import gpu as recurrent_kernels
from pallas_kernels.recurrent import reference as recurrent_reference

SPECS = [spec for op, group in specs.SMALL.items() if op != "attention" for spec in group]
names = lambda spec: f"{spec.op}-{spec.name}"


def operation(spec, impl):
    chosen = {"impl": impl} if spec.op in pallas_kernels.KERNELS else {}
    return partial(getattr(pallas_kernels, spec.op), **spec.static, **chosen)


def program(spec, impl, wrap=lambda f: f):
    """(arrays, cotangents) to outputs and gradients by name."""
    function = wrap(lambda a: jax.tree.leaves(operation(spec, impl)(**a)))

    def both(arrays, cotangents):
        floats = {n: arrays[n] for n in spec.gradients}
        out, pull = jax.vjp(lambda d: function({**arrays, **d}), floats)
        return out, pull([c.astype(o.dtype) for c, o in zip(cotangents, out, strict=True)])[0]

    return both


def run(spec, impl, problem, **options):
    return oracle.jit(program(spec, impl, **options))(*problem)


def problem(spec, seed=0):
    """Arrays and cotangents."""
    arrays = specs.inputs(spec, seed)
    rng = np.random.default_rng(seed + 1)
    shapes = [o.shape for o in kernel_torch.outputs(spec, arrays)]
    return arrays, [rng.standard_normal(s).astype("float32").astype(dtype_of(spec)) for s in shapes]


def dtype_of(spec):
    return next(a.dtype for a in spec.arrays.values() if a.kind == "normal")


def check(spec, got, arrays, cotangents):
    outs, grads = got
    want_outs, want_grads = kernel_torch.expected(spec, arrays, cotangents)
    limit = oracle.LIMITS[dtype_of(spec)]
    for out, want in zip(outs, want_outs, strict=True):
        assert oracle.error(out, want) < limit
    for name in spec.gradients:
        assert grads[name].dtype == arrays[name].dtype
        assert oracle.error(grads[name], want_grads[name]) < 2 * limit, name


# One problem of each kernel in the opposite order, another under vmap; the rest as they are.
ANY_ORDER = [
    specs.small(op, name)
    for op, name in (
        ("group_norm", "groups"),
        ("cross_entropy", "mean"),
        ("grouped_mm", "tails"),
        ("recurrent_layer", "lstm_lengths"),
    )
]
MAPPED = [
    specs.small(op, name)
    for op, name in (
        ("layer_norm", "tail"),
        ("cross_entropy", "none"),
        ("grouped_mm", "one_group"),
        ("recurrent_layer", "gru_reverse_lengths"),
    )
]
OTHERS = [s for s in SPECS if s.op in pallas_kernels.KERNELS and s not in (*ANY_ORDER, *MAPPED)]


@pytest.mark.parametrize("spec", OTHERS, ids=names)
def test_kernels_match_float64(spec, small_blocks):
    given = problem(spec)
    check(spec, run(spec, "interpret", given), *given)


@pytest.mark.parametrize("spec", ANY_ORDER, ids=names)
def test_kernels_match_in_any_order(spec, small_blocks):
    """Programs in the opposite order, under 64-bit types, recomputed in the backward pass: not a bit changes."""
    given = problem(spec)
    straight = run(spec, "interpret", given)
    check(spec, straight, *given)
    with _compat.reversed_grid(), jax.enable_x64(True):
        backwards = run(spec, "interpret", given, wrap=jax.checkpoint)
    for a, b in zip(jax.tree.leaves(straight), jax.tree.leaves(backwards), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("spec", MAPPED, ids=names)
def test_kernels_match_under_vmap(spec, small_blocks):
    each = [problem(spec, seed) for seed in range(2)]
    mapped = oracle.jit(jax.vmap(program(spec, "interpret")))(*jax.tree.map(lambda *a: np.stack(a), *each))
    for i, given in enumerate(each):
        check(spec, jax.tree.map(lambda a, i=i: np.asarray(a)[i], mapped), *given)


@pytest.mark.parametrize(
    ("kernels", "references", "which", "op", "name"),
    [
        (norm_kernels, norm_reference, "forward", "layer_norm", "residual"),
        (losses_kernels, losses_reference, "statistics", "cross_entropy", "sum_bf16"),
        (recurrent_kernels, recurrent_reference, "forward", "recurrent_layer", "lstm_lengths"),
        (recurrent_kernels, recurrent_reference, "forward", "recurrent_layer", "gru_reverse_lengths"),
    ],
)
def test_kernels_match_in_what_they_save(kernels, references, which, op, name, small_blocks, monkeypatch):
    """Either's backward pass may follow the other's forward pass."""
    calls, kernel = [], getattr(kernels, which)
    monkeypatch.setattr(kernels, which, lambda *given: calls.append((given, kernel(*given))) or calls[0][1])
    spec = specs.small(op, name)
    arrays, _ = problem(spec)
    free = 0
    if op == "cross_entropy":  # an ignored target that is no class: any number will do for its logit, but NaN
        free, arrays["target"][0] = 1, -100
    operation(spec, "interpret")(**arrays)
    [((case, *operands), mine)] = calls
    plain = oracle.jit(partial(getattr(references, which), case))(*operands)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(plain), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert np.isfinite(a).all()
        assert a.dtype == b.dtype and oracle.error(a[free:], b[free:]) < 1e-6


@pytest.mark.parametrize("spec", SPECS, ids=names)
def test_references_match_float64(spec):
    given = problem(spec)
    check(spec, run(spec, "reference", given), *given)


def test_inference_leaves_norms_to_xla():
    x = np.ones((300, 64), "float32")
    with _compat._dispatch.assumed_device(_compat._dispatch.H200):
        assert "norm_forward" not in str(jax.make_jaxpr(pallas_kernels.rms_norm)(x))
        trained = str(jax.make_jaxpr(jax.grad(lambda x: pallas_kernels.rms_norm(x).sum()))(x))
    assert "norm_forward" in trained and "norm_backward" in trained


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (
            ValueError,
            r"weight must have shape \(6,\) \(the last 1 of x \(4, 6\)\), got \(5,\)",
            lambda k, x: k.layer_norm(x, np.ones(5, "float32")),
        ),
        (ValueError, r"axes must be between 1 and", lambda k, x: k.rms_norm(x, axes=3)),
        (
            ValueError,
            r"residual must be like x float32\(4, 6\), got float32\(6,\)",
            lambda k, x: k.rms_norm(x, residual=x[0]),
        ),
        (TypeError, "layer_norm: x must be floating, got int32", lambda k, x: k.layer_norm(x.astype("int32"))),
        (ValueError, r"channels of x \(4, 6\) must be a multiple of groups, got 4", lambda k, x: k.group_norm(x, 4)),
        (ValueError, r"bias must have shape \(6,\), got \(2,\)", lambda k, x: k.group_norm(x, 2, bias=np.ones(2, "float32"))),
        (
            ValueError,
            r"target must have shape \(4,\) to fit \(4, 6\), got \(3,\)",
            lambda k, x: k.cross_entropy(x, np.zeros(3, "int32")),
        ),
        (TypeError, "target must hold integers, got float32", lambda k, x: k.cross_entropy(x, x[:, 0])),
        (
            ValueError,
            "reduction must be mean, sum or none, got 'max'",
            lambda k, x: k.cross_entropy(x, np.zeros(4, "int32"), reduction="max"),
        ),
        (
            ValueError,
            r"class_weight must have shape \(6,\), got \(5,\)",
            lambda k, x: k.cross_entropy(x, np.zeros(4, "int32"), class_weight=np.ones(5, "float32")),
        ),
        (
            ValueError,
            r"weight must be \(classes, 6\) to fit x \(4, 6\), got \(9, 5\)",
            lambda k, x: k.linear_cross_entropy(x, np.ones((9, 5), "float32"), np.zeros(4, "int32")),
        ),
        (
            ValueError,
            r"x must be \(M, K\) and weight \(G, K, N\), got \(4, 6\) and \(3, 5, 2\)",
            lambda k, x: k.grouped_mm(x, np.ones((3, 5, 2), "float32"), np.ones(3, "int32")),
        ),
        (
            ValueError,
            r"group_sizes must have shape \(3,\), got \(2,\)",
            lambda k, x: k.grouped_mm(x, np.ones((3, 6, 2), "float32"), np.ones(2, "int32")),
        ),
        (
            TypeError,
            "one floating dtype, got float32 and bfloat16",
            lambda k, x: k.grouped_mm(x, np.ones((3, 6, 2), "bfloat16"), np.ones(3, "int32")),
        ),
        (
            pallas_kernels.KernelUnavailable,
            "9000 columns are over 8192",
            lambda k, x: k.layer_norm(np.ones((2, 9000), "float32"), impl="interpret"),
        ),
    ],
)
def test_bad_input(error, words, call):
    with pytest.raises(error, match=words):
        call(pallas_kernels, np.ones((4, 6), "float32"))


def test_linear_cross_entropy_never_holds_the_logits():
    shapes = {"x": (2048, 32), "weight": (4000, 32)}
    arrays = {k: jax.ShapeDtypeStruct(s, "float32") for k, s in shapes.items()}
    target = jax.ShapeDtypeStruct((2048,), "int32")

    def bytes_used(chunk):
        loss = lambda a, t: pallas_kernels.linear_cross_entropy(a["x"], a["weight"], t, chunk=chunk)
        return jax.jit(jax.grad(loss)).lower(arrays, target).compile().memory_analysis().temp_size_in_bytes

    assert bytes_used(128) < bytes_used(2048) / 8


def test_frozen_head_makes_no_weight_gradient():
    x, weight, target = np.ones((8, 4), "float32"), np.ones((30, 4), "float32"), np.zeros(8, "int32")
    loss = lambda x, w: pallas_kernels.linear_cross_entropy(x, w, target, chunk=4)
    assert "f32[30,4] = dot_general" not in str(jax.make_jaxpr(jax.grad(loss, 0))(x, weight))
    assert "f32[30,4] = dot_general" in str(jax.make_jaxpr(jax.grad(loss, 1))(x, weight))


def test_second_derivatives_of_linear_cross_entropy():
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((6, 4)).astype("float32"), rng.standard_normal((9, 4)).astype("float32")
    target = rng.integers(0, 9, 6, "int32")
    mine = lambda w: pallas_kernels.linear_cross_entropy(x, w, target, chunk=3)
    plain = lambda w: -jax.nn.log_softmax(x @ w.T)[jnp.arange(6), target].mean()
    bend = lambda f: jax.grad(lambda w: (jax.grad(f)(w) ** 2).sum())
    a, b = oracle.jit(lambda w: (bend(mine)(w), bend(plain)(w)))(weight)
    assert oracle.error(a, b) < 1e-5


def test_a_target_that_is_no_class_gives_nan():
    logits, target = np.ones((4, 5), "float32"), np.asarray([0, 5, -1, 4], "int32")

    @oracle.jit
    def losses(logits):
        given = [pallas_kernels.cross_entropy(logits, target, reduction="none", impl=i) for i in ("interpret", "reference")]
        return [*given, pallas_kernels.linear_cross_entropy(logits, np.ones((5, 5), "float32"), target, reduction="none")]

    for loss in losses(logits):
        assert np.isnan(loss).tolist() == [False, True, True, False]
