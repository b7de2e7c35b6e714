"""From runs of a model to an exported graph: the runs' calls are gone through side by side."""
from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from typing import Any

from .._dynamo.exc import UserError, UserErrorType
from .._examples.sizes import Dyn, dyn
from .._examples.watch import Unfollowed
from .._ops import OpOverload, aten
from .._symbolic import SymInt
from ..fx import Graph, Node
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ._shapes import Expr, expression
from ._trace import Call, Ref, Trace


class Mismatch(Unfollowed):
    """The model does not do the same at other sizes."""


class Val:
    """What is known of a node's tensor: `node.meta["val"]`."""

    def __init__(self, shape: tuple, dtype: Any, device: Any, strides: tuple, requires_grad: bool = False) -> None:
        self.shape, self.dtype, self.device, self._strides, self.requires_grad = tuple(shape), dtype, device, tuple(strides), requires_grad

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def dim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or one."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """All strides, or one."""
        return self._strides if dim is None else self._strides[dim]

    def numel(self) -> Any:
        """How many elements it has."""
        total: Any = 1
        for n in self.shape:
            total = total * n
        return total

    def __repr__(self) -> str:
        return f"FakeTensor(..., size=({', '.join(map(str, self.shape))}{',' * (len(self.shape) == 1)}), dtype={self.dtype})"


def symbol_name(source: str, taken: set[str]) -> str:
    """PyTorch's name of the symbol for a size, which it makes of the place where that is found."""
    n = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
    while f"s{n}" in taken:
        n += 1
    taken.add(f"s{n}")
    return f"s{n}"


