"""An optimizer's step as one operation: a pure rule for one parameter, recorded once for all parameters of a group."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .._core import dtype as dt
from .._core import program
from .._core.aval import Aval, aval
from .._core.grad_mode import mode
from .._core.layout import extent
from .._core.overwrite import may_write
from .._core.program import concrete, is_tracer, record
from .._core.registry import Op
from .._core.value import Value
from .._fields import Fields
from .._public import FUNCTIONS
from .._tensor import Tensor, apply

_collecting: list | None = None
BLOCK = 1 << 15  # elements of a parameter that are updated at a time


@contextlib.contextmanager
def collected() -> Iterator[list]:
    """Inside, rules record nothing and only tell the numbers they would have used (torch.compile replays the rest)."""
    global _collecting
    before, _collecting = _collecting, []
    try:
        yield _collecting
    finally:
        _collecting = before


class Rule(Op):
    """`rule(xp, param, grad, state, numbers, flags) -> (param, *state)` for many parameters at once.

    Inputs are columns: all parameters, all gradients, each state's tensors, then the numbers (data, never structure). The
    one static is (parameters, state columns, flags, whether the numbers are prepared). `views`: complex tensors enter the rule
    as pairs of reals, as torch's optimizers see them. `prepare`: what the rule wants to know instead of the numbers it is called
    with; computed here unless one is a tensor, for in the kernel each parameter's part would compute it again. `elementwise`: each element
    depends on the elements at its place alone.
    """

    def __init__(
        self,
        name: str,
        rule: Callable,
        views: bool = True,
        prepare: Callable[..., tuple] | None = None,
        elementwise: bool = True,
    ):
        super().__init__(f"optim_{name}", self._kernel, shape=self._shapes)
        self.rule, self.views, self.prepare, self.elementwise = rule, views, prepare, elementwise

    def single_precision(self, plan) -> bool:
        n, columns, _, prepared = plan.statics[-1]
        return prepared and self.prepare is not None and all(a.dtype is dt.float32 for a in plan.avals[: (2 + columns) * n])

    def row(self, plan, position: int) -> range:
        n, columns, *_ = plan.statics[-1]
        return range(position % n, (2 + columns) * n, n)

    def _kernel(self, xp, *args):
        n, columns, flags, prepared = args[-1]
        numbers = args[(2 + columns) * n : -1]
        numbers = numbers if prepared else self.prepare(*numbers)
        one = self._one_in_blocks if xp is np and self.elementwise else self._one
        return _columns([one(xp, args[i : (2 + columns) * n : n], numbers, flags) for i in range(n)])

    def _one(self, xp, row: Sequence, numbers, flags) -> Sequence:
        param, grad, *state = row
        if not (self.views and param.dtype.kind == "c"):
            return self.rule(xp, param, grad, state, numbers, flags)
        outs = self.rule(xp, _as_real(xp, param), _as_real(xp, grad), [_as_real(xp, s) for s in state], numbers, flags)
        return [_as_complex(xp, o, param.dtype) for o in outs]

    def _one_in_blocks(self, xp, row: Sequence, numbers, flags) -> Sequence:
        """A large parameter's, some elements at a time, so that all steps are in the cache; written over what nobody reads any more."""
        p, size = row[0], row[0].size
        if size < 2 * BLOCK or p.dtype.kind == "c" or not all(x.shape == p.shape and x.flags.c_contiguous for x in row):
            return self._one(xp, row, numbers, flags)
        outs = [x if may_write(x) else np.empty(x.shape, x.dtype) for x in (p, *row[2:])]
        rows, made = [x.reshape(-1) for x in row], [x.reshape(-1) for x in outs]
        for i in range(0, size, BLOCK):
            part, grad, *state = [x[i : i + BLOCK] for x in rows]
            for into, found in zip(made, self.rule(xp, part, grad, state, numbers, flags)):
                into[i : i + BLOCK] = found
        return outs

    def renewed(self, plan) -> list[int]:
        n, columns, *_ = plan.statics[-1]
        return [*range(n), *range(2 * n, (2 + columns) * n)] if self.elementwise else []

    def _shapes(self, *args):
        n, columns, *_ = args[-1]
        return [(a.shape, a.dtype) for a in (*args[:n], *args[2 * n : (2 + columns) * n])]

    def __call__(
        self,
        params: Sequence[Tensor],
        grads: Sequence[Tensor],
        state: Sequence[Sequence[Tensor]],
        numbers: Sequence,
        flags: tuple = (),
        differentiable: bool = False,
    ) -> None:
        """Record the step and write its results into the parameters and states."""
        given = numbers
        prepared = self.prepare is None or not [x for x in numbers if isinstance(x, Fields)]
        if prepared and self.prepare is not None:
            numbers = self.prepare(*map(float, numbers))
        if _collecting is not None:
            _collecting.extend(_datum(x) for x in numbers)
            return
        statics = ((len(params), len(state), flags, prepared),)
        if differentiable:
            inputs = [x for column in (params, grads, *state) for x in column]
            made = apply(self, (*inputs, *numbers), statics)
            for t, new in zip(
                [*params, *(x for column in state for x in column)], made if isinstance(made, tuple) else (made,)
            ):
                t._assign(new)
            return
        if any(map(_steps_itself, set(map(type, params)))) and self._by_operators(params, grads, state, given, flags):
            return
        values = [
            t._value if t._storage is None else _latest(t) for column in (params, grads, *state) for t in column
        ]
        values += [x if x.__class__ is float else _datum(x) for x in numbers]
        try:
            _, made = record(self, values, statics)
        except TypeError:
            if self._by_operators(params, grads, state, given, flags):
                return
            raise
        n = len(params)
        write(params, made[:n])
        for k, column in enumerate(state, 1):
            write(column, made[k * n : (k + 1) * n])

    def _by_operators(self, params: Sequence[Tensor], grads: Sequence[Tensor], state: Sequence[Sequence[Tensor]], numbers: Sequence, flags: tuple) -> bool:
        """The step where tensors dispatch or write themselves, for these; the others' is one operation still. False where none does."""
        places = [i for i, (p, g) in enumerate(zip(params, grads)) if p._dispatches or g._dispatches or _steps_itself(type(p))]
        if not places:
            return False
        from ._by_operators import step

        def parts(which: list[int]) -> tuple:
            return [params[i] for i in which], [grads[i] for i in which], [[column[i] for i in which] for column in state]
        ready = [float(x) for x in numbers]
        step(self.name, self.rule, *parts(places), ready if self.prepare is None else self.prepare(*ready), flags)
        others = [i for i in range(len(params)) if i not in places]
        if others:
            self(*parts(others), numbers, flags)
        return True


