"""Executables: a program compiled for fixed outputs and donated inputs, and how one is started."""
from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np

from . import allocator, disk_cache, errors, flow, history, host, numbers
from . import device as _device
from .aval import COMPLEX, FLOAT, INT
from .jax_settings import engine_settings, hinder
from .rematerialization import rematerialized
from .stencils import made_once, written_together
from .ties import tied
from .traces import beside
from .value import Value

SMALL = 1 << 14  # bytes of a host array that each call copies, instead of the device once
ADDRESSABLE = 1 << 47  # bytes of an array that no machine holds; XLA ends the process where their number overflows
ROOMY = 8 << 20  # bytes of all results above which XLA's CPU backend orders a program by memory
_BY_MEMORY = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
_STEP_BY_STEP = {"xla_allow_excess_precision": False}  # each operation's result is rounded to its 16 bits, as in torch


class Step:
    """One operation of a program: its plan and where inputs come from."""

    __slots__ = ("plan", "refs", "out")

    def __init__(self, plan, refs, out):
        self.plan, self.refs, self.out = plan, refs, out


class Executable:
    """A compiled program: fixed outputs and donated inputs."""

    __slots__ = ("live", "donated", "gone", "kept", "call", "position", "numbers", "copied", "lent", "device", "one", "roomy")

    def __init__(self, info, live: tuple, donated: tuple, places: Sequence[int], types: str | None, call):
        self.live, self.donated, self.call = live, donated, call
        self.numbers = numbers.Numbers(types)
        self.copied: list[np.ndarray] = []  # small host arrays that the last run copied
        self.gone = frozenset(donated)
        self.lent = 0  # runs with copies of donated inputs
        self.roomy = _is_roomy(info)
        self.device, self.one = info.device, _one(info.device)
        self.kept = tuple(i for i in range(len(info.input_avals)) if i not in self.gone)
        self.position = dict(zip(live, places))  # among the outputs

    def run(self, inputs: list[Value], floats: Sequence[float], ints: Sequence[int]) -> list:
        """The arrays of the outputs."""
        copied: list[np.ndarray] = []
        arrays = [v.array for v in inputs]
        if np.ndarray in map(type, arrays):
            moved, last = [], set(map(id, self.copied))
            for i, v in enumerate(inputs):
                if v.array.__class__ is np.ndarray:
                    # a call copies host arrays itself, in a fraction of the time; but those that last it would copy each time
                    if self.device.type == "cpu" and (i in self.gone or v.array.nbytes <= SMALL and id(v.array) not in last):
                        copied.append(v.array)
                    else:
                        moved.append(v)
            if moved:
                to_device(moved, self.device)
                arrays = [v.array for v in inputs]
        self.copied = [a for a in copied if a.nbytes <= SMALL]  # not a large one, which would last as long as this
        return self.start(arrays, floats, ints, bool(copied))

    def start(self, arrays: list, floats: Sequence[float], ints: Sequence[int], copies: bool = False) -> list:
        """The arrays of the outputs for these of the inputs; `copies`: some lie on the host."""
        if self.roomy:
            allocator.let_others_run()  # the thread that ran the last program may not have freed the temporary buffer, and there would be two
        donated = [arrays[i] for i in self.donated]
        kept = [arrays[i] for i in self.kept]
        given = self.numbers
        try:
            if given.take(floats, ints) and not copies:
                return self.call(donated, kept, given.items, self.one)
            with jax.enable_x64(True):
                given.move(_device.jax_device(self.device))
                made = self.call(donated, kept, given.items, self.one)  # not returned at once: Ctrl-C there could leave the setting on
            return made
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            if not hinder() or any(x.is_deleted() for x in donated if isinstance(x, jax.Array)):
                raise errors.of_device(error) from None
        with engine_settings():  # the program's own forbade it before anything ran: asking them before each run would take longer
            return self.call(donated, kept, given.items, self.one)


def _is_roomy(info) -> bool:
    return sum(a.numel * a.dtype.itemsize for s in info.steps for a in s.plan.outs) > ROOMY


@functools.cache
def _one(device):
    """What rematerialization.py tells values apart by."""
    with beside():
        return jax.device_put(np.float32(1), _device.jax_device(device))


def to_device(values: list[Value], device) -> None:
    """Move host arrays to JAX once; never aliased, because they may be donated later."""
    with beside():
        arrays = jax.device_put([v.array for v in values], _device.jax_device(device), may_alias=False)
    for v, moved in zip(values, arrays):
        v.array = moved


def evaluate(steps, env: list, inputs, floats, ints, kernel) -> None:
    """Run steps in order, appending results to env; `inputs(k)` is input k, `kernel(plan)` what runs a plan."""
    f = k = 0
    for step in steps:
        args = []
        for ref in step.refs:
            if ref.__class__ is int:
                args.append(env[ref] if ref >= 0 else inputs(-1 - ref))
            elif ref is None:
                args.append(None)
            elif ref is FLOAT:
                args.append(floats[f])
                f += 1
            elif ref is COMPLEX:
                re, im = floats[f], floats[f + 1]
                args.append(complex(re, im) if re.__class__ is float else jax.lax.complex(re, im))
                f += 2
            else:
                args.append(ints[k] if ref is INT else ints[k] != 0)
                k += 1
        env.extend(kernel(step.plan)(*args))


def traced(plan):
    """A plan's kernel for its platform, held to its shape rule."""
    def run(*args):
        outs = plan.compiled(*args)
        for o, want in zip(outs, plan.outs):
            if o.shape != want.shape or o.dtype != want.dtype.np:
                raise AssertionError(f"{plan}: the shape rule says {want}, the kernel made {o.dtype}{list(o.shape)}")
        return outs
    return run


