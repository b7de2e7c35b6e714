"""Kullback-Leibler divergences."""
from __future__ import annotations

import math
from collections.abc import Callable

from .. import linalg
from .._functions import torch as F
from .._tensor import Tensor
from ..autograd import grad
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution, ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import _EULER, Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .log_normal import LogNormal
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _half_log_det, _whitened
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import softplus, sum_rightmost

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}


def register_kl(type_p, type_q):
    """Decorator: a function (p, q) that gives KL(p || q) for these types."""
    for t in (type_p, type_q):
        if not isinstance(t, type):  # any class: a library's distributions may have a base of their own
            raise TypeError(f"Expected type to be a Distribution subclass but got {t}")

    def add(f):
        _KL_REGISTRY[type_p, type_q] = f
        return f
    return add


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), one per batch element; the registered function of the closest types."""
    best = None
    for (tp, tq), f in _KL_REGISTRY.items():
        if isinstance(p, tp) and isinstance(q, tq):
            distance = type(p).__mro__.index(tp), type(q).__mro__.index(tq)
            if best is None or distance < best[0]:
                best = distance, f
    if best is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    return best[1](p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """The Bregman divergence of the normalizer, for families of one's own; p's parameters get no gradient, as in torch."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed using Bregman divergences")
    ours = [n.detach().requires_grad_() for n in p._natural_params]
    normalizer = p._log_normalizer(*ours)
    slopes = grad(normalizer.sum(), ours, create_graph=True)
    theirs = q._natural_params
    out = q._log_normalizer(*theirs) - normalizer
    for a, b, slope in zip(ours, theirs, slopes):
        out = out - sum_rightmost((b - a) * slope, len(q.event_shape))
    return out


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
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


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    n = p.event_shape[0]
    both = linalg.solve_triangular(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril, upper=False)
    spread = both.pow(2).sum((-2, -1))
    shift = _whitened(q._unbroadcasted_scale_tril, q.loc - p.loc).pow(2).sum(-1)
    return _half_log_det(q._unbroadcasted_scale_tril) - _half_log_det(p._unbroadcasted_scale_tril) + 0.5 * (spread + shift - n)


def _same_event(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed")


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    _same_event(p, q)
    diagonal = p._diagonal.sqrt().diag_embed()
    spread = q._squared_trace(p._factor) + q._squared_trace(diagonal)
    return 0.5 * (q._log_det() - p._log_det() + spread + q._squared_distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low_rank(p, q):
    _same_event(p, q)
    log_det = q._log_det() - 2 * _half_log_det(p._unbroadcasted_scale_tril)
    return 0.5 * (log_det + q._squared_trace(p._unbroadcasted_scale_tril) + q._squared_distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_full(p, q):
    _same_event(p, q)
    parts = p._factor, p._diagonal.sqrt().diag_embed()
    spread = sum(linalg.solve_triangular(q._unbroadcasted_scale_tril, part, upper=False).pow(2).sum((-2, -1)) for part in parts)
    log_det = 2 * _half_log_det(q._unbroadcasted_scale_tril) - p._log_det()
    return 0.5 * (log_det + spread + _whitened(q._unbroadcasted_scale_tril, q.loc - p.loc).pow(2).sum(-1) - p.event_shape[0])


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    out = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return F["where"]((p.total_count > q.total_count).expand_as(out), math.inf, out)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() + (p.loc - q.loc) / q.scale + ratio * _EULER + (shift + (1 + ratio).lgamma()).exp() - (1 + _EULER)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    out = q.alpha * (p.scale / q.scale).log() - (q.alpha / p.alpha).log() + q.alpha / p.alpha - 1
    return F["where"](p.support.lower_bound < q.support.lower_bound, math.inf, out)


def _to_normal(p, q):
    """KL of anything with an entropy and two moments to a normal."""
    spread = q.scale.pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * spread).log() + (p.variance + (p.mean - q.loc).pow(2)) / (2 * spread)


def _to_exponential(p, q):
    """KL of anything positive with an entropy and a mean to an exponential."""
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _infinite(p, q):
    """p has mass where q has none."""
    return F["full_like"](p.mean, math.inf)


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto):
    register_kl(_p, Normal)(_to_normal)
for _p in (Beta, ContinuousBernoulli, Gamma, Pareto):
    register_kl(_p, Exponential)(_to_exponential)
for _p, _others in ((Beta, (Pareto,)), (ContinuousBernoulli, (Pareto,)), (Exponential, (Beta, ContinuousBernoulli, Pareto, Uniform)),
                    (Gamma, (Beta, ContinuousBernoulli, Pareto, Uniform)), (Pareto, (Beta, ContinuousBernoulli, Uniform)),
                    *((_line, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)) for _line in (Gumbel, Laplace, Normal)), (Poisson, (Bernoulli, Binomial))):
    for _q in _others:
        register_kl(_p, _q)(_infinite)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    ratio, a = q.rate / p.rate, q.concentration
    return -a * ratio.log() + ratio + a.lgamma() + a * _EULER - (1 + _EULER)


def _to_gamma(p, q, log_mean):
    """KL of anything positive with an entropy, a mean and E[log x] to a gamma."""
    return -p.entropy() + q.concentration.lgamma() - q.concentration * q.rate.log() - (q.concentration - 1) * log_mean + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    return _to_gamma(p, q, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    return _to_gamma(p, q, p.scale.log() + p.alpha.reciprocal())


def _uniform_log_mean(low, high):
    """E[log x] of a uniform x."""
    return (F["xlogy"](high, high) - F["xlogy"](low, low)) / (high - low) - 1


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    return F["where"](p.low < 0, math.inf, _to_gamma(p, q, _uniform_log_mean(p.low, p.high)))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return F["where"](p.low < 0, math.inf, _to_exponential(p, q))


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    a, b = q.concentration1, q.concentration0
    norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    inside = norm - p.entropy() - (a - 1) * _uniform_log_mean(p.low, p.high) - (b - 1) * _uniform_log_mean(1 - p.high, 1 - p.low)
    return F["where"]((p.low < 0) | (p.high > 1), math.inf, inside)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    inside = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _uniform_log_mean(p.low, p.high)
    return F["where"](p.low < q.scale, math.inf, inside)


@register_kl(Beta, Uniform)
def _beta_uniform(p, q):
    return F["where"]((q.low > 0) | (q.high < 1), math.inf, -p.entropy() + (q.high - q.low).log())


def _to_gumbel(p, q, laplace):
    """KL to a Gumbel, from E[exp(-x / scale)]."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * laplace


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    return _to_gumbel(p, q, (0.5 * (p.scale / q.scale).pow(2) - p.loc / q.scale).exp())


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    scaled = p.rate * q.scale
    return _to_gumbel(p, q, scaled / (scaled + 1))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    return _to_gumbel(p, q, (-p.concentration * (p.rate * q.scale).reciprocal().log1p()).exp())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    return _to_gumbel(p, q, ((-p.low / q.scale).exp() - (-p.high / q.scale).exp()) * q.scale / (p.high - p.low))


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * z.pow(2)).exp() + z * F["erf"](math.sqrt(0.5) * z))
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return p.mean * (p.logits - q.logits) + p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()


def _to_continuous_bernoulli(p, q):
    """KL of anything on [0, 1] with an entropy and a mean."""
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p, q):
    return F["where"]((p.high >= 1) | (p.low <= 0), math.inf, _to_continuous_bernoulli(p, q))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p, q):
    return F["where"]((q.low >= 0) | (q.high <= 1), math.inf, -p.entropy() + (q.high - q.low).log())
