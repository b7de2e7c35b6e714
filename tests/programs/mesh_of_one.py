"""Meshes and DTensors of one process. The same under torch and torchlike."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.overrides
from torch.distributed import nn
from torch.distributed import tensor as distributed_tensor
from torch.distributed._tensor import api as older_api
from torch.distributed._tensor import device_mesh as older_mesh
from torch.distributed._tensor import placement_types as older_placements
from torch.distributed._tensor.experimental import implicit_replication
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

FILE = os.path.join(tempfile.mkdtemp(), "meet")


def show(f, *args, **kwargs):
    try:
        print(f.__name__, f(*args, **kwargs))
    except Exception as error:
        print(f.__name__, type(error).__name__, str(error)[:70] if type(error) is not RuntimeError else "")

dist.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + FILE)
mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
print(mesh, mesh.mesh.tolist(), mesh.shape, mesh.ndim, mesh.size(), mesh.size(0), mesh.device_type, mesh.get_rank())
print(mesh["dp"], mesh["dp"].get_local_rank(), mesh.get_local_rank("tp"), mesh["dp", "tp"], mesh.get_coordinate())
print(mesh[["dp", "tp"]] == mesh["dp", "tp"], mesh[["tp"]].mesh_dim_names, mesh[["tp"]] == mesh["tp"], hash(mesh[["tp"]]) == hash(mesh["tp"]))
try:
    init_device_mesh("cuda:0", (1, 1))
except RuntimeError as error:
    print(error.args)
print(mesh.mesh_dim_names, len(mesh.get_all_groups()), mesh.get_group("dp").size())
show(mesh.__getitem__, "x")
show(mesh.get_group)
show(init_device_mesh, "cpu", (2,))
show(init_device_mesh, "cpu", (1,), mesh_dim_names=("a", "b"))
line = init_device_mesh("cpu", (1,))
print(line, line == DeviceMesh("cpu", [0]), {line: 1}[DeviceMesh("cpu", [0])])
print(Shard(0), Replicate(), Partial(), Partial("avg"), Shard(1) == Shard(1), Shard(0) == Replicate(), [Shard(1)])
print(Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_replicate(), Partial().is_partial())
t = torch.arange(6.0).reshape(2, 3)
d = distribute_tensor(t, line, [Shard(0)])
print(d, d.placements, d.device_mesh, d.shape, d.dtype)
whole = d.redistribute(placements=[Replicate()])
for x in (d + 1, d * 2, whole.sum(), whole @ whole.t(), whole.relu(), d.abs().sqrt(), torch.cat([whole, whole])):
    print(type(x), x.placements, x.full_tensor(), type(x.to_local()))
show(lambda: d + t)
with implicit_replication():
    print(whole + t)
show(lambda: d + t)
p = torch.nn.Parameter(distribute_tensor(t, line))
print(type(p), isinstance(p, DTensor), isinstance(p, torch.nn.Parameter))
(p * 2).sum().backward()
print(type(p.grad), p.grad.placements, p.grad.full_tensor())
torch.optim.SGD([p], lr=0.1).step()
print(p.full_tensor().tolist(), t.tolist())
x = t.clone().requires_grad_()
(DTensor.from_local(x, line, [Shard(1)]).to_local() ** 2).sum().backward()
print(x.grad)
show(distribute_tensor, t, line, [Shard(5)])
show(distribute_tensor, t, line, [Shard(0), Shard(1)])
print(distribute_tensor(t, mesh, [Shard(-1), Replicate()]).placements)
x, o = torch.arange(3.0, requires_grad=True), torch.zeros(3)
for y in (nn.all_reduce(x), nn.broadcast(x, 0), nn.scatter([x]), nn.reduce(x, 0), *nn.all_gather(x), nn.reduce_scatter(o, [x])):
    print(y.tolist(), y is x, torch.autograd.grad((y * y).sum(), x)[0], o)
print(type(nn.gather(x)), nn.all_to_all([torch.zeros(3)], [x])[0].tolist(), nn.all_to_all_single(o, x.detach() + 1), o)
made = []


class Factories(torch.overrides.TorchFunctionMode):
    """Which of torch's factories are called."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ in ("tensor", "arange", "zeros", "ones", "empty", "zeros_like"):
            made.append(func.__name__)
        return func(*args, **(kwargs or {}))


with Factories():
    DeviceMesh("cpu", [0]), init_device_mesh("cpu", (1,)), DeviceMesh("cpu", torch.tensor([0]))
    for make in (distributed_tensor.zeros, distributed_tensor.ones, distributed_tensor.empty):
        print(make(2, 3, device_mesh=line, placements=[Shard(0)]).shape)
print(made)
print(older_mesh.init_device_mesh is init_device_mesh, older_placements.Shard is Shard, older_api.DTensor is DTensor)
dist.destroy_process_group()