@functools.cache
def _steps_itself(cls: type) -> bool:
    """Whether a class has in-place arithmetic of its own, which for points on a manifold is a step along it."""
    found = [getattr(cls, name) for name in ("add_", "mul_", "addcdiv_", "addcmul_")] if cls is not Tensor and not cls._dispatches else []
    return any(f is not getattr(Tensor, f.__name__, None) and not hasattr(f, "_dispatches") for f in found)


def _latest(t: Tensor) -> Value:
    """The value of a tensor whose memory others may write too: it is read as late as can be, after the gradients were computed."""
    if t._storage.host is not None and program.state.capture is None:
        program.flush("memory that is seen outside is updated")
    return t._current()


def _columns(rows: list[Sequence]) -> list:
    return [row[c] for c in range(len(rows[0])) for row in rows]


def write(tensors: Sequence[Tensor], values: Sequence[Value]) -> None:
    """In-place writes outside autograd."""
    for t, v in zip(tensors, values):
        if t._storage is None:
            t._value = v
            t._writes += 1
        else:
            _write_shared(t, v)


def _write_shared(t: Tensor, v: Value) -> None:
    before, mode.enabled = mode.enabled, False
    try:
        t._assign(Tensor._of(v))
    finally:
        mode.enabled = before


def _datum(x):
    """A hyperparameter as an input: a float, or the Value of a tensor that is not on the host."""
    if x.__class__ is float:
        return x
    if isinstance(x, Tensor):
        value = x._current()
        if value.array is None or is_tracer(value.array) or value.aval.device.type != "cpu":
            return value
        return float(np.asarray(value.array).reshape(()))
    return float(x)


def _as_real(xp, x):
    return xp.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def _as_complex(xp, x, dtype):
    return (x[..., 0] + 1j * x[..., 1]).astype(dtype)


# -- steps ---------------------------------------------------------------------------------------------------------------


def step_tensor(number: float = 0.0, device=None, fused: bool = False) -> Tensor:
    """`state['step']`: a 0-dim tensor, on the host unless a device is named."""
    dtype = dt.float64 if dt.get_default_dtype() is dt.float64 and not fused else dt.float32
    return Tensor._of(_step_value(number, dtype, device))


def _step_value(number, dtype, device=None) -> Value:
    from .._core import device as dev

    return _filled(aval((), dtype, dev.CPU if device is None else device), number)


def _filled(a: Aval, number: float) -> Value:
    """The number in a tensor of one element: programs that share an optimizer between processes often give its steps the shape (1,)."""
    return Value(a, np.asarray(number, a.dtype.np).reshape(a.shape))


