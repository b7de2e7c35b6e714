"""Every collective in four processes; rank 0 prints what each sees. The same under torch and torchlike."""
import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed import nn as differentiable
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

WORLD = 4


def collectives(show, rank):
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.uint8, torch.complex64):
            x = (torch.arange(4) + rank * 2 + 1).to(dtype)
            show(f"{name} {dtype}", lambda x=x, name=name: (dist.all_reduce(x, op=getattr(dist.ReduceOp, name)), x.tolist(), x.dtype))
    big = torch.arange(30001.0) * (rank + 1)
    show("big", lambda: (dist.all_reduce(big), torch.equal(big, torch.arange(30001.0) * 10)))
    x = torch.arange(4.0) + rank
    show("reduce", lambda: (dist.reduce(x, 1), x if rank == 1 else None))
    y = torch.arange(4.0) + rank
    show("broadcast", lambda: (dist.broadcast(y, 2), y))
    parts = [torch.zeros(2) for _ in range(WORLD)]
    show("all_gather", lambda: (dist.all_gather(parts, torch.ones(2) * rank), parts))
    line = torch.zeros(2 * WORLD)
    show("all_gather_into_tensor", lambda: (dist.all_gather_into_tensor(line, torch.ones(2) * rank), line))
    show("gather", lambda: (dist.gather(torch.ones(2) * rank, parts if rank == 0 else None), parts if rank == 0 else None))
    one = torch.zeros(2)
    show("scatter", lambda: (dist.scatter(one, [torch.ones(2) * i for i in range(WORLD)] if rank == 1 else None, src=1), one))
    show("reduce_scatter", lambda: (dist.reduce_scatter(one, [torch.ones(2) * (i + rank) for i in range(WORLD)]), one))
    show("reduce_scatter_tensor", lambda: (dist.reduce_scatter_tensor(one, torch.arange(2.0 * WORLD) + rank, op=dist.ReduceOp.AVG), one))
    show("all_to_all", lambda: (dist.all_to_all(parts, [torch.ones(2) * (10 * rank + i) for i in range(WORLD)]), parts))
    swapped = torch.zeros(WORLD)
    show("all_to_all_single", lambda: (dist.all_to_all_single(swapped, torch.arange(float(WORLD)) + 10 * rank), swapped))
    uneven = torch.zeros(WORLD * (rank + 1))
    show("uneven", lambda: (dist.all_to_all_single(uneven, torch.arange(10.0) + 10 * rank, [rank + 1] * WORLD, [1, 2, 3, 4]), uneven))
    lists = [torch.ones(2) * rank, torch.ones(3)]
    show("coalesced", lambda: (dist.all_reduce_coalesced(lists), lists))
    show("column", lambda: (lambda t: (dist.all_reduce(t), t, t.stride()))(torch.arange(6.0).view(3, 2).t()))
    base = torch.zeros(3, 2)
    show("view", lambda: (dist.all_reduce(base[1]), dist.broadcast(base[:, 1], 0), base, base._version))
    leaf = torch.ones(2, requires_grad=True)
    show("leaf", lambda: (dist.all_reduce(leaf), leaf, leaf._version))
    work = dist.all_reduce(lists[1], async_op=True)
    show("work", lambda: (work.wait(), work.is_completed(), work.is_success(), lists[1], work.get_future().wait(), work.result()))


def objects_and_messages(show, rank):
    found = [None] * WORLD
    show("all_gather_object", lambda: (dist.all_gather_object(found, {"rank": rank, "t": torch.ones(1) * rank}), found))
    given = [rank, "x" * rank]
    show("broadcast_object_list", lambda: (dist.broadcast_object_list(given, src=1), given))
    mine = [None]
    show("scatter_object_list", lambda: (dist.scatter_object_list(mine, ["a", "b", "c", "d"] if rank == 0 else [None] * WORLD), mine))
    show("gather_object", lambda: (dist.gather_object(("r", rank), found if rank == 0 else None), found if rank == 0 else None))
    x = torch.zeros(3)
    if rank == 0:
        dist.send(torch.arange(3.0), 1)
        dist.send(torch.arange(3.0) + 5, 1, tag=7)
        dist.send_object_list(["a", {1: 2}], 1)
    if rank == 1:
        show("recv any", lambda: (dist.recv(x), x))
        show("recv by tag", lambda: (dist.recv(x, 0, tag=7), x))
        show("recv objects", lambda: (dist.recv_object_list(given, 0), given))
    right, left = (rank + 1) % WORLD, (rank - 1) % WORLD
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(3) * rank, right), dist.P2POp(dist.irecv, x, left)])
    show("ring", lambda: ([w.wait() for w in works], x))
    first, second = torch.zeros(2), torch.zeros(2)
    if rank == 2:
        for work in [dist.isend(torch.ones(2), 3), dist.isend(torch.ones(2) * 2, 3)]:  # gloo may drop a message whose work nobody holds
            work.wait()
    if rank == 3:
        asked = [dist.irecv(first, 2), dist.irecv(second, 2)]
        asked[1].wait()  # waits in another order than it asked
        asked[0].wait()
    show("asked in order", lambda: (first, second))


