"""torch.nn.functional beyond the case table: attention in every form, random masks, checks that wait for their data."""
import math

import numpy as np
import pytest
import scipy.special
from nn_models import said
from same import same

import torchlike
from torchlike._core import program
from torchlike._core.numpy_erf import erf, erfinv, normal_distribution
from torchlike.nn._functional import attention_tiles

TIERS = ("numpy", "compiled")


def _close(a, b, tol=2e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


def test_erf_in_numpy_is_exact_to_three_units():
    x = np.concatenate([np.linspace(-6, 6, 40001), [np.inf, -np.inf, 0.0, -0.0]]).astype(np.float32)
    exact = scipy.special.erf(x.astype(np.float64))
    assert (np.abs(erf(x) - exact) <= 3.5 * np.spacing(np.abs(exact).astype(np.float32))).all()
    assert np.isnan(erf(np.full(100, np.nan, np.float32))).all()
    assert np.signbit(erf(np.full(100, -0.0, np.float32))).all()


@pytest.mark.parametrize("size", [1, 30, 1000])
def test_erf_and_its_inverse_of_few_elements_are_rounded_once(size):
    x = np.linspace(-0.99, 0.98, size).astype(np.float32)
    for made, exact in ((erf, scipy.special.erf), (erfinv, scipy.special.erfinv)):
        for part in (x, x[0]):
            assert np.array_equal(made(part), exact(part.astype(np.float64)).astype(np.float32))


def test_erfinv_in_numpy_is_exact_to_four_units():
    near_one = 1 - np.geomspace(6e-8, 1, 20001)
    x = np.concatenate([np.linspace(-1, 1, 40001), near_one, -near_one, np.geomspace(1e-37, 1, 2001)]).astype(np.float32)
    exact = scipy.special.erfinv(x.astype(np.float64))
    made, finite = erfinv(x), np.isfinite(exact)
    assert (np.abs(made - exact)[finite] <= 4 * np.spacing(np.abs(exact[finite]).astype(np.float32))).all()
    assert (made[~finite] == exact[~finite]).all()
    assert np.isnan(erfinv(np.array([1.5, -2.0, np.inf, np.nan] * 20, np.float32))).all()
    assert np.signbit(erfinv(np.full(100, -0.0, np.float32))).all() and np.signbit(erfinv(np.array(-0.0)))


def test_normal_distribution_in_numpy():
    x = np.concatenate([np.linspace(-9, 9, 400_001), np.linspace(-1e-3, 1e-3, 1001), [np.inf, -np.inf, 0.0, 1e30, -1e30]]).astype(np.float32)
    made = normal_distribution(x)
    assert np.abs(made - scipy.special.ndtr(x.astype(np.float64))).max() <= 1.3e-7
    assert (made[x > 6] == 1).all() and (made[x < -6] == 0).all()
    assert np.isnan(normal_distribution(np.full(100, np.nan, np.float32))).all()


def _attend(torch, mask, causal, heads):
    torch.manual_seed(0)
    q = torch.randn(2, 4, 5, 8).requires_grad_()
    k, v = (torch.randn(2, heads, 6, 8).requires_grad_() for _ in range(2))
    m = {None: None, "bool": torch.ones(5, 6).tril().bool(), "float": torch.linspace(-1, 1, 30).reshape(5, 6)}[mask]
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, m, is_causal=causal, enable_gqa=heads != 4)
    return [out.detach(), *torch.autograd.grad((out * out).sum(), (q, k, v))]


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize(("mask", "causal"), [(None, False), (None, True), ("bool", False), ("float", False)])
def test_fused_attention(oracle, subject, monkeypatch, tier, heads, mask, causal):
    """The kernels for long sequences, here on short ones."""
    monkeypatch.setattr(attention_tiles, "LONG", 1)
    with program.tier(tier):
        for want, got in zip(_attend(oracle, mask, causal, heads), _attend(subject, mask, causal, heads)):
            _close(want, got)


