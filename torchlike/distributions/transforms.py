"""Invertible maps with the logarithm of their Jacobian determinant."""
from __future__ import annotations

import math
import weakref
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..ops.queries import finfo
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, softplus, sum_rightmost

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftplusTransform",
    "TanhTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform", "Transform",
    "identity_transform",
]


class Transform:
    """y = t(x) from `domain` to `codomain`; `t.inv` is its inverse. cache_size=1 remembers the last pair."""

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._inv, self._cached_x_y = cache_size, None, (None, None)
        super().__init__()  # of a class beside this one: transforms with parameters are Modules too

    def __getstate__(self):
        return {**self.__dict__, "_inv": None}  # a reference to the inverse cannot be pickled; it is made anew

    @property
    def event_dim(self) -> int:
        """Dimensions of one event, the same on both sides."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse transform; t.inv.inv is t."""
        found = self._inv() if self._inv is not None else None
        if found is None:
            found = _InverseTransform(self)
            self._inv = weakref.ref(found)
        return found

    @property
    def sign(self):
        """The sign of the Jacobian determinant, for monotonic univariate transforms."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x):
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |dy/dx|."""
        raise NotImplementedError

    def forward_shape(self, shape):
        """The shape of t(x) for x of a shape."""
        return shape

    def inverse_shape(self, shape):
        """The shape of t.inv(y) for y of a shape."""
        return shape

    def __repr__(self):
        return self.__class__.__name__ + "()"


class _InverseTransform(Transform):
    def __init__(self, transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = lambda: transform

    def __getstate__(self):
        return {**self.__dict__, "_inv": self.inv}

    def __setstate__(self, state):
        transform = state["_inv"]
        self.__dict__.update(state, _inv=lambda: transform)
        transform._inv = weakref.ref(self)

    domain = property(lambda self: self.inv.codomain)
    codomain = property(lambda self: self.inv.domain)
    bijective = property(lambda self: self.inv.bijective)
    sign = property(lambda self: self.inv.sign)

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self.inv == other.inv

    __hash__ = object.__hash__

    def __call__(self, x):
        return self.inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self.inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self.inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self.inv.forward_shape(shape)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.inv!r})"


class ComposeTransform(Transform):
    """parts[-1](...(parts[0](x)))."""

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [p.with_cache(cache_size) for p in parts]
        super().__init__(cache_size)
        self.parts = list(parts)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self):
        """The first part's domain, over as many dimensions as any later part judges together."""
        if not self.parts:
            return constraints.real
        first, need = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for p in reversed(self.parts):
            need = max(need + p.domain.event_dim - p.codomain.event_dim, p.domain.event_dim)
        return constraints.independent(first, need - first.event_dim) if need > first.event_dim else first

    @property
    def codomain(self):
        """The last part's codomain, over as many dimensions as any earlier part judges together."""
        if not self.parts:
            return constraints.real
        last, need = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for p in self.parts:
            need = max(need + p.codomain.event_dim - p.domain.event_dim, p.codomain.event_dim)
        return constraints.independent(last, need - last.event_dim) if need > last.event_dim else last

    @property
    def bijective(self):
        return all(p.bijective for p in self.parts)

    @property
    def sign(self):
        """The product of the parts' signs."""
        out = 1
        for p in self.parts:
            out = out * p.sign
        return out

    @property
    def inv(self):
        found = self._inv() if self._inv is not None else None
        if found is None:
            found = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv, found._inv = weakref.ref(found), weakref.ref(self)
        return found

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x):
        for p in self.parts:
            x = p(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        """The parts' sum, each over the dimensions of the whole's event."""
        if not self.parts:
            return F["zeros_like"](x)
        total, event_dim = 0, self.domain.event_dim
        for i, p in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else p(x)
            total = total + sum_rightmost(p.log_abs_det_jacobian(x, after), event_dim - p.domain.event_dim)
            event_dim += p.codomain.event_dim - p.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape):
        for p in self.parts:
            shape = p.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for p in reversed(self.parts):
            shape = p.inverse_shape(shape)
        return shape

    def __repr__(self):
        return self.__class__.__name__ + "(\n    " + ",\n    ".join(repr(p) for p in self.parts) + "\n)"


