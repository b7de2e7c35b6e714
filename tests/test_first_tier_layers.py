"""The first tier's own kernels of layers (conv_host.py, conv_channels.py, batch_norm_host.py, windows.py) and of optimizers' steps, against real torch."""
import numpy as np
import pytest
from test_conv_cpu import CASES, results

from torchlike._core import numpy_lax, program, registry
from torchlike.nn._functional import batch_norm_host, conv_channels, conv_host, windows
from torchlike.optim import _rules

MORE = [("conv2d", (5, 6, 9, 8), (6, 1, 3, 3), {"padding": 1, "groups": 6}), ("conv2d", (5, 6, 9, 8), (6, 1, 3, 3), {"padding": 1, "groups": 6, "stride": 2}),
        ("conv2d", (3, 12, 8, 7), (24, 4, 3, 3), {"padding": 1, "groups": 3}), ("conv2d", (4, 7, 6, 6), (5, 7, 1, 1), {}), ("conv2d", (4, 7, 20, 20), (5, 7, 1, 1), {}),
        ("conv2d", (4, 7, 6, 6), (5, 7, 1, 1), {"stride": 2}), ("conv2d", (3, 5, 30, 32), (4, 5, 3, 3), {"padding": 1}), ("conv2d", (3, 4, 4, 4), (5, 4, 3, 3), {"padding": 1}),
        ("conv2d", (2, 3, 2, 2), (4, 3, 5, 5), {"padding": 2}), ("conv1d", (2, 3, 5), (4, 3, 3), {"padding": 4, "dilation": 3}),
        ("conv_transpose2d", (2, 6, 4, 5), (6, 1, 3, 3), {"groups": 6, "stride": 2, "padding": 1, "output_padding": 1})]


@pytest.fixture(autouse=True)
def _by_numpy_alone(monkeypatch):
    def refuse(*_):
        raise AssertionError("traced by JAX")
    monkeypatch.setattr(numpy_lax, "compile_jaxpr", refuse)


@pytest.mark.parametrize("room", [1 << 19, 700])
def test_convolutions(oracle, subject, room, monkeypatch):
    monkeypatch.setattr(conv_host, "ROOM", room)
    monkeypatch.setattr(conv_channels, "NEAR", room // 4)
    monkeypatch.setattr(conv_host, "PIECE", 8 if room < 1000 else 256)
    monkeypatch.setattr(conv_host, "SMALL", 10 ** 4 if room < 1000 else 10 ** 6)
    monkeypatch.setattr(conv_host, "COLUMNS", 20 if room < 1000 else 192)
    monkeypatch.setattr(conv_host, "LONG", 0 if room < 1000 else 1500)
    conv_host._blocks.cache_clear(), conv_channels._flat.cache_clear()
    rng = np.random.default_rng(0)
    for name, x_shape, w_shape, keywords in CASES + MORE:
        if room < 1000 and np.prod(x_shape) > 50_000:
            continue
        x, w = rng.standard_normal(x_shape), rng.standard_normal(w_shape)
        shape = getattr(oracle.nn.functional, name)(oracle.tensor(x), oracle.tensor(w), **keywords).shape
        g = rng.standard_normal(tuple(shape))
        want = results(oracle, name, x, w, g, keywords)
        with program.tier("numpy"):
            got = results(subject, name, x, w, g, keywords)
            single = results(subject, name, *(a.astype(np.float32) for a in (x, w, g)), keywords)
        for a, b, c in zip(want, got, single):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10 * max(1.0, float(abs(a).max())), err_msg=f"{name} {x_shape} {w_shape} {keywords}")
            np.testing.assert_allclose(c, a, rtol=1e-4, atol=1e-5 * max(1.0, float(abs(a).max())), err_msg=f"{name} {x_shape} {w_shape} {keywords}")
    conv_host._blocks.cache_clear(), conv_channels._flat.cache_clear()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("keywords", [{}, {"stride": 2, "padding": 1}, {"groups": 2, "padding": 1, "dilation": 2}])
