"""The Bernoulli distribution."""
from __future__ import annotations

from .._public import FUNCTIONS as F
from .._tensor import Size
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, scalar_parameters


class Bernoulli(ExponentialFamily):
    """Bernoulli(probs) or Bernoulli(logits=): 1 with probability probs, else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        if probs is not None:
            self.probs, = broadcast_all(probs)
        else:
            self.logits, = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        super().__init__(Size() if scalar_parameters(given) else self._param.size(), validate_args=validate_args)

    @lazy_property
    def logits(self):
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """Probabilities of 1."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def mean(self):
        """probs."""
        return self.probs

    @property
    def mode(self):
        """The likelier value; NaN at 1/2."""
        p = self.probs
        return F["where"](p == 0.5, float("nan"), (p >= 0.5).to(p.dtype))

    @property
    def variance(self):
        """p (1 - p)."""
        return self.probs * (1 - self.probs)

    @property
    def param_shape(self):
        """The parameter's shape."""
        return self._param.size()

    def expand(self, batch_shape, _instance=None):
        """The distribution over a larger batch."""
        name = "probs" if "probs" in self.__dict__ else "logits"
        made = {n: self.__dict__[n].expand(batch_shape) for n in ("probs", "logits") if n in self.__dict__}
        return self._expanded(Bernoulli, _instance, batch_shape, _param=made[name], **made)

    def sample(self, sample_shape=Size()):
        """Zeros and ones."""
        with no_grad():
            return F["bernoulli"](self.probs.expand(self._extended_shape(sample_shape)))

    def _cross_entropy(self, logits, value):
        # log(1 + e^x) - x y, without overflow
        return logits.clamp(min=0) - logits * value + (-logits.abs()).exp().log1p()

    def log_prob(self, value):
        """x log p + (1 - x) log(1 - p)."""
        if self._validate_args:
            self._validate_sample(value)
        return -self._cross_entropy(*broadcast_all(self.logits, value))

    def entropy(self):
        """-p log p - (1 - p) log(1 - p)."""
        return self._cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand=True):
        """0 and 1."""
        values = F["arange"](2, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    @property
    def _natural_params(self):
        return (self.probs.logit(),)

    def _log_normalizer(self, x):
        return x.exp().log1p()
