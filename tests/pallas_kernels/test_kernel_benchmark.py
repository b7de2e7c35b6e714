"""`benchmarks/gpu.py --tiny`: the benchmark's own code, on a CPU."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from pallas_kernels import specs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def gpu():
    spec = importlib.util.spec_from_file_location("gpu_benchmark", ROOT / "benchmarks" / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tiny_run_writes_a_row_for_every_contender(gpu, tmp_path, capsys, monkeypatch):
    calls = []
    for name in ("wait", "ceilings"):
        called = lambda *a, name=name, f=getattr(gpu, name), **k: calls.append(name) or f(*a, **k)
        monkeypatch.setattr(gpu, name, called)
    assert gpu.main(["--tiny", "--ops", "attention", "--out", str(tmp_path)]) == 0
    assert calls == ["wait", "ceilings"]  # a card that compiles is slower than it is
    rows = json.loads((tmp_path / "pallas_kernels_gpu.json").read_text())["rows"]
    kinds = {(row["op"], row["spec"], row["mode"]) for row in rows}
    assert len(kinds) == 2 * len(specs.TINY["attention"])
    for row in rows:
        if row["contender"] in ("ours", "xla"):
            assert row["us"] > 0 and row["error"] < 1e-2 and not row["reason"]
        if row["contender"] == "ours":
            assert row["repeatable"]
        if row["contender"] == "cudnn":  # a contender that cannot run is a row with its reason
            assert row["us"] is None and "runs on cuda, not on cpu" in row["reason"]
    assert "xla/ours" in capsys.readouterr().out


def test_a_failure_is_a_row(gpu, tmp_path, capsys, monkeypatch):
    """Inputs that cannot be made, a contender that does not compile, a torch that cannot be imported."""

    def broken(*args, **options):
        raise MemoryError("no room")

    whole = gpu.Problem
    monkeypatch.setattr(gpu, "Problem", lambda spec, tiny: broken() if spec.op == "grouped_mm" else whole(spec, tiny))
    monkeypatch.setitem(gpu.contenders._JAX, "cross_entropy", lambda spec, call: {"xla": broken})
    monkeypatch.setattr(gpu.contenders, "torch_contenders", broken)
    assert gpu.main(["--tiny", "--ops", "grouped_mm,cross_entropy", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "pallas_kernels_gpu.json").read_text())["rows"]
    assert [(r["op"], r["contender"]) for r in rows if r["reason"] == "MemoryError: no room"] == [
        ("grouped_mm", "ours"),
        *[("cross_entropy", "xla"), ("cross_entropy", "torch")] * 2,
    ]
    assert [r["mode"] for r in rows if not r["reason"]] == ["forward", "training"]
    assert "cross_entropy v300 training xla: MemoryError: no room" in capsys.readouterr().out


def test_rows_past_the_budget_say_so(gpu, tmp_path, capsys):
    assert gpu.main(["--tiny", "--ops", "rms_norm", "--out", str(tmp_path), "--budget", "-1"]) == 0
    rows = json.loads((tmp_path / "pallas_kernels_gpu.json").read_text())["rows"]
    assert rows and {r["reason"] for r in rows} == {"not reached within the budget"}


def test_tiny_tuning_writes_a_table(gpu, tmp_path, capsys):
    assert gpu.main(["--tiny", "--tune", "cross_entropy", "--out", str(tmp_path)]) == 0
    table = json.loads((tmp_path / "cpu.json").read_text())
    ((key, row),) = table["rows"].items()
    assert key == "cross_entropy|float32|N32,V512|plain"
    assert row["us"] > 0 and set(row["config"]) == {"block", "num_warps"}


def test_errors_are_relative_to_each_array(gpu):
    big, small, zero = np.full(4, 2.0, "float32"), np.full((3, 3), 2e-8, "float32"), np.full(2, 1e-15, "float32")
    error = lambda *got: float(gpu.largest_error(got, (big, small, zero)))
    assert error(big, small, zero) == 0
    assert error(big * 1.01, small, zero) == pytest.approx(0.01, rel=1e-3)
    assert error(big, small * 1.5, zero) == pytest.approx(0.5, rel=1e-3)  # the gradient of a mean over many classes
    assert error(big, small, zero + 0.02) == pytest.approx(0.01, rel=1e-3)  # zero but for rounding: against the largest
    assert error(big, small, zero * np.nan) == np.inf


def test_every_kernel_has_specs_to_test_and_time(gpu):
    import pallas_kernels

    assert set(pallas_kernels.KERNELS) <= set(specs.SMALL) == set(specs.LARGE) == set(specs.TINY)


def test_without_a_card_it_says_so(gpu, capsys):
    with pytest.raises(SystemExit):
        gpu.main([])
    assert "no CUDA device" in capsys.readouterr().err