def test_second_derivatives_of_convolutions(oracle, subject, transposed, kind, n, keywords, monkeypatch):
    """What learning through training steps takes (MAML, gradient penalties), of each of the inputs alone and of all."""
    monkeypatch.undo()  # those of products may be traced
    interpreted, traced = registry._interpreted, []
    monkeypatch.setattr(registry, "_interpreted", lambda plan: (traced.append(plan.op.name), interpreted(plan))[1])
    rng = np.random.default_rng(0)
    groups = keywords.get("groups", 1)
    kernel = (3, 2, 3) if groups == 1 else (2, 2, 2)
    shapes = (2, 4, *(7, 6, 5)[:n]), (*((4, 6 // groups) if transposed else (6, 4 // groups)), *kernel[:n]), (6,)
    arrays = [rng.standard_normal(s) * .3 + (1j * rng.standard_normal(s) * .3 if kind[0] == "c" else 0) for s in shapes]

    def run(torch, wanted):
        inputs = [torch.tensor(a).requires_grad_(k in wanted) for k, a in enumerate(arrays)]
        y = getattr(torch.nn.functional, f"conv{'_transpose' if transposed else ''}{n}d")(*inputs, **keywords)
        over = [x for x in inputs if x.requires_grad]
        first = torch.autograd.grad(torch.view_as_real(y * y * y).sum() if kind[0] == "c" else (y * y * y).sum(), over, create_graph=True)
        return torch.autograd.grad(sum((torch.view_as_real(g) if kind[0] == "c" else g).square().sum() for g in first), over)
    for wanted in ((0, 1, 2), (0,), (1,), (2,)):
        with program.tier("numpy"):
            got = [g.numpy() for g in run(subject, wanted)]
        for a, b in zip(run(oracle, wanted), got):
            np.testing.assert_allclose(b, a.numpy(), rtol=1e-9, atol=1e-9 * float(a.abs().max()), err_msg=str(wanted))
    assert not any("conv" in name for name in traced)


@pytest.mark.parametrize("name,kind", [("conv2d", "int64"), *((name, kind) for name in ("conv2d", "conv_transpose2d") for kind in ("complex64", "bfloat16", "float16"))])
def test_convolutions_of_other_types(oracle, subject, name, kind):
    rng = np.random.default_rng(0)
    x, w, b = (rng.integers(-4, 5, shape) / (1 if kind == "int64" else 4) for shape in ((2, 4, 6, 5), (4, 4, 3, 3), (4,)))

    def run(torch):
        dtype = getattr(torch, kind)
        tensors = [torch.tensor(a).to(dtype) * (1 if kind != "complex64" else 1 + 2j) for a in (x, w, b)]
        if kind != "int64":
            [t.requires_grad_() for t in tensors]
        y = getattr(torch.nn.functional, name)(*tensors, stride=2, padding=1)
        if kind != "int64":
            (y * y).abs().sum().backward() if kind == "complex64" else (y * y).sum().backward()
        return [t.detach() for t in (y, *(t.grad for t in tensors if kind != "int64"))]
    with program.tier("numpy"):
        got = run(subject)
    for a, c in zip(run(oracle), got):
        assert str(a.dtype) == str(c.dtype)
        a, c = (t.to(lib.float32 if kind != "complex64" else lib.complex64).numpy() if kind != "int64" else t.numpy() for t, lib in ((a, oracle), (c, subject)))
        np.testing.assert_allclose(c, a, rtol=0.02 if "16" in kind else 1e-5, atol=0.02 if "16" in kind else 1e-4)


def test_depthwise_with_infinity(oracle, subject):
    """What meets zeros between the rows is not finite."""
    rng = np.random.default_rng(0)
    x, w, g = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 7, 6), (3, 1, 3, 3), (2, 3, 5, 4)))
    x.flat[5] = np.inf
    want = results(oracle, "conv2d", x, w, g, {"groups": 3})
    with program.tier("numpy"):
        got = results(subject, "conv2d", x, w, g, {"groups": 3})
    for a, b in zip(want, got):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("near", [1 << 19, 300])
