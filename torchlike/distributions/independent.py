"""Batch dimensions taken as event dimensions."""
from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Size, Tensor
from . import constraints
from .distribution import Distribution
from .utils import sum_rightmost


class Independent(Distribution):
    """base_distribution with its last `reinterpreted_batch_ndims` batch dimensions as part of each event."""

    arg_constraints: dict = {}

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        n, batch = reinterpreted_batch_ndims, base_distribution.batch_shape
        if n > len(batch):
            raise ValueError(f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {n} vs {len(batch)}")
        shape = batch + base_distribution.event_shape
        event = n + len(base_distribution.event_shape)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        super().__init__(shape[:len(shape) - event], shape[len(shape) - event:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        base = self.base_dist.expand(batch_shape + self.event_shape[:self.reinterpreted_batch_ndims])
        return self._expanded(Independent, _instance, batch_shape, base_dist=base, reinterpreted_batch_ndims=self.reinterpreted_batch_ndims)

    @property
    def has_rsample(self):
        """As the base's."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        """The base's, where no dimension is reinterpreted."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        """The base's support over whole events."""
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    @property
    def mean(self) -> Tensor:
        """The base's mean."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """The base's mode."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """The base's variance."""
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """The base's samples."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """The base's samples, with gradients."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The base's log_prob summed over the reinterpreted dimensions."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The base's entropy summed over the reinterpreted dimensions."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True) -> Tensor:
        """The base's support."""
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
