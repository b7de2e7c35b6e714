"""Operations: what runs (kernels), what comes out (shape rules), how gradients flow (derivatives).

An `Op` has one kernel, `kernel(xp, *inputs, *statics)`, written once for two array libraries: `xp` is jax.numpy inside a
compiled program and numpy in the first tier. An op whose kernel needs JAX passes `numpy=None`; the first tier then
interprets its jaxpr. A `Plan` is an op at given abstract inputs and statics: result avals plus the runnable kernel.
"""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import derived, precision
from . import dtype as dt
from .arrays import cast
from .aval import FLOAT, INT, NUMBERS, Aval, aval, broadcast_shapes, forget_unused, result_dtype
from .derivative import Derivative, ElementwiseDerivative, PiecesAgain, PiecesDerivative, PutDerivative, ViewAgain, ViewDerivative
from .errors import not_implemented
from .halves import MANY, converted
from .jax_settings import engine_settings
from .layout import Examples, Layout, contiguous
from .room import SPARE, need_count, need_room

OPS: dict[str, Op] = {}
MUCH = 1 << 12  # elements of a base, a view of which shows little of it
LITTLE = 16  # views of one size that it takes to show all of their base
MOST_PLANS = 20_000  # made until those that were not asked for meanwhile are forgotten; some 3 KB each
_plans_made = itertools.count(1)
_numbers = itertools.count()


class Plan:
    """An op at given avals and statics."""

    __slots__ = ("number", "op", "avals", "statics", "outs", "single", "run", "differentiable", "device", "precision", "host", "_numpy", "_xla", "_saved", "_depends", "nodes",
                 "last_run", "steady", "trust", "lost", "seconds", "tiny", "cost", "written", "exact", "joined")

    def __init__(self, op, avals, statics, outs, run, device):
        self.number = next(_numbers)  # tells it from plans that are no more, as its identity does not
        self.op, self.avals, self.statics, self.run, self.device = op, avals, statics, run, device
        self.precision = precision.chosen(op, avals, device)
        self.single = outs.__class__ is tuple
        self.outs = (aval(*outs, device),) if self.single else tuple([aval(shape, d, device) for shape, d in outs])
        self.differentiable = op.differentiable and (self.outs[0].dtype.category >= dt.FLOAT if self.single else any(o.dtype.category >= dt.FLOAT for o in self.outs))
        self.host = None  # a quicker form of `run` with NumPy
        self.exact = False  # whether what that makes is of the right dtype in any case
        self.joined: dict[tuple, Layout | None] = {}  # of an elementwise operation: layouts of the result by those of the inputs
        self._numpy = self._xla = self._depends = None
        self._saved = {}
        self.nodes: dict[int, tuple] = {}  # see _tensor._node
        self.last_run, self.steady = -1 << 30, 0  # see parts.py
        self.cost: tuple | None = None  # what costs.py knows of it
        self.written: tuple | None = None  # what host.py may write
        self.trust = self.lost = 0  # that programs which begin with it are short: see runs.py
        self.seconds: float | None = None  # which a small operation takes, as estimated
        self.tiny: bool | None = None  # whether it computes few numbers

    def __repr__(self):
        return f"{self.op.name}({', '.join(map(repr, self.avals))}; {self.statics})"

    def jax(self, *arrays):
        """Run on jax arrays or tracers; a tuple of results."""
        out = self.run(jnp, *arrays)
        return (out,) if self.single else tuple(out)

    def compiled(self, *arrays):
        """As `jax`, by the op's own kernel for this plan's platform where it has one: what a compiled program runs.
        Derivatives and the NumPy tier are made from `jax`, which every platform can run."""
        if self.precision is not None:
            with jax.default_matmul_precision(self.precision):
                return self._compiled(*arrays)
        return self._compiled(*arrays)

    def _compiled(self, *arrays):
        kernel = self.op.device_kernels.get(self.device.type)
        out = NotImplemented if kernel is None else kernel(*arrays, *self.statics)
        if out is NotImplemented:
            return self.jax(*arrays)
        return (out,) if self.single else tuple(out)

    def saved(self, needs: tuple) -> tuple:
        """(indices of inputs, indices of outputs) that the derivative for `needs` reads."""
        found = self._saved.get(needs)
        if found is None:
            found = self._saved[needs] = self.op.saved(self, needs)
        return found

    def places(self, needs: tuple) -> tuple:
        """What the derivative for `needs` reads: numbers of inputs, and ~numbers of results."""
        ins, outs = self.saved(needs)
        return (*ins, *(~o for o in outs))

    def narrowed(self, saved: list, needs: tuple, fewer: tuple) -> list:
        """Of what the derivative for `needs` reads, that which the one for fewer inputs reads."""
        have = dict(zip(self.places(needs), saved))
        return [have[i] for i in self.places(fewer)]

    @property
    def separate(self) -> bool:
        """Whether each tensor that the derivative reads is read for the gradient of one input only."""
        return isinstance(self.op.derivative, ElementwiseDerivative) and self.op.derivative.separate(self)

    @property
    def numpy(self) -> Callable | None:
        """The NumPy kernel, returning an array of the right dtype (a list of them for several results), or None where there is none."""
        if self._numpy is None:
            self._numpy = _numpy_kernel(self) or False
        return self._numpy or None

    @property
    def xla(self) -> Callable:
        """This op alone, compiled for the host."""
        if self._xla is None:
            self._xla = jax.jit(self.compiled if self.device.type == "cpu" else self.jax)
        return self._xla

    def forget_executable(self) -> None:
        """Let go of what `xla` compiled."""
        self._xla = None


