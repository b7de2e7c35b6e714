"""Tensor parallelism over the two processes that torchrun started; rank 0 prints. The same under torch and torchlike."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from shown import show
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("tp",))


def numbers(t):
    if isinstance(t, DTensor):
        t = t.full_tensor()
    return ["%.3f" % (round(x, 3) + 0.0) for x in t.detach().double().flatten().tolist()[:5]]


def attempt(label, function):
    try:
        show(label, function())
    except (RuntimeError, ValueError, TypeError, NotImplementedError, AssertionError) as error:
        show(label, "ERROR", type(error).__name__)


class Attention(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(n, n) for _ in range(4))
        self.size = n // heads

    def forward(self, x):
        q, k, v = (f(x).view(x.shape[0], x.shape[1], -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = (q @ k.transpose(-1, -2) / self.size ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.first, self.attention, self.second = nn.LayerNorm(n), Attention(n, 4), nn.LayerNorm(n)
        self.up, self.gate, self.down = nn.Linear(n, 3 * n), nn.Linear(n, 3 * n, bias=False), nn.Linear(3 * n, n)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        h = self.second(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, n=8):
        super().__init__()
        self.table, self.blocks = nn.Embedding(12, n), nn.ModuleList(Block(n) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(n), nn.Linear(n, 12)

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


plain = {
    "table": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(output_layouts=Replicate()),
    "blocks.*.attention.[qkv]": ColwiseParallel(), "blocks.*.attention.out": RowwiseParallel(),
    "blocks.*.up": ColwiseParallel(), "blocks.*.gate": ColwiseParallel(), "blocks.*.down": RowwiseParallel(),
}
sequence = {
    "table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    "blocks.*.first": SequenceParallel(), "blocks.*.second": SequenceParallel(),
    "blocks.*.attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
    "blocks.*.attention.[qkv]": ColwiseParallel(), "blocks.*.attention.out": RowwiseParallel(output_layouts=Shard(1)),
    "blocks.*.up": ColwiseParallel(input_layouts=Shard(1)), "blocks.*.gate": ColwiseParallel(input_layouts=Shard(1)),
    "blocks.*.down": RowwiseParallel(output_layouts=Shard(1)),
}
split_losses = {**plain, "head": ColwiseParallel(use_local_output=False)}
tokens = torch.randint(0, 12, (2, 6), generator=torch.Generator().manual_seed(1))
labels = tokens.roll(1, 1).flatten()
for plan in (plain, sequence, split_losses):
    torch.manual_seed(0)
    alone = Model()
    torch.manual_seed(rank)
    model = Model()
    parallelize_module(model, mesh, plan)
    with torch.no_grad():  # SequenceParallel takes each rank's own norm
        for p, q in zip(model.parameters(), alone.parameters()):
            if not isinstance(p, DTensor):
                p.copy_(q)
    show([(n, getattr(p, "placements", None), tuple(p.shape)) for n, p in list(model.named_parameters())])
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, alone)]
    for step in range(3):
        if plan is split_losses:
            with loss_parallel():
                loss = F.cross_entropy(model(tokens).flatten(0, 1), labels)
                loss.backward()
        else:
            loss = F.cross_entropy(model(tokens).flatten(0, 1), labels)
            loss.backward()
        expected = F.cross_entropy(alone(tokens).flatten(0, 1), labels)
        expected.backward()
        if step == 0:
            show([numbers(p.grad) for p in model.parameters()])
        for o in optimizers:
            o.step()
            o.zero_grad()
        show(step, numbers(loss), numbers(expected))
    show([numbers(p) for p in model.parameters()])
    show({n: type(x).__name__ for n, x in list(model.state_dict().items())[:3]})

# losses of logits that are cut along the classes
x = torch.randn(5, 7, generator=torch.Generator().manual_seed(2))
weight = torch.arange(1.0, 8.0)
for reduction in ("mean", "sum", "none"):
    for w in (None, weight):
        y = torch.tensor([0, 6, -100 if w is None else 2, 3, 5])
        logits = distribute_tensor(x, mesh, [Shard(1)]).requires_grad_()
        with loss_parallel():
            loss = F.cross_entropy(logits, y, weight=w, reduction=reduction)
            show(type(loss).__name__, loss.shape, numbers(loss), numbers(F.cross_entropy(x, y, weight=w, reduction=reduction)))
            loss.sum().backward()
        show(logits.grad.placements, numbers(logits.grad))

# inputs and outputs
class Sum(nn.Module):
    def forward(self, a, b=None, scale=1):
        show(type(a).__name__, getattr(a, "placements", tuple(a.shape)), type(b).__name__)
        return (a if b is None else a + b) * scale


data = torch.arange(8.0).reshape(2, 4)
for style in (PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate()),
              PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),), use_local_output=True),
              PrepareModuleInput(input_kwarg_layouts={"b": Shard(0)}, desired_input_kwarg_layouts={"b": Replicate()}, use_local_output=True),
              PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0)),
              PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate(), use_local_output=False),
              PrepareModuleInputOutput(input_layouts=Shard(0), desired_input_layouts=Replicate(), output_layouts=Replicate(), desired_output_layouts=Shard(1))):
    show(style)
    module = parallelize_module(Sum(), mesh, style)
    if getattr(style, "with_kwargs", False):
        attempt("kwargs", lambda module=module: tuple(module(torch.zeros(4, 4), b=data).shape))
    else:
        out = module(data, scale=2)
        show(type(out).__name__, tuple(out.shape), numbers(out))
for style in (ColwiseParallel(), RowwiseParallel(use_local_output=False), SequenceParallel(sequence_dim=0)):
    show(style)
row = parallelize_module(nn.Linear(4, 2), mesh, RowwiseParallel(use_local_output=False))
made = row(data[:, rank * 2:rank * 2 + 2])
show(made.placements, made.shape)
with mesh:
    column = parallelize_module(nn.Embedding(4, 6), parallelize_plan=ColwiseParallel())
show(column(torch.tensor([[1, 2]])).shape)
attempt("kind", lambda: parallelize_module(nn.LayerNorm(4), mesh, ColwiseParallel()))
attempt("plan", lambda: parallelize_module(nn.Linear(4, 4), mesh, 3))
attempt("none", lambda: type(parallelize_module(nn.Linear(4, 4), mesh)).__name__)
attempt("lengths", lambda: PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Shard(0), Shard(1))))
attempt("inputs", lambda: parallelize_module(Sum(), mesh, PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate()))(data, data))
dist.destroy_process_group()
