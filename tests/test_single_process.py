"""torch.distributed in a world of one, hub, and the marks of jit and fx: the same program on torch and on torchlike."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

DISTRIBUTED = """
    import torch
    import torch.distributed as dist

    def show(f, *args, **kwargs):
        try:
            print(f.__name__, f(*args, **kwargs))
        except Exception as error:
            print(f.__name__, type(error).__name__, str(error) if MESSAGES else "")

    x, y = torch.tensor([1.0, 2.0]), torch.zeros(2)
    MESSAGES = True
    show(dist.is_initialized); show(dist.get_rank); show(dist.get_world_size)
    show(dist.get_backend); show(dist.barrier); show(dist.destroy_process_group)
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
    show(dist.all_gather, [y], x); print(y.tolist())
    gathered = torch.zeros(2); dist.all_gather_into_tensor(gathered, x); print(gathered.tolist())
    scattered = torch.zeros(2); dist.scatter(scattered, [x]); print(scattered.tolist())
    part = torch.zeros(2); dist.reduce_scatter(part, [x]); print(part.tolist())
    swapped = torch.zeros(2); dist.all_to_all_single(swapped, x); print(swapped.tolist())
    show(dist.broadcast, x, 0); show(dist.reduce, x, 0); show(dist.gather, x)
    objects = [None]; dist.all_gather_object(objects, {"a": 1}); print(objects)
    show(dist.broadcast_object_list, objects)
    show(dist.get_rank, dist.new_group([0])); show(dist.new_group, [5]); show(dist.new_group, [0, 1])
    from torch.nn.parallel import DistributedDataParallel as DDP
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 2)); print(model, list(model.state_dict()), model.require_backward_grad_sync)
    model(x).sum().backward(); print(model.module.weight.grad.tolist())
    with model.no_sync():
        model(x).sum().backward(); print(model.module.weight.grad.tolist(), model.require_backward_grad_sync)
    show(DDP, torch.nn.ReLU())
    show(dist.get_process_group_ranks, None); show(dist.get_node_local_rank); show(dist.get_node_local_rank, 0)
    op = dist.ReduceOp(dist.ReduceOp.SUM)
    print(op == dist.ReduceOp.SUM, op == dist.ReduceOp.AVG, repr(dist.ReduceOp.MAX), int(dist.ReduceOp.MAX), op.op, dist.ReduceOp.RedOpType(3),
          isinstance(dist.ReduceOp.SUM, dist.ReduceOp), isinstance(op, dist.ReduceOp), isinstance(op, dist.ReduceOp.RedOpType))
    from torch.distributed.constants import default_pg_timeout; print(default_pg_timeout)
    show(dist.all_reduce, 3)
    MESSAGES = False
    show(dist.broadcast, x, 1); show(dist.all_gather, [y, y], x); show(dist.all_gather_into_tensor, torch.zeros(3), x)
    dist.destroy_process_group()
    print(dist.is_initialized())
"""

SPREAD = """
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor

    def show(f, *args, **kwargs):
        try:
            print(f.__name__, f(*args, **kwargs))
        except Exception as error:
            print(f.__name__, type(error).__name__, str(error)[:70] if type(error) is not RuntimeError else "")

    dist.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + FILE)
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    print(mesh, mesh.mesh.tolist(), mesh.shape, mesh.ndim, mesh.size(), mesh.size(0), mesh.device_type, mesh.get_rank())
    print(mesh["dp"], mesh["dp"].get_local_rank(), mesh.get_local_rank("tp"), mesh["dp", "tp"], mesh.get_coordinate())
    print(mesh.mesh_dim_names, len(mesh.get_all_groups()), mesh.get_group("dp").size())
    show(mesh.__getitem__, "x"); show(mesh.get_group); show(init_device_mesh, "cpu", (2,))
    show(init_device_mesh, "cpu", (1,), mesh_dim_names=("a", "b"))
    line = init_device_mesh("cpu", (1,)); print(line, line == DeviceMesh("cpu", [0]), {line: 1}[DeviceMesh("cpu", [0])])
    print(Shard(0), Replicate(), Partial(), Partial("avg"), Shard(1) == Shard(1), Shard(0) == Replicate(), [Shard(1)])
    print(Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_replicate(), Partial().is_partial())
    t = torch.arange(6.0).reshape(2, 3)
    d = distribute_tensor(t, line, [Shard(0)]); print(d, d.placements, d.device_mesh, d.shape, d.dtype)
    whole = d.redistribute(placements=[Replicate()])
    for x in (d + 1, d * 2, whole.sum(), whole @ whole.t(), whole.relu(), d.abs().sqrt(), torch.cat([whole, whole])):
        print(type(x), x.placements, x.full_tensor(), type(x.to_local()))
    show(lambda: d + t)
    from torch.distributed._tensor.experimental import implicit_replication
    with implicit_replication():
        print(whole + t)
    show(lambda: d + t)
    p = torch.nn.Parameter(distribute_tensor(t, line))
    print(type(p), isinstance(p, DTensor), isinstance(p, torch.nn.Parameter))
    (p * 2).sum().backward(); print(type(p.grad), p.grad.placements, p.grad.full_tensor())
    torch.optim.SGD([p], lr=0.1).step(); print(p.full_tensor().tolist(), t.tolist())
    x = t.clone().requires_grad_()
    (DTensor.from_local(x, line, [Shard(1)]).to_local() ** 2).sum().backward(); print(x.grad)
    show(distribute_tensor, t, line, [Shard(5)]); show(distribute_tensor, t, line, [Shard(0), Shard(1)])
    print(distribute_tensor(t, mesh, [Shard(-1), Replicate()]).placements)
    from torch.distributed import nn
    x, o = torch.arange(3.0, requires_grad=True), torch.zeros(3)
    for y in (nn.all_reduce(x), nn.broadcast(x, 0), nn.scatter([x]), nn.reduce(x, 0), *nn.all_gather(x), nn.reduce_scatter(o, [x])):
        print(y.tolist(), y is x, torch.autograd.grad((y * y).sum(), x)[0], o)
    print(type(nn.gather(x)), nn.all_to_all([torch.zeros(3)], [x])[0].tolist(), nn.all_to_all_single(o, x.detach() + 1), o)
    dist.destroy_process_group()
