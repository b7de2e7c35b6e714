"""Trainings that are spread over three workers by calls: a parameter server, an agent with observers, a divided recurrent network, a network
whose own layers are DistributedDataParallel's. Rank 0 prints what comes out. The same under torch and torchlike."""
import os
import tempfile
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import autograd, rpc
from torch.distributed.nn import RemoteModule
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def filled(module, scale=0.1):
    """Parameters that need no random numbers."""
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(torch.sin(torch.arange(p.numel()) * 1.3 + k).view(p.shape) * scale)
    return module


def rounded(numbers):
    return [round(float(v), 4) for v in numbers]


# -- a server that averages the gradients of a batch of trainers, and hands them its parameters

class Server:
    def __init__(self, trainers):
        self.model = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), 0.5)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.2, momentum=0.9)
        self.trainers, self.lock, self.came = trainers, threading.Lock(), 0
        self.waiting = torch.futures.Future()
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def get_model(self):
        return self.model

    @staticmethod
    @rpc.functions.async_execution
    def update(server, grads):
        self = server.local_value()
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g
            self.came += 1
            waiting = self.waiting
            if self.came == self.trainers:
                for p in self.model.parameters():
                    p.grad /= self.trainers
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                self.came, self.waiting = 0, torch.futures.Future()
                waiting.set_result(self.model)
        return waiting


def trainer(server, rank, steps):
    model, losses = server.rpc_sync().get_model(), []
    x = torch.cos(torch.arange(24.0) + rank).view(8, 3)
    y = x.sum(1, keepdim=True) / 2
    for _ in range(steps):
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        losses.append(loss.item())
        model = rpc.rpc_sync(server.owner(), Server.update, args=(server, [p.grad for p in model.parameters()]))
    return losses


def parameter_server():
    server = RRef(Server(WORLD - 1))
    for losses in torch.futures.wait_all([rpc.rpc_async(k, trainer, args=(server, k, 6)) for k in range(1, WORLD)]):
        print("trainer", rounded(losses))
    print("model", rounded(p.sum() for p in server.local_value().model.parameters()))


# -- an agent that learns from what observers report of their worlds

class Observer:
    def __init__(self, k):
        self.k = k

    def run_episode(self, agent, steps):
        state, reward = torch.ones(2) * self.k, 0.0
        for t in range(steps):
            action = agent.rpc_sync().select_action(self.k, state)
            reward = 1.0 if action == t % 2 else -1.0
            state = torch.sin(state + action + t)
            agent.rpc_sync().report_reward(self.k, reward)


class Agent:
    def __init__(self):
        self.policy = filled(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)), 0.7)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=0.05)
        self.me = RRef(self)
        self.observers = [rpc.remote(k, Observer, args=(k,)) for k in range(1, WORLD)]
        self.rewards, self.saved, self.lock = {}, {}, threading.Lock()

    def select_action(self, k, state):
        scores = torch.log_softmax(self.policy(state), -1)
        action = int(scores.argmax())
        with self.lock:
            self.saved.setdefault(k, []).append(scores[action])
        return action

    def report_reward(self, k, reward):
        with self.lock:
            self.rewards.setdefault(k, []).append(reward)

    def episode(self, steps):
        torch.futures.wait_all([o.rpc_async().run_episode(self.me, steps) for o in self.observers])
        total = sum(sum(r) for r in self.rewards.values())
        loss = sum(-score * reward for k in sorted(self.saved) for score, reward in zip(self.saved[k], self.rewards[k]))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.rewards, self.saved = {}, {}
        return total, round(loss.item(), 3)


def reinforcement():
    agent = Agent()
    print("episodes", [agent.episode(5) for _ in range(5)])
    agent.me = None


# -- a recurrent network whose embedding and decoder live at other workers

class Embedding(nn.Module):
    def __init__(self, n, wide):
        super().__init__()
        self.table = filled(nn.Embedding(n, wide), 0.5)

    def forward(self, x):
        return torch.tanh(self.table(x))


class Decoder(nn.Module):
    def __init__(self, n, wide):
        super().__init__()
        self.out = filled(nn.Linear(wide, n), 0.5)

    def forward(self, x):
        return self.out(x)


def call_method(method, rref, *args, **kwargs):
    return method(rref.local_value(), *args, **kwargs)


def remote_method(method, rref, *args, **kwargs):
    return rpc.rpc_sync(rref.owner(), call_method, args=[method, rref, *args], kwargs=kwargs)


def parameter_rrefs(module):
    return [RRef(p) for p in module.parameters()]


class Recurrent(nn.Module):
    def __init__(self, n=6, wide=5):
        super().__init__()
        self.embedding = rpc.remote("worker1", Embedding, args=(n, wide))
        self.rnn = filled(nn.LSTM(wide, wide), 0.4)
        self.decoder = RemoteModule("worker2/cpu", Decoder, (n, wide))

    def forward(self, x, hidden):
        out, hidden = self.rnn(remote_method(Embedding.forward, self.embedding, x), hidden)
        return self.decoder.forward(out), hidden

    def parameter_rrefs(self):
        return [*remote_method(parameter_rrefs, self.embedding), *parameter_rrefs(self.rnn), *self.decoder.remote_parameters()]


def recurrent():
    model = Recurrent()
    optimizer = DistributedOptimizer(torch.optim.SGD, model.parameter_rrefs(), lr=0.5)
    x = torch.arange(24).view(4, 6) % 6
    y = (x + 1) % 6
    losses = []
    for _ in range(5):
        hidden = (torch.zeros(1, 6, 5), torch.zeros(1, 6, 5))
        with autograd.context() as context:
            out, hidden = model(x, hidden)
            loss = nn.functional.cross_entropy(out.view(-1, 6), y.view(-1))
            autograd.backward(context, [loss])
            optimizer.step(context)
        losses.append(loss.item())
    print("recurrent", rounded(losses))
    print("embedding", rounded(remote_method(parameter_rrefs, model.embedding)[0].to_here().sum(1)))


# -- two trainers, whose own layers are DistributedDataParallel's, and an embedding at the third worker

class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = filled(nn.EmbeddingBag(8, 4, mode="sum"), 0.5)

    def forward(self, x, starts):
        return self.table(x, starts)


def hybrid():
    dist.init_process_group("gloo", init_method=f"file://{tempfile.gettempdir()}/hybrid", rank=RANK, world_size=2)
    bags, layer = RemoteModule("worker2/cpu", Bags), nn.parallel.DistributedDataParallel(filled(nn.Linear(4, 3), 0.5))
    optimizer = DistributedOptimizer(torch.optim.SGD, bags.remote_parameters() + parameter_rrefs(layer), lr=0.1)
    losses, means = [], []
    for step in range(4):
        with autograd.context() as context:
            out = layer(torch.tanh(bags.forward((torch.arange(6) + RANK + step) % 8, torch.tensor([0, 2, 3]))))
            loss = nn.functional.cross_entropy(out, torch.tensor([0, 1, 2]))
            autograd.backward(context, [loss])
            means.append(autograd.get_gradients(context)[layer.module.weight].abs().sum())
            optimizer.step(context)
        losses.append(loss.item())
        dist.barrier()
    if RANK == 0:
        print("hybrid", rounded(losses), rounded(means), [p.grad for p in layer.parameters()], rounded(p.sum() for p in layer.parameters()))


rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=WORLD, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(num_worker_threads=8))
if RANK == 0:
    parameter_server()
    reinforcement()
    recurrent()
if RANK < 2:
    hybrid()
rpc.shutdown()
