"""Names that packages take from torch: which of them real torch has and torchlike lacks.

    pip download --no-deps --only-binary=:all: -d WHEELS PACKAGE ...
    python benchmarks/library_names.py WHEELS [--without vllm,sglang] [--out FILE]

WHEELS is a folder of wheels, which are read and not installed. Every `import torch.x`, `from torch.x import y` and chain of attributes
that starts at one counts, private names too, wherever it stands: in code for other versions of torch or other machines as well. Names that real torch
lacks are left out.
"""
from __future__ import annotations

import argparse
import ast
import importlib
import json
import subprocess
import sys
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from environment import report

SHOWN = 40  # rows of the table


def sources(wheels: Path) -> Iterator[tuple[str, str]]:
    """(package, source) of each Python file that names torch."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".py") and "torch" in (text := archive.read(name).decode(errors="ignore")):
                    yield wheel.name.partition("-")[0], text


def names(text: str) -> set[str]:
    """The dotted names that a source takes from torch."""
    tree = ast.parse(text)
    found, alias = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name.partition(".")[0] == "torch":
                    found.add(a.name)
                    alias[a.asname or "torch"] = a.name if a.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").partition(".")[0] == "torch":
            for a in node.names:
                full = node.module if a.name == "*" else f"{node.module}.{a.name}"
                found.add(full)
                alias[a.asname or a.name] = full
    for node in ast.walk(tree):
        chain, inner = [], node
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if chain and isinstance(inner, ast.Name) and inner.id in alias:
            found.add(".".join([alias[inner.id], *reversed(chain)]))
    return found


def has(name: str) -> bool:
    """Whether the torch of this process has a name, as an attribute or as a module."""
    place, *parts = name.split(".")
    owner = sys.modules[place]
    for part in parts:
        place = f"{place}.{part}"
        try:
            owner = getattr(owner, part)
        except Exception:
            try:
                owner = importlib.import_module(place)
            except BaseException:  # some of torch's modules end the process where a part is missing
                return False
    return True


def resolve(backend: str) -> None:
    """Read names, a JSON list, and write those that `backend` has."""
    warnings.simplefilter("ignore")
    wanted, out = json.load(sys.stdin), sys.stdout
    sys.stdout = sys.stderr
    if backend == "torchlike":
        import torchlike
        torchlike.install()
    import torch  # noqa: F401
    json.dump([n for n in wanted if has(n)], out)


def had(backend: str, wanted: list[str]) -> set[str]:
    done = subprocess.run([sys.executable, __file__, "--resolve", backend], input=json.dumps(wanted), capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("wheels", type=Path, nargs="?")
    parser.add_argument("--without", default="")
    parser.add_argument("--resolve")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.resolve:
        return resolve(arguments.resolve)
    uses: dict[str, set[str]] = defaultdict(set)
    packages, unread = set(), 0
    for package, text in sources(arguments.wheels):
        if package in arguments.without.split(","):
            continue
        packages.add(package)
        try:
            taken = names(text)
        except SyntaxError:  # Python 2, templates
            unread += 1
            continue
        for name in taken:
            uses[name].add(package)
    real, ours = had("torch", sorted(uses)), had("torchlike", sorted(uses))
    lacking = sorted(real - ours, key=lambda n: (-len(uses[n]), n))
    lines = [f"{len(packages)} packages ({unread} files could not be read) take {len(real)} names that real torch has; torchlike has {len(real & ours)} of them.",
             "", "| name | packages |", "|---|---|", *(f"| `{n}` | {', '.join(sorted(uses[n])[:6])} |" for n in lacking[:SHOWN])]
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