def zeros(p: Tensor, value: float = 0.0) -> Tensor:
    """A state tensor like p. Its host array makes the first step the same program as the second."""
    if p._dispatches:
        return FUNCTIONS["full_like"](p, value) if value else FUNCTIONS["zeros_like"](p)
    a = p._value.aval
    t = Tensor._of(Value(a, np.zeros(a.shape, a.dtype.np) if value == 0 else np.full(a.shape, value, a.dtype.np)))
    t._layout = p._layout if p._layout is not None and p._layout.offset == 0 else None
    return t


def zero_state(names: Sequence[str], on_device: bool, fused: bool = False) -> Callable[[dict, Tensor], None]:
    """What fills a parameter's new state: a count of steps, on the parameter's device or on the host, and zeros like the parameter."""
    def create(state: dict, p: Tensor) -> None:
        state["step"] = step_tensor(0.0, p.device if on_device else None, fused)
        for name in names:
            state[name] = zeros(p)
    return create


def zeros_of(p: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of another shape than p's, in its dtype, on its device."""
    a = p._value.aval
    return Tensor._of(Value(aval(shape, a.dtype, a.device), np.zeros(shape, a.dtype.np)))


def step_number(t: Tensor) -> float:
    """The number in a step tensor."""
    value = concrete(t._current())
    return float(value if value.ndim == 0 else t.item())


def advance(steps: Sequence[Tensor]) -> list[tuple[float, range | list[int]]]:
    """Count a step: (number of the step, positions) for each distinct count; equal counts share one value."""
    try:
        first = steps[0]._value
        alike = all(t._value is first and t._storage is None for t in steps)
    except AttributeError:  # numbers, as in older checkpoints and in states that programs made for older versions
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors") from None
    if alike:
        number = step_number(steps[0]) + 1
        shared = _filled(first.aval, number)
        for t in steps:
            t._value = shared
            t._writes += 1
        return [(shared.array.item(), range(len(steps)))]
    found: dict = {}
    for i, t in enumerate(steps):
        found.setdefault((step_number(t), t._current().aval), []).append(i)
    batches = []
    for (number, a), where in found.items():
        shared = _filled(a, number + 1)
        write([steps[i] for i in where], [shared] * len(where))
        batches.append((shared.array.item(), where))
    merged: dict = {}
    for number, where in batches:
        merged.setdefault(number, []).extend(where)
    return list(merged.items())


def _spans(params: Sequence[Tensor]) -> list[tuple[int, int, int]]:
    """Which memory each parameter shares with others, from which byte to which; memory of its own lies at 0."""
    found = []
    for p in params:
        layout, size = p._strided(), p._value.aval.dtype.itemsize
        found.append((id(p if p._storage is None else p._storage), layout.offset * size, extent(layout) * size))
    return found


def meet(params: Sequence[Tensor]) -> bool:
    """Whether some are the same tensor, or lie in the same memory: each is updated from what those before it have left there."""
    shared = [p._storage for p in params if p._storage is not None]
    return len(set(map(id, params))) != len(params) or len(set(map(id, shared))) != len(shared) and len(rounds(params)) > 1


def rounds(params: Sequence[Tensor]) -> list[list[Tensor]]:
    """Parameters of which some meet: those that meet none before them, those that meet one of these, ..."""
    found: list[list[Tensor]] = []
    taken: dict[int, list[tuple[int, int, int]]] = {}  # by memory: (round, first byte, end)
    for p, (memory, start, end) in zip(params, _spans(params)):
        there = taken.setdefault(memory, [])
        n = max([k + 1 for k, first, last in there if start < last and first < end or start == first], default=0)
        there.append((n, start, end))
        if n == len(found):
            found.append([])
        found[n].append(p)
    return found


def by_device(params: Sequence[Tensor], where: range | list[int]) -> list:
    """Positions grouped by the parameters' devices."""
    first = params[where[0]]._value.aval.device
    if not [i for i in where if params[i]._value.aval.device is not first]:
        return [where]
    found: dict = {}
    for i in where:
        found.setdefault(params[i]._value.aval.device, []).append(i)
    return list(found.values())


def by_number(numbers: Sequence[Tensor], *columns: Sequence) -> Iterator[tuple[float, list[list]]]:
    """Rows grouped by the number that each row's tensor of one element holds."""
    found: dict[float, list[int]] = {}
    before = value = None
    for i, t in enumerate(numbers):
        if before is None or t._value is not before:
            before, value = t._value, step_number(t)
        found.setdefault(value, []).append(i)
    for value, where in found.items():
        yield value, [[column[i] for i in where] for column in columns]


def set_numbers(tensors: Sequence[Tensor], number: float) -> float:
    """Let tensors of one element hold `number`; what it is in the first one's dtype."""
    for a in {t._current().aval for t in tensors}:
        write(same := [t for t in tensors if t._current().aval is a], [_filled(a, number)] * len(same))
    return step_number(tensors[0])
