"""One model trained three ways: as in PyTorch, with `jax.grad` and optax, and with a Pallas kernel inside.

    python examples/jax_interop.py

The task is to tell two spirals apart. All three start from the same weights and see the same points; the first two
do the same arithmetic, so their losses agree.
"""

import argparse
import math

import jax
import jax.numpy as jnp
import optax
from jax.experimental import pallas as pl

import torchlike
import torchlike as torch
import torchlike.nn as nn
import torchlike.nn.functional as F


def spirals(n):
    """n points of two spirals, (n, 2), and which spiral each is on, (n,)."""
    labels = torch.arange(n) % 2
    radius = torch.rand(n)
    angle = math.pi * (3.0 * radius + labels)
    points = radius.unsqueeze(1) * torch.stack([angle.cos(), angle.sin()], dim=1)
    return points + 0.02 * torch.randn(n, 2), labels


def swish_kernel(x, out):
    """Pallas: x * sigmoid(x), on one block in fast memory."""
    out[...] = x[...] * jax.nn.sigmoid(x[...])


@jax.custom_vjp
def swish(x):
    """x * sigmoid(x) by a Pallas kernel; interpreted where Pallas has no compiler."""
    return pl.pallas_call(
        swish_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=jax.default_backend() == "cpu",
    )(x)


def swish_forward(x):
    return swish(x), x


def swish_backward(x, gradient):
    s = jax.nn.sigmoid(x)
    return (gradient * (s + x * s * (1 - s)),)


swish.defvjp(swish_forward, swish_backward)


class PallasSwish(nn.Module):
    """A torch-style module whose forward is a JAX function; `jax_function` gives it a `.backward()`."""

    def forward(self, x):
        return torchlike.jax_function(swish)(x)


def build(activation):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 64), activation, nn.Linear(64, 64), activation, nn.Linear(64, 2))


def train_as_in_torch(model, points, labels, args):
    """The loop every PyTorch program has; returns the loss of every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    losses = []
    for _ in range(args.steps):
        loss = F.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_as_in_jax(model, points, labels, args):
    """The module as a function of its parameters, a pytree; the rest is JAX and optax."""
    parameters = {name: p.detach().jax() for name, p in model.named_parameters()}
    x, y = points.jax(), labels.jax()

    def loss_of(parameters):
        tensors = {name: torchlike.from_jax(p) for name, p in parameters.items()}
        logits = torch.func.functional_call(model, tensors, (torchlike.from_jax(x),))
        return F.cross_entropy(logits, torchlike.from_jax(y)).jax()

    rule = optax.adam(args.lr)
    state = rule.init(parameters)

    @jax.jit
    def step(parameters, state):
        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        updates, state = rule.update(gradients, state)
        return optax.apply_updates(parameters, updates), state, loss

    losses = []
    for _ in range(args.steps):
        parameters, state, loss = step(parameters, state)
        losses.append(float(loss))
    model.load_state_dict({name: torchlike.from_jax(p) for name, p in parameters.items()})
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=50, metavar="STEPS")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    points, labels = spirals(400)

    ways = {
        "torch-style": (train_as_in_torch, nn.SiLU()),
        "jax.grad + optax": (train_as_in_jax, nn.SiLU()),
        "Pallas inside": (train_as_in_torch, PallasSwish()),
    }
    losses, right = {}, {}
    for way, (train, activation) in ways.items():
        model = build(activation)
        losses[way] = train(model, points, labels, args)
        with torch.no_grad():
            right[way] = (model(points).argmax(dim=1) == labels).float().mean().item()
    print("step  " + "".join(f"{way:>20}" for way in ways))
    for i in range(args.log_every - 1, args.steps, args.log_every):
        print(f"{i + 1:4d}  " + "".join(f"{losses[way][i]:20.6f}" for way in ways))
    print("right " + "".join(f"{right[way]:20.2%}" for way in ways))
    x = jnp.linspace(-4, 4, 9)
    print("the kernel against jax.nn.swish: largest difference", float(jnp.abs(swish(x) - jax.nn.swish(x)).max()))


if __name__ == "__main__":
    main()