def groups(show, rank):
    pair = dist.new_group([0, 2])
    show("pair", lambda: (dist.get_rank(pair), dist.get_world_size(pair), dist.get_pg_count()))
    x = torch.ones(1) * rank
    show("in the pair", lambda: (dist.all_reduce(x, group=pair), dist.broadcast(x, 2, group=pair), x))
    if rank in (0, 2):
        show("ranks", lambda: (dist.get_process_group_ranks(pair), dist.get_group_rank(pair, 2), dist.get_global_rank(pair, 1)))
    mine, all_ = dist.new_subgroups(2)
    show("subgroups", lambda: (dist.get_process_group_ranks(mine), len(all_)))
    show("world", lambda: (dist.get_backend(), dist.group.WORLD.name(), dist.group.WORLD.size(), dist.group.WORLD.group_name, dist.is_initialized()))
    show("barriers", lambda: (dist.barrier(), dist.barrier(mine), dist.monitored_barrier(), dist.barrier(async_op=True).wait()))


def refusals(show, rank):
    one, parts = torch.ones(2), [torch.zeros(2)] * WORLD
    show("bad root", lambda: dist.broadcast(one, 5))
    show("to itself", lambda: dist.send(one, rank))
    show("short list", lambda: dist.all_gather([one], one))
    show("wrong shape", lambda: dist.all_gather([torch.zeros(3)] * WORLD, one))
    show("wrong dtype", lambda: dist.all_gather([torch.zeros(2, dtype=torch.int64)] * WORLD, one))
    show("not a tensor", lambda: dist.all_reduce(3))
    if rank != 0:
        show("not the root", lambda: dist.gather(one, parts, dst=0))
    show("not in the world", lambda: dist.new_group([0, 7]))
    show("twice", lambda: dist.init_process_group("gloo", rank=0, world_size=1, init_method="tcp://localhost:1"))


def meshes(show, rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    show("mesh", lambda: (mesh, mesh.get_coordinate(), mesh.get_local_rank("tp"), mesh["dp"].mesh.tolist(), mesh["tp"].mesh.tolist(), mesh.size(0)))
    show("mesh groups", lambda: [dist.get_process_group_ranks(g) for g in (mesh.get_group("dp"), mesh["tp"].get_group())])
    for placements in ([Shard(0), Replicate()], [Shard(0), Shard(1)]):
        show("part", lambda placements=placements: compute_local_shape_and_global_offset((5, 3), mesh, placements))
    tp, world = mesh.get_group("tp"), dist.group.WORLD
    one = torch.ones(1, 2) * rank
    for made in (functional.all_gather_tensor(one, 1, tp), functional.all_reduce(one, "sum", world),
                 functional.reduce_scatter_tensor(torch.arange(4.0) + rank, "sum", 0, world),
                 functional.all_to_all_single(torch.arange(4.0) + 10 * rank, None, None, world),
                 functional.permute_tensor(one[0], [1, 2, 3, 0], world)):
        show("functional", lambda made=made: functional.wait_tensor(made).tolist())


def gradients(show, rank):
    x = (torch.arange(3.0) + rank).requires_grad_()
    at = lambda r, t: t if rank == r else t * 0  # what a rank that is not the root gets is not defined
    for name, f in {
        "all_reduce": lambda: differentiable.all_reduce(x), "broadcast": lambda: differentiable.broadcast(x, 1),
        "reduce": lambda: at(2, differentiable.reduce(x, 2)), "all_gather": lambda: torch.stack(differentiable.all_gather(x)),
        "gather": lambda: torch.stack(differentiable.gather(x, 1)), "scatter": lambda: differentiable.scatter([x * i for i in range(4)], 1),
        "reduce_scatter": lambda: differentiable.reduce_scatter(torch.zeros(3), [x * i for i in range(4)]),
        "all_to_all": lambda: torch.stack(differentiable.all_to_all([torch.zeros(3) for _ in range(4)], [x * i for i in range(4)])),
    }.items():
        y = f()
        show(f"gradient of {name}", lambda y=y: (y.tolist(), torch.autograd.grad((y * y * (rank + 1)).sum(), x)[0]))


rank, seen, everything = int(os.environ["RANK"]), [], [None] * WORLD


def show(name, f):
    try:
        made = f()
    except Exception as error:
        made = type(error).__name__, str(error)[:100]
    seen.append(f"{rank} {name} {made}")


dist.init_process_group("gloo", init_method=f"file://{tempfile.gettempdir()}/meet", rank=rank, world_size=WORLD, timeout=timedelta(seconds=60))
for part in (collectives, objects_and_messages, groups, refusals, meshes, gradients):
    part(show, rank)
dist.all_gather_object(everything, seen)
if rank == 0:
    print("\n".join(line for lines in everything for line in lines))
dist.barrier()
dist.destroy_process_group()