def test_sdpa_kernel_chooses(subject):
    from torchlike.nn.attention import SDPBackend, sdpa_kernel
    q = subject.randn(1, 1, 3, 4).requires_grad_()
    attend = subject.nn.functional.scaled_dot_product_attention

    def inputs_of_its_node():
        return len(attend(q, q, q).grad_fn.edges)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert inputs_of_its_node() == 4
        with pytest.raises(RuntimeError, match="No available kernel"):
            attend(q, q, q, dropout_p=0.5)
    with sdpa_kernel([SDPBackend.MATH]):
        assert inputs_of_its_node() == 6
    with pytest.raises(AssertionError, match="Backend must be an instance"), sdpa_kernel("flash"):
        pass


def _multi_head(torch, options, call):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, **options)
    q, k, v = torch.randn(3, 2, 8).requires_grad_(), torch.randn(5, 2, options.get("kdim", 8)), torch.randn(5, 2, options.get("vdim", 8))
    made = {"none": {}, "hide": {"attn_mask": torch.ones(3, 5).triu(1).bool()}, "add": {"attn_mask": torch.ones(4, 3, 5) * 0.3},
            "pad": {"key_padding_mask": torch.tensor([[False] * 5, [False, False, True, True, True]])},
            "causal": {"attn_mask": torch.ones(3, 5).triu(1).bool(), "is_causal": True}}[call]
    found = []
    for weights in (True, False):
        out, shares = layer(q, k, v, need_weights=weights, **made)
        found += [out.detach(), *([shares.detach()] if weights else []), torch.autograd.grad(out.sum(), q)[0]]
    return found


@pytest.mark.parametrize("call", ["none", "hide", "add", "pad", "causal"])
@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 6, "vdim": 7}, {"dropout": 0.5}],
                         ids=lambda o: "-".join(o) or "plain")
def test_multi_head_attention(oracle, subject, options, call):
    for want, got in zip(_multi_head(oracle, options, call), _multi_head(subject, options, call), strict=True):
        _close(want, got)