class Builder:
    """`symbols`: the dynamic dimensions' sizes in the runs; `places`: (input's number, dimension) where each is found."""

    def __init__(self, runs: list[Trace], symbols: dict[str, Any], places: dict[str, tuple[int, int]]) -> None:
        self.runs, self.places = runs, places
        self.symbols = {name: of for name, of in symbols.items() if isinstance(of, Dyn)}
        self.graph = Graph()
        self.nodes: dict[int, Node] = {}
        self.of_expr: dict[str, Node] = {}
        self.unbacked: dict[Dyn, Expr] = {}
        self.where: tuple = ((), ())  # of the call that is looked at
        self.start: Node | None = None  # the node before the first call

    def placeholder(self, name: str, number: int | None = None, value: Any = None) -> Node:
        """An input: a tensor's number, or a constant."""
        node = self.graph.placeholder(name)
        node.meta["val"] = value if number is None else self.val(number)
        if number is not None:
            self.nodes[number] = node
        self.start = node
        return node

    # -- sizes ------------------------------------------------------------------------------------------------------------------

    def expr(self, n: Any) -> Any:
        """A size of the runs as a number or an expression."""
        if not isinstance(n, Dyn):
            return n
        if all(not (v - n.values[0]) for v in n.values):
            return n.values[0]
        found = expression(n, self.symbols)
        if found is None:
            found = self.unbacked.setdefault(n, Expr("symbol", (f"u{len(self.unbacked)}",), n.values[0]))
        return found

    def val(self, number: int) -> Val:
        """What all runs say of a tensor."""
        seen = [run.tensors[number] for run in self.runs]
        if len({len(s[0]) for s in seen}) > 1:
            raise Mismatch("the rank of a tensor depends on a dynamic dimension")
        sizes, strides = ([self._symbolic(dyn(ns)) for ns in zip(*[s[k] for s in seen])] for k in (0, 3))
        return Val(tuple(sizes), seen[0][1], seen[0][2], tuple(strides), seen[0][4])

    def _symbolic(self, n: Any) -> Any:
        n = self.expr(n)
        return SymInt(n) if isinstance(n, Expr) else n

    def size_node(self, n: Dyn) -> Any:
        """The node of a size that moves."""
        found = self.expr(n)
        if not isinstance(found, Expr):
            return found
        if found in self.unbacked.values():
            for number, node in reversed(self.nodes.items()):
                shapes = [run.tensors[number][0] for run in self.runs]
                for d in range(len(shapes[0])):
                    if all(len(s) > d and s[d] == v for s, v in zip(shapes, n.values)):
                        return self._sized(str(found), found, node, d)
            raise GuardOnDataDependentSymNode(None, f"Could not extract specialized integer from data-dependent expression {found}: a size that data decide, or "
                                                    "that depends on the dynamic dimensions in a way that is not known here")
        return found.nodes(self._symbol_node, self._computed)

    def _symbol_node(self, name: str) -> Node:
        if name not in self.of_expr:
            number, d = self.places[name]
            with self.graph.inserting_after(self.start):
                self.start = self._sized(name, Expr("symbol", (name,), self.symbols[name].values[0]), self.nodes[number], d)
        return self.of_expr[name]

    def _sized(self, key: str, expr: Expr, node: Node, d: int) -> Node:
        if key not in self.of_expr:
            made = self.of_expr[key] = self.graph.call_function(aten.sym_size.int, (node, d), name="sym_size_int")
            made.meta["val"] = SymInt(expr)
        return self.of_expr[key]

    def _computed(self, expr: Expr, f: Callable, args: tuple) -> Node:
        if str(expr) not in self.of_expr:
            made = self.of_expr[str(expr)] = self.graph.call_function(f, args)
            made.meta["where"] = self.where
            made.meta["val"] = SymInt(expr)
        return self.of_expr[str(expr)]

    # -- calls -------------------------------------------------------------------------------------------------------------------

    def calls(self, results: list) -> None:
        """A node for each call; `results` are what the model returned."""
        wanted = {r.number for r in results if isinstance(r, Ref)}
        if len({len(run.calls) for run in self.runs}) > 1:
            raise Mismatch("how many operations the model runs depends on a dynamic dimension (a loop over it, or an `if`)")
        for several in zip(*[run.calls for run in self.runs]):
            self._call(several)
        for node in reversed(list(self.graph.nodes)):  # checks of arguments that the engine records for itself
            if isinstance(node.target, OpOverload) and node.target.namespace == "torchlike" and not node.users and not any(self.nodes.get(n) is node for n in wanted):
                self.graph.erase_node(node)

    def _call(self, calls: tuple[Call, ...]) -> None:
        first = calls[0]
        if len({id(c.target) for c in calls}) > 1:
            raise Mismatch(f"which operations the model runs depends on a dynamic dimension (at one place: {', '.join(dict.fromkeys(str(c.target) for c in calls))})")
        if len({len(c.outs) for c in calls}) > 1:
            raise Mismatch(f"how many results {first.target} has depends on a dynamic dimension")
        self.where = first.where
        args = self.merged([c.args for c in calls])
        kwargs = {k: self.merged([c.kwargs[k] for c in calls]) for k in first.kwargs}
        name = first.target.overloadpacket.__name__ if isinstance(first.target, OpOverload) else first.target._name
        node = self.graph.call_function(first.target, tuple(args), kwargs, name=name)
        node.meta["where"] = first.where
        if not first.several:
            if first.outs and first.outs[0] is not None:
                self._known(node, first.outs[0])
            return
        node.meta["val"] = []
        for k, number in enumerate(first.outs):
            if number is not None:
                item = self.graph.call_function(operator.getitem, (node, k))
                item.meta["where"] = first.where
                self._known(item, number)
                node.meta["val"].append(item.meta["val"])

    def _known(self, node: Node, number: int) -> None:
        node.meta["val"] = self.val(number)
        self.nodes[number] = node

    def merged(self, xs: Any) -> Any:
        """An argument of all runs as one: nodes for tensors and for sizes that move."""
        first = xs[0]
        if isinstance(first, Ref):
            if any(not isinstance(x, Ref) or x.number != first.number for x in xs):
                raise Mismatch("which tensors an operation reads depends on a dynamic dimension")
            return self.nodes[first.number]
        if isinstance(first, (tuple, list)):
            if len({len(x) for x in xs}) > 1:
                raise Mismatch("an operation's arguments are of another number at another size")
            return type(first)([self.merged(ys) for ys in zip(*xs)])
        if isinstance(first, (int, float)) and not isinstance(first, bool) and len(xs) > 1:
            n = dyn(xs)
            if not isinstance(n, Dyn):
                return n
            if any(isinstance(v, float) for v in n.values):
                raise Mismatch(f"a number that has to be constant depends on a dynamic dimension: it was {', '.join(map(str, n.values))}")
            return self.size_node(n)
        return first


def violated(base: dict[str, int], why: str) -> UserError:
    """The error for dimensions of which the model takes one size only; `base`: those of the example."""
    names, hints = ", ".join(base), "".join(f"\n  {name} = {n}" for name, n in base.items())
    return UserError(UserErrorType.CONSTRAINT_VIOLATION,
                     f"Constraints violated ({names})! For more information, run with TORCH_LOGS=\"+dynamic\".\n  - You marked {names} as dynamic but your code "
                     f"specialized it to be a constant ({', '.join(map(str, base.values()))}): {why}\nSuggested fixes:{hints}")
