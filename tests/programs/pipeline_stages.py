"""Stages that a program makes itself, on every rank: rank 0 prints what each schedule gives. The same under torch and torchlike."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.pipelining.microbatch import TensorChunkSpec
from torch.distributed.pipelining.schedules import FORWARD, FULL_BACKWARD, PipelineScheduleMulti, PipelineScheduleSingle, _PipelineScheduleRuntime

CPU = torch.device("cpu")


class Layer(nn.Module):
    """Weights on the way, beside it, used twice, and one that is not used."""

    def __init__(self, n=4):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(n, n), nn.Linear(n, n), nn.LayerNorm(n)
        self.scale, self.unused = nn.Parameter(torch.ones(n)), nn.Parameter(torch.ones(n))

    def forward(self, x, shift=None):
        h = self.b(torch.tanh(self.a(x)) * self.scale) + x * (self.scale * 2)
        return self.norm(h if shift is None else h + shift)


class Pair(nn.Module):
    """Two tensors for the next stage, one of them without a gradient."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, places=None):
        x = self.linear(x)
        return (x, (x > 0).long()) if places is None else x * (1 + places)


def mse(out, target, weight=1.0):
    return weight * ((out - target) ** 2).mean()


def show(t):
    return None if t is None else [*(round(v, 3) + 0.0 for v in t.flatten()[:3].tolist()), round(t.abs().sum().item(), 2), tuple(t.shape), t.requires_grad]


def tell(*mine):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    if dist.get_rank() == 0:
        print(*everyone, sep="\n")


def built(make, per_rank, v=False, **options):
    rank, size = dist.get_rank(), dist.get_world_size()
    total, layers = size * per_rank, []
    for i in range(total):
        torch.manual_seed(i)
        layers.append(make())
    mine = [rank, total - 1 - rank] if v else list(range(rank, total, size))
    return [PipelineStage(layers[i], i, total, CPU, **options) for i in mine]


def scheduled(name, stages, n, **options):
    cls = schedules.get_schedule_class(name) if isinstance(name, str) else name
    return cls(stages[0] if issubclass(cls, PipelineScheduleSingle) else stages, n, **options)


def stepped(stages, schedule, x, y, how="step", **options):
    losses, ends = [], any(s.is_last for s in stages)
    out = getattr(schedule, how)(*((x,) if any(s.is_first for s in stages) else ()), target=y if ends else None, losses=losses if ends else None, **options)
    tell(how, show(out), [round(loss.item(), 3) for loss in losses], [(n, show(p.grad)) for s in stages for n, p in s.submod.named_parameters()])


def batch(n=12):
    torch.manual_seed(99)
    return torch.randn(n, 4), torch.randn(n, 4), torch.randn(n, 4)


def every_schedule():
    x, y, shift = batch()
    for name, per_rank, n, v in (("GPipe", 1, 3, False), ("1f1b", 1, 4, False), ("LoopedBFS", 2, 3, False), ("Interleaved1F1B", 2, 4, False),
                                 ("InterleavedZeroBubble", 2, 4, False), ("InterleavedZeroBubble", 1, 6, False), ("ZBVZeroBubble", 2, 4, True),
                                 ("ZBVZeroBubble", 2, 2, True), ("DualPipeV", 2, 6, True)):
        stages = built(Layer, per_rank, v)
        schedule = scheduled(name, stages, n, loss_fn=mse, scale_grads=n != 3)
        for _ in range(2):  # gradients add up, and are divided again
            stepped(stages, schedule, x, y, **({"shift": shift} if n % 2 else {}))