RANDOM = {
    "dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.4),
    "dropout of a transposed tensor": lambda torch, x: torch.nn.functional.dropout(x.transpose(0, 2), 0.4),
    "alpha_dropout": lambda torch, x: torch.nn.functional.alpha_dropout(x, 0.4, True),
    "dropout2d": lambda torch, x: torch.nn.functional.dropout2d(x[None], 0.4),
    "dropout3d without a batch": lambda torch, x: torch.nn.functional.dropout3d(x[None], 0.4),
    "rrelu": lambda torch, x: torch.nn.functional.rrelu(x, training=True),
    "gumbel_softmax": lambda torch, x: torch.nn.functional.gumbel_softmax(x, hard=True),
    "attention": lambda torch, x: torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "encoder layer": lambda torch, x: torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(x),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_functions_draw_as_torch(oracle, subject, name):
    def run(torch):
        torch.manual_seed(3)
        x = torch.randn(3, 4, 8).requires_grad_()
        out = RANDOM[name](torch, x)
        return out.detach(), out.stride(), torch.autograd.grad(out.sum(), x)[0]
    (want, strides, want_grad), (got, our_strides, got_grad) = run(oracle), run(subject)
    _close(want, got)
    _close(want_grad, got_grad)
    assert strides == our_strides


@pytest.mark.parametrize(("call", "error"), [
    (lambda torch, x: torch.nn.functional.binary_cross_entropy(x, torch.zeros(3)), "between 0 and 1"),
    (lambda torch, x: torch.nn.functional.multi_margin_loss(torch.ones(3, 2), x.long()), "target out of range"),
    (lambda torch, x: torch.nn.functional.gaussian_nll_loss(x, x, -x), "negative entry"),
])
def test_checks_of_values_not_known_yet(oracle, subject, call, error):
    """torch raises in the call; here the values are still to come, so the error waits for the first look at a result."""
    for torch in (oracle, subject):
        x = torch.ones(3) * 4  # pending in torchlike
        with pytest.raises((RuntimeError, ValueError), match=error):
            call(torch, x).item()


def test_ignored_targets_come_back():
    """The same targets in loop after loop, whose array is on the host at first and with JAX once the program is compiled."""
    logits, target = torchlike.arange(12.0).view(4, 3).requires_grad_(), torchlike.tensor([0, -100, 2, 1])
    losses = {torchlike.nn.functional.cross_entropy(logits, target).item() for _ in range(8)}
    assert len(losses) <= 2  # NumPy's and XLA's roundings
    for bad in (3, -1):
        with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
            torchlike.nn.functional.cross_entropy(logits, torchlike.tensor([0, bad - 1, 2, 1]) + 1).item()


@pytest.mark.parametrize("which", TIERS)
@same
def test_bounds_leave_negative_zero(torch, which):
    """torch compares with a bound and keeps what is equal to it: signs of zeros show in 1 / x, atan2 and copysign."""
    f, x = torch.nn.functional, torch.tensor([-0.0, 0.0, math.nan, -1.0, 2.0] * 5)
    with program.tier(which):
        made = [f.relu(x), x.clone().relu_(), f.relu6(x), f.hardtanh(x, 0.0, 1.0), x.clamp(0), x.clamp(0, 1), x.clamp_min(0.0), x.clamp_max(0.0),
            f.elu(x), f.celu(x), f.selu(x), f.leaky_relu(x), f.threshold(x, 0.0, 0.0), x.clamp(min=math.nan), x.clamp(0.0, math.nan), torch.erfinv(x)]
        return [(t, [math.copysign(1, v) for v in t.tolist() if v == v]) for t in made]


@same
def test_what_products_of_shapes_that_do_not_fit_say(torch):
    ones, linear = torch.ones, torch.nn.functional.linear
    inputs, weights = [(4,), (5, 4), (2, 5, 4), (0,), ()], [(3, 2), (2,), (4,), (1, 2, 2)]
    others = [(2,), (2, 3), (6, 2, 3), (1, 2, 3), (3, 1, 2, 3)]
    return [[said(linear, ones(x), ones(w), bias) for x in inputs for w in weights for bias in (None, ones(3), ones(1), ones(()))],
            [said(torch.matmul, ones(a), ones(b)) for a in [(4,), (5, 4), (2, 5, 4), (3, 2, 5, 4)] for b in others]]


@pytest.mark.parametrize("tier", TIERS)
def test_tanh_near_one(oracle, tier):
    """Squashed Gaussians (SAC) take log(1 - tanh(x)**2): it must not lean to one side where tanh(x) is almost 1."""
    x = np.linspace(-9, 9, 20001, dtype=np.float32)
    right = np.log(1 - np.tanh(x.astype(np.float64)) ** 2 + 1e-6)
    found = []
    for t in (oracle, torchlike):
        with program.tier(tier):
            found.append((1 - t.tensor(x).tanh().pow(2) + 1e-6).log().numpy() - right)
    worst = abs(found[0]).max()
    assert abs(found[1]).max() <= 2 * worst and abs(found[1].mean()) <= 0.1 * worst


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@same
def test_refused_borders(torch, mode):
    """Borders wider than the input (the last dimension is looked at first), empty inputs, and what cropping leaves."""
    refused = [((1, 2, 4), (5, 0)), ((1, 2, 4, 4), (5, 0, 6, 6)), ((2, 4, 4, 4), (0, 0, 5, 5, 6, 6)), ((1, 2, 4), (-5, 0)), ((1, 2, 4, 4), (-4, 0, 0, -4)),
               ((1, 2, 4, 4, 4), (-5, 0, -6, 0, -7, 0)), ((1, 2, 4, 4, 4), (-5, 0, 0, 0, 0, 0)), ((1, 2, 4, 0), (1, 1, 1, 1)), ((1, 0, 4), (1, 1)),
               ((0, 2, 4, 4), (1, 1, 1, 1, 1, 1)), ((0, 2, 4, 4), (1, 1, 1, 1)), ((1, 2, 4, 4), (-4, 0, 0, 0))]
    pad = torch.nn.functional.pad
    return [said(pad, torch.ones(shape), border, mode=mode) for shape, border in refused], pad(torch.ones(1, 2, 4, 4), (-4, 0, 0, 0), mode=mode)


@same
def test_attention_of_nested_tensors(torch):
    """In inference it attends within each part; elsewhere torch refuses, and says why."""
    parts, found = [torch.linspace(-1, 1, 4 * n).reshape(n, 4) for n in (2, 3)], []
    nested = torch.nested.nested_tensor(parts)
    for layer in (torch.nn.MultiheadAttention(4, 2, batch_first=True).eval(), torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()):
        args = (nested,) * (3 if isinstance(layer, torch.nn.MultiheadAttention) else 1)
        with torch.no_grad():
            out = layer(*args)
            found += [*out[0].unbind(), out[1]] if isinstance(out, tuple) else out.unbind()
            found += [said(layer.train(), *args)]
        found += [said(layer.eval(), *args)]
    attend = torch.nn.MultiheadAttention(4, 2).double()
    found += [said(attend, nested, nested, nested)]
    attend.float()
    found += [said(attend.eval(), nested, nested, nested), said(attend, nested, nested, parts[0]), said(attend, nested, nested, nested, torch.ones(2, 3))]
    torch.backends.mha.set_fastpath_enabled(False)
    found += [said(attend, nested, nested, nested), torch.backends.mha.get_fastpath_enabled()]
    torch.backends.mha.set_fastpath_enabled(True)
    return found


@same
def test_masks_of_padding_have_the_shape_of_keys(torch):
    attend, x = torch.nn.MultiheadAttention(4, 2), torch.ones(3, 2, 4)
    return [said(attend, x, x, x, torch.zeros(shape, dtype=torch.bool)) for shape in ((3, 2), (2, 2), (2,))] + [said(attend, x[:, 0], x[:, 0], x[:, 0], torch.zeros(2))]


@same
def test_pools_of_impossible_sizes(torch):
    F, x = torch.nn.functional, torch.ones(2, 2, 2)
    return [said(F.adaptive_max_pool2d, x, 1 << 46)] + [said(f, x, 1 << 62).split(":")[0] for f in (F.adaptive_max_pool1d, F.adaptive_avg_pool1d)]


@same
def test_norms_of_16_bits_are_rounded_once(torch):
    F, found = torch.nn.functional, []
    x, w, b = torch.arange(480.0).reshape(2, 4, 60).sin(), torch.linspace(0.3, 1.7, 4), torch.linspace(-1, 0.6, 4)
    for kind in torch.bfloat16, torch.float16:
        x, w, b = x.to(kind), w.to(kind), b.to(kind)
        whole = F.group_norm(x.float(), 2, w.float(), b.float()).to(kind)
        found += [(F.group_norm(x, 2, w, b) == whole).all(), F.group_norm(x, 2, w).dtype, F.group_norm(x, 2, None, b).dtype, F.instance_norm(x, None, None, w, b).dtype]
        w.requires_grad_()
        F.group_norm(x, 2, w, b).sum().backward()
        found.append(w.grad.dtype)
        w = w.detach()
    return found


@same
def test_norms_of_mixed_precision(torch):
    F, x, found = torch.nn.functional, torch.linspace(-1, 1, 24).reshape(2, 4, 3), []
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        for kind in (torch.float32, torch.float64, torch.bfloat16):
            found += [said(F.group_norm, x.to(dtype), 2, torch.ones(4, dtype=kind)), said(F.layer_norm, x.to(dtype), (3,), torch.ones(3, dtype=kind))]
    x = x.to(torch.bfloat16).requires_grad_()
    F.group_norm(x, 2, torch.linspace(1, 2, 4)).sum().backward()
    return found, x.grad.dtype, [said(F.group_norm, torch.ones(shape), 5) for shape in ((1, 5), (1, 5, 1), (1, 10, 1, 1))]


@same
def test_ctc_refuses_negative_lengths(torch):
    x, targets = torch.zeros(5, 2, 3).log_softmax(2), torch.ones(2, 4, dtype=torch.int32)
    return [said(torch.nn.functional.ctc_loss, x, targets, given, long) for given in ([5, 5], [-1, 5]) for long in ([3, 2], [3, -2], [-1, 9], [9, 2])]


@same
def test_attention_without_elements(torch):
    found = []
    for shape in ((3, 0, 4), (0, 3, 4)):
        layer, x = torch.nn.TransformerDecoderLayer(4, 2, 8), torch.ones(shape, requires_grad=True)
        out = layer(x, x)
        out.sum().backward()
        found += [out.shape, x.grad.shape, torch.nn.MultiheadAttention(4, 2)(x, x, x)[0].shape]
    return found


@same
def test_adaptive_pools_take_floats(torch):
    F = torch.nn.functional
    pools = (F.adaptive_avg_pool1d, F.adaptive_max_pool1d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d, F.adaptive_avg_pool3d, F.adaptive_max_pool3d)
    return [said(f, torch.ones((4,) * (int(f.__name__[-2]) + 1), dtype=dtype), size) for f in pools for dtype in (torch.uint8, torch.int64) for size in (1, 2, 3)]


@same
def test_gradcheck_of_parameters(torch):
    """The function reaches the parameters by its module, not by its arguments."""
    m, x = torch.nn.Linear(2, 3).double(), torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    before = m.weight.detach().clone()
    inputs = (x, *m.parameters())
    return [check(lambda x, *params: m(x).tanh(), inputs) for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck)], bool((m.weight == before).all())


