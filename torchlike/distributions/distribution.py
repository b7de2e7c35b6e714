"""The base of probability distributions."""
from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from .._core import program
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .utils import lazy_property


class Distribution:
    """A distribution over events of `event_shape`, one for each index of `batch_shape`."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    def __init__(self, batch_shape: Sequence[int] = Size(), event_shape: Sequence[int] = Size(), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # of a class beside this one

    def _check_parameters(self):
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution with "
                          "`validate_args=False` to turn off validation.", stacklevel=3)
            return
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # derived from another parameter, which is checked
            value = getattr(self, name)
            _require(constraint, value, lambda name=name, value=value, constraint=constraint: (
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy the "
                f"constraint {constraint!r}, but found invalid values:\n{value}"))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their parameters and values."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution with its batch dimensions expanded."""
        raise NotImplementedError

    def _expanded(self, cls, _instance, batch_shape, **parameters):
        """A new `cls` instance with these parameters and batch shape, unchecked."""
        new = self._get_checked_instance(cls, _instance)
        new.__dict__.update(parameters)
        Distribution.__init__(new, Size(batch_shape), self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample (without batching)."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict:
        """Parameter names and their constraints."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The mode."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples of shape sample_shape + batch_shape + event_shape, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples through which gradients flow to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """sample((n,))."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The log of the density or mass at value."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The cumulative distribution function at value."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, one per batch element."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=Size()) -> Size:
        return Size((*Size(sample_shape), *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, own = tuple(value.shape), tuple(self._batch_shape + self._event_shape)
        begin = len(shape) - len(self._event_shape)
        if shape[begin:] != tuple(self._event_shape):
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        for i, j in zip(reversed(shape), reversed(own)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(own)}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution with "
                          "`validate_args=False` to turn off validation.", stacklevel=2)
            return
        _require(support, value, lambda: (
            f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) of the "
            f"distribution {self!r}, but found invalid values:\n{value}"))

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                                      "define a custom .expand() method.")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self):
        names = [k for k in self.arg_constraints if k in self.__dict__]
        shown = ", ".join(f"{p}: {self.__dict__[p] if self.__dict__[p].numel() == 1 else self.__dict__[p].size()}" for p in names)
        return f"{self.__class__.__name__}({shown})"


def _require(constraint, value: Tensor, message) -> None:
    """ValueError where value leaves the constraint: at once, which runs the program that computes it. Two kinds of value wait for the next
    observation: those of a call that is traced, and those that a gradient flows through, so that a training step remains one program."""
    v = value._current()
    if v.array is program.META_ARRAY or program.is_tracer(v.array):
        return
    waits = v.array is None and (program.state.capture is not None or value.requires_grad)
    host = constraint.on_host() if not waits and value.device.type == "cpu" else None
    if host is not None:
        with np.errstate(all="ignore"):
            ok = host.check(np.asarray(program.concrete(v))).all()
    else:
        with no_grad():
            ok = constraint.check(value).all()
        if waits or program.state.capture is not None:
            program.check(ok._value, lambda: ValueError(message()))
            return
    if not ok:
        raise ValueError(message())


class ExponentialFamily(Distribution):
    """Distributions exp(t(x) . theta - F(theta) + k(x)); entropy by the gradient of F."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(theta) - theta . grad F(theta) - E[k(x)]."""
        from ..autograd import grad
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        slopes = grad(normalizer.sum(), params, create_graph=True)
        out = normalizer - self._mean_carrier_measure
        for p, s in zip(params, slopes):
            out = out - (p * s).reshape(self._batch_shape + (-1,)).sum(-1)
        return out
