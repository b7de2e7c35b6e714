"""torch.monitor beside real torch."""
import datetime
import importlib
import time

import pytest
import torch as oracle

import torchlike as subject


def run(torch):
    m = importlib.import_module(torch.__name__ + ".monitor")
    kinds, events, hour = m.Aggregation, [], datetime.timedelta(hours=1)

    def seen():
        found = [(e.name, e.data) for e in events]
        events.clear()
        return found

    def values(stat):
        return {k.name: v for k, v in stat.get().items()}, stat.count
    handle = m.register_event_handler(events.append)
    said = []
    every = m.Stat("every", [kinds.SUM, kinds.COUNT, kinds.MEAN, kinds.MAX, kinds.MIN, kinds.VALUE], hour, 3)
    said.append((every.name, values(every)))
    for v in (1, 5.5, 2, 7):
        every.add(v)
        said.append((values(every), seen()))
    time.sleep(0.32 - time.monotonic() % 0.3)  # a window has just begun
    window = m.Stat("window", [kinds.SUM], datetime.timedelta(milliseconds=300), 2)
    for v, wait in ((1, 0.35), (2, 0), (3, 0), (4, 0.35), (5, 0)):
        window.add(v)
        said.append((values(window), seen()))
        time.sleep(wait)
    rest = m.Stat("rest", (kinds.SUM, kinds.COUNT), hour)
    rest.add(1)
    del rest
    said.append(seen())
    event = m.Event("x", datetime.datetime(2020, 1, 1), {"a": 1, "b": 2.5, "c": "s", "d": True})
    m.log_event(event)
    said.append((event.name, event.timestamp, event.data, events[0] is event, seen()))

    def fails(e):
        raise ValueError("no")
    second = m.register_event_handler(fails)
    with pytest.raises(ValueError, match="no"):
        m.log_event(event)
    m.unregister_event_handler(second)
    m.unregister_event_handler(handle)
    events.clear()
    m.log_event(event)
    said.append(seen())
    for wrong in (lambda: m.Event("x", 1, {}), lambda: m.Event("x", datetime.datetime(2020, 1, 1), {"a": None}), lambda: every.add("x"), lambda: m.log_event(1),
                  lambda: m.register_event_handler(1), lambda: m.Stat("a", [1], hour)):
        with pytest.raises(TypeError):
            wrong()
    return said, m.STAT_EVENT, m.SUM is kinds.SUM, [(k.name, k.value) for k in (kinds.VALUE, kinds.MEAN, kinds.COUNT, kinds.SUM, kinds.MAX, kinds.MIN)]


def test_monitor():
    assert run(subject) == run(oracle)


def test_scalars_of_stats():
    written = []

    class Writer:
        def add_scalar(self, name, value, walltime):
            written.append((name, value, abs(walltime - time.time()) < 60))
    m = importlib.import_module("torchlike.monitor")
    handle = m.register_event_handler(m.TensorboardEventHandler(Writer()))
    stat = m.Stat("loss", [m.SUM, m.COUNT], datetime.timedelta(hours=1), 5)
    for i in range(10):
        stat.add(i)
    m.log_event(m.Event("other", datetime.datetime.now(), {"a": 1.0}))
    m.unregister_event_handler(handle)
    m.unregister_event_handler(handle)
    assert sorted(written) == [("loss.count", 5.0, True), ("loss.sum", 10.0, True)]