@same
def test_cross_entropy_with_probabilities(torch):
    """PyTorch's tutorial of several processes trains one class with them, and its loss is -0.0."""
    found = []
    for shape in ((4, 3), (3,), (2, 3, 4), (0, 3), (4, 1)):
        x, target = torch.randn(shape, requires_grad=True), torch.rand(shape)
        for reduction in ("mean", "sum", "none"):
            loss = torch.nn.functional.cross_entropy(x, target, reduction=reduction)
            found += [loss, loss.signbit() & (loss == 0), loss.grad_fn.name(), *torch.autograd.grad(loss.sum(), x)]
    return found


@same
def test_checks_of_batch_norm_eps(torch):
    F, x = torch.nn.functional, torch.arange(12.0).reshape(2, 3, 2).sin()
    found = [said(F.batch_norm, x, torch.zeros(3), torch.ones(3), training=training, eps=eps) for training in (False, True) for eps in (0.0, -1, 1e-3)]
    return found, said(torch.nn.BatchNorm1d(3, eps=0.0), x), said(F.batch_norm, x[:1, :, :1], None, None, training=True, eps=0.0), F.instance_norm(x, eps=0.0)


@same
def test_checks_of_cross_entropy_with_probabilities(torch):
    F, x, y = torch.nn.functional, torch.arange(6.0).reshape(2, 3).sin(), torch.tensor([0, 2])
    q, found = x.softmax(1), []
    for smoothing in (-0.5, 0.0, 1.0, 1.5, math.nan):
        found += [said(F.cross_entropy, x, target, label_smoothing=smoothing) for target in (y, q)]
    found += [said(F.cross_entropy, x, q, ignore_index=i) for i in (0, 5, -1)]
    found += [said(F.cross_entropy, x, q, weight=torch.ones(shape)) for shape in ((3,), (2,), (1,), (3, 1), (1, 3), ())]
    return found, said(F.cross_entropy, torch.tensor(1.0), torch.tensor(0)), said(F.cross_entropy, torch.tensor(1.0), torch.tensor(1.0))


@pytest.mark.parametrize("kind", ["complex64", "int64", "bool", "int8"])
@same
def test_norms_of_what_is_no_real_float(torch, kind):
    """Refused, with torch's words: integers would come out as zeros."""
    F, x, w = torch.nn.functional, torch.ones(2, 4, 4, 4).to(getattr(torch, kind)), torch.ones(4)
    calls = {"instance": lambda: F.instance_norm(x), "kept": lambda: F.instance_norm(x, torch.zeros(4), w, use_input_stats=False),
             "local": lambda: F.local_response_norm(x, 2), "local 3": lambda: F.local_response_norm(x[0], 2), "group": lambda: F.group_norm(x, 2),
             "group mixed": lambda: F.group_norm(x, 2, w, w), "rms": lambda: F.rms_norm(x, (4,)), "batch": lambda: F.batch_norm(x, None, None, w, w, True),
             "batch kept": lambda: F.batch_norm(x, torch.zeros(4), w), "layer": lambda: F.layer_norm(x, (4,)), "mixed": lambda: F.layer_norm(x, (4,), w, w)}
    found = {}
    for name, call in calls.items():
        try:
            found[name] = call()
        except Exception as refused:
            found[name] = type(refused).__name__, str(refused)
    return found
