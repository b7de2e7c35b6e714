"""Random numbers: torch's CPU generator, drawn on the host; they enter programs as data."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import overload

import numpy as np

from .._arguments import as_int, as_size, factory_size, flag, named_size, number, real
from .._core import device as dev
from .._core import dtype as dt
from .._core import program, rng
from .._core.aval import aval, broadcast_shapes
from .._core.errors import class_name, not_implemented
from .._core.grad_mode import mode
from .._core.layout import is_contiguous, like, overlapping
from .._core.registry import Op
from .._core.room import SPARE, need_room
from .._core.shown import Shown
from .._core.traces import is_clean, is_staging
from .._core.value import Value
from .._kinds import combination
from .._plainly import keeps_tangents
from .._public import MISSING, public
from .._tensor import Tensor, apply, as_tensor_value
from .._writing import fill_out
from .aliases import of_its_class
from .basic import overwrite
from .creation import _check_dtype, _empty_check, _finish, constant, dtype_into, range_bounds, strided_only
from .elements import plain_number
from .from_data import place
from .host_calls import at_each_run
from .staged_draws import drawn_from, staged, undrawn, without_data


class Generator(rng.Generator, metaclass=Shown):
    """torch.Generator: torch's mt19937 stream, whatever the device it is made for."""

    __module__ = "torch._C"

    def __init__(self, device="cpu"):
        device = "cpu" if device is None else device
        self._device = dev.device(device)
        if self._device.type in ("meta", "opengl", "opencl", "vulkan", "mkldnn"):
            raise RuntimeError(f"{self._device.type.upper()} device type not an accelerator.")
        if self._device.type != "cpu" and not dev.device_count(self._device.type):
            raise RuntimeError(f"Cannot get {self._device.type.upper()} generator without ATen_{self._device.type} library: there is no such device here.")
        super().__init__(str(device))
        if is_staging():  # a new one at each run
            self.manual_seed(rng.DEFAULT_SEED)

    @property
    def device(self):
        return self._device

    @device.setter
    def device(self, value):
        self._device = dev.device(value)

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a seed."""
        if not is_staging():
            return super().manual_seed(seed)
        rng.checked_seed(seed)
        at_each_run(lambda: super(Generator, self).manual_seed(seed) and [], [])
        return self

    def get_offset(self) -> int:
        """RuntimeError: counters are other generators'; this one's state is a vector."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """RuntimeError, as of `get_offset`."""
        raise RuntimeError("CPU Generator does not use offset")

    def seed(self) -> int:
        """Restart from the system's entropy; the seed."""
        if is_staging():
            raise RuntimeError("a function that JAX traces runs later, so which seed its generator will start from is not known now")
        return super().seed()

    def get_state(self) -> Tensor:
        """The state as a byte tensor, in torch's layout."""
        def state() -> np.ndarray:
            return np.frombuffer(self.get_state_bytes(), np.uint8).copy()
        return staged(state, dev.CPU, (rng.STATE_BYTES,), np.dtype(np.uint8)) if is_staging() else as_tensor_value(state())

    def set_state(self, new_state: Tensor) -> Generator:
        """Take over a state that get_state of torch or torchlike gave."""
        if not isinstance(new_state, Tensor) or new_state.dtype is not dt.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if is_staging():
            at_each_run(lambda state: self.set_state_bytes(np.asarray(state).tobytes()) or [], [], program.concrete(new_state._current()))
        else:
            self.set_state_bytes(new_state._host_array().tobytes())
        return self

    def __reduce__(self) -> tuple:  # not by the class, whose name is one of torch's
        return _restored, (self._device, self.get_state_bytes())

    def __setstate__(self, state: tuple) -> None:
        """What a pickle of PyTorch's says: the seed, an offset (None on the CPU), and the state."""
        self.set_state(state[2])


def _restored(device, state: bytes) -> Generator:
    generator = Generator(device)
    generator.set_state_bytes(state)
    return generator


def _published(generator: rng.Generator) -> Generator:
    """The process's generator, with the Tensor-level methods."""
    generator.__class__ = Generator
    generator.device = "cpu"
    return generator


default_generator = _published(rng.default_generator)


