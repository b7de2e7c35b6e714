"""Which dimensions of the inputs are dynamic, and of which sizes the model is run to see what depends on them."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._tensor import Tensor
from ..export.dynamic_shapes import Dim
from ..utils._pytree import tree_leaves

Labels = list[dict[int, Any]]  # for each input: the dynamic dimensions and their names (None: a name is made up)


def from_shapes(named: list[tuple[str, Any]], shapes: Any) -> Labels:
    """What `dynamic_shapes` says of the arguments, (name, argument) in their order."""
    if isinstance(shapes, Mapping):
        shapes = {**shapes, **{f"{key}_{i}": s for key, spec in shapes.items() if isinstance(spec, (tuple, list)) for i, s in enumerate(spec)
                               if key not in dict(named) and f"{key}_{i}" in dict(named)}}  # those of *args
        unknown = [k for k in shapes if k not in dict(named) and f"{k}_0" not in dict(named)]
        if unknown:
            raise ValueError(f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {[n for n, _ in named]} of `inputs`, "
                             f"but here they are {list(shapes)}. ")
        specs = [shapes.get(name) for name, _ in named]
    else:
        specs = list(shapes) if len(shapes) == len(named) else [*shapes, *[None] * (len(named) - len(shapes))]
    return [labels for (_, x), spec in zip(named, specs) for labels in _labels(x, spec)]


def _labels(x: Any, spec: Any) -> Iterator[dict[int, Any]]:
    if isinstance(x, Tensor):
        pairs = () if spec is None else spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        yield {d % x.ndim: s for d, s in pairs if s is not None and not isinstance(s, int) and s is not Dim.STATIC}
    elif isinstance(x, Mapping):
        for key in x:
            yield from _labels(x[key], None if spec is None else spec.get(key))
    elif isinstance(x, (list, tuple)):
        for i, y in enumerate(x):
            yield from _labels(y, None if spec is None else spec[i])
    else:
        yield from ({} for t in tree_leaves(x) if isinstance(t, Tensor))


def from_axes(names: Sequence[str], axes: Mapping[str, Any]) -> Labels:
    """What `dynamic_axes` says of the inputs of these names."""
    return [_axes(axes.get(name, ())) for name in names]


def _axes(given: Any) -> dict[int, Any]:
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)


class Sizes:
    """The dynamic dimensions as symbols: those of one name are one. `together`: and those of one size that have no name."""

    def __init__(self, inputs: list[Tensor], labels: Labels, together: bool = False) -> None:
        self.base: dict[Any, int] = {}
        self.names: dict[Any, str] = {}
        self.of: list[dict[int, tuple[Any, int, int]]] = []  # (symbol, a, b): the size is a * symbol + b
        self.leading: set[Any] = set()
        for i, (x, dims) in enumerate(zip(inputs, labels, strict=True)):
            mine = {}
            for d, label in dims.items():
                d %= max(x.ndim, 1)
                symbol, a, b = self._symbol(label, i, d, x.shape[d], together)
                self.base.setdefault(symbol, (x.shape[d] - b) // a)
                if d == 0:
                    self.leading.add(symbol)
                mine[d] = symbol, a, b
            self.of.append(mine)

    def _symbol(self, label: Any, i: int, d: int, n: int, together: bool) -> tuple[Any, int, int]:
        a, b = 1, 0
        if isinstance(label, Dim):
            label, a, b = label.root.__name__, label.factor, label.offset
        if isinstance(label, str):
            self.names[label] = label
            return label, a, b
        key = ("size", n) if together else (i, d)
        self.names.setdefault(key, f"s{len(self.names)}")
        return key, a, b

    def attempts(self) -> Iterator[list[dict[Any, int]]]:
        """Sizes of the symbols in each run. Which differences a model takes shows when it runs."""
        steps = [_OFFSETS[i % len(_OFFSETS)] for i in range(len(self.base))]
        for unit, leading in ((7, 1), (1, 1), (8, 1), (16, 1), (32, 1), (64, 1), (0, 1), (-1, 1), (-2, 1), (8, 8), (16, 16), (0, 0), (-1, -1), (-2, -2)):
            units = [leading if s in self.leading else unit for s in self.base]
            runs = [{s: _at(max(n, 2), k and step[k - 1], u) for (s, n), step, u in zip(self.base.items(), steps, units)} for k in range(RUNS)]
            if all(n >= 1 for run in runs for n in run.values()):
                yield runs

    def shapes(self, inputs: list[Tensor], run: dict[Any, int]) -> list[tuple]:
        """The inputs' shapes in a run."""
        return [tuple(_size(dims.get(d), run, n) for d, n in enumerate(x.shape)) for x, dims in zip(inputs, self.of)]


def _at(n: int, k: int, unit: int) -> int:
    """The k-th size after n: so many units more, or (0) as many times n, or (-2) such a part of it."""
    return n * (1 + k) if unit == 0 else n // (1 + k) if unit == -2 else n + k * unit


def _size(dim: tuple[Any, int, int] | None, run: dict[Any, int], n: int) -> int:
    if dim is None:
        return n
    symbol, a, b = dim
    return a * run[symbol] + b


RUNS = 5
_OFFSETS = [(1, 2, 4, 3), (2, 3, 1, 5), (1, 3, 5, 2), (3, 1, 2, 6), (4, 1, 6, 2), (2, 6, 3, 1), (5, 2, 1, 7), (1, 4, 2, 7), (6, 3, 7, 1), (3, 7, 1, 5)]
# by which symbols differ between the runs: in no symbol as in another, nor as in the product of two
