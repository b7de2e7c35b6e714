"""What editors and type checkers see: the stubs are those of this torchlike, and ordinary programs have the types that they have in PyTorch."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = '''
from typing import Any, assert_type

import numpy as np
import torchlike as torch
import torchlike.nn.functional as F
from torchlike import Tensor, nn
from torchlike.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3)
        self.blocks = nn.ModuleList([nn.Linear(8, 8)])
        self.scale = nn.Parameter(torch.ones(8), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        assert_type(self.first.weight.detach(), Tensor)
        x = F.relu(self.first(x)).mean((2, 3)) * self.scale
        for block in self.blocks[:1]:
            x = block(x)
        return F.max_pool1d(x, 2)


x = torch.randn(3, 4, dtype=torch.float, requires_grad=True)
assert_type(x, Tensor)
assert_type(2 ** -x @ x.T + 1, Tensor)
assert_type(x > 0, Tensor)
assert_type(x[0, None, :2], Tensor)
assert_type(x.shape, torch.Size)
assert_type(x.shape[0], int)
assert_type(x.size(-1), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.grad, Tensor | None)
assert_type(x.dtype, torch.dtype)
assert_type(x.device.type, str)
assert_type(x.is_cuda, bool)
array: np.ndarray = x.numpy()
assert_type(x.add_(1).relu(), Tensor)
assert_type(torch.zeros(size=(2, 3), device="cpu"), Tensor)
assert_type(torch.empty(x.shape, memory_format=torch.contiguous_format), Tensor)
assert_type(torch.rand([2], generator=torch.Generator().manual_seed(1)), Tensor)
assert_type(x.new_ones(x.shape, dtype=torch.int64), Tensor)
assert_type(torch.add(x, x, out=torch.empty(3, 4)), Tensor)
assert_type(torch.max(x), Tensor)
assert_type(torch.max(x, dim=1), torch.return_types.max)
assert_type(x.max(1).indices, Tensor)
assert_type(x.max(x), Tensor)
assert_type(x.topk(2), torch.return_types.topk)
assert_type(torch.linalg.svd(x).S, Tensor)
assert_type(torch.fft.rfft(x), Tensor)
assert_type(torch.special.entr(x), Tensor)
assert_type(torch.unique(x), Tensor)
assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
assert_type(torch.where(x > 0, x, 0.0), Tensor)
assert_type(x.type(), str)
assert_type(x.type(torch.int64), Tensor)
assert_type(x.chunk(2), tuple[Tensor, ...])
assert_type(torch.autograd.grad(x.sum(), x), tuple[Tensor, ...])
a, b = x.split(2)
for row in x:
    assert_type(row, Tensor)
kept: torch.LongTensor = torch.LongTensor(3)

net = Net().to("cpu")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scaler = torch.amp.GradScaler("cpu")
torch.backends.cudnn.benchmark = True
torch.cuda.manual_seed_all(1)
for images, labels in DataLoader(TensorDataset(torch.ones(4, 1, 8, 8), torch.ones(4))):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.mse_loss(net(images), labels)
    assert_type(loss, Tensor)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.zero_grad(set_to_none=True)
assert_type(net.state_dict(), dict[str, Any])


@torch.no_grad()
def evaluate(number: int) -> str:
    return str(number)


@torch.compile
def compiled(number: int) -> str:
    return str(number)


assert_type(evaluate(1), str)
assert_type(compiled(1), str)
assert_type(torch.distributions.Normal(0.0, 1.0).sample(), Tensor)
assert_type(torch.compile(net), Net)
'''

MISTAKES = '''
import torchlike as torch
torch.randn(3).no_such_method()
torch.no_such_function
torch.nn.Linear("a", 3)
torch.relu(3)
length: str = torch.ones(3).size(0)
torch.randn(3, dtype="float")
torch.ones(3).new_zeros(2, layer=1)
'''


def run(*command: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, env=os.environ | environment)


def test_the_stubs_are_those_of_this_torchlike():
    found = run("scripts/stubs.py", "--check")
    assert found.returncode == 0, f"run `python scripts/stubs.py`:\n{found.stdout}{found.stderr}"


def test_programs_have_the_types_that_they_have_in_pytorch(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    said = run("-m", "mypy", "program.py", "mistakes.py", "--follow-imports=silent", "--no-color-output", "--no-error-summary",
               folder=tmp_path, MYPYPATH=str(ROOT)).stdout.splitlines()
    wrong = [line for line in said if not line.startswith("mistakes.py")]
    assert wrong == []
    seen = [line.partition(": error: ")[::2] for line in said if ": error: " in line and "No overload variant of \"new_" not in line]  # which is its second
    assert [where for where, _ in seen] == [f"mistakes.py:{n}" for n in range(3, 10)]
    for (_, words), name in zip(seen, ("no_such_method", "no_such_function", "Linear", "relu", "int", "randn", "layer")):
        assert name in words
