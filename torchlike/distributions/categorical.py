"""The categorical distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from ..ops.queries import finfo
from . import constraints
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


class Categorical(Distribution):
    """Categorical(probs) or Categorical(logits=): indices of the last dimension. The parameter is normalised."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._param = self.probs if probs is not None else self.logits
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        shape = Size((*batch_shape, self._num_events))
        made = {n: self.__dict__[n].expand(shape) for n in ("probs", "logits") if n in self.__dict__}
        made["_param"] = made["probs"] if "probs" in made else made["logits"]
        return self._expanded(Categorical, _instance, batch_shape, _num_events=self._num_events, **made)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """0 to number of events - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """Log-probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self):
        """The parameter's shape."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        """Not defined for categories: NaN."""
        return F["full"](self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    @property
    def mode(self) -> Tensor:
        """The likeliest index."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Indices (int64)."""
        shape = Size(sample_shape)
        with no_grad():
            probs = self.probs if self.probs.dim() == 2 else self.probs.reshape(-1, self._num_events)
            drawn = F["multinomial"](probs, shape.numel(), True)
            return (drawn if shape.numel() == 1 else drawn.T).reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The log-probability of the index."""
        if self._validate_args:
            self._validate_sample(value)
        index, logits = value.long().unsqueeze(-1), self.logits
        if index.shape[:-1] != logits.shape[:-1]:
            index, logits = F["broadcast_tensors"](index, logits)
            index = index[..., :1]
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        """-sum p log p."""
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand=True) -> Tensor:
        """All indices."""
        values = F["arange"](self._num_events, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
