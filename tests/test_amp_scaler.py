"""GradScaler, torch.backends and torch.accelerator: the same answers as real torch on a machine without a GPU."""

import warnings

import numpy as np
import pytest
import torch
from same import same

import torchlike
from torchlike.amp import GradScaler


def outcome(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


def history(t, scaler_class, unscale_first):
    """Ten steps of SGD whose fourth and seventh gradients overflow: parameters, scale and state after each."""
    scaler = scaler_class("cpu", init_scale=8.0, growth_interval=2)
    p = t.nn.Parameter(t.tensor([1.0, 2.0]))
    optimizer = t.optim.SGD([p], lr=0.1, momentum=0.9)
    seen = []
    for step in range(10):
        optimizer.zero_grad()
        loss = (p * p).sum() * (float("inf") if step in (3, 6) else 1.0)
        scaler.scale(loss).backward()
        if unscale_first:
            scaler.unscale_(optimizer)
            seen.append(p.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        seen += [p.tolist(), scaler.get_scale(), scaler.state_dict()]
    return seen


@pytest.mark.parametrize("unscale_first", [False, True])
def test_scaled_training_is_torch_s(unscale_first):
    real = history(torch, torch.amp.GradScaler, unscale_first)
    ours = history(torchlike, GradScaler, unscale_first)
    assert len(ours) == len(real)
    for a, b in zip(ours, real, strict=True):
        assert a == b if isinstance(b, dict) else a == pytest.approx(b, nan_ok=True)


@pytest.mark.parametrize("unscale_first", [False, True])
@pytest.mark.parametrize("name, options", [("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True}), ("Adagrad", {})])
def test_fused_optimizers_unscale_and_skip_by_themselves(name, options, unscale_first):
    seen = []
    for t in (torch, torchlike):
        scaler = t.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
        p, q = t.nn.Parameter(t.tensor([1.0, 2.0])), t.nn.Parameter(t.tensor([[3.0]]))
        optimizer = getattr(t.optim, name)([{"params": [p]}, {"params": [q], "lr": 0.2}], lr=0.1, fused=True, **options)
        for step in range(6):
            optimizer.zero_grad()
            loss = (p * p).sum() * (float("inf") if step == 3 else 1.0) + q.exp().sum() / 8
            scaler.scale(loss).backward()
            if unscale_first:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            seen += [p.tolist(), q.tolist(), p.grad.tolist(), q.grad.tolist(), [scaler.get_scale()], [float(s.get("step", 0)) for s in optimizer.state.values()]]
    for a, b in zip(seen[:len(seen) // 2], seen[len(seen) // 2:], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5)


def misuse(t, scaler_class):
    p = t.nn.Parameter(t.ones(2))
    optimizer = t.optim.SGD([p], lr=0.1)
    half = t.nn.Parameter(t.ones(2, dtype=t.float16))
    half.grad = t.ones(2, dtype=t.float16)
    s = scaler_class("cpu")
    yield outcome(s.scale, 3)
    s.scale(t.ones(1))
    yield outcome(s.update)
    yield outcome(s.unscale_, optimizer)  # no gradients yet
    yield outcome(s.step, optimizer)
    s = scaler_class("cpu")
    s.scale(t.ones(1))
    p.grad = t.ones(2)
    for f in (s.unscale_, s.unscale_, s.step, s.step, s.unscale_):
        yield outcome(f, optimizer)
    yield outcome(s.unscale_, t.optim.SGD([half], lr=0.1))
    yield outcome(s.step, optimizer, closure=lambda: None)
    yield outcome(s.update, t.tensor([1, 2]))
    yield outcome(s.update, 4.0), s.get_scale()
    yield outcome(s.load_state_dict, {})
    yield outcome(scaler_class, "cpu", growth_factor=0.5)
    yield outcome(scaler_class, "cpu", backoff_factor=2.0)
    off = scaler_class("cpu", enabled=False)
    yield off.is_enabled(), off.get_scale(), off.state_dict(), off.scale(3), off.update()


def test_misuse_is_told_in_torch_s_words():
    assert list(misuse(torchlike, GradScaler)) == list(misuse(torch, torch.amp.GradScaler))


def test_state_travels_between_torch_and_torchlike():
    real = torch.amp.GradScaler("cpu", init_scale=32.0)
    ours = GradScaler("cpu")
    ours.load_state_dict(real.state_dict())
    assert ours.state_dict() == real.state_dict()


def test_without_a_gpu_the_default_scaler_disables_itself():
    if torchlike.cuda.is_available():
        assert GradScaler().is_enabled()
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not GradScaler().is_enabled()
    assert "CUDA is not available" in str(caught[0].message)


def settings(backends):
    yield backends.cudnn.enabled, backends.cudnn.benchmark, backends.cudnn.deterministic, backends.cudnn.allow_tf32
    with backends.cudnn.flags(enabled=False, deterministic=True):
        yield backends.cudnn.enabled, backends.cudnn.deterministic
    yield backends.cudnn.enabled, backends.cudnn.deterministic
    m = backends.cuda.matmul
    before = m.allow_tf32
    m.allow_tf32 = True
    yield m.allow_tf32, m.fp32_precision
    m.allow_tf32 = before
    yield m.allow_tf32, m.allow_bf16_reduced_precision_reduction
    yield outcome(setattr, m, "allow_tf32", 3), outcome(setattr, m, "bogus", 1), outcome(getattr, m, "bogus")
    yield outcome(setattr, backends.cudnn, "benchmark", 3)[0], outcome(getattr, backends.cudnn, "bogus")[0]
    yield backends.mps.is_available(), backends.mps.is_built()
    yield backends.cuda.flash_sdp_enabled(), backends.cuda.math_sdp_enabled()
    with backends.cuda.sdp_kernel(enable_flash=False):
        yield backends.cuda.flash_sdp_enabled()
    yield backends.cuda.flash_sdp_enabled()


@pytest.mark.filterwarnings("ignore")
def test_settings_read_as_torch_s():
    import torchlike.backends

    assert list(settings(torchlike.backends)) == list(settings(torch.backends))


def frozen(backends):
    before = backends.flags_frozen()  # PyTorch's own helpers for tests freeze its flags for the process
    with backends.__allow_nonbracketed_mutation():  # what is set inside goes at its end
        backends.cudnn.deterministic = True
        backends.disable_global_flags()
        yield backends.flags_frozen(), outcome(setattr, backends.cudnn, "deterministic", False), outcome(setattr, backends.mkldnn, "enabled", True)
        yield backends.cudnn.deterministic
        with backends.cudnn.flags(enabled=True):
            yield backends.cudnn.deterministic, outcome(setattr, backends.cudnn, "deterministic", True)
        with backends.__allow_nonbracketed_mutation():
            backends.cudnn.deterministic = False
        yield backends.cudnn.deterministic
    yield backends.flags_frozen() == before


def test_frozen_settings():
    assert list(frozen(torchlike.backends)) == list(frozen(torch.backends))


def precisions(t):
    m = t.backends.cuda.matmul
    before = m.allow_tf32
    for word in ("high", "medium", "highest", "bogus", 3):
        yield outcome(t.set_float32_matmul_precision, word)
        yield t.get_float32_matmul_precision(), m.allow_tf32, m.fp32_precision
    for allow in (True, False):
        m.allow_tf32 = allow
        yield t.get_float32_matmul_precision(), m.fp32_precision
    m.allow_tf32 = before


@pytest.mark.filterwarnings("ignore")
def test_the_precision_of_matrix_products_reads_as_torch_s():
    assert list(precisions(torchlike)) == list(precisions(torch))
    with pytest.warns(UserWarning, match="is not one of 'highest', 'high', or 'medium'"):
        torchlike.set_float32_matmul_precision("bogus")


def test_the_accelerator_is_what_jax_has():
    import jax

    import torchlike.accelerator as accelerator

    has = any(d.platform in ("gpu", "cuda", "rocm", "tpu") for d in jax.devices())
    assert accelerator.is_available() is has
    assert (accelerator.current_accelerator() is not None) is has
    if not has:
        for f in ("current_device_index", "synchronize"):
            ours, theirs = outcome(getattr(accelerator, f)), outcome(getattr(torch.accelerator, f))
            assert ours == theirs if torch.version.cuda is None else ours[0] == theirs[0]  # built for CUDA, torch tells of the driver


@pytest.mark.parametrize("t", [torch, torchlike])
def test_older_modules(t):
    amp = t.cuda.amp
    assert amp.grad_scaler.GradScaler is amp.GradScaler and amp.autocast_mode.autocast is amp.autocast and amp.autocast_mode.custom_fwd is amp.custom_fwd
    assert amp.common.amp_definitely_not_available() is amp.amp_definitely_not_available() is True


@same
def test_sparse_gradients_of_halves(torch):
    indices = torch.tensor([[0, 1, 0], [2, 0, 2]])
    scaler, found = torch.amp.GradScaler("cpu"), []
    for values in ([16.0, 32.0, 64.0], [64000.0, 32.0, 64000.0]):
        p = torch.ones(2, 3, dtype=torch.half)
        p.grad = torch.sparse_coo_tensor(indices, torch.tensor(values), (2, 3)).half()
        optimizer = torch.optim.SGD([p], lr=1.0)
        infinite = scaler._unscale_grads_(optimizer, torch.full((1,), 0.25), torch.zeros(1), True)
        found.append((list(infinite.values()), p.grad.is_coalesced(), p.grad.to_dense()))
    return found
