"""torchlike under JAX's transformations, and JAX functions under torchlike's autograd."""
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import torchlike as torch

ROOT = Path(__file__).resolve().parent.parent


def _model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def _params(model):
    return {name: p.detach() for name, p in model.named_parameters()}


def _loss(model):
    def loss(params, x):
        return torch.func.functional_call(model, params, (x,)).square().mean()
    return loss


def _data():
    return torch.arange(15.0).reshape(5, 3).sin()


def _reference():
    model, x = _model(), _data()
    loss = model(x).square().mean()
    loss.backward()
    return loss.item(), {n: p.grad.numpy() for n, p in model.named_parameters()}


def test_jit():
    model = _model()
    got = jax.jit(lambda p, x: _loss(model)(p, x).jax())(_params(model), _data())
    assert np.allclose(got, _reference()[0], atol=1e-6)


def test_grad_of_a_module():
    model = _model()
    grads = jax.jit(jax.grad(lambda p, x: _loss(model)(p, x).jax()))(_params(model), _data())
    want = _reference()[1]
    assert grads.keys() == want.keys()
    assert all(isinstance(g, torch.Tensor) for g in grads.values())
    assert all(np.allclose(grads[n].numpy(), want[n], atol=1e-6) for n in want)


def test_torch_gradients_inside_jit():
    model = _model()
    grads = jax.jit(lambda p, x: torch.func.grad(_loss(model))(p, x))(_params(model), _data())
    want = _reference()[1]
    assert all(np.allclose(grads[n].numpy(), want[n], atol=1e-6) for n in want)


def test_backward_inside_jit():
    def step(w, x):
        w = w.detach().requires_grad_()
        (w * x).sin().sum().backward()
        return w.grad
    w, x = torch.ones(3), torch.arange(3.0)
    assert np.allclose(jax.jit(step)(w, x).numpy(), (x * x.cos()).numpy(), atol=1e-6)


def test_jax_vmap_and_torch_vmap_agree():
    model = _model()
    params, x = _params(model), _data()
    one = torch.func.vmap(lambda a: torch.func.functional_call(model, params, (a,)))(x)
    two = jax.vmap(lambda a: torch.func.functional_call(model, params, (a,)))(x)
    inside = jax.jit(lambda x: torch.vmap(lambda a: torch.func.functional_call(model, params, (a,)))(x))(x)
    assert np.allclose(one.numpy(), two.numpy(), atol=1e-6)
    assert np.allclose(one.numpy(), inside.numpy(), atol=1e-6)


def test_tensors_are_pytree_leaves():
    t = torch.arange(4.0)
    doubled = jax.tree_util.tree_map(lambda a: a * 2, {"a": t, "b": [t]})
    assert doubled["a"].tolist() == [0.0, 2.0, 4.0, 6.0]
    assert isinstance(doubled["b"][0], torch.Tensor)


def test_jax_function_has_a_backward():
    f = torch.jax_function(lambda a, b: jnp.sin(a) @ b)
    a, b = _data().requires_grad_(), torch.ones(3, requires_grad=True)
    f(a, b).sum().backward()
    assert np.allclose(a.grad.numpy(), np.cos(_data().numpy()), atol=1e-6)
    assert np.allclose(b.grad.numpy(), np.sin(_data().numpy()).sum(0), atol=1e-6)


def test_observing_a_tracer_is_refused():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: x.sum().item())(torch.ones(2))


