"""Tensors on a GPU, tried on a machine without one: a second CPU device takes its place, in processes of their own."""
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
POSING = """
import sys
sys.path[:0] = [{here!r}]
import warnings
import jax, numpy as np
import torchlike as torch
from device_cases import pose
from torchlike._core import executable, executor
pose()
"""


def posing(program: str, **environment: str) -> str:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": str(HERE.parent)} | environment
    done = subprocess.run([sys.executable, "-c", POSING.format(here=str(HERE)) + program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def script(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=HERE, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_programs():
    assert "0 lines differ" in script("device_programs.py", "--posing")


def test_cases():
    """Those whose operations make tensors of their own: indices, masks, tables of windows."""
    found = script("device_cases.py", "--posing", "--processes", "1", "--seconds", "400", "--rows", "index", "pool", "segment", "embedding", "put", "take", "ctc")
    assert " 0 differ" in found and " 0 not reached" in found, found


def test_programs_from_the_cache_run_on_their_device(tmp_path):
    """JAX loads executables for its default platform, and for all devices of that, unless told."""
    program = """
with torch.no_grad(), executor.tier("compiled"):
    print([(torch.arange(5., device=d).cumsum(0) * 3).sum().item() for d in ("cpu", "cuda")], [e["ran"] for e in torch.explain().rows])
"""
    first, second = (posing(program, TORCHLIKE_CACHE=str(tmp_path)) for _ in range(2))
    assert first.startswith("[60.0, 60.0]") and second.startswith("[60.0, 60.0]")
    assert "compiled now" in first and "compiled now" not in second


def test_a_program_whose_kernels_cannot_be_compiled_is_compiled_without():
    found = posing("""
import pallas_kernels
compiled = executable._compiled
modes = []
def failing(*args):
    modes.append(pallas_kernels._dispatch._mode.get())
    if modes[-1] != "reference":
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Shared memory size limit exceeded")
    return compiled(*args)
executable._compiled = failing
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    x = torch.ones(3, device="cuda") * 2
    print(x.tolist(), modes, len(said), "Shared memory" in str(said[0].message))
""")
    assert found.split("\n")[0] == "[2.0, 2.0, 2.0] [None, 'reference'] 1 True"


def test_nothing_is_taken_over_where_an_input_is_two_results():
    """XLA's GPU compiler loses a copy then; other programs take over what is dead."""
    found = posing("""
def made(f):
    x, y = torch.ones(3, device="cuda"), torch.ones(3, device="cuda") * 2
    y.sum().item()
    with torch.no_grad():
        out = f(x, y)
    del x, y
    out[0].tolist()
    return [o.tolist() for o in out], bool(executor.infos[-1].executables[-1].donated)
print(made(lambda x, y: (x + y, y.clone(), y.clone().reshape(3, 1).clone())))
print(made(lambda x, y: (x + y, y * 3)))
""", TORCHLIKE_CACHE="off")
    assert found.split("\n")[:2] == ["([[3.0, 3.0, 3.0], [2.0, 2.0, 2.0], [[2.0], [2.0], [2.0]]], False)", "([[3.0, 3.0, 3.0], [6.0, 6.0, 6.0]], True)"]


def test_a_pickle_from_a_gpu_where_there_is_none(tmp_path):
    posing(f"import pickle; pickle.dump(torch.ones(2, device='cuda'), open({str(tmp_path / 'x')!r}, 'wb'))")
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"), open(tmp_path / "x", "rb") as f:
        pickle.load(f)
