"""torch.distributed in a world of one process. The same under torch and torchlike."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.constants import default_pg_timeout
from torch.nn.parallel import DistributedDataParallel as DDP

FILE = os.path.join(tempfile.mkdtemp(), "meet")


def show(f, *args, **kwargs):
    try:
        print(f.__name__, f(*args, **kwargs))
    except Exception as error:
        print(f.__name__, type(error).__name__, str(error) if MESSAGES else "")

x, y = torch.tensor([1.0, 2.0]), torch.zeros(2)
MESSAGES = True
show(dist.is_initialized)
show(dist.get_rank)
show(dist.get_world_size)
show(dist.get_backend)
show(dist.barrier)
show(dist.destroy_process_group)
show(dist.all_reduce, x)
show(dist.init_process_group, "gloo")
show(dist.init_process_group, "gloo", rank=0, world_size=1, init_method="bogus://")
print(dist.group.WORLD)
dist.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + FILE)
show(dist.init_process_group, "gloo", rank=0, world_size=1, init_method="file://" + FILE)
print(dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_initialized(), dist.group.WORLD is None)
print(dist.get_backend() == "gloo", dist.get_backend() == dist.Backend.GLOO)
for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
    show(dist.all_reduce, x, op=op)
print(x.tolist(), dist.all_reduce(x, async_op=True).wait())
show(dist.all_gather, [y], x)
print(y.tolist())
gathered = torch.zeros(2)
dist.all_gather_into_tensor(gathered, x)
print(gathered.tolist())
scattered = torch.zeros(2)
dist.scatter(scattered, [x])
print(scattered.tolist())
part = torch.zeros(2)
dist.reduce_scatter(part, [x])
print(part.tolist())
swapped = torch.zeros(2)
dist.all_to_all_single(swapped, x)
print(swapped.tolist())
show(dist.broadcast, x, 0)
show(dist.reduce, x, 0)
show(dist.gather, x)
objects = [None]
dist.all_gather_object(objects, {"a": 1})
print(objects)
show(dist.broadcast_object_list, objects)
show(dist.get_rank, dist.new_group([0]))
show(dist.new_group, [5])
show(dist.new_group, [0, 1])
torch.manual_seed(0)
model = DDP(torch.nn.Linear(2, 2))
print(model, list(model.state_dict()), model.require_backward_grad_sync)
model(x).sum().backward()
print(model.module.weight.grad.tolist())
with model.no_sync():
    model(x).sum().backward()
    print(model.module.weight.grad.tolist(), model.require_backward_grad_sync)
show(DDP, torch.nn.ReLU())
show(dist.get_process_group_ranks, None)
show(dist.get_node_local_rank)
show(dist.get_node_local_rank, 0)
op = dist.ReduceOp(dist.ReduceOp.SUM)
print(op == dist.ReduceOp.SUM, op == dist.ReduceOp.AVG, repr(dist.ReduceOp.MAX), int(dist.ReduceOp.MAX), op.op, dist.ReduceOp.RedOpType(3),
      isinstance(dist.ReduceOp.SUM, dist.ReduceOp), isinstance(op, dist.ReduceOp), isinstance(op, dist.ReduceOp.RedOpType))
print(default_pg_timeout)
show(dist.all_reduce, 3)
MESSAGES = False
show(dist.broadcast, x, 1)
show(dist.all_gather, [y, y], x)
show(dist.all_gather_into_tensor, torch.zeros(3), x)
dist.destroy_process_group()
print(dist.is_initialized())