def test_in_place_and_views_under_jit():
    def f(x):
        y = x.clone()
        y[0] = 7
        y.view(-1)[1:3].mul_(2)
        return y
    x = torch.arange(6.0).reshape(2, 3)
    assert jax.jit(f)(x).tolist() == f(x).tolist() == [[7.0, 14.0, 14.0], [3.0, 4.0, 5.0]]
    slope = jax.grad(lambda x: f(x).sum().jax())(x)
    assert slope.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def test_derivatives_where_formulas_bend_or_overflow():
    """jax.grad goes by an operation's own derivative: what JAX makes of the kernels' formulas is another number, or none, at these points."""
    import torch as real
    at = {"logsigmoid": 0.0, "selu": 0.0, "softsign": 0.0, "tanh": 90.0, "tanhshrink": -300.0, "elu": -20.0, "mish": 0.0, "softplus": 0.0}

    def functions(t):
        F = t.nn.functional
        yield from [(lambda x, f=getattr(F, name): f(x).sum(), [point, 1.0]) for name, point in at.items()]
        yield lambda x: F.binary_cross_entropy_with_logits(x, x.detach() * 0 + 0.3), [0.0, 2.0]
        yield lambda x: x.norm(), [0.0, 0.0]
        yield lambda x: x.max(), [1.0, 1.0]
        yield lambda x: x.clamp(0, 1).sum(), [0.0, 1.0]
        yield lambda x: x.prod(), [0.0, 3.0]
        yield lambda x: t.special.i0(x).sum(), [0.0, 1.0]

    def want(f, point):
        x = real.tensor(point, requires_grad=True)
        first, = real.autograd.grad(f(x), x, create_graph=True)
        second, = real.autograd.grad(first.sum(), x, allow_unused=True) if first.requires_grad else (None,)
        return first.tolist(), ((0 * first if second is None else second).tolist())

    def both(f, x):
        grad = jax.grad(lambda x: f(torch.from_jax(x)).jax())
        return grad(x), jax.grad(lambda x: grad(x).sum())(x)
    points = [point for _, point in functions(torch)]
    got = jax.jit(lambda *xs: [both(f, x) for (f, _), x in zip(functions(torch), xs, strict=True)])(*map(jnp.array, points))
    for found, (f, point) in zip(got, functions(real), strict=True):
        np.testing.assert_allclose(found, want(f, point), rtol=1e-4, atol=1e-6)


def test_vmapped_functions_are_derived_as_their_operations_are():
    x = torch.full((2,), 90.0, requires_grad=True)
    g = torch.vmap(torch.func.grad(torch.tanh))(x)
    for _ in range(2):
        g, = torch.autograd.grad(g.sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 0.0]


MESH = """
import jax, torchlike as torch
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from torchlike import nn
F = nn.functional
mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
x, y = torch.randn(6, 3), torch.randint(0, 2, (6,))
names = jax.device_put(dict(model.named_parameters()), NamedSharding(mesh, P()))
parts = jax.device_put((x, y), NamedSharding(mesh, P("data")))
step = jax.jit(jax.value_and_grad(lambda p, x, y: F.cross_entropy(torch.func.functional_call(model, p, (x,)), y).jax()))
loss, slopes = step(names, *parts)
whole = F.cross_entropy(model(x), y)
whole.backward()
assert len(parts[0].jax().sharding.device_set) == 2 and abs(loss - whole.item()) < 1e-5
for name, p in model.named_parameters():
    assert isinstance(slopes[name], nn.Parameter) and torch.allclose(torch.from_jax(slopes[name].jax()), p.grad, atol=1e-5)
total = jax.shard_map(lambda t: torch.from_jax(jax.lax.psum(t.sum().jax(), "data")), mesh=mesh, in_specs=P("data"), out_specs=P())(parts[0])
assert torch.allclose(total, x.sum(), atol=1e-5) and torch.allclose(parts[0] + 1, x + 1)
"""


def test_programs_over_several_devices():
    done = subprocess.run([sys.executable, "-c", MESH], env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_jax_and_numpy_ask_a_tensor_what_they_ask_an_array():
    """Its dtype for arrays like it, and another shape, for which both ask the tensor's own method first."""
    t = torch.arange(6.0).reshape(2, 3)
    array = t.jax()
    for f in (jnp.zeros_like, jnp.ones_like, lambda x: jnp.full_like(x, 2), lambda x: jnp.kron(x, x), lambda x: jnp.reshape(x, (3, 2)), lambda x: jnp.reshape(x, 6, order="F")):
        got, expected = f(t), f(array)
        assert isinstance(got, jax.Array) and got.dtype == expected.dtype and (got == expected).all()
    assert jnp.result_type(t, jnp.int32(1)) == np.float32 and jnp.zeros(2, torch.bfloat16).dtype == jnp.bfloat16
    assert np.reshape(t, (3, 2)).tolist() == array.reshape(3, 2).tolist()
    with pytest.raises(TypeError, match=r"reshape\(\) got an unexpected keyword argument 'order'"):
        t.reshape((3, 2), order="C")
    for none in (torch.qint8, torch.complex32, torch.int4):
        with pytest.raises(TypeError, match="Cannot interpret"):
            np.dtype(none)
    with pytest.raises(ValueError, match="Could not convert"):
        np.dtype(torch.quantize_per_tensor(t, 0.1, 0, torch.qint8))
