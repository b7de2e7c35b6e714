"""Calls of every public function and method with arguments that seldom fit, on real torch and on torchlike: what is taken, what refused, in which words.

    python tests/wrong_calls.py --pairs 20

Prints how many calls are taken by one library alone, refused by another class of error, or in other words, and the most frequent pairs of words.
"""
import argparse
import inspect
import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

SCOPES = ("", "nn.functional", "linalg", "special", "fft")
# what changes the library's state, makes random numbers, opens files or never returns
LEFT = ("set_", "is_", "get_", "use_", "init", "randn", "fork", "import", "_", "enable", "disable", "cudnn", "seed", "save", "load", "rand", "manual", "compile",
        "thread", "immediate", "jax", "backward", "share_memory", "register_hook", "retain_grad", "cuda", "cpu", "xpu", "ipu", "hpu", "mtia", "pin_memory", "data_ptr")
OF_FUNCTIONS = ((), ("x",), ("x", "a"), ("x", 2.5), ("a",), ("x", 1, "a"), ("x", "x"), ("x", (1, 0), None), ("x", 0), ("x", (1, 1), 3))
OF_METHODS = ((), ("a",), (2.5,), (1,), ("x",), ("x", "x"), (1, "a"), ((1, 0),), (None,), (True,), (0, 9))


def outcome(torch: Any, f: Callable, args: tuple, **kwargs: Any) -> str:
    """What a call led to: the error in the library's words, or nothing. The letter x stands for a matrix."""
    torch.manual_seed(0)
    try:
        f(*[matrix(torch) if a == "x" else a for a in args], **{name: matrix(torch) if a == "x" else a for name, a in kwargs.items()})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def matrix(torch: Any) -> Any:
    return torch.linspace(0.1, 0.9, 4).reshape(2, 2)


def found(torch: Any, scope: str) -> Any:
    for name in filter(None, scope.split(".")):
        torch = getattr(torch, name)
    return torch


def calls(subject: Any, oracle: Any) -> Iterator[tuple[str, Callable[[Any], str]]]:
    """Each call's text, and what makes it under a library."""
    for scope in SCOPES:
        for name, f in sorted(vars(found(subject, scope)).items()):
            if name.startswith(LEFT) or not inspect.isfunction(f) or not callable(getattr(found(oracle, scope), name, None)):
                continue
            for args in OF_FUNCTIONS:
                yield f"{scope or 'torch'}.{name}{args}", lambda torch, scope=scope, name=name, args=args: outcome(torch, getattr(found(torch, scope), name), args)
            yield f"{scope or 'torch'}.{name}(input=x, foo=1)", lambda torch, scope=scope, name=name: outcome(torch, getattr(found(torch, scope), name), (), input="x", foo=1)
    for name in sorted(dir(subject.Tensor)):
        if name.startswith(LEFT) or not inspect.isfunction(getattr(subject.Tensor, name)) or not hasattr(oracle.Tensor, name):
            continue
        for args in OF_METHODS:
            yield f"x.{name}{args}", lambda torch, name=name, args=args: outcome(torch, getattr(matrix(torch), name), args)
        yield f"x.{name}(foo=1)", lambda torch, name=name: outcome(torch, getattr(matrix(torch), name), (), foo=1)


def pattern(words: str) -> str:
    """Words without names and numbers."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+|[\w.]+\(\)", "#", words)[:70]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=0, help="print so many of the most frequent pairs of words")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch as oracle

    import torchlike as subject
    total, taken, classes, words, pairs = 0, 0, 0, 0, defaultdict(list)
    for text, call in calls(subject, oracle):
        want, got = call(oracle), call(subject)
        total += 1
        if want == got:
            continue
        if not want or not got:
            taken += 1
        elif want.partition(":")[0] != got.partition(":")[0]:
            classes += 1
        else:
            words += 1
        pairs[pattern(want), pattern(got)].append((text, want, got))
    print(f"{total} calls: {taken} taken by one library alone, {classes} refused by another class of error, {words} in other words")
    for same in sorted(pairs.values(), key=len, reverse=True)[:options.pairs]:
        text, want, got = same[0]
        print(f"\n{len(same)} as {text}\n    torch      {want[:200]!r}\n    torchlike  {got[:200]!r}")


if __name__ == "__main__":
    main()
