"""From constraints to transforms that reach them: `biject_to` (bijective) and `transform_to`."""
from __future__ import annotations

import numbers

from . import constraints, transforms


class ConstraintRegistry:
    """Maps classes of constraints to functions from a constraint to a transform."""

    def __init__(self) -> None:
        self._registry = {}

    def register(self, constraint, factory=None):
        """Register a factory for a class of constraints (or a singleton's class); a decorator without factory."""
        if factory is None:
            return lambda f: self.register(constraint, f)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        """The transform to a constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _affine(bound, sign):
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(bound, sign)])


def _is(bound, number) -> bool:
    """Whether a bound is that number itself: a tensor's elements are not looked at."""
    return isinstance(bound, numbers.Number) and bound == number


def _interval(c):
    if _is(c.lower_bound, 0) and _is(c.upper_bound, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)])


for _registry in (biject_to, transform_to):
    _registry.register(constraints._Real, lambda c: transforms.identity_transform)
    _registry.register(constraints._IndependentConstraint, lambda c, r=_registry: transforms.IndependentTransform(
        r(c.base_constraint), c.reinterpreted_batch_ndims))
    for _class in (constraints._GreaterThan, constraints._GreaterThanEq):
        _registry.register(_class, lambda c: _affine(c.lower_bound, 1))
    _registry.register(constraints._LessThan, lambda c: _affine(c.upper_bound, -1))
    for _class in (constraints._Interval, constraints._HalfOpenInterval):
        _registry.register(_class, _interval)
    _registry.register(constraints._CorrCholesky, lambda c: transforms.CorrCholeskyTransform())
    _registry.register(constraints._Cat, lambda c, r=_registry: transforms.CatTransform([r(part) for part in c.cseq], c.dim, c.lengths))
    _registry.register(constraints._Stack, lambda c, r=_registry: transforms.StackTransform([r(part) for part in c.cseq], c.dim))
transform_to.register(constraints._LowerCholesky, lambda c: transforms.LowerCholeskyTransform())
for _class in (constraints._PositiveDefinite, constraints._PositiveSemidefinite):
    transform_to.register(_class, lambda c: transforms.PositiveDefiniteTransform())
transform_to.register(constraints._Simplex, lambda c: transforms.SoftmaxTransform())
biject_to.register(constraints._Simplex, lambda c: transforms.StickBreakingTransform())
