"""Derivatives of operations: what they read of the forward, and the function of arrays that a plan's derivative is."""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np

from . import dtype as dt
from .arrays import cast, conform
from .overwrite import into

if TYPE_CHECKING:
    from .registry import Op, Plan, View


class Derivative:
    """An explicit vjp. Its parameters after `xp` say what it reads: names of the kernel's inputs, `out` / `out0`, `out1`
    (results), `g` (or `g0`, `g1`), statics by name, `needs` (a tuple of bools over inputs), `plan`. It returns one
    gradient per tensor input (None where not needed), in torch's complex convention. A gradient `g...` with the default
    None is None where nothing reached that result; without a default it is zeros there."""

    def __init__(self, op: Op, function: Callable):
        self.op, self.function = op, function
        self.kernel_names = _names(op.kernel)
        self.names = _names(function)
        # results whose missing gradient is None
        defaults = getattr(function, "__defaults__", None) or ()
        self.optional = frozenset(int(name[1:]) for name, default in zip(reversed(self.names), reversed(defaults))
                                  if default is None and name[0] == "g" and name[1:].isdigit())

    def saved(self, plan: Plan, needs) -> tuple:
        n = len(plan.avals)
        ins = tuple(self.kernel_names.index(p) for p in self.names if p in self.kernel_names[:n])
        outs = tuple(0 if p == "out" else int(p[3:]) for p in self.names if p == "out" or (p[:3] == "out" and p[3:].isdigit()))
        return ins, outs

    def bind(self, plan: Plan, needs) -> Callable:
        """The derivative of one plan: `(xp, arrays)`, with the saved inputs, the saved results and the gradients, to gradients."""
        arguments, places = self._arguments(plan, needs, self.names)
        function, wanted = self.function, [(i, a) for i, a in enumerate(plan.avals) if needs[i]]

        def run(xp, arrays):
            grads = function(xp, *_filled(arguments, places, arrays))
            if not isinstance(grads, (tuple, list)):
                grads = (grads,)
            return [conform(xp, grads[i], a) for i, a in wanted]
        return run

    def _arguments(self, plan: Plan, needs, names: list[str]) -> tuple[list, list]:
        """A function's arguments by name; and which of them are arrays, with where those lie."""
        ins, outs = plan.saved(needs)
        n, n_saved = len(plan.avals), len(ins) + len(outs)
        arguments, places = [], []
        for k, p in enumerate(names):
            constant = place = None
            if p == "g" or (p[0] == "g" and p[1:].isdigit()):
                place = n_saved + int(p[1:] or 0)
            elif p == "gs":
                place = slice(n_saved, None)
            elif p == "needs":
                constant = needs
            elif p == "plan":
                constant = plan
            elif p == "out" or (p[:3] == "out" and p[3:].isdigit()):
                place = len(ins) + outs.index(int(p[3:] or 0))
            else:
                i = self.kernel_names.index(p)
                if i < n:
                    place = ins.index(i)
                else:
                    constant = plan.statics[i - n]
            arguments.append(constant)
            if place is not None:
                places.append((k, place))
        return arguments, places


def _filled(arguments: list, places: list, arrays) -> list:
    arguments = arguments.copy()
    for k, place in places:
        arguments[k] = arrays[place]
    return arguments


class Underivable:
    """In the place of a gradient's function, where PyTorch has none either: results require gradients, and a backward that comes by
    raises `error(text)` on the user's line."""

    def __init__(self, text: str, error: type[Exception] = RuntimeError):
        self.text, self.error = text, error


