"""Constraints: regions of parameter and sample space, with `check(value)` saying where a value lies inside."""
from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from .._functions import torch as F
from .._tensor import Tensor

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "independent", "integer_interval", "interval", "half_open_interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "MixtureSameFamilyConstraint", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_semidefinite", "positive_definite", "positive_integer",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]


class Constraint:
    """A region. `event_dim` trailing dimensions are judged together."""

    is_discrete = False
    event_dim = 0

    def on_host(self):
        """A constraint that checks NumPy arrays at once, None where there is none. A program's own check expects tensors."""
        return self if type(self).check.__module__ == __name__ else None

    def check(self, value) -> Tensor:
        """Whether each event of value satisfies the constraint."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that depends on other variables."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim: int = NotImplemented) -> None:
        self._discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self):
        if self._discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(is_discrete=self._discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint) -> bool:
    """Whether a constraint depends on other variables."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a constraint; on the class it is a dependent constraint."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim: int = NotImplemented) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """`base` holding over the last `reinterpreted_batch_ndims` dimensions at once."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    def on_host(self):
        base = self.base_constraint.on_host()
        return None if base is None else _IndependentConstraint(base, self.reinterpreted_batch_ndims)

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        ok = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if ok.ndim < n:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return ok.reshape(ok.shape[:ok.ndim - n] + (-1,)).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support that all components of a mixture have: `base_constraint` of values with a dimension for the components."""

    def __init__(self, base_constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    def on_host(self):
        return None

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """A region given by bounds, which its repr shows."""

    fields: tuple[str, ...] = ()

    def on_host(self):
        bounds = [getattr(self, n) for n in self.fields]
        arrays = [b._current().array if isinstance(b, Tensor) else b for b in bounds]
        if super().on_host() is None or not all(isinstance(a, (int, float, np.ndarray)) for a in arrays):
            return None
        made = copy.copy(self)
        for name, array in zip(self.fields, arrays):
            setattr(made, name, array)
        return made

    def __repr__(self):
        return f"{self.__class__.__name__[1:]}({', '.join(f'{n}={getattr(self, n)}' for n in self.fields)})"


class _From(_Bounded):
    fields = ("lower_bound",)

    def __init__(self, lower_bound) -> None:
        self.lower_bound = lower_bound


class _UpTo(_Bounded):
    fields = ("upper_bound",)

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    fields = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_UpTo):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_From):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value):
        return value == value


class _GreaterThan(_From):
    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_From):
    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_UpTo):
    def check(self, value):
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(Constraint):
    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound

    def on_host(self):
        return None if isinstance(self.upper_bound, Tensor) else self

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _MatrixConstraint(Constraint):
    event_dim = 2

    def on_host(self):
        return None


def _over_matrices(ok: Tensor) -> Tensor:
    return ok.reshape(ok.shape[:-2] + (-1,)).all(-1)


class _LowerTriangular(_MatrixConstraint):
    def check(self, value):
        return _over_matrices(value.tril() == value)


class _LowerCholesky(_MatrixConstraint):
    def check(self, value):
        return _over_matrices(value.tril() == value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_MatrixConstraint):
    def check(self, value):
        from ..ops.queries import finfo
        norm = (value * value).sum(-1).sqrt()
        return _LowerCholesky().check(value) & ((norm - 1).abs() <= finfo(value.dtype).eps * value.size(-1) * 10).all(-1)


class _Square(_MatrixConstraint):
    def check(self, value):
        return value.new_full(value.shape[:-2], value.shape[-2] == value.shape[-1]).bool()


class _Symmetric(_Square):
    def check(self, value):
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _over_matrices((value - value.mT).abs() <= 1e-6 + 1e-5 * value.mT.abs())


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        from ..linalg import cholesky_ex
        ok = super().check(value)
        return ok & (cholesky_ex(value).info == 0) if value.shape[-2] == value.shape[-1] else ok


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        from ..linalg import eigvalsh
        ok = super().check(value)
        return ok & (eigvalsh(value) >= -1e-6).all(-1) if value.shape[-2] == value.shape[-1] else ok


class _Joined(Constraint):
    """cseq[i] for part i along dim."""

    def __init__(self, cseq, dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    def on_host(self):
        return None

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    def _need_dim(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Joined):
    """cseq[i] for the next lengths[i] elements."""

    def __init__(self, cseq, dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        self._need_dim(value)
        return F["cat"]([c.check(v) for c, v in zip(self.cseq, value.split(self.lengths, self.dim))], self.dim)


class _Stack(_Joined):
    """cseq[i] for slice i."""

    @property
    def event_dim(self):
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        self._need_dim(value)
        return F["stack"]([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim))], self.dim)


dependent, dependent_property = _Dependent(), _DependentProperty
independent, boolean, one_hot = _IndependentConstraint, _Boolean(), _OneHot()
nonnegative_integer, positive_integer, integer_interval = _IntegerGreaterThan(0), _IntegerGreaterThan(1), _IntegerInterval
real, real_vector = _Real(), _IndependentConstraint(_Real(), 1)
positive, nonnegative = _GreaterThan(0.0), _GreaterThanEq(0.0)
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
multinomial, interval, unit_interval, half_open_interval = _Multinomial, _Interval, _Interval(0.0, 1.0), _HalfOpenInterval
simplex, lower_triangular, lower_cholesky, corr_cholesky = _Simplex(), _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_definite, positive_semidefinite = _PositiveDefinite(), _PositiveSemidefinite()
cat, stack = _Cat, _Stack
