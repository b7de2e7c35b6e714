"""The geometric distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from ..ops.queries import finfo
from . import constraints
from ._binary import BinaryParameters
from .distribution import Distribution
from .utils import broadcast_all


class Geometric(BinaryParameters, Distribution):
    """Geometric(probs) or Geometric(logits=): failures before the first success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        shape, = self._take(probs, logits)
        super().__init__(shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            bad = self.probs[~(self.probs > 0)]
            raise ValueError(f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution {self!r} "
                             f"to be positive but found invalid values:\n{bad}")

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Geometric, _instance, batch_shape, **self._expanded_parameters(batch_shape))

    @property
    def mean(self) -> Tensor:
        """1 / p - 1."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        """0."""
        return F["zeros_like"](self.probs)

    @property
    def variance(self) -> Tensor:
        """(1 / p - 1) / p."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """floor(log u / log(1 - p))."""
        with no_grad():
            u = self.probs.detach().new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """x log(1 - p) + log p."""
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        other = F["where"]((probs == 1) & (value == 0), 0.0, -probs)
        return value * other.log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """-(p log p + (1 - p) log(1 - p)) / p."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
