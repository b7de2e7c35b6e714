"""eleven solvers, a neural ODE by backpropagation and by the adjoint, an event, gradients by time

Adaptive solvers choose steps by comparing an error estimate, which is all rounding where a step is very good: a last
digit can accept a step that the other rejects, and with it change how often the function is evaluated.
"""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

METHODS = "dopri5 dopri8 bosh3 fehlberg2 adaptive_heun euler midpoint rk4 heun3 explicit_adams implicit_adams".split()
start = torch.tensor([[2.0, 0.0]])
times = torch.linspace(0.0, 5.0, 40)


def spiral(t, y):
    return y**3 @ torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


for method in METHODS:
    print(method, odeint(spiral, start, times, method=method)[[1, 10, -1]].flatten())
truth = odeint(spiral, start, times)


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))
        for layer in (self.network[0], self.network[2]):
            nn.init.normal_(layer.weight, 0.0, 0.1)
            nn.init.zeros_(layer.bias)
        self.evaluations = 0

    def forward(self, t, y):
        self.evaluations += 1
        return self.network(y**3)


for solve in (odeint, odeint_adjoint):
    torch.manual_seed(1)
    dynamics = Dynamics()
    optimizer = torch.optim.RMSprop(dynamics.parameters(), lr=1e-3)
    for step in range(8):
        first = torch.randint(0, 30, (20,))
        target = torch.stack([truth[first + k] for k in range(10)])
        optimizer.zero_grad()
        loss = (solve(dynamics, truth[first], times[:10]) - target).abs().mean()
        loss.backward()
        optimizer.step()
        print(solve.__name__, "step", step, "loss", f"{loss.item():.5f}", "evaluations", dynamics.evaluations)


def falling(t, state):
    height, velocity = state
    return velocity, torch.full_like(velocity, -9.8)


def touches_ground(t, state):
    return state[0]


height = torch.tensor(10.0, requires_grad=True)
state = (height, torch.tensor(0.0))
time, (heights, velocities) = odeint_event(falling, state, torch.tensor(0.0), event_fn=touches_ground, atol=1e-7, rtol=1e-7)
time.backward()
print("ground", time, heights[-1], velocities[-1], height.grad)
span = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
first = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
last = odeint(lambda t, y: -y * t, first, span, rtol=1e-8)[-1]
last.backward()
print("by time", last, span.grad, first.grad)
print("backward in time", odeint(lambda t, y: -y, torch.ones(1), torch.tensor([1.0, 0.5, 0.0])).flatten())
