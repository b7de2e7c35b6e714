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


@same
def test_leads_only_to_what_it_depends_on(torch):
    """Of a quotient, the gradient of the numerator: nothing of the numerator is in it."""
    found = []
    for f in (lambda x, y: x / (y.abs() + 1), lambda x, y: x @ y.t(), lambda x, y: torch.addcmul(y, x, y), lambda x, y: torch.nn.functional.linear(x, y, x[:, 0])):
        x, y = (torch.linspace(-1, 1.5, 4, dtype=torch.float64).view(2, 2).requires_grad_() for _ in range(2))
        g, = torch.autograd.grad(f(x, y).sum(), [x], create_graph=True)
        (g * torch.arange(4.0).view(2, 2)).sum().backward()
        found.append((g, x.grad, y.grad))
    return found


@same
def test_hooks_of_gradients_that_nobody_asked_for(torch):
    x, y, seen = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True), []
    a, b = x * 2, y * 3
    a.register_hook(lambda g: seen.append(("a", g.clone())))
    b.register_hook(lambda g: seen.append(("b", g.clone())))
    c = a * b
    c.grad_fn.register_hook(lambda ins, outs: seen.append([g is None for g in ins]))
    return torch.autograd.grad(c.sum(), [x]), seen