def _numpy_kernel(plan: Plan) -> Callable | None:
    op, kernel = plan.op, plan.host or functools.partial(plan.run, np)
    if op.bound is not None and (made := op.bound(plan)) is not None:
        return made
    if plan.exact:
        return kernel if plan.outs[0].ndim else lambda *arrays: np.asarray(kernel(*arrays))
    if op.numpy is None:
        return _interpreted(plan)
    if op.numpy is not True:
        own, statics = op.numpy, plan.statics
        kernel = (lambda *arrays: own(*arrays, *statics)) if statics else own
    dtypes = [o.dtype.np for o in plan.outs]
    if not plan.single:
        return lambda *arrays: [_of_dtype(r, d) for r, d in zip(kernel(*arrays), dtypes)]
    want = dtypes[0]

    def call(*arrays):
        r = kernel(*arrays)
        return r if r.__class__ is np.ndarray and r.dtype == want else _of_dtype(r, want)
    return call


def _of_dtype(r, dtype) -> np.ndarray:
    if r.__class__ is np.ndarray and r.size >= MANY:
        return r if r.dtype == dtype else converted(r, dtype)
    return np.asarray(r).astype(dtype, copy=False)


def _interpreted(plan: Plan) -> Callable | None:
    from . import numpy_lax  # imported at first use: most programs never interpret a jaxpr

    with engine_settings():
        jaxpr = jax.make_jaxpr(plan.jax)(*(shape_struct(a) for a in plan.avals))
        if numpy_lax.supported(jaxpr) is not None:
            return None
        run = numpy_lax.compile_jaxpr(jaxpr)
    kinds = [None if a is None else a.dtype.np for a in plan.avals]

    def call(*arrays):
        outs = run(*[np.asarray(x, k) for x, k in zip(arrays, kinds) if k is not None])
        return outs[0] if plan.single else outs
    return call


def shape_struct(a: Aval | None):
    return None if a is None else jax.ShapeDtypeStruct(a.shape, a.dtype.np)