identity_transform = ComposeTransform([])


def _need_dims(there, needed):
    if there < needed:
        raise ValueError("Too few dimensions on input")


class IndependentTransform(Transform):
    """`base_transform` with further dimensions judged as part of each event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform.with_cache(cache_size), reinterpreted_batch_ndims

    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims))
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x):
        _need_dims(x.dim(), self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        _need_dims(y.dim(), self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _Parameterless(Transform):
    """Equal to others of its class."""

    def __eq__(self, other):
        return type(other) is type(self)

    __hash__ = object.__hash__


class _Elementwise(_Parameterless):
    """A bijective map of single numbers."""

    domain = constraints.real
    bijective, sign = True, 1


class ExpTransform(_Elementwise):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive x."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent, = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return F["broadcast_shapes"](shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clipped_sigmoid(x):
    """The sigmoid, kept inside (0, 1) where it would round to an end of it; pytorch_forecasting takes it from here."""
    limits = finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_Elementwise):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        limits = finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Elementwise):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x):
        return F["where"](x > 20, x, softplus(x))

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_Elementwise):
    """y = tanh(x); the Jacobian is computed from x, which does not cancel."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Parameterless):
    """y = |x|; its inverse is the positive branch."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale * x, over the last event_dim dimensions."""

    bijective = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @property
    def domain(self):
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    @property
    def sign(self):
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other):
        def same(a, b):
            return a == b if isinstance(a, (int, float)) and isinstance(b, (int, float)) else bool(F["eq"](*broadcast_all(a, b)).all())
        return isinstance(other, AffineTransform) and same(self.loc, other.loc) and same(self.scale, other.scale)

    __hash__ = object.__hash__

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale
        out = F["full_like"](x, math.log(abs(scale))) if isinstance(scale, (int, float)) else scale.abs().log()
        if self._event_dim:
            out = sum_rightmost(out.expand(F["broadcast_shapes"](out.shape, x.shape)), self._event_dim)
            return out.expand(x.shape[:-self._event_dim])
        return out.expand(x.shape)

    def forward_shape(self, shape):
        return F["broadcast_shapes"](shape, *(getattr(v, "shape", ()) for v in (self.loc, self.scale)))

    inverse_shape = forward_shape


class SoftmaxTransform(_Parameterless):
    """y = softmax(x); not bijective."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _need_dims(len(shape), 1)
        return shape

    inverse_shape = forward_shape


class LowerCholeskyTransform(_Parameterless):
    """Square matrices to lower triangular ones with positive diagonals."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class StickBreakingTransform(_Parameterless):
    """n real numbers to a point of the simplex of n + 1: each takes its share of what the earlier ones left."""

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x):
        """log of the number of pieces still to come, so that 0 makes equal pieces."""
        return F["arange"](x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        share = _clipped_sigmoid(x - self._offset(x))
        left = (1 - share).cumprod(-1)
        one = F["ones_like"](x[..., :1])
        return F["cat"]([share, one], -1) * F["cat"]([one, left], -1)

    def _inverse(self, y):
        head = y[..., :-1]
        left = (1 - head.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return head.log() - left.log() + self._offset(head)

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x)
        return (-x - softplus(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _need_dims(len(shape), 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        _need_dims(len(shape), 1)
        return shape[:-1] + (shape[-1] - 1,)


class ReshapeTransform(Transform):
    """The event's shape in_shape becomes out_shape."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x):
        return x.reshape(x.shape[:x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[:y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.dim() - len(self.in_shape)])

    @staticmethod
    def _replaced(shape, old, new):
        _need_dims(len(shape), len(old))
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._replaced(shape, self.out_shape, self.in_shape)


class CumulativeDistributionTransform(Transform):
    """y = P(X <= x) of a distribution."""

    bijective, codomain, sign = True, constraints.unit_interval, 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


from ._joined_transforms import CatTransform, StackTransform  # noqa: E402, F401  (they are made of what is above)
from ._matrix_transforms import CorrCholeskyTransform, PositiveDefiniteTransform  # noqa: E402, F401
