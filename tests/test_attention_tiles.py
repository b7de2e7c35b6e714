"""Attention of long sequences on the CPU, tile by tile, here with small tiles: results and gradients are torch's."""
from __future__ import annotations

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core.program import forget_programs, tier
from torchlike._core.registry import clear_plans
from torchlike.nn._functional import attention_tiles
from torchlike.nn._functional.attention import TILED_ATTENTION

# name: shapes of query and key (and value), the mask's shape, its kind, further arguments
CASES = {
    "plain": ((2, 3, 40, 8), (2, 3, 40, 8), None, None, {}),
    "past the end": ((2, 3, 37, 8), (2, 3, 29, 8), None, None, {}),
    "one row": ((2, 3, 1, 8), (2, 3, 29, 8), None, None, {}),
    "causal": ((2, 3, 37, 8), (2, 3, 37, 8), None, None, {"is_causal": True}),
    "causal, more queries": ((1, 2, 40, 8), (1, 2, 19, 8), None, None, {"is_causal": True}),
    "causal, more keys": ((1, 2, 19, 8), (1, 2, 40, 8), None, None, {"is_causal": True}),
    "groups": ((2, 6, 37, 8), (2, 2, 37, 8), None, None, {"enable_gqa": True, "is_causal": True}),
    "negative scale": ((1, 2, 37, 8), (1, 2, 37, 8), None, None, {"scale": -0.7}),
    "three dimensions": ((6, 37, 8), (6, 37, 8), None, None, {}),
    "two dimensions": ((37, 8), (37, 8), None, None, {}),
    "five dimensions": ((2, 1, 3, 20, 4), (2, 1, 3, 20, 4), (1, 3, 20, 20), "float", {}),
    "some rows see nothing": ((2, 3, 37, 8), (2, 3, 29, 8), (2, 1, 37, 29), "bool", {}),
    "padding": ((2, 3, 37, 8), (2, 3, 29, 8), (2, 1, 1, 29), "bool", {}),
    "whole rows": ((2, 3, 37, 8), (2, 3, 29, 8), (37, 1), "bool", {}),
    "added": ((2, 3, 37, 8), (2, 3, 29, 8), (37, 29), "float", {}),
    "added by head": ((2, 3, 37, 8), (2, 3, 29, 8), (3, 37, 29), "float", {}),
    "added by row": ((2, 3, 37, 8), (2, 3, 29, 8), (2, 1, 37, 1), "float", {}),
    "added by key": ((2, 3, 37, 8), (2, 3, 29, 8), (1, 1, 1, 29), "float", {}),
    "minus infinity is added": ((2, 3, 37, 8), (2, 3, 37, 8), (37, 37), "tril", {}),
}


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of 8 or 16 rows, for whatever length."""
    for name, value in {"LONG": 0, "EDGE": 16, "CAUSAL_EDGE": 16}.items():
        monkeypatch.setattr(attention_tiles, name, value)
    forget_programs()
    clear_plans()
    yield
    forget_programs()
    clear_plans()


def _inputs(case, dtype, library):
    queries, keys, shape, kind, arguments = CASES[case]
    numbers = np.random.default_rng(0)
    q, k, v = (library.tensor(numbers.standard_normal(s)).to(getattr(library, dtype)).requires_grad_() for s in (queries, keys, keys))
    if shape is None:
        return q, k, v, None, arguments
    given = numbers.standard_normal(shape)
    if kind == "tril":
        given = np.where(np.tri(*shape, dtype=bool), given, -np.inf)
    if kind == "bool":
        given = given > 0
        given[..., 5 if shape[-2] > 1 else 0, :] &= shape[-2] == 1  # a row of which all is hidden
    mask = library.tensor(given)
    return q, k, v, mask if kind == "bool" else mask.to(q.dtype).requires_grad_(), arguments


def _run(library, case, dtype):
    library.manual_seed(0)
    q, k, v, mask, arguments = _inputs(case, dtype, library)
    out = library.nn.functional.scaled_dot_product_attention(q, k, v, mask, **arguments)
    weights = library.linspace(-1, 1, out.numel(), dtype=library.float64).reshape(out.shape)
    (out.double() * weights).sum().backward()
    return out, [t.detach().double().numpy() for t in (out, *(x.grad for x in (q, k, v, mask) if x is not None and x.requires_grad))]


@pytest.mark.parametrize("where", ["numpy", "compiled"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(small_tiles, case, where):
    with tier(where):
        out, ours = _run(torchlike, case, "float64")
        assert out.grad_fn.plan.op is TILED_ATTENTION
    for a, b in zip(ours, _run(torch, case, "float64")[1]):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("dtype", "near"), [("float32", 2e-5), ("bfloat16", 0.03), ("float16", 4e-3)])
@pytest.mark.parametrize("case", ["causal", "added"])
def test_other_types(small_tiles, case, dtype, near):
    with tier("compiled"):
        ours = _run(torchlike, case, dtype)[1]
    for a, b in zip(ours, _run(torch, case, dtype)[1]):
        np.testing.assert_allclose(a, b, rtol=near, atol=near * max(1, np.abs(b).max()))


@pytest.mark.parametrize("case", ["causal", "some rows see nothing", "added by head"])
@pytest.mark.parametrize("where", ["numpy", "compiled"])
def test_second_derivatives(small_tiles, case, where):
    """PyTorch's kernel has none on the CPU, its formula has."""
    def run(library, *disabled):
        q, k, v, mask, arguments = _inputs(case, "float64", library)
        inputs = [x for x in (q, k, v, mask) if x is not None and x.requires_grad]
        for name in disabled:
            getattr(library.backends.cuda, f"enable_{name}_sdp")(False)
        try:
            out = library.nn.functional.scaled_dot_product_attention(q, k, v, mask, **arguments)
            first = library.autograd.grad((out * out).sum(), inputs, create_graph=True)
            return [x.numpy() for x in library.autograd.grad(sum((g * g * g).sum() for g in first), inputs)]
        finally:
            for name in disabled:
                getattr(library.backends.cuda, f"enable_{name}_sdp")(True)
    with tier(where):
        ours = run(torchlike)
    for a, b in zip(ours, run(torch, "flash", "mem_efficient")):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9 * np.abs(b).max())


