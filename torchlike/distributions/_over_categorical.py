"""What distributions over a Categorical's classes share."""
from __future__ import annotations


class OverCategorical:
    """A distribution whose parameters are those of `self._categorical`."""

    @property
    def probs(self):
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self):
        """Log-probabilities."""
        return self._categorical.logits

    @property
    def _param(self):
        return self._categorical._param

    @property
    def param_shape(self):
        """The parameter's shape."""
        return self._param.shape