def _generator(g) -> rng.Generator:
    if g is None:
        return default_generator
    if not isinstance(g, rng.Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {class_name(g)}")
    return g


def drawn(draw: Callable[[], np.ndarray], device, shape: tuple, kind: np.dtype) -> Tensor:
    """A tensor of random numbers of that shape and NumPy dtype; a compiled call draws them anew at each replay."""
    if (device.type == "meta" or without_data) and (made := undrawn((), device, shape, kind)) is not None:  # no values, and no numbers drawn for them
        return made
    if math.prod(shape) >= SPARE:
        need_room(shape, dt.from_numpy_dtype(kind), device)
    capture = program.state.capture
    if capture is not None:
        capture.begin_draw()
    make = (lambda: staged(draw, device, shape, kind)) if is_staging() else lambda: place(draw(), device)
    t = make()
    if capture is not None:
        capture.drew(t._value, lambda: make()._value)
    return t


def _floating(dtype, name: str) -> dt.dtype:
    d = dt.get_default_dtype() if dtype is None else _check_dtype(dtype)
    if d.category < dt.FLOAT:
        raise not_implemented(name, d)
    return d


def _laid_out_like(t: Tensor, dtype, device, memory_format) -> Tensor | None:
    """An empty tensor with t's order of dimensions in memory, in which numbers are drawn; None where that is the order of the dimensions."""
    layout = like(t._layout) if memory_format is None or memory_format.name == "preserve_format" else None
    if layout is None:
        return None
    made = constant(layout.shape, 0, t.dtype if dtype is None else _check_dtype(dtype), t.device if device is None else dev.resolve(device))
    made._layout = layout
    return made


def _few(size: tuple) -> tuple[int, ...] | None:
    """The shape of a factory's arguments that asks for a few numbers of the usual kind, which nobody watches."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    n = 1
    for s in size:
        if s.__class__ is not int or s < 0:
            return None
        n *= s
    usual = n <= rng.FEW and size and program.state.capture is None and is_clean() and dt.get_default_dtype() is dt.float32 and dev.default_device() is dev.CPU
    return size if usual else None


def _random_factory(name: str, kernel: str, draw, fill):
    def f(*size, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
        strided_only(layout, "uniform_" if name == "rand" else "normal_")
        shape = factory_size(name, size)
        _empty_check(shape)
        d = dtype_into(out, dtype)
        if d is None or name == "rand" or 0 not in shape:  # torch's kernel for normal numbers looks at no dtype where there is nothing to do
            d = _floating(d, kernel)
        g = _generator(generator)
        return _finish(drawn(lambda: draw(g, shape, d.np), dev.resolve(device), shape, d.np), requires_grad, out)

    @overload
    def g(*size: int, generator=None, out: Tensor | None = None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor: ...
    @overload
    def g(size: Sequence[int], *, generator=None, out: Tensor | None = None, dtype=None, layout=None, device=None, requires_grad=False,
          pin_memory=False) -> Tensor: ...
    def g(*size, **kwargs) -> Tensor:
        if not kwargs and (shape := _few(size)) is not None:
            return Tensor._of(Value(aval(shape, dt.float32), draw(default_generator, shape, dt.float32.np)))
        return f(*((named_size(name, kwargs.pop("size")),) if "size" in kwargs else size), **kwargs)
    f.__name__ = f.__qualname__ = g.__name__ = g.__qualname__ = name  # f's in errors of arguments that it does not have
    g.__doc__ = f"torch.{name}(*size): random numbers of that shape."

    def made_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, generator=None, pin_memory=False) -> Tensor:
        if input._sparse:
            input.refuse("uniform_")
        if input._layout is not None and (made := _laid_out_like(input, dtype, device, memory_format)) is not None:
            return of_its_class(input, _finish(fill(made, generator), requires_grad))
        return of_its_class(input, f(input.shape, dtype=input.dtype if dtype is None else dtype, device=input.device if device is None else device,
                                     requires_grad=requires_grad, generator=generator))
    made_like.__name__ = made_like.__qualname__ = name + "_like"
    made_like.__doc__ = f"{name} of input's shape, dtype and device."
    public(method=False)(made_like)
    return public(method=False)(g)


rand = _random_factory("rand", "check_uniform_bounds", rng.rand, lambda t, generator: t.uniform_(generator=generator))
randn = _random_factory("randn", "normal_kernel_cpu", rng.randn, lambda t, generator: t.normal_(generator=generator))


@public(method=False)
def randint(low=None, high=None, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """Integers from [low, high), of the given size: randint(high, size) or randint(low, high, size)."""
    if generator is out is dtype is layout is device is None and requires_grad is False:  # most calls
        if size is None and isinstance(high, (tuple, list)):
            low, high, size = 0, low, high
        if low.__class__ is int and high.__class__ is int and low < high and isinstance(size, (tuple, list)) and (shape := _few((size,))) is not None:
            return Tensor._of(Value(aval(shape, dt.int64), rng.randint(default_generator, low, high, shape, dt.int64.np)))
    strided_only(layout, "random_.from")
    given = [x for x in (low, high, size) if x is not None]
    if isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    elif low is None:
        low = 0
    if not isinstance(size, (tuple, list)):
        if len(given) == 2:
            raise TypeError(f"randint(): argument 'size' (position 2) must be tuple of ints, not {class_name(given[1])}")
        raise combination("randint", given, {})
    low, high, shape = as_int(low, "low", symbolic=True), as_int(high, "high", symbolic=True), as_size(size)
    _empty_check(shape)
    dtype = dtype_into(out, dtype)
    d = dt.int64 if dtype is None else _check_dtype(dtype)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    g = _generator(generator)
    return _finish(drawn(lambda: rng.randint(g, low, high, shape, d.np), dev.resolve(device), shape, d.np), requires_grad, out)


@public(method=False)
def randint_like(input, *bounds, low=MISSING, high=MISSING, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None,
                 pin_memory=False) -> Tensor:
    """randint of input's shape, dtype and device: randint_like(input, high) or randint_like(input, low, high)."""
    low, high, _ = range_bounds("randint_like", bounds, low, high, MISSING)
    if input._sparse:
        input.refuse("random_.from")
    if input._layout is not None and (made := _laid_out_like(input, dtype, device, memory_format)) is not None:
        return of_its_class(input, _finish(made.random_(low, high), requires_grad))
    return of_its_class(input, randint(low, high, tuple(input.shape), dtype=input.dtype if dtype is None else dtype,
                                       device=input.device if device is None else device, requires_grad=requires_grad))


@public(method=False)
def randperm(n: int, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """The numbers 0 to n - 1 in random order."""
    strided_only(layout, "randperm.generator_out")
    n = as_int(n, "n", symbolic=True)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = dtype_into(out, dtype)
    d = dt.int64 if dtype is None else _check_dtype(dtype)
    g = _generator(generator)
    return _finish(drawn(lambda: rng.randperm(g, n, d.np), dev.resolve(device), (n,), d.np), requires_grad, out)


def _no_gradient(xp, g, plan):
    return (*(xp.zeros(a.shape, a.dtype.np) for a in plan.avals[:-1]), None)


def _from_parameters(name: str, torch_name: str) -> Op:
    return Op(name, lambda xp, *given: +given[-1], shape=lambda *avals: (avals[-1].shape, avals[-1].dtype), vjp=_no_gradient, torch_name=torch_name)


_BERNOULLI, _NORMAL_MEAN, _NORMAL_STD, _NORMAL_BOTH = map(_from_parameters, ("bernoulli", "normal_mean", "normal_std", "normal_both"),
                                                          ("BernoulliBackward0", "NormalBackward1", "NormalBackward2", "NormalBackward3"))


def _drawn_from(op: Op, made: Tensor, *parameters: Tensor) -> Tensor:
    """Numbers drawn for parameters, to which they pass on gradients of zero, and whose tangents make one of zero."""
    if not (keeps_tangents or mode.enabled and any(p.requires_grad for p in parameters)):
        return made
    return apply(op, (*parameters, made))


def by_values(function, batches=None):
    """Marks a function whose draws depend on values of tensors, which under vmap are known outside of the call only. batches: the function
    for tensors with one more dimension, where it takes none."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if program.state.program.__class__ is not program.Program:
            from .._functorch import _draws  # above this file
            made = _draws.by_values(wrapper, batches or wrapper, args, kwargs)
            if made is not None:
                return made
        return function(*args, **kwargs)
    return wrapper


@public(method=False)
@by_values
def normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, dtype=None, device=None, requires_grad=False, layout=None) -> Tensor:
    """Normal numbers of given means and deviations (tensors or numbers), or of a size."""
    strided_only(layout, "normal_")
    g = _generator(generator)
    if size is not None:
        if not isinstance(size, (tuple, list)):
            raise TypeError(f"normal() received an invalid combination of arguments - got (float, float, {class_name(size)})")
        d = _floating(dtype_into(out, dtype), "normal_kernel_cpu")
        shape = as_size(size)
        mean, std = real(mean, "normal", "mean", 1), real(std, "normal", "std", 2)
        return _finish(drawn(lambda: rng.normal(g, shape, mean, std, d.np), dev.resolve(device), shape, d.np), requires_grad, out)
    else:
        parts = [x for x in (mean, std) if isinstance(x, Tensor)]
        if not parts:
            raise TypeError("normal() received an invalid combination of arguments - got (float, float)")
        shape = broadcast_shapes(*(x.shape for x in parts))
        both, mean_first = len(parts) == 2, mean is parts[0]

        def numbers(*arrays):
            host = arrays if both else (*arrays, std) if mean_first else (mean, *arrays)
            if host[1].__class__ is np.ndarray and host[1].dtype.kind != "c" and host[1].size and host[1].min() < 0:
                raise RuntimeError("normal expects all elements of std >= 0.0")
            return rng.normal_tensors(g, *host)
        op = _NORMAL_BOTH if both else _NORMAL_MEAN if mean_first else _NORMAL_STD
        made = _drawn_from(op, drawn_from(numbers, parts, tuple(shape), parts[0].dtype.np), *parts)
    return made if out is None else fill_out(out, made)


def _fill(self, draw, generator, kernel, name):
    self._check_write()
    if self.dtype.category < dt.FLOAT:
        raise not_implemented(kernel, self.dtype)
    if self.is_meta:  # no values, and no numbers drawn for them
        return self
    g, kind = _generator(generator), self.dtype.np
    return _overdraw(self, lambda shape: draw(g, shape, kind), name)


def _overdraw(self, draw, name: str) -> Tensor:
    """self becomes the numbers of `draw(shape)`, which come in memory order. `name`: that of its node."""
    shape, order = tuple(self.shape), memory_order(self)

    def numbers():
        return draw(shape) if order is None else in_order(draw, shape, order)
    return overwrite(self, drawn(numbers, self.device, shape, self.dtype.np), node=name)


def in_order(draw, shape: tuple, order: list[int]) -> np.ndarray:
    """Numbers of `shape`, drawn for its dimensions from outermost to innermost in memory."""
    return np.ascontiguousarray(draw(tuple(shape[i] for i in order)).transpose(np.argsort(order)))


def memory_order(t: Tensor) -> list[int] | None:
    """Dimensions from outermost to innermost where that is not their own order: numbers are drawn in memory order."""
    if t._layout is None or t.ndim < 2 or overlapping(t._layout):
        return None
    return sorted(range(t.ndim), key=lambda i: -t._layout.strides[i])


def uniform_(self, from_: float = 0.0, to: float = 1.0, *, generator=None, **kwargs) -> Tensor:
    """Uniform numbers from [from, to)."""
    low = kwargs.pop("from", from_)  # no name that a parameter could have in Python
    if kwargs:
        raise TypeError(f"uniform_() got an unexpected keyword argument {next(iter(kwargs))!r}")
    low, high = real(low, "uniform_", "from", 1), real(to, "uniform_", "to", 2)
    return _fill(self, lambda g, shape, t: rng.uniform(g, shape, low, high, t), generator, "check_uniform_bounds", "UniformBackward0")


def normal_(self, mean: float = 0.0, std: float = 1.0, *, generator=None) -> Tensor:
    """Normal numbers."""
    mean, std = real(mean, "normal_", "mean", 1), real(std, "normal_", "std", 2)
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    blocks = self._layout is None or is_contiguous(self._layout)
    return _fill(self, lambda g, shape, t: rng.normal(g, shape, mean, std, t, blocks), generator, "normal_kernel_cpu", "NormalBackward0")


def exponential_(self, lambd: float = 1.0, *, generator=None) -> Tensor:
    """Exponential numbers of rate lambd."""
    lambd = real(lambd, "exponential_", "lambd", 1)
    if self.dtype.category < dt.FLOAT:
        raise RuntimeError(f"Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified {self.dtype.short}")
    return _fill(self, lambda g, shape, t: rng.exponential(g, shape, lambd, t), generator, "exponential_cpu", "ExponentialBackward0")


def log_normal_(self, mean: float = 1.0, std: float = 2.0, *, generator=None) -> Tensor:
    """exp of normal numbers."""
    mean, std = real(mean, "log_normal_", "mean", 1), real(std, "log_normal_", "std", 2)
    return _fill(self, lambda g, shape, t: rng.log_normal(g, shape, mean, std, t), generator, "log_normal_cpu", "LogNormalBackward0")


def cauchy_(self, median: float = 0.0, sigma: float = 1.0, *, generator=None) -> Tensor:
    """Cauchy numbers."""
    median, sigma = real(median, "cauchy_", "median", 1), real(sigma, "cauchy_", "sigma", 2)
    return _fill(self, lambda g, shape, t: rng.cauchy(g, shape, median, sigma, t), generator, "cauchy_cpu", "CauchyBackward0")


def geometric_(self, p: float, *, generator=None) -> Tensor:
    """Numbers of trials until the first success of probability p."""
    self._check_write()
    g, kind, p = _generator(generator), self.dtype.np, real(p, "geometric_", "p", 1)
    return _overdraw(self, lambda shape: rng.geometric(g, shape, p, kind), "GeometricBackward0")


def bernoulli_(self, p=0.5, *, generator=None) -> Tensor:
    """Ones with probability p (a number or a tensor), else zeros."""
    self._check_write()
    g, kind = _generator(generator), self.dtype.np
    if isinstance(p, Tensor):
        if getattr(program.state.program, "randomness", None) is not None:  # under vmap
            return self.copy_(bernoulli(p.expand(self.shape), generator=generator))
        order, shape = memory_order(self), tuple(self.shape)

        def numbers(host):
            host = np.broadcast_to(host, shape)
            if order is None:
                return rng.bernoulli_tensor(g, host, kind)
            return np.ascontiguousarray(rng.bernoulli_tensor(g, host.transpose(order), kind).transpose(np.argsort(order)))
        return overwrite(self, drawn_from(numbers, [p], shape, kind), False, "BernoulliBackward1", p.detach())
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return _overdraw(self, lambda shape: rng.bernoulli_scalar(g, shape, float(p), kind), "BernoulliBackward2")


def random_(self, *limits: int | None, generator=None, **kwargs) -> Tensor:
    """Integers up to the dtype's largest, from [0, to), or from [from, to), where `to` may be None for the largest."""
    self._check_write()
    said = kwargs if generator is None else {**kwargs, "generator": generator}
    given = {**dict(zip(("from", "to") if len(limits) == 2 or kwargs else ("to",), limits)), **kwargs}
    if len(given) < len(limits) + len(kwargs) or given.keys() not in ({"from", "to"}, {"to"}, set()):
        raise combination("random_", limits, said, True)
    try:
        g, kind = _generator(generator), self.dtype.np
        bounds = [as_int(given.get("from", 0), "from")] if given else []
        if given and (given["to"] is not None or "from" not in given):
            bounds.append(as_int(given["to"], "to"))
    except TypeError:
        raise combination("random_", limits, said, True) from None
    if len(bounds) == 2 and bounds[0] >= bounds[1]:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={bounds[0]} >= to={bounds[1]}")
    return _overdraw(self, lambda shape: rng.random_(g, shape, kind, *bounds), f"RandomBackward{2 - len(given)}")


for _f in (uniform_, normal_, exponential_, log_normal_, cauchy_, geometric_, bernoulli_, random_):
    setattr(Tensor, _f.__name__, _f)


@public()
@by_values
def bernoulli(input, p=None, *, generator=None, out=None) -> Tensor:
    """Ones with the probabilities that input holds (or p)."""
    if p is not None:
        p = plain_number(p)
        return input.detach().contiguous().clone().bernoulli_(p, generator=generator)
    if input.dtype.category == dt.INT:
        raise not_implemented("bernoulli_tensor_cpu_p_", input.dtype)
    g, kind = _generator(generator), input.dtype.np

    def numbers(host):
        if host.size and not ((host >= 0) & (host <= 1)).all():
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, please "
                               "report an enhancement request to PyTorch.)")
        return rng.bernoulli_tensor(g, host, kind)
    made = _drawn_from(_BERNOULLI, drawn_from(numbers, [input], tuple(input.shape), kind), input)
    return made if out is None else fill_out(out, made.to(out.dtype), said=False)


def _rows_of_batches(input, num_samples, *args, **kwargs):
    """multinomial of batches of rows."""
    return multinomial(input.flatten(0, -2), num_samples, *args, **kwargs).unflatten(0, input.shape[:-1])


@public()
@functools.partial(by_values, batches=_rows_of_batches)
def multinomial(input, num_samples: int, replacement: bool = False, *, generator=None, out=None) -> Tensor:
    """Indices drawn with probabilities proportional to the rows of input."""
    if isinstance(out, Tensor) and out.dtype is not dt.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.short}")
    g, n, replacement = _generator(generator), as_int(num_samples, "num_samples", symbolic=True), flag(replacement)
    made = drawn_from(lambda host: rng.multinomial(g, host, n, replacement), [input], (*input.shape[:-1], n), np.dtype(np.int64))
    return made if out is None else fill_out(out, made, said=False)


@public(method=False)
def manual_seed(seed) -> Generator:
    """Start the default generator from a seed."""
    return default_generator.manual_seed(int(number(seed)))


@public(method=False)
def seed() -> int:
    """Start the default generator from the system's entropy; the seed."""
    return default_generator.seed()


@public(method=False)
def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


@public(method=False)
def get_rng_state() -> Tensor:
    """The default generator's state."""
    return default_generator.get_state()


@public(method=False)
def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator in a state."""
    default_generator.set_state(new_state)
