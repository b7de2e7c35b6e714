"""Ranges, steps and traces of the profilers, against real torch; single operations have no events of their own here."""
import gzip
import json
from importlib import import_module

from same import same


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
