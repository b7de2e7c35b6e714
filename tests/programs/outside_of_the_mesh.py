"""DTensors on a rank that is not in their mesh, and DTensorSpec. Rank 0 prints."""
import warnings

import torch
import torch.distributed as dist
import torch.distributed.tensor as tensors
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

dist.init_process_group("gloo")
outside, whole = DeviceMesh("cpu", [1]), init_device_mesh("cpu", (2,))
rank = dist.get_rank()


def shown(x):
    if isinstance(x, DTensor):
        local = x.to_local()
        return tuple(x.shape), tuple(local.shape), local.tolist(), x.placements, x.requires_grad, str(x.dtype)
    return [shown(y) for y in x] if isinstance(x, (list, tuple)) else x


def say(name, function):
    try:
        found = shown(function())
    except (RuntimeError, ValueError, AssertionError) as error:
        found = type(error).__name__, str(error)
    if rank == 0:
        print(name, found)


x = torch.arange(6.0).reshape(2, 3)
d = distribute_tensor(x, outside, [Shard(0)])
say("coordinate", lambda: (outside.get_coordinate(), whole.get_coordinate(), outside.size()))
for place in (Shard(0), Replicate(), Partial()):
    say(f"made {place}", lambda p=place: [distribute_tensor(x, outside, [p]), DTensor.from_local(x, outside, [p])])
say("gradients", lambda: DTensor.from_local(x.clone().requires_grad_(), outside, [Shard(0)]))
say("arithmetic", lambda: [d + d, d < 1, d.sum(0), d.sum(), d @ distribute_tensor(torch.ones(3, 2), outside, [Replicate()]), d.detach(), d.add_(1)])
say("moved", lambda: [d.redistribute(outside, [Replicate()]), d.full_tensor().tolist()])
say("factories", lambda: [tensors.ones(4, 2, device_mesh=outside, placements=[Shard(0)]), tensors.zeros(4, 2, device_mesh=outside, placements=[Replicate()])])
say("equal", lambda: torch.equal(d, d))
say("number", lambda: d.sum().item())
say("shown", lambda: repr(d))


def trained():
    net = distribute_module(nn.Linear(3, 2), outside)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    out = net(d)
    out.sum().backward()
    optimizer.step()
    return [out, net.weight, net.weight.grad]


say("trained", trained)
meta = TensorMeta(torch.Size([4, 3]), (3, 1), torch.float32)
spec = DTensorSpec(whole, (Shard(0),), tensor_meta=meta)
say("spec", lambda: (str(spec), str(DTensorSpec(whole, (Replicate(),))), spec.shape, spec.stride, spec.ndim, spec.num_shards, spec.dim_map, spec.num_shards_map,
                     spec.sums, spec.is_replicated(), spec.is_sharded(), spec.device_mesh is whole))
say("equal specs", lambda: (spec == DTensorSpec(whole, (Shard(0),), tensor_meta=meta), hash(spec) == hash(DTensorSpec(whole, (Shard(0),), tensor_meta=meta)),
                            spec == DTensorSpec(whole, (Shard(0),)), spec == DTensorSpec(whole, (Replicate(),), tensor_meta=meta)))
say("of a spec", lambda: [DTensor(x, spec, requires_grad=True), DTensor(x, spec, requires_grad=False)])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    say("of a spec and a leaf", lambda: DTensor(x.clone().requires_grad_(), spec, requires_grad=False))
say("warned", lambda: [str(w.message).split(" (Trig")[0] for w in caught])
say("the spec of one", lambda: (str(distribute_tensor(x, whole, [Shard(0)])._spec), distribute_tensor(x, whole, [Shard(0)])._spec.tensor_meta))
say("dim_map", lambda: (DTensorSpec.from_dim_map(whole, [-1, 0], [], tensor_meta=meta).placements, DTensorSpec.from_dim_map(whole, [-1, -1], [0]).placements))
say("no tensor", lambda: DTensorSpec(whole, (Shard(0),)).shape)
say("no tensor", lambda: spec.shallow_copy_with_tensor_meta(None))
for n in (0, 1, 4, 5, 8):
    say(f"pieces of {n}", lambda n=n: [([tuple(part.shape) for part in parts], missing) for parts, missing in (
        Shard(0)._split_tensor(torch.arange(float(n)), 4, with_padding=pad, contiguous=True) for pad in (True, False))])
dist.barrier()
dist.destroy_process_group()
