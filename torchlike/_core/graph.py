"""The graph of differentiation: one Node per recorded differentiable operation, edges to the nodes of its inputs."""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from .dtype import FLOAT
from .grad_mode import mode
from .hook_handles import RemovableHandle

SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
_IN_CPP = frozenset(("CopySlices", "CopyBackwards", "NotImplemented"))  # torch's nodes that its generator did not write say where they are
_OF_WRAPPED_NUMBERS = frozenset(("AddBackward0", "SubBackward0", "MulBackward0", "DivBackward0"))  # a number is a tensor to torch there


class Node:
    """A differentiable operation that ran: its plan, the values its derivative reads, and `edges`, one
    `(node, output index)` per input or None."""

    __slots__ = ("plan", "edges", "saved", "needs", "hooks", "metadata_", "layouts", "shown_edges", "__weakref__")
    torch_name = "Node"
    until_written = False  # of a view: it only holds until somebody writes there, then the way to the base counts

    def __init__(self, plan, edges, needs, saved):
        self.plan, self.edges, self.needs, self.saved = plan, edges, needs, saved
        self.hooks = None

    def name(self) -> str:
        return f"torch::autograd::{self.torch_name}" if self.torch_name in _IN_CPP else self.torch_name

    def shown_as(self, torch_name: str, edges: list) -> None:
        """Take the name of torch's function that was called, of which this operation is the last step; and what came before the first step,
        if that is another."""
        self.__class__ = node_class(torch_name)
        if edges:
            self.shown_edges = edges

    def __repr__(self):
        return f"<{self.torch_name} object at {hex(id(self))}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows, which words it otherwise where a class has no repr of its own, as torch's have none."""
        printer.text(repr(self).replace(" object at ", " at "))

    @property
    def next_functions(self) -> tuple:
        edges = self._shown_edges()
        return tuple((None, 0) if e is None or e[0].__class__ is Outside else e for e in edges)

    def _shown_edges(self) -> list:
        try:
            return self.shown_edges
        except AttributeError:
            return [self.edges[i] for i in self.shown_places()]

    def shown_places(self) -> list[int]:
        """Which inputs torch's function has, in its order: integers and most numbers are none to torch's derivatives; what may be left out is."""
        if self.plan is None:
            return list(range(len(self.edges)))
        shown = getattr(self, "shown_edges", None)
        if shown is not None:  # those of the function's first step; where that is this one, its inputs
            places = [i for i, e in enumerate(self.edges) if e is not None and e in shown]
            return places if len(places) == len(shown) else list(range(len(self.edges)))
        avals, wraps = self.plan.avals, self.torch_name in _OF_WRAPPED_NUMBERS
        return [i for i in self.plan.op.edge_order or range(len(self.edges)) if (a := avals[i]) is None or (wraps if a.number else a.dtype.category >= FLOAT)]

    @property
    def metadata(self) -> dict:
        try:
            return self.metadata_
        except AttributeError:
            self.metadata_ = {}
            return self.metadata_

    @property
    def n_outputs(self) -> int:
        return len(self.plan.outs)

    def output_aval(self, i: int):
        return self.plan.outs[i]

    def release(self) -> None:
        """Free what the derivative reads; a node that saved nothing may run again."""
        frees = self.plan is None or self.plan.op.frees
        if frees and (self.saved or frees == "always"):
            self.saved = None

    def forgo(self, i: int) -> None:
        """No gradient for input i: what only that one would read is not kept."""
        needs = (*self.needs[:i], False, *self.needs[i + 1:])
        if needs != self.needs and self.saved.__class__ is list and self.plan.separate:  # else hooks packed it, or torch keeps it
            self.needs, self.saved = needs, self.plan.narrowed(self.saved, self.needs, needs)

    def _hooks(self) -> Hooks:
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, fn):
        """fn(grad_inputs, grad_outputs) -> None or new grad_inputs; runs after this node."""
        return _handle(self._hooks().post, fn)

    def register_prehook(self, fn):
        """fn(grad_outputs) -> None or new grad_outputs; runs before this node."""
        return _handle(self._hooks().pre, fn)

    def add_tensor_hook(self, index: int, fn):
        return _handle(self._hooks().tensor.setdefault(index, OrderedDict()), fn)

    def __call__(self, *grads, **kwargs):
        """The gradients of what came in from those of what came out."""
        from ..autograd.engine import called  # above this file
        if kwargs:
            raise TypeError("keyword arguments are not supported")
        return called(self, list(grads))

    def __getattr__(self, name):
        if name.startswith("_saved_"):
            return self._kept(name)
        if name.startswith("_raw_saved_"):
            from ..autograd.graph import SavedTensor  # above this file
            return SavedTensor._of(self, *self._place_of(name, "_raw_saved_"))
        raise AttributeError(f"'{self.torch_name}' object has no attribute '{name}'")

    def __dir__(self):
        names = [name for name, (place, _) in self._names_of_saved().items() if place is not None]
        return [*super().__dir__(), *(f"{prefix}{name}" for name in names for prefix in ("_saved_", "_raw_saved_"))]

    def _names_of_saved(self) -> dict[str, tuple[int | None, int | None]]:
        """What torch calls the tensors that an operation may save: where in `saved` each lies (None: it is not needed), and which input it is
        (None: the result)."""
        if self.plan is None:
            return {}
        ins, outs = self.plan.saved(self.needs)
        derivative = self.plan.op.derivative
        names = {_OPERANDS.get(name, name): (None, i) for i, name in enumerate(derivative.kernel_names if derivative is not None else ())
                 if i < len(self.edges)}
        for place, i in enumerate(ins):
            names[next((name for name, (_, j) in names.items() if i == j), ("self", "other")[i] if i < 2 else f"input{i}")] = place, i
        if outs:
            names["result"] = len(ins), None
        return names

    def _place_of(self, name: str, prefix: str) -> tuple[int | None, int | None]:
        try:
            return self._names_of_saved()[name.removeprefix(prefix)]
        except KeyError:
            raise AttributeError(f"'{self.torch_name}' object has no attribute '{name}'") from None

    def _kept(self, name: str):
        """A saved tensor: a leaf itself while it holds that value, else one with the same place in the graph."""
        from .._tensor import Tensor
        place, i = self._place_of(name, "_saved_")
        if self.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        if place is None:
            return None
        value = self.saved[place]
        if value.__class__ is tuple:  # hooks packed it
            value = self.saved.unpacked_at(place)
        edge = (self, 0) if i is None else self.edges[i] if i < len(self.edges) else None
        leaf = edge[0].variable if edge is not None and isinstance(edge[0], AccumulateGrad) else None
        if leaf is not None and leaf._value is value:
            return leaf
        t = Tensor._of(value)
        if edge is not None:
            t._edge, t._out = edge
        return t


