"""Mixtures of distributions of one family."""
from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """The components are the last batch dimension of component_distribution; mixture_distribution chooses among them."""

    arg_constraints: dict = {}

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None) -> None:
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch = component.batch_shape[:-1]
        for a, b in zip(reversed(mixture.batch_shape), reversed(batch)):
            if a != 1 and b != 1 and a != b:
                raise ValueError(f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible with "
                                 f"`component_distribution.batch_shape` ({batch})")
        n, k = mixture.logits.shape[-1], component.batch_shape[-1]
        if n != k:
            raise ValueError(f"`mixture_distribution component` ({n}) does not equal `component_distribution.batch_shape[-1]` ({k})")
        self._mixture_distribution, self._component_distribution, self._num_component = mixture, component, k
        self._event_ndims = len(component.event_shape)
        super().__init__(batch, component.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        return self._expanded(MixtureSameFamily, _instance, batch_shape, _num_component=self._num_component, _event_ndims=self._event_ndims,
                              _component_distribution=self._component_distribution.expand(batch_shape + (self._num_component,)),
                              _mixture_distribution=self._mixture_distribution.expand(batch_shape))

    @constraints.dependent_property
    def support(self):
        """The components'."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _weights(self):
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    def _along(self) -> int:
        return -1 - len(self._event_shape)

    def _pad(self, x):
        """x for every component (neuralforecast's mixtures build their log_prob on it)."""
        return x.unsqueeze(self._along())

    @property
    def mean(self) -> Tensor:
        """The components' means, weighted."""
        return (self._weights() * self.component_distribution.mean).sum(self._along())

    @property
    def variance(self) -> Tensor:
        """Within the components and between them."""
        p, means = self._weights(), self.component_distribution.mean
        inside = (p * self.component_distribution.variance).sum(self._along())
        return inside + (p * (means - self._pad(self.mean)).pow(2)).sum(self._along())

    def cdf(self, x) -> Tensor:
        """The components' cdfs, weighted."""
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x) -> Tensor:
        """The log of the weighted sum of densities."""
        if self._validate_args:
            self._validate_sample(x)
        each = self.component_distribution.log_prob(self._pad(x))
        return (each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """A sample of the component that the mixture draws."""
        with no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            at = len(sample_shape) + len(self._batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (len(self._event_shape) + 1))
            index = index.expand(drawn.shape[:at] + (1,) + drawn.shape[at + 1:])
            return drawn.gather(at, index).squeeze(at)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
