"""Operations, ranges, steps and traces of the profilers, against real torch."""
import gzip
import json
import re
from importlib import import_module

import pytest
from same import same

import torchlike


@same
def test_steps_of_a_schedule(torch):
    profiler, found = import_module(torch.__name__ + ".profiler"), []

    def ready(p):
        found.append((p.step_num, [(e.key, e.count) for e in p.key_averages() if e.key.startswith("Prof")],
                      [e.name for e in p.events() if e.name.startswith("Prof")]))
    with profiler.profile(schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as p:
        for _ in range(10):
            (torch.ones(2) + 1).tolist()
            p.step()
    with profiler.profile() as p:
        p.step()
    return found, [e.key for e in p.key_averages() if e.key.startswith("Prof")]


@same
def test_ranges_inside_of_ranges(torch):
    """What ran inside is not part of a range's own time."""
    profiler = import_module(torch.__name__ + ".profiler")
    with profiler.profile() as p:
        with profiler.record_function("outer"):
            (torch.ones(100, 100) @ torch.ones(100, 100)).tolist()
            for _ in range(2):
                with profiler.record_function("inner"):
                    (torch.ones(300, 300) @ torch.ones(300, 300)).tolist()
        with profiler.record_function("later"):
            pass
    by_name = {e.name: e for e in p.events()}
    outer, inner = by_name["outer"], by_name["inner"]
    averages = {e.key: e for e in p.key_averages()}
    times = [0 < outer.self_cpu_time_total < outer.cpu_time_total, inner.cpu_time_total <= averages["inner"].cpu_time_total < outer.cpu_time_total,
             averages["inner"].cpu_time * 2 == averages["inner"].cpu_time_total, outer.time_range.start <= inner.time_range.start,
             outer.time_range.elapsed_us() == outer.cpu_time_total, len(inner.cpu_children) > 0, averages["outer"].is_user_annotation]
    return times, inner.cpu_parent.name, [e.name for e in outer.cpu_children if e.is_user_annotation], by_name["later"].cpu_parent, averages["inner"].count


@same
def test_attributes_of_events(torch):
    """What scripts read of each event: what was not collected is 0 or empty, as in PyTorch."""
    profiler = import_module(torch.__name__ + ".profiler")
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as p, profiler.record_function("mine"):
        (torch.ones(20, 20) @ torch.ones(20, 20)).tolist()
    found = []
    for e in (next(e for e in p.events() if e.name == "mine"), next(e for e in p.key_averages() if e.key == "mine")):
        found.append([getattr(e, name) for name in ("key", "count", "device_time", "device_time_total", "self_device_time_total", "cpu_memory_usage",
                                                    "self_cpu_memory_usage", "device_memory_usage", "flops", "is_async", "is_remote", "is_legacy", "node_id",
                                                    "input_shapes", "device_time_str", "device_time_total_str", "self_device_time_total_str")])
        found.append([len(e.stack or ()), e.cpu_time_total_str[-1:], e.cpu_time_str == e.cpu_time_total_str, e.self_cpu_time_total_str != ""])
    return found, sorted(p.key_averages(), key=lambda e: e.self_device_time_total)[0].device_time


@same
def test_totals(torch):
    with torch.autograd.profiler.profile() as p, torch.autograd.profiler.record_function("work"):
        torch.ones(50, 50).sin().tolist()
    table = p.key_averages().table(sort_by="self_cpu_time_total", time_unit="ms")
    total = sum(e.self_cpu_time_total for e in p.function_events)
    return abs(p.self_cpu_time_total - total) < 1e-3, "Self CPU time total: " in table, "ms" in table, p.total_average().count == len(p.function_events)


def test_traces(subject, oracle, tmp_path):
    for torch in (subject, oracle):
        profiler = import_module(torch.__name__ + ".profiler")
        folder = tmp_path / torch.__name__
        with profiler.profile(on_trace_ready=profiler.tensorboard_trace_handler(str(folder), "me", use_gzip=True)) as p:
            p.add_metadata("who", "we")
            p.add_metadata_json("sizes", json.dumps([1, 2]))
            with profiler.record_function("work"):
                torch.ones(3).sin().tolist()
        path, = folder.iterdir()
        assert path.name.startswith("me.") and path.name.endswith(".pt.trace.json.gz")
        trace = json.loads(gzip.open(path).read())
        assert trace["who"] == "we" and trace["sizes"] == [1, 2]
        event, = [e for e in trace["traceEvents"] if e.get("name") == "work"]
        assert event["ph"] == "X" and event["dur"] > 0 and event["cat"] == "user_annotation"


def _profiled(torch, work, **options):
    profiler = import_module(torch.__name__ + ".profiler")
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options) as p:
        kept = work(torch)
    del kept
    return p