class Op:
    """One operation of the engine.

    kernel   `(xp, *inputs, *statics) -> array | list of arrays`
    shape    `(*avals, *statics) -> (shape, dtype)`, or a list of those for several results; default: jax.eval_shape
    numpy    True: the kernel runs with xp=numpy; a function `(*inputs, *statics)`: runs instead; None: interpret the jaxpr
    vjp      `(xp, *saved, g..., needs=, plan=)` by parameter names, see Derivative; None: jax.vjp; False: no gradient
    """

    fills = True  # its results are memory of their own
    pointwise = False  # results keep the strides of inputs of their shape
    edge_order: tuple[int, ...] | None = None  # of its inputs among a node's next_functions, where torch has another
    asks: tuple | None = None  # (torch's function, (argument's name there, number of the input), ...); without names: a list of tensors
    private = 0  # how many of its last results only its derivative reads
    cudnn: str | None = None  # what it is to cuDNN, with which torch computes it on a GPU, to that library's precision: see precision.py
    free = False  # its NumPy form makes views and touches no element
    bound: Callable | None = None  # makes a plan's NumPy kernel, whose result is an array of the right dtype in any case, or None
    picks = False  # its result is elements of its first input, mostly few of them
    normalizes = False  # its last pass over the data is elementwise, and its derivative's: XLA fuses that with what reads the result
    inlined = False  # it is a traced call, whose steps a compiled program takes one by one
    # may its results be computed again (see rematerialization.py), and with which of its arguments new if not with all; may what its
    # derivative computes of the forward
    cheap: bool | tuple[int, ...] = False
    cheap_derivative = False
    spread: Op | None = None  # of a write into a view: see View

    def __init__(self, name: str, kernel: Callable, *, shape: Callable | None = None, numpy=True, vjp=None,
                 torch_name: str | None = None):
        if OPS.setdefault(name, self) is not self:
            raise ValueError(f"operation {name!r} is registered twice")
        self.name, self.kernel, self.shape, self.numpy = name, kernel, shape, numpy
        self.differentiable = vjp is not False
        self.derivative = Derivative(self, vjp) if callable(vjp) else None
        self.plans: dict = {}  # by avals, statics and default dtype, which Python floats may give a result
        self.older: dict = {}  # those that were not asked for since there were many
        self.device_kernels: dict[str, Callable] = {}  # by device type: see kernel_for
        self._backward = None
        self.eager_compilation = False  # programs with it are compiled at first sight (torch.compile asks for that)
        self.stable = True  # its name means the same in every process, so programs with it may be kept on disk
        self.overwrites = False  # its result is its first input, changed in part: its NumPy form asks overwrite.py whether it may write there
        self.loops = False  # its NumPy form goes through the leading axis of its first input in Python
        self.frees: bool | str = True  # its nodes free what they saved after a backward; "always": also where that is nothing
        self.compares = False  # its derivative is made of comparisons, which carry no gradient: see dependence.py
        self.torch_name = torch_name or "".join(p.capitalize() for p in name.split("_")) + "Backward0"

    def __repr__(self):
        return f"<op {self.name}>"

    def renewed(self, plan: Plan) -> Sequence[int]:
        """Which inputs are taken over by results: its NumPy form asks overwrite.py whether it may write there."""
        return ()

    def single_precision(self, plan: Plan) -> bool:
        """Whether it reads its Python numbers in float32 alone, so that they may be rounded to that before."""
        return False

    def row(self, plan: Plan, position: int) -> range | None:
        """Which arguments a result is computed from, where it may replace one of them (an optimizer's parameter); None: it does not."""
        return None

    def kernel_for(self, *platforms: str) -> Callable:
        """Decorator: in compiled programs on these device types (`cpu`, `cuda`, `tpu`) run `f(*inputs, *statics)` in place of
        the default kernel. It returns NotImplemented for inputs that the default serves better. A derivative's inputs are the
        saved inputs and results and the gradients, its statics the forward plan and `needs` (see BackwardOp)."""
        def register(kernel: Callable) -> Callable:
            for platform in platforms:
                if self.device_kernels.setdefault(platform, kernel) is not kernel:
                    raise ValueError(f"operation {self.name!r} has a kernel for {platform} already")
            return kernel
        return register

    def plan(self, avals: tuple, statics: tuple) -> Plan:
        key = (avals, statics, dt.Default.float)
        found = self.plans.get(key)
        if found is None:
            found = self.older.pop(key, None) or self._new_plan(avals, statics)
            self.plans[key] = found
        return found

    def _new_plan(self, avals: tuple, statics: tuple) -> Plan:
        for x in statics:
            if hasattr(x, "_value"):  # a Tensor given for a number
                raise TypeError(f"{self.name}(): argument must be int, not Tensor")
        made = self.make(avals, statics)
        for a in made.outs:
            if a.numel >= SPARE:
                if self.fills:
                    need_room(a.shape, a.dtype, a.device)
                else:
                    need_count(a.shape)
        if next(_plans_made) % MOST_PLANS == 0:
            _forget_old_plans()
        return made

    def make(self, avals, statics) -> Plan:
        device = common_device(self, avals, statics)
        kernel = self.kernel

        def run(xp, *arrays):
            return kernel(xp, *arrays, *statics)
        if self.shape is not None:
            outs = self.shape(*avals, *statics)
        else:
            outs = infer(functools.partial(run, jnp), avals)
        return Plan(self, avals, statics, outs, run, device)

    def saved(self, plan: Plan, needs: tuple) -> tuple:
        if self.derivative is None:
            return tuple(range(len(plan.avals))), ()
        return self.derivative.saved(plan, needs)

    @property
    def backward(self) -> BackwardOp:
        if self._backward is None:
            self._backward = BackwardOp(self)
        return self._backward


