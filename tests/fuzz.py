"""Differential fuzzing: random programs run on real torch and on torchlike, every step and every tensor compared.

    python tests/fuzz.py --programs 10000 --seed 0

A program that differs is shrunk and printed as a script that takes the library's name as its argument.
"""
import argparse
import importlib
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from compare import Raised, close, differences, observe, raised  # noqa: E402
from fuzz_programs import GRADIENT, Writer, is_tensor, namespace, run_line, usable  # noqa: E402

# What torch says where a backward would need a value that is gone, which torchlike still has.
OVERWRITTEN = ("modified by an inplace operation", "has been modified inplace", "detached in-place")
RTOL = {"float64": 1e-8, "float32": 1e-3}  # the rounding of a dozen steps


class Wrong:
    """Real torch with one function wrong, which a fuzzer has to find."""

    def __init__(self, torch, name, wrong):
        self._torch, self._name, self._wrong = torch, name, wrong

    def __getattr__(self, name):
        return self._wrong if name == self._name else getattr(self._torch, name)


def seen(value: Any, torch: Any) -> dict[str, Any]:
    """All that a program's end shows of one tensor."""
    grad = value.grad if value.is_leaf and value.requires_grad else None
    return {"value": observe(value), "leaf": value.is_leaf, "version": value._version,
        "grad": None if grad is None else observe(grad)}


def run(lines: list[str], torch: Any, context: Callable[[], AbstractContextManager] = nullcontext, looking: bool = False) -> dict[str, Any]:
    """The outcome of each line that raised, of each observation, and of each tensor still named at the end.

    A failed backward ends the program: how far it had come is nobody's business. `looking`: after each line at every tensor, as the writer
    of the program did. Real torch's views notice a write when somebody looks, and some errors go by whether somebody has."""
    names, outcomes = namespace(torch), {}
    torch.manual_seed(0)
    with context():
        for number, line in enumerate(lines):
            error = run_line(line, names)
            for value in names.values() if looking else ():
                if is_tensor(torch, value):
                    usable(value)
            if error is None:
                continue
            outcomes[f"line {number}: {line}"] = raised(error)
            if "backward(" in line or "grad(" in line:
                for value in names.values():
                    if is_tensor(torch, value) and usable(value) and value.is_leaf:
                        value.grad = None
                break
        for name, value in names.items():
            if is_tensor(torch, value):
                try:
                    outcomes[name] = seen(value, torch)
                except Exception as error:  # an engine may fail only when its values are asked for
                    outcomes[name] = raised(error)
            elif name.startswith("o"):
                outcomes[name] = value
    return outcomes


def keeping_copies(torch: Any) -> AbstractContextManager:
    """Real torch saving a copy of each value that a backward needs: no later edit can spoil it."""
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x)


def compared(lines: list[str], oracle: Any, subject: Any,
             context: Callable[[], AbstractContextManager] = nullcontext) -> list[str]:
    """Differences of one program, most telling first.

    Where a saved value was overwritten, torch refuses the gradient, or silently takes the new value (an edit through
    `.data`). The subject may do as torch does, or give the gradient that torch gives when it keeps copies."""
    want, got = run(lines, oracle, looking=True), run(lines, subject, context)
    # float32 comes from integers too, and may be hidden in an `out=` of float64
    coarse = any(words in line for line in lines for words in ("float32", ".float()", "out=")) or any(
        isinstance(w, dict) and w["value"].dtype == "float32" for w in want.values())
    found = _differences(want, got, coarse)
    overwritten = any(isinstance(w, Raised) and any(words in w.message for words in OVERWRITTEN) for w in want.values())
    if found and (overwritten or any(".data" in line for line in lines)):
        with_copies = run(lines, oracle, partial(keeping_copies, oracle), looking=True)
        right = [text for text in _differences(with_copies, got, coarse) if not text.startswith("version")]
        return right if overwritten or not right else found
    return found


def _differences(want: dict[str, Any], got: dict[str, Any], coarse: bool) -> list[str]:
    found = []
    for key in {**want, **got}:
        if key not in got or key not in want:
            side = got.get(key, want.get(key))
            if key.startswith("line"):
                what = f"raises {side.kind} ({side.message[:150]})"
                found.append(f"class: {key}: {what}, torch does not" if key in got else f"class: {key}: torch {what}")
            else:
                found.append(f"missing: {key} exists only on one side")
            continue
        w, g = want[key], got[key]
        if isinstance(w, Raised) and not key.startswith("line"):
            continue  # a view that torch itself no longer lets anybody look at
        if isinstance(w, dict) and isinstance(g, dict):
            found += [f"{d.kind}: {key}: {d.text}"
                      for d in differences(w["value"], g["value"], strides=None, values=False, where="tensor")]
            if _walk(w["value"]) != _walk(g["value"]):
                found.append(f"stride: {key} has {g['value'].stride}, torch {w['value'].stride} of {w['value'].shape}")
            found += [f"{part}: {key}.{part} is {g[part]}, torch {w[part]}"
                      for part in ("leaf", "version") if w[part] != g[part]]
            found += _values(key, w["value"], g["value"], "value", coarse)
            if (w["grad"] is None) != (g["grad"] is None):
                found.append(f"grad: {key}.grad is {'None' if g['grad'] is None else 'there'} on our side only")
            elif w["grad"] is not None:
                found += _values(key + ".grad", w["grad"], g["grad"], "grad", coarse)
        elif isinstance(w, Raised) or isinstance(g, Raised):
            found += [f"{d.kind}: {key}: {d.text}" for d in differences(w, g)]
        elif not _equal(w, g):
            found.append(f"observed: {key} is {str(g)[:100]}, torch {str(w)[:100]}")
    order = ("class", "missing", "raised", "not raised", "dtype", "shape", "value", "grad", "observed", "leaf",
        "stride", "version")
    return sorted(found, key=lambda text: (order.index(text.split(":")[0]) if text.split(":")[0] in order else 99,
        _line_number(text)))


