"""autocast: which dtype comes out of which function, nesting, training, custom functions; as real torch on the CPU."""

import warnings

import pytest
from same import error, same
from test_optim import says

CALLS = {
    "matmul": lambda t, c: c((4, 4)) @ c((4, 4)),
    "matmul vector": lambda t, c: c((4, 4)) @ c((4,)),
    "mm": lambda t, c: t.mm(c((4, 4)), c((4, 4))),
    "bmm": lambda t, c: t.bmm(c((2, 4, 4)), c((2, 4, 4))),
    "addmm": lambda t, c: t.addmm(c((4, 4)), c((4, 4)), c((4, 4))),
    "baddbmm": lambda t, c: t.baddbmm(c((2, 4, 4)), c((2, 4, 4)), c((2, 4, 4))),
    "mv": lambda t, c: t.mv(c((4, 4)), c((4,))),
    "dot": lambda t, c: t.dot(c((4,)), c((4,))),
    "outer": lambda t, c: t.outer(c((4,)), c((4,))),
    "einsum": lambda t, c: t.einsum("ij,jk->ik", c((4, 4)), c((4, 4))),
    "tensordot": lambda t, c: t.tensordot(c((4, 4)), c((4, 4)), 1),
    "linear": lambda t, c: t.nn.functional.linear(c((4, 4)), c((4, 4)), c((4,))),
    "bilinear": lambda t, c: t.nn.functional.bilinear(c((4, 4)), c((4, 4)), c((3, 4, 4))),
    "conv1d": lambda t, c: t.nn.functional.conv1d(c((1, 2, 6)), c((3, 2, 3))),
    "conv2d": lambda t, c: t.nn.functional.conv2d(c((1, 2, 6, 6)), c((3, 2, 3, 3)), c((3,))),
    "conv_transpose2d": lambda t, c: t.nn.functional.conv_transpose2d(c((1, 2, 6, 6)), c((2, 3, 3, 3))),
    "attention": lambda t, c: t.nn.functional.scaled_dot_product_attention(*[c((2, 4, 4))] * 3),
    "prelu": lambda t, c: t.nn.functional.prelu(c((4, 4)), c((1,))),
    "softmax": lambda t, c: c((4, 4)).softmax(-1),
    "layer_norm": lambda t, c: t.nn.functional.layer_norm(c((4, 4)), (4,)),
    "exp": lambda t, c: c((4, 4)).exp(),
    "sum": lambda t, c: c((4, 4)).sum(),
    "prod": lambda t, c: c((4, 4)).prod(),
    "gelu": lambda t, c: t.nn.functional.gelu(c((4, 4))),
    "cross_entropy": lambda t, c: t.nn.functional.cross_entropy(c((4, 4)), t.tensor([0, 1, 2, 3])),
    "mse_loss": lambda t, c: t.nn.functional.mse_loss(c((4, 4)), c((4, 4))),
    "l1_loss": lambda t, c: t.nn.functional.l1_loss(c((4,)), c((4,))),
    "bce": lambda t, c: t.nn.functional.binary_cross_entropy_with_logits(c((4,)), c((4,))),
    "cat": lambda t, c: t.cat([c((4, 4)), t.ones(4, 4)]),
    "add": lambda t, c: c((4, 4)) + t.ones(4, 4),
}


@pytest.mark.parametrize("name", CALLS)
@same
def test_dtypes(torch, name):
    seen = []
    for given in ("float32", "bfloat16", "float64"):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            seen.append(
                str(CALLS[name](torch, lambda shape, d=given: torch.ones(shape, dtype=getattr(torch, d))).dtype)
            )
    return seen