_OPERANDS = {"x": "self", "y": "other"}  # torch's names of what our kernels call x and y


class Hooks:
    """Hooks of one node: on its outputs' gradients by index, before it runs, after it ran, and tensors whose grad is kept."""

    __slots__ = ("tensor", "pre", "post", "retain")

    def __init__(self):
        self.tensor: dict[int, OrderedDict] = {}
        self.pre: OrderedDict = OrderedDict()
        self.post: OrderedDict = OrderedDict()
        self.retain: dict = {}  # output index -> weak reference to the tensor


def _handle(table, fn):
    handle = RemovableHandle(table)
    table[handle.id] = fn
    return handle


class Identity(Node):
    """A value that goes on unchanged, as a tensor of its own: gradients stop here when they are asked for by this tensor."""

    __slots__ = ("aval",)
    torch_name = "AliasBackward0"
    n_outputs = 1

    def __init__(self, tensor, edge):
        super().__init__(None, [edge], (edge is not None,), ())
        self.aval = tensor._value.aval
        for watch in mode.watchers:
            watch(self, (tensor._value,))

    def output_aval(self, i: int):
        return self.aval

    def apply(self, grads: list, create_graph: bool) -> list:
        return grads


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds the gradient into `variable.grad`."""

    __slots__ = ("ref", "aval", "post_accumulate", "grad_dtype")
    torch_name = "AccumulateGrad"
    __module__ = "builtins"  # as classes of C are shown, without a module

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __init__(self, tensor):
        super().__init__(None, (), (), ())
        self.ref, self.aval = weakref.ref(tensor), tensor._value.aval
        self.post_accumulate = None
        self.grad_dtype = tensor._grad_dtype and tensor._grad_dtype[0]  # what gradients are cast to; None: they are as they come
        for watch in mode.watchers:
            watch(self, ())

    @property
    def variable(self):
        return self.ref()

    n_outputs = 1

    def output_aval(self, i: int):
        tensor = self.ref()
        return self.aval if tensor is None else tensor._value.aval

    def release(self) -> None:
        pass


class Outside(AccumulateGrad):
    """What stands for the graph at a view made under no_grad of something that requires grad: gradients end here, unseen."""

    __slots__ = ()
    variable = None


NOT_A_LEAF = ("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
              "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf "
              "Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
              "github.com/pytorch/pytorch/pull/30531 for more information.")


class Stale(Outside):
    """What stands for the graph at a view made under no_grad or by a Function, or at one of several views made at once, when its memory was
    written since: torch no longer lets anybody differentiate through it."""

    __slots__ = ()


# why views of a kind may not be written
UNDER_NO_GRAD = ("Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
                 "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked).")
UNDER_INFERENCE = UNDER_NO_GRAD.replace("no_grad block", "inference_mode block")
SEVERAL = ("This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. You "
           "should replace the inplace operation by an out-of-place one.")
OF_FUNCTION = ("This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
               "override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
               "this by cloning the output of the custom Function.")


def reachable(roots: Iterable[Node], stop: type | tuple = ()) -> list[Node]:
    """The roots and every node under them; what lies under nodes of class `stop` is left out."""
    found = dict.fromkeys(roots)
    nodes = list(found)
    for node in nodes:  # grows
        if not isinstance(node, stop):
            for edge in node.edges:
                if edge is not None and edge[0] not in found:
                    found[edge[0]] = None
                    nodes.append(edge[0])
    return nodes


_classes: dict[str, type] = {}


def node_class(torch_name: str) -> type:
    """The Node subclass of that name (`AddBackward0`), so that type(t.grad_fn).__name__ reads as in torch."""
    found = _classes.get(torch_name)
    if found is None:
        found = _classes[torch_name] = type(torch_name, (Node,), {"__slots__": (), "torch_name": torch_name, "__module__": "builtins"})
    return found
