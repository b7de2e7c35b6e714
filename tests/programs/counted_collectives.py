"""Which collectives a program makes: CommDebugMode."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
say = print if dist.get_rank() == 0 else lambda *_: None


def counted(name, function):
    with CommDebugMode() as mode:
        function()
    say(name, sorted((str(operator), n) for operator, n in mode.get_comm_counts().items()), mode.get_total_counts())


x = distribute_tensor(torch.arange(16.0).reshape(4, 4), mesh, [Shard(0)])
terms = DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
counted("gather", x.full_tensor)
counted("twice", lambda: [x.redistribute(mesh, [Replicate()]) for _ in range(2)])
counted("sum", lambda: terms.redistribute(mesh, [Replicate()]))
counted("sum of pieces", lambda: terms.redistribute(mesh, [Shard(0)]))
counted("nothing", lambda: x + x)
counted("reduction", lambda: x.sum().full_tensor())
counted("whole", lambda: distribute_tensor(torch.ones(4), mesh, [Replicate()]))
counted("pieces", lambda: distribute_tensor(torch.ones(4), mesh, [Shard(0)]))
counted("all_reduce", lambda: dist.all_reduce(torch.ones(2)))
counted("all_gather", lambda: dist.all_gather([torch.ones(2), torch.ones(2)], torch.ones(2)))
counted("functional", lambda: (functional.all_reduce(torch.ones(2), "sum", mesh) + 1, functional.all_gather_tensor(torch.ones(2), 0, mesh) + 1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


net = parallelize_module(Net(), mesh, {"a": ColwiseParallel(), "b": RowwiseParallel()})
mode = CommDebugMode()
for _ in range(2):  # a block begins with nothing counted
    with mode:
        net(torch.ones(3, 4)).sum().backward()
say(mode.get_total_counts(), mode.get_comm_counts()[torch.ops.c10d_functional.all_reduce], mode.get_comm_counts()[torch.ops.c10d_functional.broadcast])
say(mode.get_sharding_info())
say({name: list(parameters) for name, parameters in mode.get_parameter_info().items()})
say(mode.generate_comm_debug_tracing_table(noise_level=0))
with tempfile.TemporaryDirectory() as folder:
    mode.log_comm_debug_tracing_table_to_file(os.path.join(folder, "table"), noise_level=0)
    with open(os.path.join(folder, "table")) as file:
        say(file.read())
dist.destroy_process_group()