class ElementwiseDerivative(Derivative):
    """One function per input; inputs are cast to the op's compute dtype, and only what is needed runs."""

    def __init__(self, op, grads):
        self.op, self.grads = op, grads
        self.kernel_names = _names(op.kernel)
        self.names = [None if f is None else [] if isinstance(f, Underivable) else _names(f) for f in grads]

    @staticmethod
    def _as_computed(xp, x, compute):
        if x is None or (compute.kind != "c" and getattr(x, "dtype", compute).kind == "c"):  # abs of a complex number is real
            return x
        return cast(xp, x, compute)

    def _used(self, needs):
        return [(i, f, self.names[i]) for i, f in enumerate(self.grads) if needs[i] and f is not None]

    def saved(self, plan, needs):
        used = {p for _, _, names in self._used(needs) for p in names}
        ins = tuple(i for i in range(len(plan.avals)) if self.kernel_names[i] in used)
        return ins, (0,) if "out" in used else ()

    def separate(self, plan: Plan) -> bool:
        numbers = {name for name, a in zip(self.kernel_names, plan.avals) if a is None or a.number}
        read = [p for names in self.names for p in names or () if p != "g" and p not in numbers]
        return len(read) == len(set(read)) and sum(f is not None for f in self.grads) > 1

    def computed_in(self, plan: Plan) -> np.dtype:
        """The dtype in which `grads` compute."""
        return plan.outs[0].dtype.np

    def incoming(self, plan: Plan, kind: np.dtype) -> Callable | None:
        """What is done to the result's gradient first: `(xp, g) -> g`."""
        return None

    def bind(self, plan: Plan, needs) -> Callable:
        for f, need in zip(self.grads, needs):
            if need and isinstance(f, Underivable):
                raise f.error(f.text)
        ins, outs = plan.saved(needs)
        at, kind = len(ins) + len(outs), self.computed_in(plan)
        casts = [place for place, i in enumerate(ins) if (a := plan.avals[i]) is not None and (a.number or a.dtype.np != kind)]
        incoming = self.incoming(plan, kind)
        # for each wanted gradient: the input's aval, the function, its arguments
        parts = [(a, f, *self._arguments(plan, needs, names or []))
                 for a, f, names, need in zip(plan.avals, self.grads, self.names, needs) if need]

        narrow = dt.is_narrow(kind)
        widest = np.dtype(np.float32) if narrow else kind
        rounds = [place for place in casts if narrow and self.op.compares and not plan.avals[ins[place]].number] if casts else ()
        shape = plan.outs[0].shape
        rows = math.prod(shape[:-1])
        # XLA's CPU backend writes the result over a gradient that a product made where both are matrices
        as_matrices = plan.device.type == "cpu" and len(shape) == 3 and all(a is not None and a.shape == shape for a in plan.avals) and None not in self.grads

        def run(xp, arrays):
            if rounds:
                arrays = [cast(xp, x, kind) if place in rounds else x for place, x in enumerate(arrays)]
            if narrow:
                arrays = [cast(xp, x, widest) if hasattr(x, "dtype") and dt.is_narrow(x.dtype) else x for x in arrays]
            if casts or incoming is not None:
                arrays = list(arrays)
                for place in casts:
                    arrays[place] = self._as_computed(xp, arrays[place], widest)
                if incoming is not None:
                    arrays[at] = incoming(xp, arrays[at])
            if as_matrices and xp is not np:
                arrays = [x.reshape(rows, shape[-1]) for x in arrays]
                return [conform(xp, f(xp, *_filled(arguments, places, arrays)).reshape(shape), a) for a, f, arguments, places in parts]
            return [xp.zeros(a.shape, a.dtype.np) if f is None else conform(xp, f(xp, *_filled(arguments, places, arrays)), a)
                    for a, f, arguments, places in parts]
        return run


def _names(function) -> list[str]:
    """Positional parameter names of a kernel or derivative, without xp. A plain function's code tells them at once: at
    import there are a thousand."""
    if function.__class__ is FunctionType and not function.__code__.co_flags & inspect.CO_VARARGS and not hasattr(function, "__wrapped__"):
        return list(function.__code__.co_varnames[1:function.__code__.co_argcount])
    return [p.name for p in inspect.signature(function).parameters.values()][1:]


class ViewDerivative:
    """The gradient of a view: the view's gradient put into zeros."""

    def __init__(self, op: View):
        self.op = op
        self.kernel_names = _names(op.kernel)

    def saved(self, plan, needs):
        return tuple(range(1, len(plan.avals))), ()

    def bind(self, plan, needs):
        a, put, statics = plan.avals[0], self.op.put.kernel, plan.statics

        def run(xp, arrays):
            *numbers, g = arrays
            zeros = xp.zeros(a.shape, a.dtype.np)
            return [into(zeros, put, g, *numbers, *statics) if xp is np else put(xp, zeros, g, *numbers, *statics)]
        return run


class ViewAgain:
    """The derivative of a view's derivative, which puts what it is given into zeros: the view of it."""

    def __init__(self, op: View):
        self.op = op

    def saved(self, plan, needs):
        return tuple(range(len(plan.avals) - 1)), ()

    def bind(self, plan, needs):
        view, statics = self.op.kernel, plan.statics[0].statics

        def run(xp, arrays):
            *numbers, g = arrays
            return [view(xp, g, *numbers, *statics)]
        return run


class PiecesDerivative(Derivative):
    """The gradient of an operation that cuts its input into pieces: theirs joined."""


class PiecesAgain:
    """The derivative of such a derivative, which joins: the pieces of what it is given."""

    def __init__(self, op: Op):
        self.op = op

    def saved(self, plan, needs):
        return (), ()

    def bind(self, plan, needs):
        cut, statics, wanted = self.op.kernel, plan.statics[0].statics, [i for i, need in enumerate(needs) if need]

        def run(xp, arrays):
            pieces = cut(xp, arrays[0], *statics)
            return [pieces[i] for i in wanted]
        return run


class PutDerivative(ViewDerivative):
    """The gradient of `put(base, new)`: base gets it outside the viewed part, new inside."""

    def saved(self, plan, needs):
        return tuple(range(2, len(plan.avals))), ()

    def bind(self, plan, needs):
        new, put, view, statics = plan.avals[1], self.op.put.kernel, self.op.kernel, plan.statics

        def run(xp, arrays):
            *numbers, g = arrays
            grads = [put(xp, g, xp.zeros(new.shape, g.dtype), *numbers, *statics)] if needs[0] else []
            return [*grads, view(xp, g, *numbers, *statics)] if needs[1] else grads
        return run


OF_ALL = (ViewDerivative, ViewAgain, PiecesDerivative, PiecesAgain)  # whose every gradient depends on all that is given