@same
def test_nesting_and_switches(torch):
    def kind():
        return (
            str((torch.ones(2, 2) @ torch.ones(2, 2)).dtype),
            torch.is_autocast_enabled("cpu"),
            str(torch.get_autocast_dtype("cpu")),
        )

    @torch.autocast("cpu")
    def decorated():
        return kind()

    seen = [kind()]
    with torch.autocast("cpu") as inside:
        seen += [kind(), type(inside).__name__]
        with torch.autocast("cpu", enabled=False):
            seen.append(kind())
        with torch.autocast("cpu", dtype=torch.float16):
            seen.append(kind())
        with torch.amp.autocast("cuda", enabled=False):
            seen.append(kind())
        seen.append(error(torch.mm, torch.ones(2, 3), torch.ones(2, 3)))
        seen.append(kind())
    torch.set_autocast_enabled("cpu", True)
    seen.append(kind())
    torch.set_autocast_enabled("cpu", False)
    return seen, decorated(), kind()


@same(tol=2e3)
def test_training(torch):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(8):
        with torch.autocast("cpu", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.tensor([0, 1, 2, 1, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, str(model[0].weight.grad.dtype)


@same
def test_custom_functions(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g @ x.T + x.T @ g

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with torch.autocast("cpu"):
        y = Square.apply(x.bfloat16())
    y.sum().backward()
    return y, x.grad


@same
def test_bad_arguments(torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        off = [torch.autocast("cuda")._enabled, torch.autocast("cpu", torch.float32)._enabled]
    return (
        off,
        [str(w.message) for w in caught],
        says(torch.autocast, 3),
        error(torch.autocast, "nowhere"),
        error(torch.amp.custom_fwd, len),
    )


LAYERS = {
    "multi-head attention": lambda nn: (nn.MultiheadAttention(8, 2, batch_first=True), 3),
    "multi-head attention without weights": lambda nn: (nn.MultiheadAttention(8, 2, batch_first=True), 3, {"need_weights": False}),
    "encoder layer": lambda nn: (nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True), 1),
    "encoder layer in eval": lambda nn: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), 1),
    "decoder layer": lambda nn: (nn.TransformerDecoderLayer(8, 2, 16, dropout=0, batch_first=True), 2),
    "LSTM": lambda nn: (nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), 1),
    "LSTM with a projection": lambda nn: (nn.LSTM(8, 6, proj_size=3), 1),
    "GRU": lambda nn: (nn.GRU(8, 6), 1),
    "RNN": lambda nn: (nn.RNN(8, 6), 1),
}


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_made_of_products(name, kind):
    """Attention and recurrent layers follow autocast, forwards and backwards, with inputs of either width; float64 is not cast."""
    import torch

    import torchlike

    outs = []
    for library in (torch, torchlike):
        library.manual_seed(0)
        layer, n, *more = LAYERS[name](library.nn)
        x = library.linspace(-1, 1, 80).reshape(2, 5, 8).to(getattr(library, kind)).requires_grad_()

        def forward(layer=layer, n=n, more=more, x=x, library=library):
            with library.autocast("cpu", dtype=library.bfloat16):
                return layer(*[x] * n, **(more[0] if more else {}))
        if kind == "float64":
            outs.append(says(forward).split(":")[0])
            continue
        try:
            out = forward()
        except RuntimeError as refused:  # oneDNN's LSTM in bfloat16 needs AVX-512: torch computes in float32 here
            assert library is torch and "LSTM forward propagation primitive" in str(refused)
            out = layer(x)[0].bfloat16()
        out = out[0] if isinstance(out, tuple) else out
        (out.float() * library.linspace(0, 1, out.numel()).reshape(out.shape)).sum().backward()
        outs.append((str(out.dtype), out.detach().float().numpy(), str(x.grad.dtype), x.grad.float().numpy(), [p.grad.numpy() for p in layer.parameters() if p.grad is not None]))
    if kind == "float64":
        assert outs == ["RuntimeError"] * 2
        return
    (theirs, y, gx, g, gs), (ours, *found) = outs
    assert (ours, found[1]) == (theirs, gx)
    assert abs(y - found[0]).max() < 0.03 * max(1, abs(y).max()) and abs(g - found[2]).max() < 0.03 * max(1, abs(g).max())
    assert len(gs) == len(found[3]) and all(abs(a - b).max() < 0.05 * max(1, abs(a).max()) for a, b in zip(gs, found[3], strict=True))
