"""How gradients travel, and parameters that are averaged now and then, in four processes; rank 0 prints. The same under torch and torchlike."""
import copy
import pickle
import warnings
from collections import OrderedDict

import torch
import torch.distributed as dist
from shown import rounded, show
from torch import nn
from torch.distributed.algorithms import ddp_comm_hooks
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.distributed.algorithms.model_averaging import averagers, utils
from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward, _get_in_backward_optimizers
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def network(*hook, name=None):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3)))
    if name is not None:
        register_ddp_comm_hook(name, model, dist.group.WORLD)
    elif hook:
        model.register_comm_hook(*hook)
    return model


def train(model, steps=5, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        optimizer.zero_grad()
        x = torch.randn(16, 24, generator=generator)
        nn.functional.cross_entropy(model(x), x[:, :3].argmax(1)).backward()
        optimizer.step()
    return model


# gradients of low rank, of 16 bits, or not at all
for options in ({}, {"matrix_approximation_rank": 3}, {"matrix_approximation_rank": 2, "batch_tensors_with_same_shape": True, "orthogonalization_epsilon": 1e-8},
                {"use_error_feedback": False, "warm_start": False, "random_seed": 3}, {"min_compression_rate": 12}):
    state = PowerSGDState(None, start_powerSGD_iter=2, compression_stats_logging_frequency=1, **options)
    model = train(network(state, powerSGD_hook))
    show(options, rounded(model.parameters(), 3), state.iter, state.compression_stats(), sorted(state.error_dict), [m.shape for m in state.q_memory_dict.values()])
again = pickle.loads(pickle.dumps(state))
show(again.process_group is dist.group.WORLD, again.iter, again.rng.randint(1000), state.rng.randint(1000))
for name in ("ALLREDUCE", "NOOP", "FP16_COMPRESS", "POWER_SGD"):
    show(name, rounded(train(network(name=DDPCommHookType[name]), 3).parameters(), 3))
show([m.name for m in DDPCommHookType if "BATCHED" in m.name], ddp_comm_hooks.default.__name__.split(".")[-1])
try:
    PowerSGDState(None, start_powerSGD_iter=1)
except ValueError as error:
    show(str(error)[:40])

# parameters that are averaged
halves = dist.new_subgroups(2)[0]
for averager in (averagers.PeriodicModelAverager(3, warmup_steps=1), HierarchicalModelAverager(OrderedDict([(1, 2), (3, 4)]), warmup_steps=1)):
    model = network(PostLocalSGDState(None, halves, 2), post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), averager)
    for steps in (1, 2, 3):
        show(type(averager).__name__, averager.step, rounded(train(model, steps, optimizer).parameters(), 3))
    saved = copy.deepcopy(optimizer.state_dict())
    show(sorted(saved), saved["step"], len(optimizer.state), repr(optimizer)[:5])
    averager.step = 0
    optimizer.load_state_dict(saved)
    show(averager.step)
    del saved["step"]
    optimizer.load_state_dict(saved)
    show(averager.step)
layer = nn.Linear(1, 1)
layer.weight.data.fill_(rank)
utils.average_parameters([layer.weight], None)
show(layer.weight.item(), len(utils.get_params_to_average(layer.parameters())))
for bad in (lambda: averagers.PeriodicModelAverager(0), lambda: averagers.PeriodicModelAverager(2, -1), lambda: HierarchicalModelAverager({}),
            lambda: HierarchicalModelAverager({2: 2, 4: 3}), lambda: HierarchicalModelAverager({0: 4}), lambda: utils.get_params_to_average([1])):
    try:
        bad()
    except (ValueError, NotImplementedError) as error:
        show(type(error).__name__, str(error))

# optimizers that step during the backward
torch.manual_seed(1)
layer = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
_apply_optimizer_in_backward(torch.optim.SGD, layer.parameters(), {"lr": 0.1})
_apply_optimizer_in_backward(torch.optim.Adam, [layer[0].bias], {"lr": 0.01})
for _ in range(2):
    layer(torch.ones(1, 3)).sum().backward()
show(rounded(layer.parameters(), 3), [p.grad for p in layer.parameters()], [type(o).__name__ for o in _get_in_backward_optimizers(layer)])

# lists of tensors that all gather
found = [[torch.zeros(2), torch.zeros(1)] for _ in range(world)]
dist.all_gather_coalesced(found, [torch.full((2,), rank + 1.0), torch.tensor([rank * 10.0])])
show(found, dist.GradBucket.__name__)
whole, part = torch.zeros(world), torch.zeros(1)
dist.all_gather_single(whole, torch.tensor([float(rank)]))
dist.reduce_scatter_single(part, whole)
show(whole, part)
for outputs in ([[torch.zeros(2)]], [[]] * world, torch.zeros(2)):
    try:
        dist.all_gather_coalesced(outputs, [torch.ones(2)])
    except (RuntimeError, TypeError) as error:
        show(type(error).__name__, error)
dist.destroy_process_group()