"""

MARKS = """
    import torch, torch.jit, torch.fx, torch.onnx
    from torch.jit import Final
    from torch.jit.annotations import List

    print(torch.jit.is_scripting(), torch.jit.is_tracing(), torch.onnx.is_in_onnx_export(), List[int])

    class M(torch.nn.Module):
        n: Final[int] = 3

        @torch.jit.ignore
        def a(self): return 1

        @torch.jit.ignore(drop=True)
        def b(self): return 2

        @torch.jit.unused
        def c(self): return 3

        @torch.jit.export
        def d(self): return torch.jit.annotate(int, 4)

    m = M()
    print(m.a(), m.b(), m.c(), m.d(), m.n)

    @torch.jit.script
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.jit.interface
    class Maker:
        def make(self, x: torch.Tensor) -> torch.Tensor: pass

    print(Maker.__name__)
    for bad in (3, double):
        try:
            torch.jit.interface(bad)
        except RuntimeError as error:
            print(str(error)[:50])

    print(double(torch.ones(2)).tolist(), torch.fx.wrap("len"), torch.fx.wrap(len) is len)

    def inside():
        torch.fx.wrap("len")

    for f in (inside, lambda: torch.fx.wrap(3), lambda: torch.jit.ignore(3)):
        try:
            f()
        except Exception as error:
            print(type(error).__name__, error)
"""

HUB = """
    import hashlib, os, pathlib, torch, torch.hub
    from torch.hub import HASH_REGEX, urlparse

    os.environ["TORCH_HOME"] = os.getcwd()
    print(os.path.relpath(torch.hub.get_dir()))
    torch.save({"a": torch.ones(2)}, "model.pt")
    digest = hashlib.sha256(open("model.pt", "rb").read()).hexdigest()
    url = pathlib.Path("model.pt").absolute().as_uri()
    for check, name in ((False, None), (True, "m-" + digest[:8] + ".pt"), (True, "n-0123.pt")):
        try:
            loaded = torch.hub.load_state_dict_from_url(url, progress=False, check_hash=check, file_name=name)
            print(loaded["a"].tolist())
        except RuntimeError as error:
            print(str(error).replace(digest, "DIGEST"))
    print(sorted(os.listdir("hub/checkpoints")))
    os.remove("model.pt")
    print(torch.hub.load_state_dict_from_url(url, progress=False)["a"].tolist())
    try:
        torch.hub.download_url_to_file(url, "other", progress=False)
    except OSError as error:
        print(type(error).__name__)
    torch.hub.set_dir("elsewhere"); print(torch.hub.get_dir(), sorted(os.listdir(".")))
"""


@pytest.mark.parametrize("program", [DISTRIBUTED, SPREAD, MARKS, HUB], ids=["distributed", "spread", "marks", "hub"])
def test_the_same_on_torch_and_torchlike(tmp_path, program):
    outputs = []
    for launcher in ([], ["-m", "torchlike.run"]):
        folder = tmp_path / ("ours" if launcher else "real")
        folder.mkdir()
        (folder / "program.py").write_text(f"FILE = {str(folder / 'rendezvous')!r}\n" + textwrap.dedent(program))
        clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")}
        done = subprocess.run(
            [sys.executable, *launcher, "program.py"],
            cwd=folder,
            env={**clean, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(re.sub(r"m-[0-9a-f]{8}\.pt", "m-HASH.pt", done.stdout.replace(str(folder), "FOLDER")))
    assert outputs[1] == outputs[0]
