"""Graphs, recommenders, and programs of many small steps: control, higher derivatives, tensor loops."""
from __future__ import annotations

import torch
from torch import nn

from .common import F, steps


def _graph(kind):
    import torch_geometric.nn as gnn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (gnn.GCNConv(256, 64), gnn.GCNConv(64, 7)) if kind == "gcn" else (gnn.GATConv(256, 8, 8), gnn.GATConv(64, 7))

        def forward(self, x, edges):
            return self.second(F.relu(self.first(x, edges)), edges)
    model, x, edges, y = Net(), torch.randn(2000, 256), torch.randint(0, 2000, (2, 10000)), torch.randint(0, 7, (2000,))
    return steps(model, (x, edges), lambda out: F.cross_entropy(out, y), torch.optim.Adam(model.parameters(), 1e-2))


def gcn():
    return _graph("gcn")


def gat():
    return _graph("gat")


def dlrm():
    """Dense features and 8 embedding bags, pairwise products, an MLP."""
    class Net(nn.Module):
        def __init__(self, d=32, tables=8, rows=20000):
            super().__init__()
            self.bags = nn.ModuleList([nn.EmbeddingBag(rows, d, mode="sum") for _ in range(tables)])
            self.bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, d), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(d + (tables + 1) * tables // 2, 128), nn.ReLU(), nn.Linear(128, 1))
            self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

        def forward(self, dense, ids, offsets):
            x = self.bottom(dense)
            stacked = torch.stack([x, *(bag(i, offsets) for bag, i in zip(self.bags, ids))], 1)
            products = stacked @ stacked.mT
            return self.top(torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], 1))[:, 0]
    model, y = Net(), torch.randint(0, 2, (256,)).float()
    inputs = (torch.randn(256, 13), torch.randint(0, 20000, (8, 1024)), torch.arange(0, 1024, 4))
    return steps(model, inputs, lambda out: F.binary_cross_entropy_with_logits(out, y), torch.optim.SGD(model.parameters(), 0.1))


def matrix_factorization():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(5000, 64), nn.Embedding(5000, 64)

        def forward(self, u, i):
            return (self.users(u) * self.items(i)).sum(1)
    model, y = Net(), torch.randn(1024)
    return steps(model, (torch.randint(0, 5000, (1024,)), torch.randint(0, 5000, (1024,))), lambda out: F.mse_loss(out, y), torch.optim.Adam(model.parameters(), 1e-2))


