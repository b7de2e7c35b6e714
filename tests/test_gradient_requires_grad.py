"""Gradients made with create_graph=True require grad where they depend on something that does, and nowhere else."""
import pytest
from same import same

FUNCTIONS = {
    "minimum": lambda torch, x, y: torch.minimum(x, y),
    "maximum of itself": lambda torch, x, y: torch.maximum(x, x),
    "amin": lambda torch, x, y: x.amin(1),
    "max": lambda torch, x, y: x.max(),
    "relu": lambda torch, x, y: torch.relu(x),
    "clamp": lambda torch, x, y: x.clamp(-0.5, 0.5),
    "floor of sigmoid": lambda torch, x, y: torch.sigmoid(x.floor()),
    "masked": lambda torch, x, y: x.masked_fill(x > 0, 1.0),
    "where": lambda torch, x, y: torch.where(x > y, x, y),
    "sort": lambda torch, x, y: x.sort(1).values,
    "addcmul": lambda torch, x, y: torch.addcmul(x, y, y),
    "product with a constant": lambda torch, x, y: x @ y.detach().t(),
    "product": lambda torch, x, y: x @ y.t(),
    "mul": lambda torch, x, y: x * y,
    "sum": lambda torch, x, y: x.sum(),
    "abs": lambda torch, x, y: x.abs(),
    "tanh": lambda torch, x, y: torch.tanh(x),
    "smooth_l1_loss": lambda torch, x, y: torch.nn.functional.smooth_l1_loss(x, y),
    "mse_loss": lambda torch, x, y: torch.nn.functional.mse_loss(x, y),
    "softmax": lambda torch, x, y: x.softmax(1),
    "leaky_relu": lambda torch, x, y: torch.nn.functional.leaky_relu(x),
    "prod": lambda torch, x, y: x.prod(),
    "norm": lambda torch, x, y: x.norm(),
    "index": lambda torch, x, y: x[[0, 1]],
    "setitem": lambda torch, x, y: (x * 1).masked_fill_(x > 0, -0.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@same
def test_requires_grad_of_gradients(torch, name):
    x = torch.tensor([[0.3, -1.2, 2.0], [-0.4, 0.9, 0.1]], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[0.5, -1.0, 0.2], [0.4, -0.9, 1.1]], dtype=torch.float64, requires_grad=True)
    out = FUNCTIONS[name](torch, x, y)
    gx, gy = torch.autograd.grad(out, [x, y], torch.ones_like(out), create_graph=True, allow_unused=True)
    return gx, gy, gx.is_leaf, gx.requires_grad
