"""Training in two processes that torchrun started; rank 0 prints. The same under torch and torchlike."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from shown import rounded, show
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


show(world, {k: os.environ[k] for k in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")}, dist.is_torchelastic_launched())
x = torch.randn(64, 10, generator=torch.Generator().manual_seed(5))
data = TensorDataset(x, x[:, :3].argmax(1))

# a training loop: parameters and buffers start as rank 0's
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
sampler = DistributedSampler(data, shuffle=True)
for epoch in range(3):
    sampler.set_epoch(epoch)
    total = torch.zeros(())
    for a, b in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    show(epoch, f"{total.item():.4f}")
show(list(model.state_dict())[:2])

# gradients that accumulate before they are reduced
with model.no_sync():
    nn.functional.cross_entropy(model(x[rank * 8:rank * 8 + 8]), data.tensors[1][:8]).backward()
nn.functional.cross_entropy(model(x[rank * 8 + 32:rank * 8 + 40]), data.tensors[1][:8]).backward()
show(rounded(p.grad for p in model.parameters()))


# the first backward after a forward outside of no_sync reduces, wherever it stands
line, ones = DistributedDataParallel(nn.Linear(2, 1, bias=False)), torch.full((1, 2), rank + 1.0)


def gradient(*results, **kwargs):
    line.zero_grad()
    sum(results).backward(**kwargs)
    return line.module.weight.grad.tolist()


with line.no_sync():
    inside = line(ones).sum()
show("forward inside", gradient(inside, retain_graph=True))
line.reducer.prepare_for_backward([])
show("prepared", gradient(inside))
outside = line(ones).sum()
with line.no_sync():
    show("backward inside", gradient(outside, retain_graph=True))
show("second backward", gradient(outside))
first, second = line(ones).sum(), line(2 * ones).sum()
show("two forwards", gradient(first), gradient(second))
outside = line(ones).sum()
with line.no_sync():
    inside = line(ones).sum()
show("one of two", gradient(outside, inside))


for options in ({"find_unused_paramters": True}, {"process_group": dist.group.WORLD, "device_mesh": 1}):
    try:
        DistributedDataParallel(nn.Linear(2, 2), **options)
    except (TypeError, RuntimeError) as error:
        show(type(error).__name__)


class Either(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, first):
        return self.a(x) if first else self.b(x)


for find in (False, True):
    model = DistributedDataParallel(Either(), find_unused_parameters=find)
    model(torch.ones(1, 2), find and rank == 0).sum().backward()
    show([None if p.grad is None else p.grad.tolist() for p in model.parameters()] if find else "")
    try:
        model(torch.ones(1, 2), False)
        show("goes on")
    except RuntimeError as error:
        show(str(error)[:79])


def doubled(state, bucket):
    assert bucket.is_last() and bucket.index() == 0 and [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
    return dist.all_reduce(bucket.buffer().div_(world), async_op=True).get_future().then(lambda f: f.value()[0] * 2)


for hook in (doubled, default_hooks.allreduce_hook, default_hooks.fp16_compress_hook, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 2))
    model.register_comm_hook(None, hook)
    model(torch.ones(1, 2) * (rank + 1.001)).sum().backward()
    show(rounded(p.grad for p in model.parameters()))

# a process that has more batches than the other
for options in ({}, {"divide_by_initial_world_size": False}):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
    optimizer, generator = torch.optim.SGD(model.parameters(), lr=0.1), torch.Generator().manual_seed(rank)
    with model.join(**options):
        for _ in range(3 + 2 * rank):
            optimizer.zero_grad()
            model(torch.randn(5, 3, generator=generator)).pow(2).sum().backward()
            optimizer.step()
    show(rounded(t.float() for t in model.state_dict().values()))
try:
    with Join([model], throw_on_early_termination=True):
        for _ in range(3 + 2 * rank):
            model(torch.ones(5, 3)).sum().backward()
except RuntimeError as error:
    show(error)
# a checkpoint that both processes save and load
with tempfile.TemporaryDirectory() as folder:
    folders = [folder]
    dist.broadcast_object_list(folders)
    state = {"model": model.state_dict(), "step": 7}
    checkpoint.save(state, checkpoint_id=folders[0] + "/saved")
    with torch.no_grad():
        model.module[0].weight.zero_()
    state["step"] = 0
    checkpoint.load(state, checkpoint_id=folders[0] + "/saved")
    show(rounded([model.module[0].weight]), state["step"], sorted(os.listdir(folders[0] + "/saved"))[0])
    try:
        checkpoint.save(state, checkpoint_id="/proc/no/folder")
    except checkpoint.api.CheckpointException as error:
        show(type(error).__name__)
    dist.barrier()
dist.destroy_process_group()
