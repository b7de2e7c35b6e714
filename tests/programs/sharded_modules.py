"""fully_shard over the two processes that torchrun started; rank 0 prints. The same under torch and torchlike."""
import copy
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from shown import show
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, Shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,))


def numbers(t):
    if isinstance(t, DTensor):
        t = t.full_tensor()
    return ["%.3f" % (round(x, 3) + 0.0) for x in t.detach().double().flatten().tolist()[:5]]


def attempt(label, function):
    try:
        show(label, function())
    except (RuntimeError, ValueError, TypeError, NotImplementedError, AssertionError) as error:
        show(label, "ERROR", type(error).__name__)


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(n), nn.Linear(n, 3 * n), nn.Linear(3 * n, n)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, n=5, layers=2):
        super().__init__()
        self.table = nn.Embedding(11, n)
        self.blocks = nn.ModuleList(Block(n) for _ in range(layers))
        self.head = nn.Linear(n, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("scale", torch.ones(1) * 2)

    def forward(self, tokens):
        x = self.table(tokens) * self.scale
        for block in self.blocks:
            x = block(x)
        return self.head(x)

    def logits_of(self, x):
        return self.head(x)


def made(shard=True, **options):
    torch.manual_seed(0)
    model = Model()
    if shard:
        for block in model.blocks:
            fully_shard(block, mesh=mesh, **options)
        fully_shard(model, mesh=mesh, **options)
    return model


tokens = torch.randint(0, 11, (4, 6), generator=torch.Generator().manual_seed(1))
mine = tokens[rank * 2:rank * 2 + 2]


def loss_of(model, batch):
    out = model(batch)
    return nn.functional.cross_entropy(out.float().view(-1, 11), batch.roll(1, 1).reshape(-1))


model = made()
show(model)
show(type(model).__name__, isinstance(model, FSDPModule), isinstance(model.blocks[0], FSDPModule), isinstance(model, Model))
for name, p in model.named_parameters():
    show(name, type(p).__name__, tuple(p.shape), tuple(p.to_local().shape), p.placements, p.requires_grad)
out = model(mine)
show(type(model.table.weight).__name__, type(model.blocks[0].up.weight).__name__, isinstance(model.table.weight, nn.Parameter))
model.reshard()
show(type(model.table.weight).__name__)

# training is that of one process with the whole batch
alone = made(shard=False)
for make in (lambda p: torch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)):
    model, alone = made(), made(shard=False)
    optimizer, reference = make(model.parameters()), make(alone.parameters())
    for step in range(3):
        loss = loss_of(model, mine)
        loss.backward()
        if step == 0:
            show({n: (type(p.grad).__name__, p.grad.placements, numbers(p.grad)) for n, p in model.named_parameters()})
        total = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        loss_of(alone, tokens).backward()
        whole = nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
        reference.step()
        reference.zero_grad()
        show(step, numbers(loss), numbers(total), numbers(whole))
    show({n: numbers(p) for n, p in model.named_parameters()})
    show([(k, type(x).__name__, tuple(x.shape)) for k, x in sorted(optimizer.state[model.table.weight].items())])
    show(all(torch.allclose(p.full_tensor(), q, atol=1e-4) for p, q in zip(model.parameters(), alone.parameters())))

# settings
for options in ({"reshard_after_forward": False}, {"reshard_after_forward": True}, {"mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)},
                {"mp_policy": MixedPrecisionPolicy(output_dtype=torch.float32, cast_forward_inputs=False)},
                {"offload_policy": CPUOffloadPolicy(pin_memory=False)}, {"shard_placement_fn": lambda p: Shard(p.dim() - 1) if p.shape[-1] % world == 0 else None}):
    model = made(**options)
    out = model(mine)
    show(out.dtype, type(model.head.weight).__name__, type(model.blocks[1].up.weight).__name__)
    out.float().pow(2).sum().backward()
    p = model.blocks[0].down.weight
    show(p.dtype, p.grad.dtype, p.placements, tuple(p.to_local().shape), type(model.head.weight).__name__)
    if "mp_policy" not in options:
        show(numbers(p.grad), numbers(model.table.weight.grad))

# gradients that add up before they are reduced
model = made()
model.set_requires_gradient_sync(False)
loss_of(model, mine).backward()
show([p.grad is None for p in model.parameters()])
model.set_requires_gradient_sync(True)
loss_of(model, mine.flip(0)).backward()
show([numbers(p.grad) for p in model.parameters()])
model = made()


loss_of(model, mine).backward()
show([numbers(p.grad) for p in model.parameters()])

# by hand
model = made()
with torch.no_grad():
    before = numbers(model(tokens))
    model.unshard()
    show(type(model.table.weight).__name__, numbers(model.table.weight), before)
    model.reshard()
    register_fsdp_forward_method(model, "logits_of")
    show(numbers(model.logits_of(torch.ones(1, 5))))
for p in model.blocks.parameters():
    p.requires_grad_(False)
loss_of(model, mine).backward()
show([None if p.grad is None else numbers(p.grad) for p in model.parameters()])
model = made()
model.set_modules_to_forward_prefetch([model.blocks[0]])
again = loss_of(model, mine)
again.backward(retain_graph=True)
again.backward()
show(numbers(model.table.weight.grad))
model = made()
model.set_reshard_after_forward(False)
loss = loss_of(model, mine)
show([type(m.weight).__name__ for m in (model.table, model.blocks[0].up, model.head)])
model.set_reshard_after_backward(False)
model.set_is_last_backward(True)
model.set_unshard_in_backward(True)
model.set_modules_to_backward_prefetch([model.blocks[1]])
loss.backward()
show([type(m.weight).__name__ for m in (model.table, model.blocks[0].up, model.head)])
model.reshard()
show(numbers(model.table.weight.grad))
attempt("a bool", lambda: model.set_reshard_after_forward(3))
pair = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
torch.manual_seed(5)
for p in pair.parameters():
    p.data = torch.randn_like(p)
fully_shard([pair[0], pair[2]], mesh=mesh)
fully_shard(pair, mesh=mesh)
pair(torch.ones(1, 3)).sum().backward()
show([(p.placements, numbers(p), numbers(p.grad)) for p in pair.parameters()])
show(type(pair[:2]).__name__)

# states
model = made()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loss_of(model, mine).backward()
optimizer.step()
model(mine)
show({k: (type(v).__name__, tuple(v.shape)) for k, v in model.state_dict().items()})
state = {k: v.clone() for k, v in model.state_dict().items()}
full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=False))
show({k: (type(v).__name__, numbers(v)) for k, v in full.items()})
other = made()
show(other.load_state_dict(state))
show(all(torch.equal(a.full_tensor(), b.full_tensor()) for a, b in zip(model.parameters(), other.parameters())))
other = made()
show(set_model_state_dict(other, full, options=StateDictOptions(full_state_dict=True)))
show(all(torch.equal(a.full_tensor(), b.full_tensor()) for a, b in zip(model.parameters(), other.parameters())))
with_optimizer = torch.optim.Adam(other.parameters(), lr=0.01)
saved = get_optimizer_state_dict(model, optimizer)
show({k: {e: (type(x).__name__, numbers(x)) for e, x in s.items()} for k, s in list(saved["state"].items())[:2]})
set_optimizer_state_dict(other, with_optimizer, saved)
for m, o in ((model, optimizer), (other, with_optimizer)):
    o.zero_grad()
    loss_of(m, mine).backward()
    o.step()
