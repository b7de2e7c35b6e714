"""FullyShardedDataParallel over the two processes that torchrun started; rank 0 prints. The same under torch and torchlike."""
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import BackwardPrefetch, CPUOffload, FullOptimStateDictConfig, FullStateDictConfig, MixedPrecision, OptimStateKeyType, ShardingStrategy, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    always_wrap_policy,
    enable_wrap,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
HERE = torch.device("cpu")


def show(*values):
    if rank == 0:
        print(*values, flush=True)


def numbers(t):
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
        self.head = nn.Linear(n, 11)
        self.register_buffer("scale", torch.ones(1) * 2)

    def forward(self, tokens):
        x = self.table(tokens) * self.scale
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def made(wrapped=True, seed=0, **options):
    torch.manual_seed(seed)
    return FSDP(Model(), **{"auto_wrap_policy": ModuleWrapPolicy({Block}), "device_id": HERE, **options}) if wrapped else Model()


def loss_of(model, batch):
    return nn.functional.cross_entropy(model(batch).float().view(-1, 11), batch.roll(1, 1).reshape(-1))


def whole(model):
    with FSDP.summon_full_params(model):
        return {n: numbers(p) for n, p in model.named_parameters()}


tokens = torch.randint(0, 11, (4, 6), generator=torch.Generator().manual_seed(1))
mine = tokens[rank * 2:rank * 2 + 2]
for own in (False, True):
    model = made(use_orig_params=own)
    if not own:
        show(model)
    show([(n, tuple(p.shape), p.requires_grad) for n, p in model.named_parameters()], [n for n, _ in model.named_buffers()])
    show(type(model.module).__name__, model.check_is_root(), len(FSDP.fsdp_modules(model)), len(FSDP.fsdp_modules(model, root_only=True)), tuple(model.scale.shape))
    loss_of(model, mine).backward()
    show([(n, None if p.grad is None else (tuple(p.grad.shape), numbers(p.grad))) for n, p in model.named_parameters()])
    with FSDP.summon_full_params(model):
        show([(n, type(p).__name__, tuple(p.shape), numbers(p)) for n, p in model.named_parameters()])
        model.head.weight.data.add_(1)
    show(whole(model)["head.weight"])
    with FSDP.summon_full_params(model, writeback=False):
        model.head.weight.data.add_(1)
    show(whole(model)["head.weight"])
    if own:
        with FSDP.summon_full_params(model, with_grads=True):
            show([numbers(p.grad) for p in model.parameters()])

    # training is that of one process with the whole batch
    for options in ({}, {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP}, {"sharding_strategy": ShardingStrategy.NO_SHARD}):
        model, alone = made(use_orig_params=own, **options), made(wrapped=False)
        optimizer, reference = (torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, alone))
        for step in range(3):
            loss = loss_of(model, mine)
            loss.backward()
            total = model.clip_grad_norm_(0.5)
            optimizer.step()
            optimizer.zero_grad()
            loss_of(alone, tokens).backward()
            expected = nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
            reference.step()
            reference.zero_grad()
            show(step, numbers(loss), numbers(total), numbers(expected))
        state = model.state_dict()
        show({k: (tuple(v.shape), numbers(v)) for k, v in state.items()})
        show(list(state) == list(alone.state_dict()), all(torch.allclose(state[k], v, atol=1e-4) for k, v in alone.state_dict().items()))

    # gradients that add up before they are reduced
    model = made(use_orig_params=own)
    with model.no_sync():
        loss_of(model, mine).backward()
    loss_of(model, mine.flip(0)).backward()
    show([numbers(p.grad) for p in model.parameters() if p.grad is not None])

    # states
    model = made(use_orig_params=own)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_of(model, mine).backward()
    optimizer.step()
    optimizer.zero_grad()
    settings = FSDP.get_state_dict_type(model)
    show(settings)
    state = model.state_dict()
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
        show(list(model.state_dict()))
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        cut = model.state_dict()
        show([(k, tuple(v.shape)) for k, v in cut.items()])
    other = made(use_orig_params=own, seed=9)
    show(other.load_state_dict(state), whole(other) == whole(model))
    other = made(use_orig_params=own, seed=9)
    with FSDP.state_dict_type(other, StateDictType.SHARDED_STATE_DICT):
        show(other.load_state_dict(cut), whole(other) == whole(model))
    attempt("strict", lambda other=other: other.load_state_dict({"head.weight": torch.zeros(11, 5)}))
    show(other.load_state_dict({"nothing": torch.zeros(1)}, strict=False).unexpected_keys)
    other.load_state_dict(state)
    saved = FSDP.optim_state_dict(model, optimizer)
    # torch on the CPU loses the states of parameters with their own names: it gathers zeros
    show({n: {k: (tuple(x.shape), None if own else numbers(x)) for k, x in sorted(saved["state"][n].items())} for n in sorted(saved["state"])})
    show([sorted(group["params"]) for group in saved["param_groups"]])
    again = torch.optim.Adam(other.parameters(), lr=0.01)
    again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, saved))
    for m, o in ((model, optimizer), (other, again)):
        loss_of(m, mine).backward()
        o.step()
    show(own or whole(model) == whole(other))
    full = FSDP.full_optim_state_dict(model, optimizer)
    show(sorted(full["state"]) if rank == 0 else None)
    again.load_state_dict(FSDP.scatter_full_optim_state_dict(full if rank == 0 else None, other, optim=again))
    attempt("sharded", lambda model=model, optimizer=optimizer, other=other, again=again: sorted(FSDP.flatten_sharded_optim_state_dict(
        FSDP.sharded_optim_state_dict(model, optimizer), other, again)["state"]))
    full = FSDP.full_optim_state_dict(model, optimizer, rank0_only=False)
    again.load_state_dict(FSDP.shard_full_optim_state_dict(full, other, optim=again))
    loss_of(other, mine).backward()
    again.step()
    show(own or whole(other)["head.weight"])
    plain = made(wrapped=False)
    if rank == 0:
        by_number = FSDP.rekey_optim_state_dict(full, OptimStateKeyType.PARAM_ID, plain)
        show(sorted(by_number["state"]), [g["params"] for g in by_number["param_groups"]])
        torch.optim.Adam(plain.parameters()).load_state_dict(by_number)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig(rank0_only=True)):
        only = FSDP.optim_state_dict(model, optimizer)
        show(sorted(only.get("state", ()))[:2])

