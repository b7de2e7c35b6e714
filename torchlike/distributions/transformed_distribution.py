"""Distributions pushed through transforms."""
from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of transforms applied to samples of base_distribution."""

    arg_constraints: dict = {}

    def __init__(self, base_distribution: Distribution, transforms: Transform | list[Transform], validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        chain = ComposeTransform(self.transforms)
        if len(shape) < chain.domain.event_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {chain.domain.event_dim}, but got {shape}.")
        out = chain.forward_shape(shape)
        wide = chain.inverse_shape(out)
        base = base_distribution
        if shape != wide:
            base = base.expand(wide[:len(wide) - len(base.event_shape)])
        extra = chain.domain.event_dim - len(base.event_shape)
        self.base_dist = Independent(base, extra) if extra > 0 else base
        event = max(chain.codomain.event_dim, chain.codomain.event_dim + len(base.event_shape) - chain.domain.event_dim)
        super().__init__(out[:len(out) - event], out[len(out) - event:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        base = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        return self._expanded(TransformedDistribution, _instance, batch_shape, base_dist=base, transforms=self.transforms)

    @property
    def has_rsample(self):
        """As the base's."""
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """The last transform's codomain, over whole events."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        extra = len(self.event_shape) - last.event_dim
        return constraints.independent(last, extra) if extra > 0 else last

    def _through(self, x):
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Transformed samples of the base."""
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Transformed samples of the base, with gradients."""
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The base's log_prob of the inverse, less log |det J| (change of variables)."""
        if self._validate_args:
            self._validate_sample(value)
        event, total, y = len(self.event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            event += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_rightmost(t.log_abs_det_jacobian(x, y), event - t.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape))

    def _monotonic(self, value):
        """1 - p where the transforms turn the order around."""
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """The base's cdf of the inverse."""
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonic(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The transformed quantiles of the base."""
        return self._through(self.base_dist.icdf(self._monotonic(value)))
