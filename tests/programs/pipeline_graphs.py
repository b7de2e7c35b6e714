"""A module that is exported and cut in three stages, which train; rank 0 prints. The same under torch and torchlike."""
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, SplitPoint, build_stage, pipe_split, pipeline

sys.path.insert(0, str(Path(__file__).parent))
from pipeline_stages import mse, show, tell  # noqa: E402


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, s):
        return torch.relu(self.lin(x)) + s


class Net(nn.Module):
    """Two tensors from stage to stage, a parameter of two stages, a buffer, tensors made on the way."""

    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Linear(4, 4), nn.Linear(4, 2)
        self.layers = nn.ModuleDict({str(i): Block() for i in range(3)})
        self.shared = nn.Parameter(torch.ones(4))
        self.register_buffer("buf", torch.arange(4.0))

    def forward(self, x, y=None):
        x = self.emb(x) * self.shared + y
        aux = x * 2
        for layer in self.layers.values():
            x, aux = layer(x, aux), aux + torch.ones(4)
        return self.out(x * self.shared + self.buf)


class Marked(nn.Module):
    """Cut by itself; two names of one parameter, and a first cut before anything runs that ends no stage."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, pair):
        x = self.a(pair[0] + pair[1])
        pipe_split()
        return self.b(x)


class Skipping(nn.Module):
    """The last stage needs what the first one made."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        x, skipped = self.a(x), x * 3 + self.a(x)
        pipe_split()
        x = self.b(x)
        pipe_split()
        return self.c(x) + skipped


SPEC = {"layers.1": SplitPoint.BEGINNING, "layers.2": SplitPoint.END}


def made(cls, *args, seed=0, **options):
    torch.manual_seed(seed)
    return pipeline(cls(), *args, **options)


def alone():
    x, y = torch.randn(2, 4), torch.randn(2, 4)
    pipe = made(Net, (x,), {"y": y}, split_spec=SPEC)
    tell(pipe.num_stages, pipe.has_loss_and_backward, pipe.replicated_params, pipe.info().num_stages)
    tell([sorted(pipe.get_stage_module(i).state_dict()) for i in range(3)], show(pipe(x, y)[0]), show(pipe(x, y=y)[0]))
    tell(show(pipe.get_stage_module(0)(x, y=y)[0]))
    model = Net()
    for call in (lambda: pipe.get_stage_module(3), lambda: pipe.split_gm(x), lambda: pipeline(model, (x,), split_spec={}, split_policy=print),
                 lambda: pipeline(model, (x,), split_spec={"nothing.a": SplitPoint.END}), lambda: pipeline(model, (x,), split_spec={"emb": 3})):
        try:
            tell(call())
        except Exception as error:
            tell(type(error).__name__, str(error))
    pipe = made(Marked, ([x, y],))
    tell(pipe.num_stages, [sorted(pipe.get_stage_module(i).state_dict()) for i in range(2)], show(pipe(x, y)[0]))

    def policy(graph_module):
        graph = graph_module.graph
        first = next(n for n in graph.nodes if n.op == "call_function" and "relu" in str(n.target))
        with graph.inserting_after(first):
            graph.call_function(torch.ops.pippy._pipe_split.default)
        graph_module.recompile()
        return graph_module

    pipe = pipeline(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), (x,), split_policy=policy)
    tell(pipe.num_stages, [sorted(pipe.get_stage_module(i).state_dict()) for i in range(2)])


def trained():
    rank = dist.get_rank()
    for cls, schedule_class, n, kwargs in ((Net, ScheduleGPipe, 3, True), (Net, Schedule1F1B, 4, True), (Skipping, ScheduleGPipe, 2, False)):
        torch.manual_seed(1)
        x, y, target = torch.randn(12, 4), torch.randn(12, 4), torch.randn(12, 2 if kwargs else 4)
        pipe = made(cls, (x[:12 // n],), {"y": y[:12 // n]} if kwargs else None, split_spec=SPEC if kwargs else None)
        stage = pipe.build_stage(rank, torch.device("cpu")) if n > 2 else build_stage(pipe.get_stage_module(rank), rank, pipe.info(), torch.device("cpu"))
        schedule = schedule_class(stage, n, loss_fn=mse)
        given, own = (x,) if rank == 0 else (), {"y": y} if kwargs and rank == 0 else {}
        for how in ("step", "step", "eval"):
            losses = []
            out = getattr(schedule, how)(*given, target=target if rank == 2 else None, losses=losses if rank == 2 else None, **own)
            tell(show(out), [round(loss.item(), 3) for loss in losses], [(n, show(p.grad)) for n, p in sorted(stage.submod.named_parameters())])


dist.init_process_group("gloo")
torch.manual_seed(3)
alone()
trained()
dist.destroy_process_group()