def common_device(op, avals, statics):
    """The device of an op's results: that of its tensors; 0-dim CPU tensors follow. Factories name it in their statics."""
    found = None
    for a in avals:
        if a is None or a.number or a.device is found:
            continue
        if found is None or (found.type == "cpu" and device_rank(avals, found) == 0):
            found = a.device
        elif a.ndim or a.device.type != "cpu":
            raise RuntimeError(two_devices(op, avals, found, a.device))
    if found is None:
        found = next((s for s in statics if s.__class__.__name__ == "device"), None)
        if found is None:
            from .device import default_device
            found = default_device()
    return found


def two_devices(op, avals, one, other) -> str:
    """torch's error of an operation on tensors of two devices: many name the first argument that is elsewhere than those before."""
    function, *names = op.asks or (None,)
    listed = [(name, avals[i]) for name, i in names] or [("tensors", a) for a in avals]
    listed = [(name, a.device) for name, a in listed if a is not None]
    elsewhere = next(((name, d) for name, d in listed if d is not listed[0][1]), None)
    if "meta" in (one.type, other.type):
        return f"Tensor on device {other} is not on the expected device {one}!"
    if function is None or elsewhere is None:
        return f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
    name, other = elsewhere
    return (f"Expected all tensors to be on the same device, but got {name} is on {other}, different from other tensors on {listed[0][1]} (when checking "
            f"argument in method wrapper_CUDA_{function})")


def device_rank(avals, device) -> int:
    return max((a.ndim for a in avals if a is not None and not a.number and a.device is device), default=0)


def infer(run: Callable, avals) -> tuple | list:
    """Result shapes and dtypes by tracing; JAX's shape errors become RuntimeError, as torch raises."""
    with engine_settings():
        try:
            out = jax.eval_shape(run, *(shape_struct(a) for a in avals))
        except (TypeError, ValueError) as e:
            raise RuntimeError(str(e)) from None
    one = lambda s: (tuple(s.shape), dt.from_numpy_dtype(s.dtype))  # noqa: E731
    return [one(s) for s in out] if isinstance(out, (list, tuple)) else one(out)


class Form(NamedTuple):
    """An elementwise operation for arguments of certain dtypes, whatever their shapes: the result's dtype, and Plan's `run`, `host` and `exact`."""

    out: dt.dtype
    run: Callable
    host: Callable | None
    exact: bool = False