def test_one_needed_gradient_at_a_time(small_tiles):
    for k in range(4):
        found = []
        for library in (torchlike, torch):
            inputs = [x.detach() for x in _inputs("added by row", "float64", library)[:4]]
            inputs[k].requires_grad_()
            found.append(library.autograd.grad(library.nn.functional.scaled_dot_product_attention(*inputs).square().sum(), inputs[k])[0].numpy())
        np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-12)


def test_scores_that_are_no_numbers(small_tiles):
    """What is not hidden reaches its row alone, and what is hidden none."""
    found = []
    for library in (torchlike, torch):
        q, k, v = (x.detach() for x in _inputs("causal", "float64", library)[:3])
        k[..., 20, :] = float("nan")
        out = library.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        found.append(out.numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


def test_a_mask_of_very_low_numbers(small_tiles):
    """Rows of nothing but the lowest number, as Keras and transformers make padding: their weights are equal, and so are their gradients."""
    def run(library):
        q, k, v = _inputs("past the end", "float32", library)[:3]
        mask = library.full((2, 1, 1, 29), library.finfo(library.float32).min)
        out = library.nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return [out.detach().numpy(), *[x.numpy() for x in library.autograd.grad(out.square().sum(), (q, k, v))]]
    ours = run(torchlike)
    np.testing.assert_allclose(ours[0], run(torch)[0], atol=1e-6)
    mean = ours[0][..., :1, :]
    np.testing.assert_allclose(ours[3], np.broadcast_to(2 * 37 / 29 * mean, ours[3].shape), rtol=1e-5, atol=1e-6)


def test_modes_see_torchs_operator(small_tiles):
    def run(library):
        from importlib import import_module
        mode = import_module(f"{library.__name__}.utils._python_dispatch").TorchDispatchMode
        seen = []

        class Seeing(mode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **kwargs or {})
        q, k, v = _inputs("causal", "float32", library)[:3]
        with Seeing():
            out = library.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            names = list(seen)
            (out * out).sum().backward()
        return names, q.grad.numpy()
    (names, ours), (wanted, theirs) = run(torchlike), run(torch)
    assert names == [name for name in wanted if name != "aten.detach.default"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_exported(small_tiles):
    class Attend(torchlike.nn.Module):
        def forward(self, q, k, v):
            return torchlike.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    q, k, v = (x.detach() for x in _inputs("causal", "float32", torchlike)[:3])
    exported = torchlike.export.export(Attend(), (q, k, v))
    assert [n.name for n in exported.graph.nodes if n.op == "call_function"] == ["scaled_dot_product_attention"]
    np.testing.assert_allclose(exported.module()(q, k, v).numpy(), Attend()(q, k, v).numpy(), rtol=1e-6)
