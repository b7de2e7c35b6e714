"""torch.backends.cuda's switches choose what scaled_dot_product_attention may use, as in torch."""
import warnings

import pytest

NAMES = ("flash", "mem_efficient", "math", "cudnn")


def reads(torch):
    cuda = torch.backends.cuda
    return [getattr(cuda, f"{name}_sdp_enabled")() for name in NAMES], sorted(map(int, torch.nn.attention._cur_sdpa_kernel_backends()))


@pytest.fixture
def both(subject, oracle):
    yield subject, oracle
    for torch in (subject, oracle):
        for name in NAMES:
            getattr(torch.backends.cuda, f"enable_{name}_sdp")(True)


@pytest.mark.parametrize("name", NAMES)
def test_switches_and_the_context_are_one_state(both, name):
    for torch in both:
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(False)
    subject, oracle = both
    assert reads(subject) == reads(oracle)
    seen = []
    for torch in both:
        with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
            seen.append(reads(torch))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.backends.cuda.sdp_kernel(enable_flash=False):
                seen.append(reads(torch))
        seen.append(reads(torch))
    assert seen[:3] == seen[3:]


def test_switches_act(both):
    for torch in both:
        attend, q, cuda = torch.nn.functional.scaled_dot_product_attention, torch.randn(1, 2, 4, 8), torch.backends.cuda
        cuda.enable_math_sdp(False)
        assert attend(q, q, q).shape == q.shape
        with pytest.raises(RuntimeError, match="No available kernel"):
            attend(q, q, q, dropout_p=0.5)
        for name in ("flash", "mem_efficient", "cudnn"):
            getattr(cuda, f"enable_{name}_sdp")(False)
        with pytest.raises(RuntimeError, match="No viable backend"):
            attend(q, q, q)
        with pytest.raises(RuntimeError, match="expects a bool"):
            cuda.enable_flash_sdp(1)
        cuda.enable_math_sdp(True)
        assert attend(q, q, q, dropout_p=0.5).shape == q.shape
        for name in NAMES:
            getattr(cuda, f"enable_{name}_sdp")(True)


def test_math_and_fused_are_different_operations():
    import torchlike as subject
    from torchlike.nn._functional import attention
    q = subject.randn(1, 2, 4, 8, requires_grad=True)
    attend, cuda = subject.nn.functional.scaled_dot_product_attention, subject.backends.cuda
    ops = [attend(q, q, q).grad_fn.plan.op]
    for name in ("flash", "mem_efficient", "cudnn"):
        getattr(cuda, f"enable_{name}_sdp")(False)
    ops.append(attend(q, q, q).grad_fn.plan.op)
    cuda.enable_flash_sdp(True)
    cuda.enable_math_sdp(False)
    ops.append(attend(q, q, q).grad_fn.plan.op)
    for name in NAMES:
        getattr(cuda, f"enable_{name}_sdp")(True)
    assert ops == [attention.ATTENTION_ANYWHERE, attention.ATTENTION, attention.TILED_ATTENTION]


@pytest.mark.parametrize("shape", [(2, 3, 4, 8), (3, 4, 8), (4, 8)])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("math", [False, True])
def test_a_mask_beside_is_causal_is_the_fused_kernels(both, shape, dropout, math):
    found = []
    for torch in both:
        x, mask = torch.ones(shape), torch.ones(4, 4).tril().bool()
        torch.backends.cuda.enable_flash_sdp(not math)
        try:
            found.append(tuple(torch.nn.functional.scaled_dot_product_attention(x, x, x, mask, dropout, is_causal=True).shape))
        except RuntimeError as error:
            found.append(str(error))
    assert found[0] == found[1]