class Elementwise(Op):
    """Broadcasting, promoting op. `promote`: 'arith' (torch.result_type), 'float' (integers become the default float),
    'bool' (computed in the common type, result bool), 'same' (the first input's type), or a function of the common dtype.

    `ufunc`: NumPy's function that is the kernel.
    `real`: complex inputs are refused, as torch's kernel refuses them; a text is the RuntimeError of the function itself.
    `grads`: one function per input, `(xp, g, <names of inputs, 'out', or statics>)`, or None where no gradient flows.
    """

    pointwise = cheap = cheap_derivative = True
    compares = False  # whether its gradients ask which input is larger: in 16 bits as in the result's type, to which a wider number without dimensions is rounded
    steps = False  # whether a result is a matter of the type's own steps, so that 16-bit floats have to be computed in 16 bits

    def __init__(self, name, kernel, *, promote="arith", grads=None, numpy=True, torch_name=None, real=False, ufunc=None):
        super().__init__(name, kernel, numpy=numpy, vjp=None if grads is not None else False, torch_name=torch_name)
        self.promote, self.real, self.ufunc = promote, real, ufunc
        self.forms: dict[tuple, Form] = {}  # where there are no statics
        if grads is not None:
            self.differentiable = True
            self.derivative = ElementwiseDerivative(self, grads)

    def make(self, avals, statics) -> Plan:
        for a in avals:
            if a is not None and not a.number:
                break
        else:
            raise TypeError(f"{self.name}(): argument 'input' (position 1) must be Tensor, not {_python_name(avals[0])}")
        device = common_device(self, avals, statics)
        form = None
        if not statics:
            key = (dt.get_default_dtype(), *[a if a is None or a.number else (a.dtype, not a.ndim) for a in avals])
            form = self.forms.get(key)
        if form is None:
            common = result_dtype(*avals)
            if self.real and common.category == dt.COMPLEX:
                if self.real is not True:
                    raise RuntimeError(self.real) if isinstance(self.real, str) else type(self.real)(*self.real.args)
                raise not_implemented(f"{self.name}_cpu", common)
        shape = broadcast_shapes(*[a.shape for a in avals if a is not None])
        if form is None:
            form = self.form(avals, statics, common)
            if not statics:
                self.forms[key] = form
        plan = Plan(self, avals, statics, (shape, form.out), form.run, device)
        plan.host, plan.exact = form.host, form.exact
        return plan

    def kernel_in(self, compute: dt.dtype) -> Callable:
        """The kernel for numbers of a dtype: of 16-bit floats it gets float32."""
        return self.kernel

    def form(self, avals, statics, common: dt.dtype) -> Form:
        """What this operation is for arguments of these dtypes, which have one in common."""
        if self.promote == "float":
            out = compute = common if common.category >= dt.FLOAT else dt.get_default_dtype()
        elif self.promote == "bool":
            out, compute = dt.bool_, common
        elif self.promote == "same":
            out = compute = avals[0].dtype
        elif callable(self.promote):
            out, compute = self.promote(common)
        else:
            out = compute = common
        kernel, compute_np, out_np = self.kernel_in(compute), compute.np, out.np

        if compute in (dt.float16, dt.bfloat16) and not self.steps:  # as torch does
            compute_np = np.dtype(np.float32)

        def run(xp, *arrays):
            r = kernel(xp, *[None if x is None else cast(xp, x, compute_np) for x in arrays], *statics)
            return r if r.dtype == out_np else cast(xp, r, out_np)
        casts = [a is not None and (a.number or a.dtype.np != compute_np) for a in avals]
        if self.ufunc is not None and not statics and compute_np.kind in "fciub" and all(
                not c or compute_np.kind == "f" and (a is FLOAT or a is INT) or compute is dt.int64 and a is INT for a, c in zip(avals, casts)):
            # NumPy takes such a number as `cast` makes it
            return Form(out, run, self.ufunc, True)
        if not any(casts) and not statics:
            return Form(out, run, functools.partial(kernel, np))
        if len(casts) == 2 and casts[1] and not casts[0] and not statics:  # a tensor and a number
            return Form(out, run, lambda x, y: kernel(np, x, cast(np, y, compute_np)))
        return Form(out, run, lambda *arrays: kernel(np, *[cast(np, x, compute_np) if c else x for c, x in zip(casts, arrays)], *statics))


def _python_name(a: Aval | None) -> str:
    return next((kind.__name__ for kind, number in NUMBERS.items() if number is a), "NoneType")


class View(Op):
    """An op whose result shares the input's storage: `kernel(xp, base, *numbers, *statics)`.

    put      `(xp, base, new, *numbers, *statics) -> base with the viewed part replaced by new`
    layout   `(Layout, *numbers, *statics) -> Layout` of the result in the storage; raises torch's error where none exists
    overlaps whether several elements of the result may be one element of the base (no writes then, and `vjp` is given)
    spread   like `put`, as a choice for each element of the base, which XLA computes together with `new`: see stencils.py
    plus     `(base, new, *numbers, *statics) -> base with new added to the viewed part`, an Op; None where a view is no part
    """

    fills = False
    plus: Op | None = None

    def __init__(self, name, kernel, *, put, layout, vjp=None, overlaps=False, numpy=True, torch_name=None, spread=None):
        super().__init__(name, kernel, shape=self._shape, numpy=numpy, torch_name=torch_name)
        self.layout_rule, self.layouts, self.overlaps = layout, {}, overlaps
        self.free = not overlaps
        self.frees = vjp is not None  # only positions are saved
        self.put = Op(f"{name}_put", put, shape=lambda base, *rest: (base.shape, base.dtype), numpy=numpy is not None or None, torch_name="CopySlices")
        self.put.frees, self.put.overwrites = "always", True
        if vjp is not None:
            self.derivative = Derivative(self, vjp)
        elif not overlaps:
            self.derivative = ViewDerivative(self)
            self.put.derivative = PutDerivative(self)
        if spread is not None:
            self.put.spread = Op(f"{name}_spread", spread, shape=self.put.shape, numpy=None)
            self.put.spread.derivative = self.put.derivative

    def adds(self, plan: Plan) -> bool:
        """Whether a gradient of its result is added to what its base has already, and not made one of the base's size first: where it shows
        so little of much that a loop over all of it would add mostly zeros, each time."""
        n = plan.avals[0].numel
        return self.plus is not None and n >= MUCH and plan.outs[0].numel * LITTLE <= n

    def _shape(self, a, *rest):
        # the shape does not depend on numbers: they are positions
        return self.layout(contiguous(a.shape), tuple(0 if x.__class__ is Aval else x for x in rest)).shape, a.dtype

    def layout(self, layout: Layout, rest: tuple) -> Layout:
        if layout.__class__ is Examples:
            return layout.of(self.layout(Layout(*layout), rest))
        key = (layout, rest)
        found = self.layouts.get(key)
        if found is None:
            found = self._noted(key, self.layout_rule(layout, *rest))
        return found

    def layout_of_contiguous(self, a: Aval, rest: tuple) -> Layout:
        """The same of a contiguous tensor."""
        key = (a.shape, rest)
        return self.layouts.get(key) or self._noted(key, self.layout(contiguous(a.shape), rest))

    def _noted(self, key: tuple, found: Layout) -> Layout:
        if len(self.layouts) > 10_000:
            self.layouts.clear()
        self.layouts[key] = found
        return found


