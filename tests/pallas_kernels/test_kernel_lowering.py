"""Each kernel and configuration lowers to Triton IR or Mosaic on a machine with neither GPU nor TPU."""

import contextlib
import dataclasses
import functools
import io
import itertools
import json
import re

import jax
import jax.numpy as jnp
import pytest

import pallas_kernels
from pallas_kernels import _compat, _dispatch, _tune, specs
from pallas_kernels.candidates import CANDIDATES


@pytest.fixture
def kernel_only(monkeypatch):
    """Leaves out the branch for computations placed on a CPU; tests/test_platform_kernels.py lowers both. Kernels are
    printed as they are lowered."""
    monkeypatch.setattr(_dispatch, "on_platforms", lambda platforms, kernel, reference, *args: kernel(*args))
    monkeypatch.setattr(_compat.pl, "pallas_call", functools.partial(_compat.pl.pallas_call, debug=True))


def lowered(spec, platform, impl, x64=False):
    """Module text of the call with its gradients."""
    function = getattr(pallas_kernels, spec.op)
    shapes = spec.shapes()

    def both(arrays):
        call = lambda d: function(**{**arrays, **d}, **spec.static, impl=impl)
        if not spec.gradients:
            return call({})
        loss = lambda d: sum(x.astype(jnp.float32).sum() for x in jax.tree.leaves(call(d)))
        return jax.value_and_grad(loss)({name: arrays[name] for name in spec.gradients})

    printed = io.StringIO()
    with jax.enable_x64(x64), contextlib.redirect_stdout(printed):
        text = _compat.lower_for(platform, both, shapes)
    # Pallas hands on modules that do not verify, and XLA refuses those on a card: MLIR prints them in its generic form.
    modules = re.findall(r'^(?:module|"builtin.module")', printed.getvalue(), re.M)
    assert modules == ["module"] * text.count(_compat.TRITON_TARGET)
    return text


# What no large problem has; and large problems without those that only differ in size.
SMALL = ("one_row", "causal_wide", "bias_columns", "bias_rows_bf16", "lengths", "everything")


LARGE = [spec for spec in specs.LARGE["attention"] if spec.name not in ("causal_d128_short", "causal_d64")]


@pytest.mark.parametrize("spec", [*(specs.small("attention", n) for n in SMALL), *LARGE], ids=str)
def test_attention_lowers_to_triton(spec, kernel_only):
    assert lowered(spec, "cuda", "triton", x64=spec.name == "everything").count(_compat.TRITON_TARGET) == 3


# The problem of each operation that lowers with every configuration, below; norms share theirs.
TUNED = {
    op: next(spec for spec in specs.LARGE[op] if spec.impl == "triton")
    for op in sorted(CANDIDATES.keys() - {"attention", "rms_norm", "group_norm"})
}
# Small problems whose options a large one has.
TWICE = ("tail", "residual", "residual_bf16", "groups", "instance", "sum_bf16", "bf16", "one_group", "gru")
OTHERS = [
    spec
    for group in (specs.SMALL, specs.LARGE)
    for op, few in group.items()
    if op != "attention"
    for spec in few
    if spec.impl == "triton" and spec.name not in TWICE and spec is not TUNED.get(op)
]


@pytest.mark.parametrize("spec", OTHERS, ids=lambda spec: f"{spec.op}-{spec.name}")
def test_other_kernels_lower_to_triton(spec, kernel_only):
    assert _compat.TRITON_TARGET in lowered(spec, "cuda", "triton", x64=spec in specs.LARGE[spec.op])


def shipped():
    """(kernel, configuration) of every row of the tuned tables that come with the package."""
    for path in _tune._DIRECTORY.glob("*.json"):
        for row, entry in _tune.table(json.loads(path.read_text())["device_kind"]).items():
            yield row.partition("|")[0], entry["config"]


def covering(combinations):
    """Those that have a value of some setting which none before them has, and those in a shipped table."""
    known, tuned = set(), list(shipped())
    for combination in combinations:
        values = {
            (kernel, name, value)
            for kernel, config in combination.items()
            for name, value in dataclasses.asdict(config).items()
        }
        if not values <= known or any((k, dataclasses.asdict(c)) in tuned for k, c in combination.items()):
            known |= values
            yield combination


def combined(op):
    kernels = CANDIDATES[op]
    for configs in itertools.zip_longest(*kernels.values()):
        yield {name: config for name, config in zip(kernels, configs, strict=True) if config is not None}


@pytest.mark.parametrize(("dtype", "head_size", "first"), [("float32", 256, 0), ("bfloat16", 64, 1)])
def test_every_attention_configuration_lowers(dtype, head_size, first, kernel_only):
    """Every second one in each of two types."""
    spec = specs._attention("candidate", 1, 2, 300, head_size, dtype, causal=True)
    kernels = CANDIDATES["attention"]
    pairs = list(zip(kernels["attention_forward"], kernels["attention_backward"], strict=True))
    for forward, backward in pairs[first::2]:
        with _tune.forced(attention_forward=forward, attention_backward=backward):
            assert _compat.TRITON_TARGET in lowered(spec, "cuda", "triton")


@pytest.mark.parametrize("op", TUNED)
def test_configurations_of_other_kernels_lower(op, kernel_only):
    """Every value of every setting, and what the shipped tables hold."""
    for configs in covering(combined(op)):
        with _tune.forced(**configs), _tune.recorded() as picked:
            assert _compat.TRITON_TARGET in lowered(TUNED[op], "cuda", "triton", x64=True)
        assert {name for name, _ in picked} == CANDIDATES[op].keys()


def test_every_tuned_row_names_a_configuration():
    """Rows of the shipped tables are candidates, so the two tests above lower them all."""
    for kernel, config in shipped():
        configs = next(kernels[kernel] for kernels in CANDIDATES.values() if kernel in kernels)
        assert config in [dataclasses.asdict(c) for c in configs], (kernel, config)


def test_float32_products_ask_for_three_tf32_passes():
    square = jax.ShapeDtypeStruct((16, 16), "float32")

    def passes(interpret):
        product = lambda a, b: _compat.dot(a, b, contract=(1, 0), interpret=interpret)
        return str(jax.make_jaxpr(product)(square, square))

    assert "TF32_TF32_F32_X3" in passes(interpret=False)
    assert "TF32" not in passes(interpret=True)


@pytest.mark.parametrize(
    ("op", "name", "x64"),
    [
        ("attention", "segments", False),
        ("attention", "segments", True),
        ("attention", "bias_full", False),
        ("grouped_mm", "mixtral", False),
        ("grouped_mm", "mixtral", True),
    ],
)
def test_shipped_kernels_lower_to_tpu(op, name, x64):
    spec = next(spec for few in (specs.SMALL, specs.LARGE) for spec in few[op] if spec.name == name)
    assert _compat.TPU_TARGET in lowered(spec, "tpu", "tpu", x64)
