"""Two pipelines of two stages each, whose stages are data-parallel: DistributedDataParallel and FSDP. The same under torch and torchlike."""
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, schedules

sys.path.insert(0, str(Path(__file__).parent))
from pipeline_stages import CPU, Layer, batch, mse, show, tell  # noqa: E402


class Used(nn.Module):
    """A Layer without the weight that is not used."""

    def __init__(self):
        super().__init__()
        self.layer = Layer()
        del self.layer.unused

    def forward(self, x):
        return self.layer(x)


def run(name, per_rank, n, wrap, kind):
    stages = []
    for index in range(pipe.rank(), 2 * per_rank, 2):
        torch.manual_seed(index)
        stages.append(PipelineStage(wrap(Used()), index, 2 * per_rank, CPU, group=pipe))
    cls = schedules.get_schedule_class(name)
    schedule = cls(stages[0] if per_rank == 1 else stages, n, loss_fn=mse)
    x, y, _ = batch()
    mine = slice(6 * data.rank(), 6 * data.rank() + 6)
    for _ in range(1 if kind == "ddp" else 2):  # torch fails in the second step of such a pipeline
        losses, last = [], stages[-1].is_last
        schedule.step(*((x[mine],) if pipe.rank() == 0 else ()), target=y[mine] if last else None, losses=losses if last else None)
        grads = [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad for s in stages for p in s.submod.parameters()]
        tell(kind, name, [round(loss.item(), 3) for loss in losses], [show(g) for g in grads])
        for s in stages:
            s.submod.zero_grad()


dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
pipe, data = mesh.get_group("pp"), mesh.get_group("dp")
for name, per_rank, n in (("GPipe", 1, 3), ("1F1B", 1, 2), ("Interleaved1F1B", 2, 2)):
    run(name, per_rank, n, lambda m: nn.parallel.DistributedDataParallel(m, process_group=data), "ddp")
    run(name, per_rank, n, lambda m: fully_shard(m, mesh=mesh["dp"]), "fsdp")
run("InterleavedZeroBubble", 2, 2, lambda m: fully_shard(m, mesh=mesh["dp"]), "fsdp")
dist.destroy_process_group()