# settings
for options in ({"mixed_precision": MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16)}, {"mixed_precision": MixedPrecision(reduce_dtype=torch.float64)},
                {"cpu_offload": CPUOffload(False), "use_orig_params": True}, {"backward_prefetch": BackwardPrefetch.BACKWARD_POST},
                {"forward_prefetch": True, "limit_all_gathers": False, "auto_wrap_policy": None}):
    model = made(**options)
    out = model(mine)
    out.float().pow(2).mean().backward()
    p = next(p for p in model.parameters() if p.grad is not None)
    show(out.dtype, p.dtype, p.grad.dtype, model.scale.dtype, numbers(p.grad) if "mixed_precision" not in options else "")
model = FSDP(Model(), device_id=HERE, ignored_states=[Model().table], use_orig_params=True)
kept = Model()
model = FSDP(kept, device_id=HERE, ignored_modules=[kept.head], use_orig_params=True)
show([(n, tuple(p.shape)) for n, p in model.named_parameters() if "head" in n])
kept = Model()
for p in kept.blocks.parameters():
    p.requires_grad_(False)
model = FSDP(kept, device_id=HERE, use_orig_params=True)
loss_of(model, mine).backward()
show([(n, p.grad is None) for n, p in model.named_parameters()])
policies = [functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}), functools.partial(size_based_auto_wrap_policy, min_num_params=60),
            functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Linear)), always_wrap_policy,
            CustomPolicy(lambda m: {"sharding_strategy": ShardingStrategy.NO_SHARD} if isinstance(m, nn.Embedding) else isinstance(m, Block))]
for policy in policies:
    torch.manual_seed(0)
    model = FSDP(Model(), auto_wrap_policy=policy, device_id=HERE, use_orig_params=True)
    show([n for n, m in model.named_modules() if isinstance(m, FSDP)])
    loss_of(model, mine).backward()
    show(numbers(model.clip_grad_norm_(1.0)))
with enable_wrap(wrapper_cls=FSDP, device_id=HERE):
    show(type(wrap(nn.Linear(2, 2))).__name__)
show(type(wrap(nn.Linear(2, 2))).__name__)
grid = init_device_mesh("cpu", (1, world), mesh_dim_names=("replicate", "shard"))
model = made(device_mesh=grid, sharding_strategy=ShardingStrategy.HYBRID_SHARD)
loss_of(model, mine).backward()
show([(tuple(p.shape), numbers(p.grad)) for p in model.parameters()])
model = made()
model.apply(lambda m: nn.init.constant_(m.bias, 0.25) if isinstance(m, nn.Linear) else None)
show(whole(model)["blocks.0.up.bias"])


def filled(module):
    module.to_empty(device=HERE, recurse=False)
    for p in module.parameters(recurse=False):
        nn.init.constant_(p, 0.5)


with torch.device("meta"):
    empty = Model()
model = FSDP(empty, device_id=HERE, auto_wrap_policy=ModuleWrapPolicy({Block}), param_init_fn=filled)
show(whole(model))

# scaled losses: one rank's overflow skips the step of all
model = made()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = ShardedGradScaler(device="cpu", init_scale=8.0, growth_interval=1)
before = whole(model)
for factor in (float("inf") if rank == 1 else 1.0, 1.0):
    optimizer.zero_grad()
    scaler.scale(loss_of(model, mine)).backward()
    if factor != 1.0:
        next(model.parameters()).grad.mul_(factor)
    scaler.step(optimizer)
    scaler.update()
    show(scaler.get_scale(), whole(model) == before)

attempt("inner clip", lambda: model.blocks[0].clip_grad_norm_(1.0))
attempt("inner no_sync", lambda: model.blocks[0].no_sync().__enter__())
attempt("hybrid", lambda: FSDP(nn.Linear(2, 2), device_id=HERE, sharding_strategy=ShardingStrategy.HYBRID_SHARD))
attempt("twice", lambda: FSDP.summon_full_params(model, rank0_only=True).__enter__())
attempt("both", lambda: FSDP(nn.Linear(2, 2), ignored_modules=[], ignored_states=[]))
attempt("type", lambda: FSDP.set_state_dict_type(model, StateDictType.FULL_STATE_DICT, FullOptimStateDictConfig()))
attempt("dtypes", lambda: FSDP(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()), device_id=HERE))
attempt("policy", lambda: FSDP(Model(), auto_wrap_policy=CustomPolicy(lambda m: 3), device_id=HERE))
dist.destroy_process_group()