def maml():
    """Four tasks of two inner steps each, differentiated through."""
    model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    names = [n for n, _ in model.named_parameters()]

    def train():
        optimizer.zero_grad()
        total = 0
        for _ in range(4):
            x = torch.rand(10, 1) * 10 - 5
            y = torch.sin(x + torch.rand(1))
            fast = dict(model.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(torch.func.functional_call(model, fast, (x,)), y)
                grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
                fast = {n: p - 0.01 * g for n, p, g in zip(names, fast.values(), grads)}
            total = total + F.mse_loss(torch.func.functional_call(model, fast, (x,)), y)
        total.backward()
        optimizer.step()
        return total.item()
    return {"train": (model.train, train)}


def pinn():
    """Burgers' equation: second derivatives of a network by its inputs."""
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    points = torch.rand(1000, 2)

    def train():
        optimizer.zero_grad()
        x, t = points[:, :1].clone().requires_grad_(), points[:, 1:].clone().requires_grad_()
        u = model(torch.cat([x, t], 1))
        ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        uxx, = torch.autograd.grad(ux.sum(), x, create_graph=True)
        loss = ((ut + u * ux - 0.01 * uxx) ** 2).mean() + (u[:100] ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    return {"train": (model.train, train)}


def ppo():
    """64 steps of a policy in a small world, one observation each, then 4 epochs of minibatches."""
    actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 3e-4)
    import random

    def train():
        state, seen, actions, logs, rewards, values = [0.1, 0.0, 0.0, 0.0], [], [], [], [], []
        for _ in range(64):
            x = torch.tensor(state)
            with torch.no_grad():
                choice = torch.distributions.Categorical(logits=actor(x))
                action = choice.sample()
                logs.append(choice.log_prob(action))
                values.append(critic(x).item())
            seen.append(x)
            actions.append(action)
            push = action.item() * 2 - 1
            state = [0.9 * s + 0.1 * push * (k + 1) + random.gauss(0, 0.1) for k, s in enumerate(state)]
            rewards.append(-abs(state[0]))
        returns, total = [], 0.0
        for r in reversed(rewards):
            total = r + 0.99 * total
            returns.insert(0, total)
        seen, actions, logs = torch.stack(seen), torch.stack(actions), torch.stack(logs)
        returns = torch.tensor(returns)
        advantages = returns - torch.tensor(values)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        for _ in range(4):
            for part in torch.randperm(64).split(16):
                choice = torch.distributions.Categorical(logits=actor(seen[part]))
                ratio = (choice.log_prob(actions[part]) - logs[part]).exp()
                a = advantages[part]
                gain = torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
                loss = -gain + 0.5 * F.mse_loss(critic(seen[part])[:, 0], returns[part]) - 0.01 * choice.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
                optimizer.step()
        return loss.item()
    return {"train": (actor.train, train)}


def dqn():
    """32 steps, each an epsilon-greedy action, a row of a replay memory and a batch of 32 of it."""
    import random
    make = lambda: nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    model, target = make(), make()
    target.load_state_dict(model.state_dict())
    optimizer, memory = torch.optim.Adam(model.parameters(), 1e-3), []

    def train():
        state = torch.randn(4)
        for _ in range(32):
            with torch.no_grad():
                action = model(state).argmax().item() if random.random() > 0.1 else random.randrange(2)
            following = 0.9 * state + 0.1 * torch.randn(4) + action * 0.1
            memory.append((state, action, -following[0].abs().item(), following))
            del memory[:-500]
            state = following
            if len(memory) < 32:
                continue
            batch = random.sample(memory, 32)
            x, after = torch.stack([b[0] for b in batch]), torch.stack([b[3] for b in batch])
            a, r = torch.tensor([b[1] for b in batch]), torch.tensor([b[2] for b in batch])
            with torch.no_grad():
                goal = r + 0.99 * target(after).max(1).values
            loss = F.smooth_l1_loss(model(x).gather(1, a[:, None])[:, 0], goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item() if len(memory) >= 32 else 0.0
    return {"train": (model.train, train)}


def k_means():
    points = torch.randn(5000, 16)

    def forward():
        centres = points[:20].clone()
        for _ in range(10):
            nearest = torch.cdist(points, centres).argmin(1)
            sums = torch.zeros_like(centres).index_add_(0, nearest, points)
            centres = sums / torch.bincount(nearest, minlength=20).clamp(min=1)[:, None]
        return centres.sum().item()
    return {"forward": (lambda: None, forward)}


def gaussian_mixture():
    """Expectation and maximization for full covariances."""
    points = torch.randn(3000, 8)

    def forward():
        means, cov, weights = points[:6].clone(), torch.eye(8).repeat(6, 1, 1), torch.full((6,), 1 / 6)
        for _ in range(10):
            dist = torch.distributions.MultivariateNormal(means, cov)
            logs = dist.log_prob(points[:, None]) + weights.log()
            r = (logs - logs.logsumexp(1, keepdim=True)).exp()
            n = r.sum(0)
            means = r.T @ points / n[:, None]
            away = points[:, None] - means
            cov = torch.einsum("nk,nki,nkj->kij", r, away, away) / n[:, None, None] + 1e-3 * torch.eye(8)
            weights = n / n.sum()
        return means.sum().item()
    return {"forward": (lambda: None, forward)}


def n_body():
    mass = torch.rand(256)

    def forward():
        x, v = torch.randn(256, 3), torch.zeros(256, 3)
        for _ in range(20):
            away = x[None] - x[:, None]
            a = (away * (mass / ((away ** 2).sum(-1) + 0.01) ** 1.5)[..., None]).sum(1)
            v += 0.01 * a
            x += 0.01 * v
        return x.sum().item()
    return {"forward": (lambda: None, forward)}


def game_of_life():
    """Neighbours by rolled copies."""
    start = (torch.rand(256, 256) < 0.3).int()

    def forward():
        board = start
        for _ in range(20):
            around = sum(torch.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
            board = ((around == 3) | ((board == 1) & (around == 2))).int()
        return board.sum().item()
    return {"forward": (lambda: None, forward)}


def heat(n=200):
    """A stencil written in place through slices, looked at every step."""
    def forward():
        u = torch.zeros(n, n)
        u[:, 0] = 1.0
        for _ in range(40):
            new = u.clone()
            new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
            change = (new - u).abs().max().item()
            u = new
        return change
    return {"forward": (lambda: None, forward)}


def heat_large():
    """The same in four megabytes, which processors do not keep at hand."""
    return heat(1000)


def style_transfer():
    """An image's own pixels are trained: content and Gram matrices of a small VGG, by L-BFGS."""
    layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                           nn.ReLU()).requires_grad_(False)
    gram = lambda f: torch.mm(f.flatten(2)[0], f.flatten(2)[0].t()) / f.numel()
    style, image = gram(layers(torch.rand(1, 3, 64, 64))), torch.rand(1, 3, 64, 64).requires_grad_()
    optimizer = torch.optim.LBFGS([image], max_iter=4)

    def train():
        def closure():
            optimizer.zero_grad()
            loss = 1e8 * F.mse_loss(gram(layers(image)), style)
            loss.backward()
            return loss
        return optimizer.step(closure).item()
    return {"train": (layers.train, train)}
