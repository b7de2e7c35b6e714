"""`benchmarks/gpu.py --tiny`: the benchmark's own code, on a CPU."""

import importlib.util
import json
from pathlib import Path

import pytest

from pallas_kernels import specs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def gpu():
    spec = importlib.util.spec_from_file_location("gpu_benchmark", ROOT / "benchmarks" / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tiny_run_writes_a_row_for_every_contender(gpu, tmp_path, capsys):
    assert gpu.main(["--tiny", "--ops", "attention", "--out", str(tmp_path)]) == 0
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
    monkeypatch.setitem(gpu.contenders._JAX, "gated_linear", lambda spec, call: {"xla": broken})
    monkeypatch.setattr(gpu.contenders, "torch_contenders", broken)
    assert gpu.main(["--tiny", "--ops", "grouped_mm,gated_linear", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "pallas_kernels_gpu.json").read_text())["rows"]
    assert [(r["op"], r["contender"]) for r in rows if r["reason"] == "MemoryError: no room"] == [
        ("grouped_mm", "ours"),
        *[("gated_linear", "xla"), ("gated_linear", "torch")] * 2,
    ]
    assert [r["mode"] for r in rows if not r["reason"]] == ["forward", "training"]
    assert "gated_linear k16 training xla: MemoryError: no room" in capsys.readouterr().out


def test_rows_past_the_budget_say_so(gpu, tmp_path, capsys):
    assert gpu.main(["--tiny", "--ops", "rms_norm", "--out", str(tmp_path), "--budget", "-1"]) == 0
    rows = json.loads((tmp_path / "pallas_kernels_gpu.json").read_text())["rows"]
    assert rows and {r["reason"] for r in rows} == {"not reached within the budget"}


def test_tiny_tuning_writes_a_table(gpu, tmp_path, capsys):
    assert gpu.main(["--tiny", "--tune", "gated_linear", "--out", str(tmp_path)]) == 0
    table = json.loads((tmp_path / "cpu.json").read_text())
    ((key, row),) = table["rows"].items()
    assert key == "gated_linear|float32|M64,K16,N32|plain"
    assert row["us"] > 0 and set(row["config"]) == {"block_m", "block_n", "block_k", "num_warps", "num_stages"}


def test_every_kernel_has_specs_to_test_and_time(gpu):
    import pallas_kernels

    assert set(pallas_kernels.KERNELS) <= set(specs.SMALL) == set(specs.LARGE) == set(specs.TINY)


def test_without_a_card_it_says_so(gpu, capsys):
    with pytest.raises(SystemExit):
        gpu.main([])
    assert "no CUDA device" in capsys.readouterr().err