@same
def test_operations_are_events(torch):
    """Those of a forward by the names of operators, with their shapes; those of a backward by their nodes'."""
    def work(torch):
        w = torch.ones(64, 5, requires_grad=True)
        loss = ((torch.ones(30, 64) @ w).relu() * 3).sum()
        loss.backward()
        return loss, w.grad
    events = _profiled(torch, work, record_shapes=True).events()
    forward = {e.name: [x for x in e.input_shapes if x] for e in events if e.name in ("aten::relu", "aten::mul", "aten::sum") and e.cpu_parent is None}
    return forward, sorted({e.name for e in events if e.name.endswith("Backward0") and "::" not in e.name}), all(e.cpu_time > 0 for e in events)


@same
def test_shapes_memory_and_flops(torch):
    def work(torch):
        a = torch.randn(8, 16)
        return [a.mm(torch.randn(16, 32)), a.mm(torch.randn(16, 32)), a.mm(torch.randn(16, 4))]
    p = _profiled(torch, work, record_shapes=True, profile_memory=True, with_flops=True)
    rows = [[(e.key, e.count, e.input_shapes, e.self_cpu_memory_usage, e.flops) for e in p.key_averages(group_by_input_shape=by_shape) if e.key == "aten::mm"]
            for by_shape in (False, True)]
    event = next(e for e in p.events() if e.name == "aten::mm")
    return rows, event.input_shapes, event.cpu_memory_usage, event.flops


@same
def test_a_table(torch):
    def work(torch):
        return torch.ones(8, 16) @ torch.ones(16, 32)
    with import_module(torch.__name__ + ".profiler").profile(profile_memory=True) as p, torch.profiler.record_function("a range with a name so long that it is cut off somewhere"):
        work(torch)
    table = p.key_averages().table(sort_by="cpu_time_total", row_limit=1, header="mine", top_level_events_only=True)
    lines = [line if not line.startswith(" ") else line.split() for line in table.splitlines()]
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'nothing'"):
        p.key_averages().table(sort_by="nothing")
    row = table.splitlines()[7]
    return lines[:7], row[:57], lines[8], [len(x) for x in re.split(r"(?<=\S)(?=  )", row)], row.split()[-1], lines[9].split(":")[0]


def test_compiled_programs_are_events():
    from torchlike._core import program
    profiler = torchlike.profiler

    def step(x):
        return (x * 2).sin().sum()
    x = torchlike.ones(50, 50)
    with program.tier("compiled"):
        step(x).item()
        with profiler.profile() as p:
            step(x).item()
    assert p.events()  # one, or in immediate mode one per operation
    for event in p.events():
        assert event.name.startswith("program at test_profiler.py:") and event.name.endswith("(compiled)") and event.cpu_time > 0


def test_a_failing_operation_is_an_event_as_well():
    with torchlike.profiler.profile() as p:
        a, b = torchlike.zeros(3, 3), torchlike.ones(40, 40) + 1
        with pytest.raises(RuntimeError):
            torchlike.linalg.inv(a)
        assert b.sum().item() == 3200
    assert {"aten::add", "aten::sum"} < {e.name for e in p.events()}
