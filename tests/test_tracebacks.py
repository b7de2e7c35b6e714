"""Errors are shown by the program's own lines: as many frames as PyTorch shows, which has none of what it does in C++."""
import inspect
import os
import re
import subprocess
import sys
import textwrap
import traceback

import pytest

from torchlike._exchange import exchange

PROGRAM = """
import sys, threading
import {module} as torch

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.view(99)

def called(f):
    return f(torch.ones(3, 4))

CALLS = [
{calls}
]

def show():
    for f in CALLS:
        try:
            called(f)
        except Exception as error:
            sys.stderr.write("-----\\n")
            sys.excepthook(type(error), error, error.__traceback__)

{start}
"""
CALLS = ["x + x.T", "x @ x", "torch.cat([x, x[:, :2]])", "x.view(5)", "x[0, 0, 0]", "x.sum(foo=1)", "torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 9]))",
         "torch.stack(x, x)", "torch.linalg.inv(torch.zeros(2, 2))", "x.backward()"]
IN_PYTHON = ["torch.nn.Linear(5, 2)(x)", "torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Linear(3, 1))(x)", "Doubled.apply(x.requires_grad_()).sum().backward()"]


def shown(module: str, calls: list[str], folder, start: str = "show()", **environment: str) -> list[tuple[list[str], str]]:
    """For each traceback that a program shows: the files of its frames, and its last line."""
    path = folder / "program.py"
    path.write_text(PROGRAM.format(module=module, calls="\n".join(f"    lambda x: {call}," for call in calls), start=start))
    text = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}).stderr
    return [([os.path.basename(x) for x in re.findall(r'File "([^"]*)"', part)], part.strip().splitlines()[-1]) for part in text.split("-----\n") if "Error" in part]


def test_an_error_ends_on_the_line_that_made_the_call(tmp_path):
    found = shown("torchlike", CALLS, tmp_path)
    assert len(found) == len(CALLS)
    for call, (files, _) in zip(CALLS, found, strict=True):
        assert files == ["program.py"] * 3, call


def test_modules_and_the_programs_own_functions_stay(tmp_path):
    found, expected = shown("torchlike", IN_PYTHON, tmp_path), shown("torch", IN_PYTHON, tmp_path)
    assert len(found) == len(expected) == len(IN_PYTHON)
    for (ours, message), (real, wanted) in zip(found, expected, strict=True):
        assert message == wanted
        names = ("program.py", "linear.py", "container.py")
        assert [x for x in ours if x in names] == [x for x in real if x in names]
        assert set(ours) <= {*names, "module.py"}


def test_a_thread_and_all_frames_on_request(tmp_path):
    start = "thread = threading.Thread(target=called, args=CALLS); thread.start(); thread.join()"
    (files, _), = shown("torchlike", ["x @ x"], tmp_path, start)
    assert [x for x in files if x != "threading.py"] == ["program.py"] * 2
    (files, _), = shown("torchlike", ["x @ x"], tmp_path, start, TORCHLIKE_TRACEBACK="full")
    assert "matmul.py" in files


def test_under_the_launcher(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import torch\ntorch.ones(3) @ torch.ones(4)\n")
    text = subprocess.run([sys.executable, "-m", "torchlike.run", path], capture_output=True, text=True, timeout=120).stderr
    assert re.findall(r'File "([^"]*)"', text) == [str(path)]


def test_an_error_that_nobody_meant_keeps_its_frames(tmp_path):
    (files, message), = shown("torchlike", ["x @ x.T"], tmp_path, "sys.modules['torchlike.ops.matmul'].apply = None\nshow()")
    assert "matmul.py" in files and message.startswith("TypeError: 'NoneType'")


def test_what_a_worker_reports(tmp_path):
    start = textwrap.dedent("""
    class Failing(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            return called(CALLS[0])

    if __name__ == "__main__":
        next(iter(torch.utils.data.DataLoader(Failing(), num_workers=1)))
    """)
    (files, _), = shown("torchlike", ["x @ x"], tmp_path, start)
    assert "matmul.py" not in files and files[-1] == "program.py"


def test_ipython(tmp_path):
    path = tmp_path / "cells.py"
    path.write_text(textwrap.dedent("""
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_cell("import torchlike as torch")
    shell.run_cell("torch.ones(3, 4) + torch.ones(5, 6)")
    shell.run_cell("%time torch.ones(3, 4) @ torch.ones(5, 6)")
    """))
    text = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120).stdout
    assert text.count("RuntimeError: ") == 2 and "torchlike/" not in text


def test_frames_of_exchanged_functions_show_their_own_lines():
    """Their code is made of a text in the file whose name it has."""
    def made(x):
        def inner():
            return x

        return inner

    for f in lambda: 1, made(1), made.__get__(1):
        taken = getattr(f, "__func__", f)
        exchange(taken, lambda plain: lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError) as caught:
            f()
        frame = traceback.extract_tb(caught.value.__traceback__)[-2]
        assert os.path.basename(frame.filename) == "_exchange.py" and frame.line == "return _ask(*args, **kwargs)"
        assert inspect.getsourcelines(taken.__code__)[0][0].strip().startswith("def shell(")
