"""nn.functional.linear_cross_entropy against real torch: whole and in pieces, every option, gradients, refusals."""
import warnings

import numpy as np
import pytest

CALLS = {
    "plain": {},
    "sum": {"reduction": "sum"},
    "none": {"reduction": "none"},
    "ignored": {"ignore_index": 3},
    "smoothed": {"label_smoothing": 0.1},
}


def made(torch, call, chunk=None, bias=True, weight=False, dtype="float64", rows=11, second=False, shape=(7,)):
    torch.manual_seed(1)
    kind = getattr(torch, dtype)
    x = torch.randn(rows, 5, dtype=torch.float64).to(kind).requires_grad_()
    w = torch.randn(*shape, 5, dtype=torch.float64).to(kind).requires_grad_()
    b = torch.randn(*shape, dtype=torch.float64).to(kind).requires_grad_() if bias else None
    target = torch.randint(0, shape[0], (rows, *shape[1:]))
    options = None if chunk is None else torch.nn.LinearCrossEntropyOptions(**chunk)
    loss = torch.nn.functional.linear_cross_entropy(x, w, target, linear_bias=b, weight=torch.rand(shape[0], dtype=torch.float64).to(kind) if weight
                                                    else None, options=options, **CALLS[call])
    leaves = [t for t in (x, w, b) if t is not None]
    grads = torch.autograd.grad((loss ** 2).sum(), leaves, create_graph=second)
    more = torch.autograd.grad(sum((g ** 2).sum() for g in grads), leaves) if second else ()
    return [t.detach().to(torch.float64).numpy() for t in (loss, *grads, *more)]


def agree(subject, oracle, call, ours=None, tolerance=1e-9, **options):
    theirs = made(oracle, call, **options)
    for a, b in zip(made(subject, call, **(options | (ours or {}))), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("weight", [False, True])
def test_whole(subject, oracle, call, weight):
    agree(subject, oracle, call, weight=weight, second=True)


@pytest.mark.parametrize("call", ["plain", "sum", "none", "ignored"])
@pytest.mark.parametrize("chunk", [{"batch_chunk_size": 4}, {"chunking_method": "aspect_ratio"}, {}])
def test_in_pieces(subject, oracle, call, chunk):
    agree(subject, oracle, call, chunk=chunk, weight=True, bias=call != "sum")


def test_second_derivative_in_pieces(subject, oracle):
    """torch has it only without options."""
    theirs = made(oracle, "plain", second=True)
    if subject is oracle:
        return
    for a, b in zip(made(subject, "plain", chunk={"batch_chunk_size": 4}, second=True), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_narrow_types_accumulate_in_float32(subject, oracle):
    exact = made(oracle, "plain", rows=300)
    for a, b in zip(made(subject, "plain", dtype="bfloat16", chunk={"batch_chunk_size": 64}, rows=300), exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.05, atol=0.02)


def test_several_losses(subject, oracle):
    agree(subject, oracle, "none", shape=(4, 3))
    for torch in (subject, oracle):
        with pytest.warns(UserWarning, match="options.* ignored"), warnings.catch_warnings():
            warnings.simplefilter("always")
            made(torch, "smoothed", chunk={})


def test_large_logits_are_never_held(subject):
    """3000 x 2000 logits go in pieces of their own accord, and the loss is the plain one's."""
    torch, F = subject, subject.nn.functional
    x, w = torch.randn(3000, 4, requires_grad=True), torch.randn(2000, 4, requires_grad=True)
    target = torch.randint(0, 2000, (3000,))
    whole = torch.autograd.grad(F.cross_entropy(x @ w.t(), target), (x, w))
    loss = F.linear_cross_entropy(x, w, target)
    np.testing.assert_allclose(loss.item(), F.cross_entropy(x @ w.t(), target).item(), rtol=1e-5)
    for a, b in zip(torch.autograd.grad(loss, (x, w)), whole, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-7)


BAD_OPTIONS = [{"acc_policy": "fast"}, {"chunking_method": "aspect"}, {"chunking_method": "aspect_ratio:0"}, {"batch_chunk_size": 0},
               {"batch_chunk_size": 2.5}, {"acc_dtype": "float32"}]


@pytest.mark.parametrize("bad", BAD_OPTIONS, ids=str)
def test_refused_options(subject, oracle, bad):
    for torch in (subject, oracle):
        with pytest.raises(ValueError, match=next(iter(bad))):
            torch.nn.LinearCrossEntropyOptions(**bad)


def test_refused_arguments(subject, oracle):
    for torch in (subject, oracle):
        F, x, w, t = torch.nn.functional.linear_cross_entropy, torch.ones(4, 5), torch.ones(7, 5), torch.zeros(4, dtype=torch.int64)
        options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        with pytest.raises(RuntimeError, match="dimensionality 1 or 2"):
            F(x[None], w, t)
        with pytest.raises(RuntimeError, match="at least 2"):
            F(x, w[0], t)
        with pytest.raises(RuntimeError, match="in_features"):
            F(x, torch.ones(7, 4), t)
        with pytest.raises(RuntimeError, match="linear_bias shape"):
            F(x, w, t, linear_bias=torch.ones(6))
        with pytest.raises(RuntimeError, match="batched input"):
            F(x[0], torch.ones(7, 2, 5), t[0])
        with pytest.raises(RuntimeError, match="ignore_index"):
            F(x, w, torch.ones(4, 7), ignore_index=0)
        with pytest.raises((RuntimeError, ValueError)):
            F(x, w, t[:3], options=options)
        with pytest.raises(ValueError, match="different chunk sizes"):
            F(x, w, t, options=torch.nn.LinearCrossEntropyOptions(batch_chunk_size=3, chunking_method="aspect_ratio"))


def test_module(subject, oracle):
    losses = []
    for torch in (subject, oracle):
        torch.manual_seed(0)
        head = torch.nn.LinearCrossEntropyLoss(5, 7, bias=True, options=torch.nn.LinearCrossEntropyOptions(batch_chunk_size=4))
        loss = head(torch.randn(11, 5), torch.randint(0, 7, (11,)))
        loss.backward()
        losses.append([loss.item(), head.linear.weight.grad.numpy(), head.linear.bias.grad.numpy()])
    for a, b in zip(*losses):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
