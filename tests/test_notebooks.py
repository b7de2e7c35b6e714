"""Cells that IPython runs, as a notebook's kernel does."""
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def printed(folder, *cells: str) -> str:
    """What the cells print, their results and warnings included, one after the other in one shell."""
    path = folder / "cells.py"
    path.write_text("from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance(colors='nocolor')\n"
                    f"for cell in {[textwrap.dedent(c) for c in cells]!r}:\n    shell.run_cell(cell, store_history=True)\n")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=240, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder), "TORCHLIKE_IMMEDIATE": "0"})
    return done.stdout + done.stderr


def test_explain_names_cells(tmp_path):
    """Their files are called by a hash of what is in them, which says nothing to who looks for the line."""
    text = printed(tmp_path, "import torchlike as torch\nx = torch.ones(300, 300)", """
        y = x.sin() @ x
        for _ in range(2):
            z = (y @ y).sum().item()
        """, """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return x * 2
            return x
        [f(x) for _ in range(3)];
        """, """
        made = {}
        exec("def total(x): return (x * 3).sum().item()", made)  # as dataclasses make theirs
        made["total"](x);
        """, "print(torch.explain())")
    assert "\nIn[2]:3 " in text and "\nIn[3]:3 " in text and "\nIn[4]:3 " in text and "stays eager: value observed at In[3]:3" in text, text
    assert not any(x in text for x in ("ipython", "interactiveshell", "contextlib", "<string>")), text


def test_a_warning_names_the_cell(tmp_path):
    text = printed(tmp_path, "import torchlike as torch\nx = torch.ones(3, requires_grad=True) * 2", "x.grad;")
    assert "<ipython-input-2-" in text and "UserWarning: The .grad attribute of a Tensor that is not a leaf" in text, text


def test_shell_commands_warn_of_no_deadlock(tmp_path):
    text = printed(tmp_path, "import torchlike as torch\ntorch.ones(3).jax();", "!echo one && echo two", "%%bash\necho three")
    assert all(x in text for x in ("one", "two", "three")) and "deadlock" not in text, text


def test_nodes_are_shown_as_pytorchs(tmp_path):
    cells = ("x = torch.ones(2, requires_grad=True)\nx.exp().grad_fn", "(x * 2).grad_fn.next_functions", "print(x.exp().grad_fn)", """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
        Twice.apply(x).grad_fn
        """)
    ours, theirs = (re.sub("0x[0-9a-f]+", "0x", printed(tmp_path, start, *cells)) for start in ("import torchlike as torch", "import torch"))
    assert ours == theirs and "<ExpBackward0 at 0x>" in ours, ours
