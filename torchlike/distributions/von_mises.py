"""The von Mises distribution of angles."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .. import special
from .._core import dtype as dt
from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property


class VonMises(Distribution):
    """VonMises(loc, concentration): density proportional to exp(concentration cos(x - loc)) on a circle."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(VonMises, _instance, batch_shape, loc=self.loc.expand(batch_shape), concentration=self.concentration.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        """loc, the circular mean."""
        return self.loc

    mode = mean

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        """concentration cos(x - loc) - log(2 pi I0(concentration))."""
        if self._validate_args:
            self._validate_sample(value)
        log_i0 = special.i0e(self.concentration).log() + self.concentration
        return self.concentration * (value - self.loc).cos() - math.log(2 * math.pi) - log_i0

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Best and Fisher, 1979: angles from a wrapped Cauchy distribution, each accepted or drawn again. In float64, where the
        acceptance of small concentrations does not cancel."""
        with no_grad():
            loc, kappa = self.loc.to(dt.float64), self.concentration.to(dt.float64)
            tau = 1 + (1 + 4 * kappa ** 2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = F["where"](kappa < 1e-5, 1 / kappa + kappa, (1 + rho ** 2) / (2 * rho))
            shape = self._extended_shape(sample_shape)
            angle = F["zeros"](shape, dtype=dt.float64, device=loc.device)
            done = F["zeros"](shape, dtype=dt.bool_, device=loc.device)
            while not done.all():
                u1, u2, u3 = F["rand"]((3, *shape), dtype=dt.float64, device=loc.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = F["where"](accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
