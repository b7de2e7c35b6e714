"""torch.utils.benchmark.Timer: statements really run, and so do the operations whose results nobody reads."""
import importlib

import pytest


@pytest.mark.parametrize("package", ["torch", "torchlike"])
def test_timer(package):
    m, benchmark = importlib.import_module(package), importlib.import_module(f"{package}.utils.benchmark")
    big, small, calls = m.ones(400, 400), m.ones(4, 4), []
    t = benchmark.Timer("calls.append(k)", setup="k = 7", globals={"calls": calls}).timeit(20)
    assert len(calls) >= 20 and set(calls) == {7} and t.number_per_run == 20 and len(t.times) == 1 and t.mean == t.median
    for stmt in ("x @ x", "y = x @ x"):
        slow, fast = (benchmark.Timer(stmt, globals={"x": x}, label="product").blocked_autorange(min_run_time=0.05) for x in (big, small))
        assert slow.median > 3 * fast.median and sum(slow.raw_times) >= 0.04 and slow.iqr >= 0
    assert "product" in repr(slow)
