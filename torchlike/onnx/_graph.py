"""An ONNX graph as it is built: values, nodes, constants, and sizes that are calculated in the file."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._examples.sizes import Dyn, affine, dyn, floored, product
from ._errors import ConversionError
from ._older import older

LAST = np.iinfo(np.int64).max  # the end of a slice that reaches as far as there is


class Var:
    """A value of the graph. `shape` is None where nothing asks for it. Constants have a `value`."""

    def __init__(self, name: str, shape: tuple | None = None, dtype: dt.dtype | None = None, known: Callable[[], np.ndarray] | None = None,
                 origin: Var | None = None, symbolic: bool = False) -> None:
        self.name, self.shape, self.dtype, self.known, self.origin, self.symbolic = name, shape, dtype, known, origin, symbolic
        self.node: Node | None = None  # that makes it

    def __repr__(self) -> str:
        return f"Var({self.name}: {self.dtype}{'' if self.shape is None else list(self.shape)})"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def constant(self) -> bool:
        return self.known is not None

    @property
    def value(self) -> np.ndarray:
        return self.known()


class Node:
    """An operation of the graph."""

    def __init__(self, kind: str, inputs: list, outputs: list[Var], attributes: dict, domain: str) -> None:
        self.kind, self.inputs, self.outputs, self.attributes, self.domain = kind, inputs, outputs, attributes, domain
        self.name = ""


class Graph:
    """`opset`: of the file. `symbols`: the dynamic dimensions by name."""

    def __init__(self, opset: int, symbols: dict[str, Dyn], training: bool) -> None:
        self.opset, self.symbols, self.training = opset, symbols, training
        self.nodes: list[Node] = []
        self.inputs: list[Var] = []
        self.outputs: list[Var] = []
        self.results: list[tuple[tuple, dt.dtype]] = []  # shapes and types of the results of the operation that is being translated
        self.avals: tuple = ()  # of its inputs
        self.called = ""  # the operation that is being translated
        self.title = ""  # what its result shall be called, where that is not its name
        self.dim_names: dict[str, dict[int, str]] = {}  # names the user gave to dimensions of inputs and outputs
        self.domains: dict[str, int] = {}
        self._folded: dict[tuple, Var] = {}
        self._names: dict[str, int] = {}
        self._taken: set[str] = set()
        self._small: dict[tuple, Var] = {}
        self._dims: dict[Dyn, tuple[Var, int]] = {}  # where a size can be read
        self._sizes: dict[Dyn, Var] = {}
        self._shapes: dict[tuple, Var] = {}

    # -- names -------------------------------------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """name, name_1, name_2, ... ; a name that was reserved is not given away."""
        while True:
            n = self._names.get(name, 0)
            self._names[name] = n + 1
            made = f"{name}_{n}" if n or name == "val" else name
            if made not in self._taken:
                self._taken.add(made)
                return made

    def reserve(self, names: Iterable[str]) -> None:
        """Names that only their owners get."""
        self._taken.update(names)

    # -- constants -----------------------------------------------------------------------------------------------------------

    def const(self, value: Any, dtype: dt.dtype | None = None, name: str = "") -> Var:
        """A constant; equal small ones are one."""
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype.np)
        if isinstance(value, (int, list, tuple)) and dtype is None:
            array = np.asarray(value, np.int64)
        key = (array.dtype, array.shape, array.tobytes()) if array.size <= 64 and not name else None
        found = self._small.get(key) if key else None
        if found is None:
            found = Var(name or self.fresh("val"), array.shape, dt.from_numpy_dtype(array.dtype), lambda: array)
            if key:
                self._small[key] = found
        return found

    def folded(self, x: Var, key: tuple, f: Callable[[np.ndarray], np.ndarray]) -> Var:
        """f of a constant, which is a constant. `key` names f."""
        found = self._folded.get((id(x), *key))
        if found is None:
            found = self._folded[(id(x), *key)] = self.const(np.ascontiguousarray(f(x.value)), name=self.fresh("val"))
            found.origin = x
        return found

    def view_of_constant(self, x: Var, shape: tuple) -> Var:
        """x with this shape, done here where x is constant."""
        return self.folded(x, ("view", *shape), lambda a: a.reshape(shape)) if x.constant else self.reshape(x, shape)

    # -- nodes ---------------------------------------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: Any, n: int = 1, domain: str = "", **attributes: Any) -> Any:
        """A node's result, or the tuple of its n results. Numbers and lists among the inputs become constants; attributes that are None
        are left out."""
        given = [x if x is None or isinstance(x, Var) else self.const(x) for x in inputs]
        while given and given[-1] is None:
            given.pop()
        for name, x in attributes.items():
            if isinstance(x, Dyn) or (isinstance(x, (list, tuple)) and any(isinstance(y, Dyn) for y in x)):
                raise ConversionError(f"ONNX's {kind} takes a constant for {name!r}, which depends on a dynamic dimension here")
        attributes = {name: x for name, x in attributes.items() if x is not None}
        if not domain:
            made = older(self, kind, given, attributes, n)
            if made is not None:
                return made
        outs = [Var(self.fresh("val")) for _ in range(n)]
        node = Node(kind, given, outs, attributes, domain)
        for out in outs:
            out.node = node
        self.nodes.append(node)
        return outs[0] if n == 1 else tuple(outs)

    def place(self, x: Var) -> None:
        """x has a shape: sizes can be read from it."""
        for axis, n in enumerate(x.shape or ()):
            if isinstance(n, Dyn):
                self._dims.setdefault(n, (x, axis))

    # -- sizes ---------------------------------------------------------------------------------------------------------------

    def size(self, n: Any) -> Var:
        """A size as a vector of one int64."""
        if not isinstance(n, Dyn):
            return self.const([int(n)])
        found = self._sizes.get(n)
        if found is None:
            found = self._sizes[n] = self._calculated(n)
        return found

    def _calculated(self, n: Dyn) -> Var:
        at = self._dims.get(n)
        if at is not None:
            return self.op("Shape", at[0], start=at[1], end=at[1] + 1)
        places = [*dict.fromkeys([*(s for s in self.symbols.values() if s in self._dims), *self._dims])]
        for of in places:
            found = affine(n, of)
            if found is not None:
                a, b = found
                made = self.size(of)
                made = made if a.numerator == 1 else self.op("Mul", made, [a.numerator])
                made = made if a.denominator == 1 else self.op("Div", made, [a.denominator])
                return made if b == 0 else self.op("Add", made, [b])
        for i, x in enumerate(places):
            for y in places[i:]:
                rest = n.values[0] / (x.values[0] * y.values[0]) if x.values[0] * y.values[0] else 0.5
                if rest == int(rest) and n == x * y * int(rest):
                    made = self.op("Mul", self.size(x), self.size(y))
                    return made if rest == 1 else self.op("Mul", made, [int(rest)])
        for x in places:
            found = floored(n, x)
            if found is not None:
                b, c, d = found
                made = self.op("Div", self.op("Add", self.size(x), [b]) if b else self.size(x), [c])
                return self.op("Add", made, [d]) if d else made
        raise ConversionError(f"a size that depends on the dynamic dimensions {', '.join(self.symbols)} in a way that was not recognized: it was "
                              f"{', '.join(map(str, n.values))} where these were {', '.join(str(list(s.values)) for s in self.symbols.values())}")

    def sizes(self, shape: Sequence) -> Var:
        """Sizes as a vector of int64."""
        shape = tuple(shape)
        if not any(isinstance(n, Dyn) for n in shape):
            return self.const([int(n) for n in shape])
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = self._joined(shape)
        return found

    def _joined(self, shape: tuple) -> Var:
        parts: list[Any] = []
        for n in shape:
            if isinstance(n, Dyn) or not parts or not isinstance(parts[-1], list):
                parts.append(n if isinstance(n, Dyn) else [n])
            else:
                parts[-1].append(n)
        made = [self.size(p) if isinstance(p, Dyn) else self.const(p) for p in parts]
        return made[0] if len(made) == 1 else self.op("Concat", *made, axis=0)

    def scalar(self, x: Any, dtype: dt.dtype) -> Var:
        """A number as a 0-dim value."""
        if isinstance(x, Var):
            return self.cast(x, dtype)
        if not isinstance(x, Dyn):
            return self.const(np.asarray(x, dtype.np) if not isinstance(x, bool) else np.asarray(x).astype(dtype.np))
        if all(isinstance(v, int) for v in x.values):
            return self.cast(self.op("Squeeze", self.size(x), [0]), dtype, dt.int64)
        for of in self._dims:
            for f, build in _SCALINGS:
                if all(v and math.isclose(f(v), y) for v, y in zip(of.values, x.values)):
                    return build(self, self.cast(self.op("Squeeze", self.size(of), [0]), dtype, dt.int64), dtype)
        raise ConversionError(f"a number that depends on a dynamic dimension in a way that was not recognized: it was {', '.join(map(str, x.values))}")

    def reshape(self, x: Var, shape: Sequence) -> Var:
        """x with these sizes."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        moving = [i for i, n in enumerate(shape) if isinstance(n, Dyn)]
        if moving and 0 not in shape:
            same = [i for i in moving if x.shape is not None and i < len(x.shape) and x.shape[i] == shape[i]]
            left = [i for i in moving if i not in same]
            if not left and len(moving) == 1:
                left, same = moving, []
            if len(left) <= 1:
                plain = [-1 if i in left else 0 if i in same else n for i, n in enumerate(shape)]
                return self.op("Reshape", x, plain)
        return self.op("Reshape", x, self.sizes(shape), allowzero=1 if 0 in shape and self.opset >= 14 else None)

    # -- what many translations need ---------------------------------------------------------------------------------------------

    def cast(self, x: Any, dtype: dt.dtype, have: dt.dtype | None = None) -> Var:
        """x, a value or a number, in this type."""
        if not isinstance(x, Var):
            return self.scalar(x, dtype)
        if (have or x.dtype) is dtype:
            return x
        if x.constant and x.shape == ():
            return self.const(x.value.astype(dtype.np))
        made = self.op("Cast", x, to=element_type(dtype))
        made.shape, made.dtype = x.shape, dtype
        return made

    def slice(self, x: Var, dim: int, start: Any, end: Any, step: int = 1) -> Var:
        """x[start:end:step] along dim."""
        if x.shape is not None and end == x.shape[dim]:
            end = LAST
        if isinstance(start, int) and start == 0 and end == LAST and step == 1:
            return x
        return self.op("Slice", x, self.size(start), self.size(end), [dim], [step] if step != 1 else None)

    def transpose(self, x: Var, dims: Sequence[int]) -> Var:
        """x with its dimensions in another order."""
        dims = list(dims)
        if dims == sorted(dims):
            return x
        if x.constant:
            return self.folded(x, ("transpose", *dims), lambda a: np.transpose(a, dims))
        made = self.op("Transpose", x, perm=dims)
        made.dtype, made.shape = x.dtype, None if x.shape is None else tuple(x.shape[d] for d in dims)
        return made

    def moved(self, x: Var, a: int, b: int) -> Var:
        """x with dimensions a and b exchanged."""
        order = list(range(x.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(x, order)

    def count(self, x: Var, dims: Sequence[int]) -> Any:
        """How many elements x has along dims."""
        return product([x.shape[d] for d in dims])


_SCALINGS: list[tuple[Callable, Callable]] = [
    (float, lambda g, x, d: x),
    (lambda v: v ** 0.5, lambda g, x, d: g.op("Sqrt", x)),
    (lambda v: 1 / v, lambda g, x, d: g.op("Reciprocal", x)),
    (lambda v: v ** -0.5, lambda g, x, d: g.op("Reciprocal", g.op("Sqrt", x))),
    (math.log, lambda g, x, d: g.op("Log", x)),
]


def element_type(dtype: dt.dtype) -> int:
    """ONNX's number of a type."""
    import onnx
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype.np))


__all__ = ["LAST", "Graph", "Node", "Var", "dyn", "element_type"]