def training():
    x, y, _ = batch()
    stages = built(Layer, 2)
    schedule = scheduled("Interleaved1F1B", stages, 4, loss_fn=mse, defer_pp_recv=True)
    optimizer = torch.optim.Adam([p for s in stages for p in s.submod.parameters()], lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        stepped(stages, schedule, x, y)
        optimizer.step()
    x, y, _ = batch(24)
    optimizer.zero_grad()
    stepped(stages, schedule, x, y, how="eval")  # another size: evaluation learns its own shapes
    stepped(stages, schedule, *batch()[:2], loss_kwargs={"weight": 2.0}, return_outputs=False)


def other_arguments():
    x, y, shift = batch()
    stages = built(Layer, 1)
    schedule = scheduled("GPipe", stages, 2, loss_fn=lambda out, target: mse(out, target.T), args_chunk_spec=(TensorChunkSpec(0),),
                         kwargs_chunk_spec={"shift": TensorChunkSpec(1)}, output_merge_spec=TensorChunkSpec(1))
    stepped(stages, schedule, x[:4], torch.randn(4, 2).T.repeat(1, 2).T, shift=shift[:2].repeat(1, 2)[:, :8])

    known = torch.zeros(6, 4, requires_grad=True)
    for given in ({"input_args": known}, {"input_args": known, "output_args": (known,)}):
        stages = built(Layer, 1, **given)
        stepped(stages, scheduled("1F1B", stages, 2, loss_fn=mse), x, y)
    stages = built(Layer, 1, input_args=x[:3])
    try:
        scheduled("GPipe", stages, 2, loss_fn=mse).step(*((x,) if stages[0].is_first else ()), target=y)
    except RuntimeError as error:
        tell(type(error).__name__, str(error))
    stages = built(Layer, 1)
    stepped(stages, scheduled("GPipe", stages, 2, loss_fn=mse), x.requires_grad_(), y)
    tell(show(x.grad))

    stages = built(Pair, 1)
    stepped(stages, scheduled("GPipe", stages, 3, loss_fn=mse), x.detach(), y)
    stepped(stages, scheduled("InterleavedZeroBubble", stages, 4, loss_fn=mse), x.detach(), y)
    group = dist.new_group([0, 1])
    stages = built(Layer, 1, group=group)
    given = (x.detach(),) if stages[0].is_first else ()
    tell(show(schedules._ScheduleForwardOnly(stages[0], 3).step(*given)), show(schedules._ScheduleForwardOnly(stages[0], 3, loss_fn=mse).eval(*given)))


def own_schedules():
    x, y, _ = batch()
    stages, rank = built(Layer, 2), dist.get_rank()
    seen = []

    def forward(action, context):
        seen.append(str(action))
        schedule, m = context.schedule_ref, action.microbatch_index
        stage = next(s for s in schedule._stages if s.stage_index == action.stage_index)
        if not stage.is_first:
            schedules._wait_batch_p2p(schedule.fwd_recv_ops.pop((action.stage_index, m)))
        output = stage.forward_one_chunk(m, context.arg_mbs[m], context.kwarg_mbs[m])
        schedule._maybe_compute_loss(stage, output, context.target_mbs, m)

    schedule = scheduled("Interleaved1F1B", stages, 4, loss_fn=mse)
    schedule.register_custom_function(FORWARD, forward)
    stepped(stages, schedule, x, y)
    tell(seen)

    name = os.path.join(tempfile.mkdtemp(), "order.csv")
    for lowered in ("compute_only", "compute_comms"):
        schedule._dump_csv(name, lowered)
        stages = built(Layer, 2)
        again = _PipelineScheduleRuntime(stages, 4, loss_fn=mse)
        again._load_csv(name, lowered)
        stepped(stages, again, x, y)

    class ByHand(PipelineScheduleMulti):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            a = schedules._Action
            self.pipeline_order = {0: [a(0, FORWARD, 0), a(0, FORWARD, 1), None, None, a(0, FULL_BACKWARD, 0), None, a(0, FULL_BACKWARD, 1)],
                                   1: [None, a(1, FORWARD, 0), a(1, FULL_BACKWARD, 0), a(1, FORWARD, 1), a(1, FULL_BACKWARD, 1)]}

    stages = built(Layer, 1)
    stepped(stages, scheduled(ByHand, stages, 2, loss_fn=mse), x, y)

    class InTurn(PipelineScheduleSingle):
        def _step_microbatches(self, arg_mbs=None, kwarg_mbs=None, target_mbs=None, losses=None, return_outputs=True, loss_kwargs=None):
            arg_mbs, kwarg_mbs = self._check_inputs(arg_mbs, kwarg_mbs, target_mbs, losses)
            self._initialize_stage(arg_mbs[0], kwarg_mbs[0], target_mbs[0] if target_mbs else None)
            stage = self._stage
            for m in range(self._n_microbatches):
                for works in schedules._sorted_batch_p2p(stage.get_fwd_recv_ops(m)).values():
                    schedules._wait_batch_p2p(works)
                output = stage.forward_one_chunk(m, arg_mbs[m], kwarg_mbs[m])
                self._maybe_compute_loss(stage, output, target_mbs, m)
                sent = schedules._batch_p2p(stage.get_fwd_send_ops(m))
                schedules._wait_batch_p2p(schedules._batch_p2p(stage.get_bwd_recv_ops(m)))
                stage.backward_one_chunk(m, loss=self._maybe_get_loss(stage, m))
                schedules._wait_batch_p2p(sent + schedules._batch_p2p(stage.get_bwd_send_ops(m)))
            self._update_losses(stage, losses)

    stages = built(Layer, 1)
    stepped(stages, scheduled(InTurn, stages, 2, loss_fn=mse), x, y)
    calls = []

    def builder():
        calls.append("built")
        return lambda: calls.append("run")

    stages = built(Layer, 1, dw_builder=builder)
    stepped(stages, scheduled("InterleavedZeroBubble", stages, 2, loss_fn=mse), x, y)
    tell(calls, rank)


def refused():
    x, y, _ = batch()
    stage = built(Layer, 1)[0]
    other = built(Layer, 2)
    schedule = scheduled("GPipe", [stage], 2, loss_fn=mse)
    bad = scheduled("GPipe", built(Layer, 1), 20, loss_fn=mse)

    def without_gradients():
        with torch.no_grad():
            schedule.step(x, target=y)

    for call in (without_gradients, lambda: PipelineStage(Layer(), 2, 2, CPU), lambda: PipelineStage(Layer(), 0, 1, CPU),
                 lambda: PipelineStage(Layer(), 0, 2, CPU, input_args=3), lambda: PipelineStage(Layer(), 0, 2, CPU, input_args=(x, None)),
                 lambda: scheduled("1F1B", [stage], 1), lambda: scheduled("Interleaved1F1B", other, 5), lambda: scheduled("ZBVZeroBubble", [stage], 4),
                 lambda: scheduled("DualPipeV", other, 2), lambda: schedules.get_schedule_class("none"), lambda: schedule._check_inputs(3),
                 lambda: schedule._check_inputs([()]), lambda: schedule._check_inputs(losses=3), lambda: bad.step(x, target=y),
                 lambda: scheduled("Interleaved1F1B", other, 4).register_custom_function(schedules._ComputationType.SEND_F, print),
                 lambda: _PipelineScheduleRuntime(other, 1)._prepare_schedule_with_comms({0: [None, schedules._Action(0, FULL_BACKWARD, 0)], 1: [None] * 12}),
                 lambda: stage.backward_weight_one_chunk(0) or stage.backward_one_chunk(0), lambda: schedules._Action.from_str("x")):
        try:
            tell(call())
        except Exception as error:
            tell(type(error).__name__, str(error))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    every_schedule()
    training()
    if dist.get_world_size() == 2:
        other_arguments()
        own_schedules()
        refused()
    dist.destroy_process_group()
