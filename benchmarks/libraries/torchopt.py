"""eight optimizers, functional Adam, differentiable inner steps (MetaSGD), implicit gradients by conjugate gradients"""

import torch
import torchopt
from torch import func, nn
from torchopt.diff.implicit import custom_root
from torchopt.linear_solve import solve_normal_cg

torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))


def loss_of(parameters, x, y):
    return ((func.functional_call(network(), parameters, (x,)) - y) ** 2).mean()


for name in "Adam SGD RMSProp AdamW AdaGrad AdaDelta AdaMax RAdam".split():
    model = network()
    optimizer = getattr(torchopt, name)(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.5f}")

parameters = {name: p.detach() for name, p in network().named_parameters()}
transformation = torchopt.chain(torchopt.clip.clip_grad_norm(1.0), torchopt.adam(lr=torchopt.schedule.linear_schedule(0.02, 0.01, 10, 2)))
state = transformation.init(parameters)
for step in range(4):
    gradients, loss = func.grad_and_value(loss_of)(parameters, x, y)
    updates, state = transformation.update(gradients, state, inplace=False)
    parameters = torchopt.apply_updates(parameters, updates, inplace=False)
    print("functional", step, f"{loss.item():.5f}")

model, scale = network(), nn.Parameter(torch.tensor(1.0))
inner, outer = torchopt.MetaSGD(model, lr=0.1, momentum=0.9), torch.optim.SGD([scale], 0.1)
before = torchopt.extract_state_dict(model), torchopt.extract_state_dict(inner)
for step in range(3):
    for _ in range(2):
        inner.step(((model(x) - y * scale) ** 2).mean())
    loss = ((model(x) - y) ** 2).mean()
    outer.zero_grad()
    loss.backward()
    outer.step()
    for part, kept in zip((model, inner), before):
        torchopt.recover_state_dict(part, kept)
    print("meta", step, f"{loss.item():.5f} {scale.item():.5f}")


class Ridge(torchopt.nn.ImplicitMetaGradientModule, linear_solve=solve_normal_cg(maxiter=5, atol=0)):
    def __init__(self, penalty):
        super().__init__()
        self.weight, self.penalty = nn.Parameter(torch.zeros(4)), penalty

    def forward(self, x):
        return x @ self.weight

    def objective(self, x, y):
        return ((self(x) - y) ** 2).mean() + (self.weight**2).sum() * self.penalty**2

    def solve(self, x, y):
        optimizer = torch.optim.SGD([self.weight], lr=0.1)
        with torch.enable_grad():
            for _ in range(20):
                optimizer.zero_grad()
                self.objective(x, y).backward(inputs=[self.weight])
                optimizer.step()
        return self


penalty = nn.Parameter(torch.tensor(0.5))
ridge = Ridge(penalty)
ridge.solve(x, y[:, 0])
loss = ((ridge(x) - y[:, 0]) ** 2).mean()
print("implicit", loss.item(), torch.autograd.grad(loss, penalty))


def stationary(w, b):
    return func.grad(lambda w: ((w - b * b) ** 2).sum())(w)


@custom_root(stationary, argnums=1, solve=solve_normal_cg(maxiter=5))
def solve(w, b):
    return b.detach() ** 2


b = torch.tensor([1.0, 2.0], requires_grad=True)
root = solve(torch.zeros(2), b)
print("root", root, torch.autograd.grad(root.sum(), b))