@pytest.mark.parametrize("shape", [(5, 3), (4, 6, 7), (3, 8, 9, 5), (2, 3, 4, 5, 6), (1, 5, 40, 41)])
def test_batch_norm(oracle, subject, shape, near, monkeypatch):
    monkeypatch.setattr(batch_norm_host, "NEAR", near)
    monkeypatch.setattr(batch_norm_host, "LONG", 1000)
    rng = np.random.default_rng(0)
    x, g, w, b = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape, shape[1:2], shape[1:2]))
    x = x * 3 + 50

    def run(torch, dtype, affine):
        means, variances = torch.zeros(shape[1], dtype=dtype), torch.ones(shape[1], dtype=dtype)
        p = [torch.tensor(a).to(dtype).requires_grad_() for a in (x, w, b)]
        y = torch.nn.functional.batch_norm(p[0], means, variances, *(p[1:] if affine else (None, None)), True, 0.1, 1e-5)
        grads = torch.autograd.grad(y, p if affine else p[:1], torch.tensor(g).to(dtype))
        return [t.detach().numpy() for t in (y, means, variances, *grads)]
    for affine in (True, False):
        exact = run(oracle, oracle.float64, affine)
        with program.tier("numpy"):
            double, single = run(subject, subject.float64, affine), run(subject, subject.float32, affine)
        for a, c, d in zip(exact, double, single):
            np.testing.assert_allclose(c, a, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(d, a, rtol=1e-4, atol=1e-4 * max(1.0, abs(a).max()))


@pytest.mark.parametrize("kernel,stride,padding,dilation", [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (2, 1, 0, 2), (4, 4, 0, 1), (2, 3, 0, 1)])
def test_gradients_of_maxima(oracle, subject, kernel, stride, padding, dilation, monkeypatch):
    """Among equal ones the first position gets it, of NaN the last."""
    monkeypatch.setattr(windows, "NEAR", 40)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (3, 4, 9, 10)).astype(np.float32)
    spoiled = np.where(rng.random(x.shape) < 0.1, np.nan, x).astype(np.float32)

    def run(torch, x):
        t = torch.tensor(x, requires_grad=True)
        y = torch.nn.functional.max_pool2d(t, kernel, stride, padding, dilation)
        g = np.random.default_rng(1).standard_normal(tuple(y.shape)).astype(np.float32)
        y.backward(torch.tensor(g))
        return y.detach().numpy(), t.grad.numpy()
    for values in (x, spoiled, np.full_like(x, 0 if padding else -np.inf)):
        with program.tier("numpy"):
            got = run(subject, values)
        for a, b in zip(run(oracle, values), got):
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)


OPTIMIZERS = [("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("NAdam", {}),
              ("RAdam", {}), ("RMSprop", {"momentum": 0.9, "centered": True}), ("Rprop", {}), ("Adagrad", {}), ("Adadelta", {}), ("Adamax", {}), ("ASGD", {})]


@pytest.mark.parametrize("name,keywords", OPTIMIZERS)
def test_steps_in_place(subject, name, keywords, monkeypatch):
    """Large parameters are updated where they lie, unless somebody looks at what was there; to the bit as at once."""
    torch, rng = subject, np.random.default_rng(0)
    start, push = rng.standard_normal((150, 130)), rng.standard_normal((150, 130))

    def run(keep):
        p = torch.nn.Parameter(torch.tensor(start).float() * 1)
        optimizer, kept, places = getattr(torch.optim, name)([p], **keywords), [], []
        for k in range(4):
            p.grad = torch.tensor(push).float() * (k + 1)
            if keep:
                old = [p.detach() * 1, p * 1, p.detach().numpy()][:3 if k == 2 else 2]  # values of steps before, and memory that shows the next ones
                kept += [(a.detach().numpy() if k < 2 else a, np.array(p.detach().numpy())) for a in old[:2]]
            optimizer.step()
            p.sum().item()
            places.append(p._value.array.__array_interface__["data"][0])
        return p.detach().numpy().copy(), kept, places
    with program.immediate(False), program.tier("numpy"):
        monkeypatch.setattr(_rules, "BLOCK", 1 << 30)
        whole, _, _ = run(False)
        monkeypatch.setattr(_rules, "BLOCK", 1000)
        blocks, _, places = run(False)
        kept, pairs, _ = run(True)
    assert np.array_equal(whole, blocks) and np.array_equal(whole, kept)
    assert len(set(places)) == 1
    for old, copy in pairs:
        assert np.array_equal(old if isinstance(old, np.ndarray) else old.detach().numpy(), copy)