def _line_number(text: str) -> int:
    """The line a difference is about: the first that differs is the cause of what follows."""
    found = re.match(r"class: line (\d+)", text)
    return int(found[1]) if found else 0


def _walk(x: Any) -> list[int]:
    """The strides that matter: of dimensions with more than one element."""
    return [stride for stride, size in zip(x.stride, x.shape) if size > 1 and x.values.size]


def _values(key: str, want: Any, got: Any, kind: str, coarse: bool) -> list[str]:
    if want.shape != got.shape or want.dtype != got.dtype:
        return [f"{kind}: {key} is {got.dtype}{got.shape}, torch {want.dtype}{want.shape}"]
    if close(want.values, got.values, RTOL["float32" if coarse else want.dtype] if want.dtype in RTOL else 0.0):
        return []
    return [f"{kind}: {key} is {got.values.tolist()}, torch {want.values.tolist()}"]


def _equal(want: Any, got: Any) -> bool:
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(_equal(w, g) for w, g in zip(want, got))
    if isinstance(want, float) and isinstance(got, float):
        return close(want, got, 1e-3)
    return type(want) is type(got) and want == got or _is_number(want) and _is_number(got) and close(want, got, 1e-3)


def _is_number(x: Any) -> bool:
    return hasattr(x, "__float__") and not isinstance(x, (bool, str))


def shrink(lines: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """Drop lines while the program still fails, in ever smaller pieces."""
    size = max(len(lines) // 2, 1)
    while size:
        start = 0
        while start < len(lines):
            shorter = lines[:start] + lines[start + size:]
            if shorter and fails(shorter):
                lines = shorter
            else:
                start += size
        size //= 2
    return lines


def program(oracle: Any, seed: int) -> list[str]:
    return Writer(oracle, seed).write(length=6 + seed % 20)


def check(oracle: Any, subject: Any, seed: int, context: Callable[[], AbstractContextManager] = nullcontext,
    shrinking: bool = True) -> tuple[list[str], list[str]]:
    """(differences, shrunk program) of the program of this seed; both empty when all agrees."""
    lines = program(oracle, seed)
    found = compared(lines, oracle, subject, context)
    if not found or not shrinking:
        return found, lines if found else []

    def fails_alike(shorter: list[str]) -> bool:
        again = compared(shorter, oracle, subject, context)
        return bool(again) and signature(again[0]) == signature(found[0])
    lines = shrink(lines, fails_alike)
    return compared(lines, oracle, subject, context), lines


def signature(text: str) -> tuple[str, ...]:
    """What a shrunk program must keep of a difference: its kind and the exception classes."""
    return (text.split(":")[0], *re.findall(r"\b\w+(?:Error|Exception|Interrupt)\b", text))


def script(lines: list[str], found: list[str]) -> str:
    """A failing program as a file to run: `python failing.py torch`, `python failing.py torchlike`."""
    head = ["import importlib, sys", "torch = importlib.import_module(sys.argv[1])", "F = torch.nn.functional", GRADIENT]
    names = sorted({match[1] for line in lines if (match := re.match(r"(?:with .*: )?(t\d+),? = ", line))})
    tail = [f"print({name!r}, {name}, {name}.grad if getattr({name}, 'is_leaf', 0) else '')" for name in names]
    return "\n".join([*(f"# {text[:220]}" for text in found[:4]), *head, *lines, *tail])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--subject", default="torchlike")
    parser.add_argument("--mode", choices=("default", "immediate", "numpy", "compiled"), default="default")
    parser.add_argument("--show", type=int, default=20, help="how many failing programs to print")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    oracle, subject = importlib.import_module("torch"), importlib.import_module(options.subject)
    oracle.set_num_threads(1)
    context: Callable[[], AbstractContextManager] = nullcontext
    if options.mode == "immediate":
        context = subject.immediate
    elif options.mode != "default":
        executor = importlib.import_module("torchlike._core.program")
        context = partial(executor.tier, options.mode)
    kinds, failures, lines_run, start = Counter(), 0, 0, time.time()
    for seed in range(options.seed, options.seed + options.programs):
        found, lines = check(oracle, subject, seed, context, shrinking=failures < options.show)
        lines_run += len(lines)
        if found:
            failures += 1
            kinds[found[0].split(":")[0]] += 1
            if failures <= options.show:
                print(f"\n# ---------------- seed {seed}\n{script(lines, found)}", flush=True)
    print(f"\n{options.programs} programs, {failures} differ {dict(kinds)}, {time.time() - start:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
