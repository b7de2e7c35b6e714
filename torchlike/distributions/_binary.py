"""What distributions of trials share: one of probs and logits is given, the other follows."""
from __future__ import annotations

from .._tensor import Size
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, scalar_parameters


class BinaryParameters:
    """`probs` or `logits` of success; the one that is not given is computed at its first use."""

    def _take(self, probs, logits, *others) -> tuple:
        """Keep the given one, broadcast with `others`; those, broadcast, and the batch shape."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        *others, value = broadcast_all(*others, given)
        setattr(self, name, value)
        self._param = value
        return *others, Size() if not others and scalar_parameters(given) else value.size()

    def _expanded_parameters(self, batch_shape) -> dict:
        made = {n: self.__dict__[n].expand(batch_shape) for n in ("probs", "logits") if n in self.__dict__}
        return {**made, "_param": self._param.expand(batch_shape)}

    @lazy_property
    def logits(self):
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        """The parameter's shape."""
        return self._param.size()
