"""ZeroRedundancyOptimizer; rank 0 prints what both ranks have. The same under torch and torchlike."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
RANK, LAST = dist.get_rank(), dist.get_world_size() - 1


def show(*what):
    seen = [None, None][:dist.get_world_size()]
    dist.all_gather_object(seen, repr(what))
    if RANK == 0:
        print(*seen, sep="\n")


def rounded(x):
    if isinstance(x, torch.Tensor):
        return rounded(x.tolist())
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    return [rounded(v) for v in x] if isinstance(x, list) else round(x, 4) if isinstance(x, float) else x


def refused(call, *arguments, **options):
    try:
        return type(call(*arguments, **options)).__name__
    except Exception as error:
        return type(error).__name__, str(error)


def made(kind, by_group=False, **options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    rest = net[2].parameters()
    params = [{"params": list(net[0].parameters()), "lr": 0.05}, {"params": list(rest)}] if by_group else net.parameters()
    return DistributedDataParallel(net), ZeroRedundancyOptimizer(params, kind, **options)


def trained(net, optimizer, steps=2, closure=False):
    def loss():
        optimizer.zero_grad()
        out = net(torch.arange(6.0).view(2, 3) / 6 + RANK).pow(2).mean()
        out.backward()
        return out
    for _ in range(steps):
        if closure:
            show(rounded(optimizer.step(loss).item()))
        else:
            loss()
            optimizer.step()
    return rounded([p.detach() for p in net.parameters()])


for kind, options in ((torch.optim.Adam, {"lr": 0.1}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "parameters_as_bucket_view": True})):
    net, optimizer = made(kind, by_group=kind is torch.optim.Adam, **options)
    show(trained(net, optimizer), [[tuple(p.shape) for p in group["params"]] for group in optimizer.optim.param_groups])
    show(refused(optimizer.state_dict))
    optimizer.consolidate_state_dict(to=LAST)
    show(rounded(optimizer.state_dict()) if RANK == LAST else refused(optimizer.state_dict))
    saved = [optimizer.state_dict() if RANK == LAST else None]
    dist.broadcast_object_list(saved, src=LAST)
    other_net, other = made(kind, by_group=kind is torch.optim.Adam, **options)
    other_net.load_state_dict(net.state_dict())
    other.load_state_dict(saved[0])
    other.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"] = 0.02
    show(trained(other_net, other) == trained(net, optimizer), trained(other_net, other, closure=True))
    other.add_param_group({"params": [nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(2))], "lr": 0.5})
    for p in other.param_groups[-1]["params"]:
        p.grad = torch.ones_like(p)
    other.step()
    show(rounded([p.detach() for p in other.param_groups[-1]["params"]]), [[tuple(p.shape) for p in group["params"]] for group in other.optim.param_groups])

# processes of which some have more inputs
net, optimizer = made(torch.optim.SGD, lr=0.1)
with Join([net, optimizer]):
    trained(net, optimizer, 2 + RANK)
show(rounded([p.detach() for p in net.parameters()]), optimizer.join_device, optimizer.join_process_group is dist.group.WORLD)

for params in (torch.ones(2), 3, [], [3], [{"lr": 1}], [torch.sparse_coo_tensor(size=(2, 3))],
               [torch.ones(2), torch.sparse_coo_tensor(size=(2, 3))], [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, dtype=torch.float64))]):
    show(refused(ZeroRedundancyOptimizer, params, torch.optim.SGD, lr=0.1))
dist.destroy_process_group()
