"""Values rounded as a quantized tensor would hold them, and their gradients, against real torch."""
import pytest
from same import caught, same

CALLS = {
    "numbers": lambda torch, x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127),
    "tensors": lambda torch, x: torch.fake_quantize_per_tensor_affine(x, torch.tensor([0.3]), torch.tensor(2, dtype=torch.int32), 0, 15),
    "channels": lambda torch, x: torch.fake_quantize_per_channel_affine(x, torch.tensor([0.7, 0.3, 1.]), torch.tensor([0, 2, 7], dtype=torch.int32), 1, 0, 7),
    "channels before rounding": lambda torch, x: torch.fake_quantize_per_channel_affine(
        x, torch.tensor([0.7, 0.3]), torch.tensor([0.5, 2.2]), 0, 0, 7),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("call", CALLS)
@same
def test_values_and_gradients(torch, call, dtype):
    x = torch.tensor([[-100., -0.26, 0.25], [0.449, 30., 0.05]]).to(getattr(torch, dtype)).requires_grad_()
    y = CALLS[call](torch, x)
    return y, y.grad_fn.name(), torch.autograd.grad(y, x, torch.arange(1., 7.).view(2, 3).to(y.dtype))


@same
def test_what_is_not_finite(torch):
    x = torch.tensor([float("nan"), float("inf"), -float("inf")], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.5, 1, 0, 7)
    return y, torch.autograd.grad(y.sum(), x)


@same
def test_bad_arguments(torch):
    x, scale, zeros = torch.ones(2, 3), torch.ones(2), torch.zeros(2, dtype=torch.int32)
    whole, each = torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine
    calls = [(whole, x.int(), 0.1, 0, 0, 7), (whole, x, 0.1, 9, 0, 7), (each, x, scale, zeros.long(), 0, 0, 7), (each, x, scale.double(), zeros, 0, 0, 7),
             (each, x, scale, zeros, 1, 0, 7), (each, x, scale, zeros, 2, 0, 7), (each, x, scale, zeros, -2, 0, 7), (each, x, scale, zeros + 9, 0, 0, 7),
             (each, x, scale[None], zeros, 0, 0, 7)]
    return [caught(*call) for call in calls], caught(whole, x, 0.1, 6, 7, 5)[0]


@same
def test_training_with_rounded_weights(torch):
    """Gradients go straight through, so that weights move though what is computed with them is rounded."""
    w = torch.tensor([0.52, -0.31], requires_grad=True)
    x, y = torch.tensor([[1., 2.], [3., -1.], [0.5, 0.5]]), torch.tensor([1., 2., 0.])
    for _ in range(6):
        loss = ((x @ torch.fake_quantize_per_tensor_affine(w, 0.05, 0, -8, 7) - y) ** 2).mean()
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
    return w, loss


def _averaging(torch, ends=(float("inf"), -float("inf")), rows=None, observer_on=1, fake_quant_on=1, **settings):
    """fused_moving_avg_obs_fake_quant over three inputs: what it returns and writes, and gradients."""
    settings = {"averaging_const": 0.01, "quant_min": 0, "quant_max": 255, "ch_axis": 0, **settings}
    low, high = (torch.tensor(x) if rows is None else torch.full((rows,), x) for x in ends)
    scale, zero_point = torch.ones(1 if rows is None else rows), torch.zeros(1 if rows is None else rows, dtype=torch.int32)
    x, found = torch.tensor([[0.3, -1.2, 2.1], [0.7, 0.1, 3.3]]), []
    for _ in range(3):
        x = (x * 1.5).detach().requires_grad_()
        y = torch.fused_moving_avg_obs_fake_quant(x, torch.tensor([observer_on]), torch.tensor([fake_quant_on]), low, high, scale, zero_point, **settings)
        y.sum().backward()
        found += [y.detach(), x.grad]
    return found, low, high, scale, zero_point


@same
def test_moving_averages_in_one_function(torch):
    signed, rows = {"quant_min": -128, "quant_max": 127, "symmetric_quant": True}, {"per_row_fake_quant": True}
    return [_averaging(torch, **settings) for settings in (
        {}, signed, {"averaging_const": 0.5}, {"observer_on": 0, "ends": (-1.0, 2.0)}, {"fake_quant_on": 0, "ends": (-1.0, 2.0)}, {**signed, **rows, "rows": 2},
        {**rows, "rows": 0})], [caught(_averaging, torch, rows=3, ch_axis=axis, **rows) for axis in (0, 1)]
