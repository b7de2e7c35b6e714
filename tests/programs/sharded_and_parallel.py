"""fully_shard of tensor parallel layers, over the four processes that torchrun started; rank 0 prints. The same under torch and torchlike."""

import torch
import torch.distributed as dist
from shown import show
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import _StridedShard

dist.init_process_group("gloo")
rank = dist.get_rank()
grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))


def numbers(t):
    if isinstance(t, DTensor):
        t = t.full_tensor()
    return ["%.3f" % (round(x, 3) + 0.0) for x in t.detach().double().flatten().tolist()[:6]]


def made():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))


def both():
    model = parallelize_module(made(), grid["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return fully_shard(model, mesh=grid["dp"])


show(grid["dp"].size(), grid["tp"].size(), [dist.get_process_group_ranks(grid[n].get_group()) for n in ("dp", "tp")])
model, alone = both(), made()
show([(n, p.placements, tuple(p.shape), tuple(p.to_local().shape), numbers(p)) for n, p in model.named_parameters()])
data = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
mine = data[grid["dp"].get_local_rank() * 2:][:2]
optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, alone)]
for _ in range(3):
    out = model(mine)
    out.pow(2).mean().backward()
    alone(data).pow(2).mean().backward()
    show([(p.grad.placements, numbers(p.grad), numbers(q.grad)) for p, q in zip(model.parameters(), alone.parameters())])
    for o in optimizers:
        o.step()
        o.zero_grad()
show([numbers(p) for p in model.parameters()])
show(all(torch.allclose(p.full_tensor(), q, atol=1e-4) for p, q in zip(model.parameters(), alone.parameters())))
show([(k, v.placements) for k, v in sorted(optimizers[0].state[next(iter(model.parameters()))].items()) if isinstance(v, DTensor)])
other = both()
other.load_state_dict(model.state_dict())
show(all(torch.equal(p.full_tensor(), q.full_tensor()) for p, q in zip(model.parameters(), other.parameters())))

# tensors on both dimensions
t = torch.arange(48.0).reshape(8, 6)
for places in ((Shard(0), Shard(0)), (Shard(0), Shard(1)), (Replicate(), Shard(0)), (Shard(1), Replicate()), (Shard(1), Shard(1))):
    d = distribute_tensor(t, grid, places)
    show(d.placements, d.to_local().tolist()[0], [numbers(d.redistribute(placements=q)) for q in ((Shard(0), Replicate()), (Replicate(), Shard(0)), (Shard(1), Shard(0)))])
    show(numbers(d.sum(0)), numbers(d @ distribute_tensor(t.t().contiguous(), grid, (Replicate(), Shard(1)))), numbers(d.norm()))
strided = DTensor.from_local(torch.arange(2.0) + 10 * rank, grid, (_StridedShard(0, split_factor=2), Shard(0)))
show(strided.placements, strided.shape, strided.full_tensor().tolist(), (strided * 2 + 1).full_tensor().tolist(), strided.sum().full_tensor())
dist.destroy_process_group()