def on_host(plan):
    """A plan's NumPy kernel as `evaluate` calls it."""
    kernel = host.kernel_of(plan)
    return (lambda *args: (kernel(*args),)) if plan.single else kernel


def _forget_sources(lowered) -> None:
    """Take out which line each instruction came from: XLA's CPU backend keeps that twice for as long as a program is loaded."""
    from jax.extend.mlir.passmanager import PassManager  # importing it takes 25 ms, and only compiling needs it
    module = lowered.compiler_ir()
    with module.context:
        PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)


def build(info, live: tuple, donated: tuple) -> Executable:
    """Compile a program for these outputs and donations, of which some may turn out not to be possible."""
    calls, results = flow.calls(info.steps)
    wanted = [results[i] for i in live]
    if any(a.numel * a.dtype.itemsize > ADDRESSABLE for call in calls for a in call.plan.outs):
        raise RuntimeError("an array in this program is larger than any memory")
    if info.device.type == "cpu":
        calls = rematerialized(calls, set(wanted), info.input_avals)
        calls = tied(calls, donated, wanted, info.input_avals)
        calls, wanted = made_once(written_together(calls), wanted, info.input_avals)
    with beside(), jax.default_device(_device.jax_device(info.device)):
        try:
            types = numbers.types(info, calls)
            made = _compiled(info, calls, wanted, donated, types)
        except jax.errors.JaxRuntimeError as error:  # a kernel may ask for more than this GPU has
            if info.device.type == "cpu":
                raise
            import pallas_kernels
            with pallas_kernels.override("reference"):
                made = _compiled(info, calls, wanted, donated, types)
            history.warn(f"{info.device}: a program could not be compiled with the kernels of pallas_kernels, and was compiled without: {error}")
    donated, places, call = made
    if disk_cache.enabled():
        disk_cache.store(info, live, donated, places, types, call)
    return Executable(info, live, donated, places, types, call)


def _compiled(info, calls: list, wanted: list, donated: tuple, types: str | None) -> tuple:
    """(what it takes over, places of its results, callable) of a program."""
    program, places = _traced_program(info, calls, wanted, donated, types)
    possible = _possible(donated, places, program, info.device)
    if possible != donated:
        donated = possible
        program, places = _traced_program(info, calls, wanted, donated, types)
    lowered = program.lower()
    options = None
    if info.device.type == "cpu":
        _forget_sources(lowered)
        # a large program takes less memory then and no more time, a small one a little more time
        options = _STEP_BY_STEP | _BY_MEMORY if _is_roomy(info) else _STEP_BY_STEP
    return donated, places, lowered.compile(compiler_options=options)


def _traced_program(info, calls: list, wanted: list, donated: tuple, types: str | None):
    """The program as JAX traced it, and where among its outputs each result is: those that are one value are one output."""
    n, gone = len(info.input_avals), set(donated)
    kept = [i for i in range(n) if i not in gone]
    places: list[int] = []

    def p(donated_arrays, kept_arrays, given, one):  # XLA keeps the name twice with each instruction
        floats, ints = given if types is None else (given[:info.n_floats], given[info.n_floats:])
        env = dict(zip([~i for i in donated], donated_arrays)) | dict(zip([~i for i in kept], kept_arrays)) | {~n: one}

        def value(x):
            if x.__class__ is int:
                return env[x]
            if x is None:
                return None
            kind, k, *_ = x
            if kind == "complex":
                return jax.lax.complex(floats[k], floats[k + 1])
            return floats[k] if kind == "float" else ints[k] if kind == "int" else ints[k] != 0
        for call in calls:
            env.update(zip(call.outs, traced(call.plan)(*map(value, call.args))))
        outs = {id(env[v]): env[v] for v in wanted}
        order = {key: k for k, key in enumerate(outs)}
        places[:] = [order[id(env[v])] for v in wanted]
        return list(outs.values())
    struct = lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype.np)  # noqa: E731
    parts = [((info.n_floats,), "d"), ((info.n_ints,), "q")] if types is None else [((), t) for t in types]
    program = jax.jit(p, donate_argnums=(0,), keep_unused=True).trace(
        [struct(info.input_avals[i]) for i in donated], [struct(info.input_avals[i]) for i in kept],
        [jax.ShapeDtypeStruct(*part) for part in parts], jax.ShapeDtypeStruct((), np.float32))
    return program, tuple(places)


_SAME_DATA = {"reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose", "copy", "convert_element_type", "real", "optimization_barrier"}


def _possible(donated: tuple, places: tuple, program, device) -> tuple:
    """The donations for which there is an output. XLA's GPU compiler (2026) loses a copy where one input is two outputs of a program that takes
    over others: such a program takes over nothing."""
    if device.type != "cpu":
        jaxpr = program.jaxpr.jaxpr
        root = {id(v): v for v in jaxpr.invars}
        for eqn in jaxpr.eqns:
            if eqn.primitive.name in _SAME_DATA:
                root.update({id(out): root[id(x)] for x, out in zip(eqn.invars, eqn.outvars) if id(x) in root})
        inputs = [id(root[id(v)]) for v in jaxpr.outvars if id(v) in root]
        if len(set(inputs)) < len(inputs):
            return ()
    first: dict[int, int] = {}
    for k, place in enumerate(places):
        first.setdefault(place, k)
    return tuple([i for k, i in enumerate(donated) if first[places[k]] == k])