show(all(torch.allclose(a.full_tensor(), b.full_tensor()) for a, b in zip(model.parameters(), other.parameters())))
folders = [tempfile.mkdtemp()]
dist.broadcast_object_list(folders)
checkpoint.save({"model": model.state_dict(), "step": 3}, checkpoint_id=folders[0])
with torch.no_grad():
    for p in other.parameters():
        p.zero_()
loaded = {"model": other.state_dict(), "step": 0}
checkpoint.load(loaded, checkpoint_id=folders[0])
other.load_state_dict(loaded["model"])
show(loaded["step"], all(torch.equal(a.full_tensor(), b.full_tensor()) for a, b in zip(model.parameters(), other.parameters())))
about = checkpoint.FileSystemReader(folders[0]).read_metadata()
show({k: (tuple(x.size), [(tuple(c.offsets), tuple(c.sizes)) for c in x.chunks]) for k, x in about.state_dict_metadata.items() if hasattr(x, "size")})
dist.barrier()

# a model that is made without memory
with torch.device("meta"):
    empty = Model()
for block in empty.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(empty, mesh=mesh)
show({p.device.type for p in empty.parameters()})
empty.to_empty(device="cpu")
empty.head.weight = empty.table.weight
show(empty.load_state_dict(model.state_dict()), numbers(empty(tokens)) == numbers(model(tokens)))

# replicas of shards
grid = init_device_mesh("cpu", (1, world), mesh_dim_names=("replicate", "shard"))
net = nn.Linear(3, 4)
with torch.no_grad():
    net.weight.fill_(0.5)
    net.bias.fill_(1.0)
fully_shard(net, mesh=grid)
net(torch.ones(1, 3) * (rank + 1)).sum().backward()
show(net.weight.placements, numbers(net.weight.grad), net.weight.device_mesh.mesh_dim_names)
grid = init_device_mesh("cpu", (world, 1), mesh_dim_names=("replicate", "shard"))
net = nn.Linear(3, 4)
fully_shard(net, mesh=grid)
net.set_requires_all_reduce(False)
net(torch.ones(1, 3) * (rank + 1)).sum().backward()
show(net.weight.grad is None)
net.set_requires_all_reduce(True)
net(torch.ones(1, 3) * (rank + 1)).sum().backward()
show(net.weight.placements, numbers(net.weight.grad))

# refusals
attempt("list", lambda: fully_shard(nn.ModuleList([nn.Linear(2, 2)]), mesh=mesh))
attempt("twice", lambda: fully_shard(model, mesh=mesh))
attempt("copy", lambda: copy.deepcopy(model))
attempt("scalar", lambda: fully_shard(nn.ParameterList([nn.Parameter(torch.tensor(1.0))]), mesh=mesh))
attempt("uneven", lambda: fully_shard(nn.Linear(3, 3), mesh=mesh, shard_placement_fn=lambda p: Shard(p.dim() - 1) if p.dim() > 1 else None))
attempt("factor", lambda: fully_shard(nn.Linear(3, 3), mesh=mesh, reshard_after_forward=3))
attempt("prefetch", lambda: model.set_modules_to_forward_prefetch([nn.Linear(2, 2)]))
attempt("method", lambda: register_fsdp_forward_method(model, "nothing"))

dist.destroy_process_group()
