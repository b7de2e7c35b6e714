"""Kullback-Leibler divergences."""
from __future__ import annotations

import math
from collections.abc import Callable

from .._public import FUNCTIONS as F
from .._tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .categorical import Categorical
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .independent import Independent
from .laplace import Laplace
from .log_normal import LogNormal
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import sum_rightmost

_REGISTRY: dict[tuple[type, type], Callable] = {}


def register_kl(type_p, type_q):
    """Decorator: a function (p, q) that gives KL(p || q) for these types."""
    for t in (type_p, type_q):
        if not isinstance(t, type) or not issubclass(t, Distribution):
            raise TypeError(f"Expected type to be a Distribution subclass but got {t}")

    def add(f):
        _REGISTRY[type_p, type_q] = f
        return f
    return add


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), one per batch element; the registered function of the closest types."""
    best = None
    for (tp, tq), f in _REGISTRY.items():
        if isinstance(p, tp) and isinstance(q, tq):
            distance = type(p).__mro__.index(tp), type(q).__mro__.index(tq)
            if best is None or distance < best[0]:
                best = distance, f
    if best is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    return best[1](p, q)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    def softplus(x):
        return x.clamp(min=0) + (-x.abs()).exp().log1p()
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    yes = F["where"](q.probs == 0, math.inf, yes)
    yes = F["where"](p.probs == 0, 0.0, yes)
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    no = F["where"](q.probs == 1, math.inf, no)
    return yes + F["where"](p.probs == 1, 0.0, no)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t = F["where"]((q.probs == 0).expand_as(t), math.inf, t)
    return F["where"]((p.probs == 0).expand_as(t), 0.0, t).sum(-1)


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Beta, Beta)
def _beta(p, q):
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    return (total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
            + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1))


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, d = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + d / q.scale + ratio * (-d / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    out = ((q.high - q.low) / (p.high - p.low)).log()
    return F["where"]((q.low > p.low) | (q.high < p.high), math.inf, out)


@register_kl(Uniform, Normal)
def _uniform_normal(p, q):
    width = p.high - p.low
    return (math.sqrt(2 * math.pi) * q.scale / width).log() + ((width.pow(2) / 12) + ((p.high + p.low) / 2 - q.loc).pow(2)) / (2 * q.scale.pow(2))


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(LogNormal, LogNormal)
def _log_normal(p, q):
    return kl_divergence(p.base_dist, q.base_dist)
