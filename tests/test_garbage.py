"""What the import made is kept from Python's garbage collector until somebody asks which objects there are."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parent.parent)
PROGRAMS = {
    "aside": """
import gc, torchlike as torch
before = gc.get_freeze_count()
print(before > 10_000, len(gc.get_objects()) < before / 10)
x = torch.ones(3)
print(any(o is x for o in gc.get_objects()))""",
    "in a process that has run for long": """
import gc
many = [[] for _ in range(300_000)]
import torchlike
print(gc.get_freeze_count() < 1000)""",
    "where the program freezes": """
import gc
mine = [[]]
gc.freeze()
count = gc.get_freeze_count()
import torchlike
print(gc.get_freeze_count() <= count)""",
    "traced": """
import gc
held = {}
def make(n):
    def scale(x):
        return x * n
    def more():
        nonlocal n
        n += 1
    return scale, more
scale, more = make(2)
import torchlike as torch
@torch.compile
def f(x):
    return scale(x) + 1
for _ in range(4):
    print(f(torch.ones(2)).tolist() == [3, 3])
print(gc.get_freeze_count() < 1000)
more()
print(f(torch.ones(2)).tolist() == [4, 4])""",
    "frozen by the program": """
import gc, torchlike as torch
layer, w, x, kept = torch.nn.Linear(2, 2), torch.ones(2, requires_grad=True), torch.ones(3, 2), []
optimizer = torch.optim.SGD([w], lr=.5)
def step(n):
    optimizer.zero_grad()
    loss = (x * w * n).sum()
    loss.backward()
    optimizer.step()
    return loss
def keeps(x):
    kept.append(x * 2)
    return x + 1
compiled, keeping = torch.compile(step, fullgraph=True), torch.compile(keeps)
gc.freeze()
for _ in range(4):
    before = w.tolist()
    print(compiled(2).item() == 6 * sum(before), w.tolist() == [b - 3 for b in before])
    keeping(x)
print(len(kept) == 4, len({id(t) for t in kept}) == 4)
count = gc.get_freeze_count()
print(count > 10_000, len(gc.get_objects()) < count / 10)
gone = [torch.nn.Linear(2, 2)]
gone.append(gone)
del gone
compiled(3), compiled(3)
print(sum(type(o) is torch.nn.Linear for o in gc.get_objects()) == 0)
gc.unfreeze()
print(sum(type(o) is torch.nn.Linear for o in gc.get_objects()) == 1)""",
    "swapped where frozen": """
import gc, torchlike as torch
a, b = torch.ones(3), torch.zeros(2)
view = a[:2]
gc.freeze()
try:
    torch.utils.swap_tensors(a, b)
    print(False)
except RuntimeError:
    print(True)
print(gc.get_freeze_count() > 10_000)""",
    "collected": """
import gc, weakref, torchlike as torch
class Holder: pass
a = Holder()
a.me, a.x = a, torch.ones(3)
gone = weakref.ref(a.x)
del a
gc.collect()
print(gone() is None)""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_import_is_kept_from_the_collector(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAMS[name]], env=dict(os.environ, PYTHONPATH=ROOT), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"True"}
