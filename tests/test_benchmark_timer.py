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


@pytest.mark.parametrize("options", [(), ("trim_significant_figures",), ("highlight_warnings",), ("colorize",), ("trim_significant_figures", "colorize", "highlight_warnings")])
def test_tables(options):
    """Tables of given times: the same text as torch's."""
    found = []
    for package in ("torchlike", "torch"):
        b = importlib.import_module(f"{package}.utils.benchmark")
        rows = [("add", "64x64", "a", 1.234e-5), ("add", "64x64", "b", 2.5e-5), ("add", "128x128", "a", 3.1e-3), ("add", "128x128", "b", 1e-3), ("mul", "x", "d", 1.0),
                ("add", "64x65", "b", 1.3e-5)]
        made = [b.Measurement(10, [t * 10 * f for f in (1, 1.01, 0.99, 1 + threads)], b.TaskSpec("s", "", label=label, sub_label=sub, description=text, num_threads=threads))
                for threads in (1, 2) for label, sub, text, t in rows]
        table = b.Compare(made + made[:1])
        for name in options:
            getattr(table, name)()
        one = made[1]
        found.append((str(table), repr(one).split("\n", 1)[1], one.significant_figures, one.title,
                      b.Measurement.merge(made)[0].times, b.select_unit(2e-3), b.unit_to_english("us")))
    assert found[0] == found[1]


@pytest.mark.parametrize("code", [
    {"stmt": "x * y", "setup": "\n        x = 1\n        y = 2\n        "},
    {"stmt": "\n        z = x\n        z += 1\n    ", "setup": "x = 1"},
    {"stmt": "  1", "setup": "\n    x = 1\n"},
    {"stmt": "a = 1\nb = 2", "setup": "x = 1\nif x:\n    y = 2", "sub_label": "s", "description": "d"},
    {"stmt": "a = 1\nb = 2", "label": "L"},
])
def test_code_as_it_is_shown(code):
    """Statements and setups of several lines, indented as the program has them: shown as torch shows them."""
    tasks = [importlib.import_module(f"{package}.utils.benchmark").Timer(**code).timeit(2).task_spec for package in ("torchlike", "torch")]
    ours, real = ((t.stmt, t.setup, t.title, t.setup_str(), t.summarize()) for t in tasks)
    assert ours == real


@pytest.mark.parametrize("wrong", [((3,), {}), (("1",), {"language": "rust"}), (("1",), {"global_setup": "x"})])
def test_refused(wrong):
    told = []
    for package in ("torchlike", "torch"):
        with pytest.raises(ValueError) as error:
            importlib.import_module(f"{package}.utils.benchmark").Timer(*wrong[0], **wrong[1])
        told.append(str(error.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("package", ["torch", "torchlike"])
def test_until_the_times_agree(package):
    benchmark = importlib.import_module(f"{package}.utils.benchmark")
    seen = []
    made = benchmark.Timer("sum(range(100))", language=benchmark.Language.PYTHON).adaptive_autorange(threshold=1e-9, min_run_time=0.001, max_run_time=0.1,
                                                                                                    callback=lambda n, t: seen.append(n))
    assert seen and set(seen) == {made.number_per_run} and sum(made.raw_times) >= 0.1
    assert benchmark.Timer("sum(range(100))").adaptive_autorange(threshold=1e9).meets_confidence(1e9)
