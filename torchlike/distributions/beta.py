"""The beta distribution."""
from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .dirichlet import Dirichlet
from .distribution import ExponentialFamily
from .utils import broadcast_all


class Beta(ExponentialFamily):
    """Beta(concentration1, concentration0): density proportional to x^(c1 - 1) (1 - x)^(c0 - 1)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None) -> None:
        if isinstance(concentration1, Real) and isinstance(concentration0, Real):
            both = F["tensor"]([float(concentration1), float(concentration0)])
        else:
            given = broadcast_all(concentration1, concentration0)
            if any(t.requires_grad for t in given) and all(t._current().array is not None for t in given):
                with no_grad():  # parameters that are known are checked now, those that a program computes when it has run
                    Dirichlet(F["stack"](given, -1), validate_args=validate_args)
            both = F["stack"](given, -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Beta, _instance, batch_shape, _dirichlet=self._dirichlet.expand(Size(batch_shape)))

    @property
    def concentration1(self):
        """The first parameter."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self):
        """The second parameter."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        """c1 / (c1 + c0)."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """The Dirichlet's."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        """c1 c0 / (s^2 (s + 1)), s = c1 + c0."""
        s = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (s.pow(2) * (s + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The first component of Dirichlet samples."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The Dirichlet's at (x, 1 - x)."""
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(F["stack"]([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        """The Dirichlet's."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