class Pieces(Op):
    """An op that cuts its input into pieces, all of which are views of it; `vjp` joins them."""

    free = True

    def __init__(self, name: str, kernel: Callable, *, vjp: Callable, **options):
        super().__init__(name, kernel, **options)
        self.derivative = PiecesDerivative(self, vjp)


_AGAIN = {ViewDerivative: ViewAgain, PiecesDerivative: PiecesAgain}


class BackwardOp(Op):
    """The derivative of `op` as an operation: inputs are the saved inputs, the saved results and the results' gradients;
    statics are the forward plan and which inputs need a gradient. Its own derivative is jax.vjp, so it nests; that of a view's is
    the view, and of pieces' the pieces, which NumPy can compute without a trace."""

    def __init__(self, op: Op):
        explicit = op.derivative is not None
        super().__init__(f"{op.name}_backward", None, numpy=(True if explicit and op.numpy is not None else None))
        self.forward = op
        if op.derivative.__class__ in _AGAIN:
            self.derivative = _AGAIN[op.derivative.__class__](op)
        self.compares, self.cudnn = op.compares, op.cudnn

    def make(self, avals, statics) -> Plan:
        fplan, needs = statics
        device = common_device(self, avals, (fplan.device,))
        outs = [(a.shape, a.dtype) for a, need in zip(fplan.avals, needs) if need]
        derivative = self.forward.derivative
        bound = functools.partial(jax_vjp, fplan, needs) if derivative is None else derivative.bind(fplan, needs)

        def run(xp, *arrays):
            return bound(xp, arrays)
        return Plan(self, avals, statics, outs, run, device)


def jax_vjp(plan: Plan, needs, xp, arrays):
    """Gradients by jax.vjp. torch's gradient of complex numbers is the conjugate of JAX's cotangent."""
    saved, gs = arrays[:len(plan.avals)], arrays[len(plan.avals):]
    wanted = [i for i, need in enumerate(needs) if need]
    floating = [i for i, o in enumerate(plan.outs) if o.dtype.category >= dt.FLOAT]

    def forward(*diff):
        full = list(saved)
        for i, x in zip(wanted, diff):
            full[i] = x
        outs = plan.jax(*full)
        return [outs[i] for i in floating]
    before, derived.state.differentiating = derived.state.differentiating, True
    try:
        _, pull = jax.vjp(forward, *(saved[i] for i in wanted))
    finally:
        derived.state.differentiating = before
    return [jnp.conj(r) for r in pull([jnp.conj(gs[i]) for i in floating])]


def _forget_old_plans() -> None:
    """Shapes that never return would fill the memory: what was not asked for since the last time goes."""
    for op in list(OPS.values()):
        op.older, op.plans = op.plans, {}
    forget_unused()


def plans() -> Iterator[Plan]:
    """Of all operations."""
    for op in list(OPS.values()):
        yield from [*op.plans.values(), *op.older.values()]


def clear_plans() -> None:
    """Forget plans; how they are computed may depend on a setting."""
    for op in OPS.values():
        op.plans.clear()
        op.older.clear()


def any_precise_plan() -> bool:
    """Whether a plan was made for a precision."""
    return any(plan.precision is not None for plan in plans())
