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
from torchlike._core import costs, executable, executor, program_info
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


@pytest.mark.parametrize("how", [(), ("--compiled",)])
def test_programs(how):
    assert "0 lines differ" in script("device_programs.py", "--posing", *how)


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
with warnings.catch_warnings(record=True) as said, executor.tier("compiled"):
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
    return [o.tolist() for o in out], bool(program_info.infos[-1].executables[-1].donated)
with executor.tier("compiled"):
    print(made(lambda x, y: (x + y, y.clone(), y.clone().reshape(3, 1).clone())))
    print(made(lambda x, y: (x + y, y * 3)))
""", TORCHLIKE_CACHE="off")
    assert found.split("\n")[:2] == ["([[3.0, 3.0, 3.0], [2.0, 2.0, 2.0], [[2.0], [2.0], [2.0]]], False)", "([[3.0, 3.0, 3.0], [6.0, 6.0, 6.0]], True)"]


def test_the_host_runs_what_is_small():
    """In NumPy, until a compiled program or JAX asks for what it made."""
    found = posing("""
def kinds(*tensors):
    return [type(t._value.array).__name__ for t in tensors]
x = torch.arange(6., device="cuda").reshape(2, 3)
y = (x * 2).sum(0)
print(y)
print(kinds(y), y.jax().devices() == {jax.devices()[1]}, kinds(y), y.cpu().device, (y + 1).tolist())
with executor.tier("compiled"):
    z = x @ x.T
    print(z.tolist(), kinds(x, z), x.jax().devices() == z.jax().devices() == {jax.devices()[1]})
v = z.view(-1)  # a compiled program's result, seen and written by the host
v[0] += 1
print(z.tolist(), kinds(z), torch.linalg.eigvals(z).device, [e["ran"] for e in torch.explain().rows])
""", TORCHLIKE_CACHE="off")
    assert found.split("\n")[:4] == [
        "tensor([ 6., 10., 14.], device='cuda:0')",
        "['ndarray'] True ['ArrayImpl'] cpu [7.0, 11.0, 15.0]",
        "[[5.0, 14.0], [14.0, 50.0]] ['ArrayImpl', 'ArrayImpl'] True",
        "[[6.0, 14.0], [14.0, 50.0]] ['ndarray'] cuda:0 ['numpy', 'numpy', 'compiled now', 'numpy', 'numpy']"]


def test_what_the_host_would_be_slow_at_is_compiled():
    """A large program at its first sight, a loop once it has cost the host a third of its compilation, a small one that reads much at once."""
    found = posing("""
def ran(f):
    f().sum().item()
    return torch.explain().rows[-1]["ran"]
with torch.no_grad():
    large, small = (torch.ones(n, n, device="cuda") for n in (3000, 300))
    large.jax(), small.jax()
    print(ran(lambda: large @ large))
    loop = [ran(lambda: small.sin().cos().exp().sin().cos().exp()) for _ in range(600)]
    print(loop[0], loop[-1], 100 < loop.index("compiled now") < 500)
    costs.FETCHED_BYTE *= 100  # or 3 GB
    print(ran(lambda: large[:2] * 2), ran(lambda: small[:2] * 2))
""", TORCHLIKE_CACHE="off")
    assert found.split("\n")[:3] == ["compiled now", "numpy compiled True", "compiled now numpy"]


def test_a_loop_on_the_device_learns_what_it_does_on_the_cpu():
    """From the first steps, on the host, to compiled ones; learning rates and dropout's masks too."""
    program = """
executor.LASTS *= 10  # or 400 steps
def trained(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    losses = []
    for step in range(60):
        x, y = torch.randn(256, 64).to(device), torch.randint(0, 10, (256,)).to(device)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses
ours, ran = trained("cuda"), {e["ran"] for e in torch.explain().rows}
print(np.allclose(ours, trained("cpu"), rtol=1e-4), ran >= {"numpy", "compiled now"})
"""
    assert posing(program, TORCHLIKE_CACHE="off") == "True True\n"


def test_a_pickle_from_a_gpu_where_there_is_none(tmp_path):
    posing(f"import pickle; pickle.dump(torch.ones(2, device='cuda'), open({str(tmp_path / 'x')!r}, 'wb'))")
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"), open(tmp_path / "x", "rb") as f:
        pickle.load(f)


def test_words_about_two_devices():
    """Many functions name the argument that is elsewhere; the words are those of PyTorch 2.13's library and of reports from machines with a GPU."""
    found = posing("""
F = torch.nn.functional
c, g = torch.ones(2, 2), torch.ones(2, 2, device="cuda")
i, j = torch.zeros(2, dtype=torch.long), torch.zeros(2, dtype=torch.long, device="cuda")
for f in (lambda: torch.mm(g, c), lambda: c @ g, lambda: F.linear(c, g), lambda: F.linear(c, g, g[0]), lambda: F.linear(g, c, c[0]), lambda: torch.cat([g, c]),
          lambda: torch.stack([c, g]), lambda: F.embedding(i, g), lambda: F.embedding(j, c), lambda: F.cross_entropy(g, i), lambda: g.gather(0, i[None]),
          lambda: g + c, lambda: F.conv1d(c[None], g[None].mT), lambda: F.conv1d(g[None], g[None], c[0])):
    try:
        print("no error", f())
    except RuntimeError as error:
        print(error)
""").splitlines()
    start = "Expected all tensors to be on the same device, but "
    named = [(text.removeprefix(start + "got ").split(",")[0], text.rpartition("wrapper_CUDA_")[2].rstrip(")")) for text in found[:11]]
    assert named == [("mat2 is on cpu", "mm"), ("mat2 is on cuda:0", "mm"), ("mat2 is on cuda:0", "mm"), ("mat1 is on cpu", "addmm"), ("mat1 is on cuda:0", "addmm"),
                     ("tensors is on cpu", "cat"), ("tensors is on cuda:0", "cat"), ("index is on cpu", "_index_select"), ("index is on cuda:0", "_index_select"),
                     ("target is on cpu", "nll_loss_forward"), ("index is on cpu", "gather")]
    assert found[0] == f"{start}got mat2 is on cpu, different from other tensors on cuda:0 (when checking argument in method wrapper_CUDA_mm)"
    assert found[11:] == [f"{start}found at least two devices, cuda:0 and cpu!",
                          "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a MKLDNN tensor and "
                          "weight is a dense tensor", "Input type (torch.cuda.FloatTensor) and bias type (torch.FloatTensor) should be the same"]
