"""The examples in PyTorch's docstrings, run by real torch and by torchlike: how many print the same.

    OMP_NUM_THREADS=1 python benchmarks/docstrings.py [--out benchmarks/results/docstrings.md]

Examples are taken from the installed PyTorch's docstrings when this runs, and each library runs them in a process of its own, every
docstring from the same seeds. A docstring counts up to its first statement that prints (or raises) something else; addresses of objects
are no difference, what uninitialized memory holds is one. Docstrings that load from a network or start processes are left out.
"""
from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import inspect
import io
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
MODULES = """torch torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn torch.nn.utils.parametrizations torch.nn.utils.parametrize
torch.nn.utils.stateless torch.nn.attention torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.autograd torch.autograd.functional
torch.autograd.forward_ad torch.autograd.graph torch.autograd.profiler torch.utils.data torch.utils.checkpoint torch.utils.dlpack torch.utils.benchmark
torch.utils._pytree torch.linalg torch.fft torch.special torch.func torch.distributions torch.fx torch.sparse torch.masked torch.nested torch.random
torch.amp torch.overrides torch.library torch.export torch.jit torch.signal.windows torch.backends torch.compiler torch.futures torch.testing
torch.profiler torch.cuda""".split()
NOT_HERE = ("set_default_device", "set_default_tensor_type", "torch.hub", "torch.distributed", "torch.multiprocessing", "torch.package")
SECONDS = 20  # of one statement


def docstrings() -> list[tuple[str, list[str]]]:
    """(name, statements) of each docstring of PyTorch that has examples."""
    found: dict[str, str] = {}

    def add(name: str, x) -> None:
        doc = getattr(x, "__doc__", None)
        if isinstance(doc, str) and ">>>" in doc and not name.startswith(NOT_HERE):
            found.setdefault(doc, name)
    for module in map(importlib.import_module, MODULES):
        add(module.__name__, module)
        for name, x in vars(module).items():
            if name.startswith("__") or isinstance(x, types.ModuleType) or (name.endswith("Tensor") and name != "Tensor"):  # the older types' are Tensor's
                continue
            add(f"{module.__name__}.{name}", x)
            if inspect.isclass(x) and x.__module__.startswith("torch"):
                for attribute, y in list(vars(x).items()):
                    add(f"{module.__name__}.{name}.{attribute}", y)
    return [(name, statements(doc)) for doc, name in found.items()]


def statements(doc: str) -> list[str]:
    try:
        return [e.source for e in doctest.DocTestParser().get_examples(doc)]
    except ValueError:  # indented unevenly
        found: list[str] = []
        for line in map(str.strip, doc.splitlines()):
            if line.startswith(">>> "):
                found.append(line[4:] + "\n")
            elif line.startswith("... ") and found:
                found[-1] += line[4:] + "\n"
        return found


def run(library: str, examples: list) -> list[list[str]]:
    """What each statement prints, or the error that it raises."""
    if library == "torchlike":
        import torchlike
        torchlike.install()
    import numpy as np
    import torch

    def expired(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, expired)
    printed = []
    for _, sources in examples:
        for seed in (random.seed, np.random.seed, torch.manual_seed):
            seed(0)
        torch.set_printoptions(profile="default")
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.use_deterministic_algorithms(False)
        names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": np, "__name__": "__main__"}
        printed.append([])
        for source in sources:
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                signal.alarm(SECONDS)
                try:
                    if not any(word in source for word in NOT_HERE):
                        exec(compile(source, "<example>", "single"), names)
                except BaseException as error:
                    out.write(f"{type(error).__name__}: {str(error).splitlines()[:1]}")
                signal.alarm(0)
            printed[-1].append(re.sub(r"0x[0-9a-f]+", "0x", out.getvalue()).replace("torchlike", "torch"))
    return printed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", nargs=3)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.run:
        library, examples, results = arguments.run
        Path(results).write_text(json.dumps(run(library, json.loads(Path(examples).read_text()))))
        return
    from environment import describe
    examples = docstrings()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").write_text(json.dumps(examples))
        for library in ("torch", "torchlike"):
            subprocess.run([sys.executable, str(HERE), "--run", library, f"{folder}/examples", f"{folder}/{library}"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        there, here = (json.loads((Path(folder) / library).read_text()) for library in ("torch", "torchlike"))
    differ = sorted(name for (name, _), x, y in zip(examples, there, here) if x != y)
    same = sum(next((k for k, (a, b) in enumerate(zip(x, y)) if a != b), len(x)) for x, y in zip(there, here))
    lines = [f"{len(examples)} docstrings with examples; {len(examples) - len(differ)} of them print the same from the first statement to the last, "
             f"{same} statements of {sum(map(len, there))}.", "", "The others:", "", ", ".join(f"`{name}`" for name in differ)]
    print("\n".join(lines))
    if arguments.out:
        Path(arguments.out).write_text(f"{__doc__}\n{describe()}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
