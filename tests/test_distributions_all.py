"""Every family of torch.distributions beside real torch: densities, moments, samples under one seed, gradients, divergences."""
import itertools

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core.executor import tier

P = [0.2, 0.5, 0.3]
COVARIANCE = [[2.0, 0.3], [0.3, 0.5]]
# name -> (made of D, a tensor function, a free parameter a (requires grad) and b > 0; a value to judge)
MAKE = {
    "Cauchy": (lambda D, t, a, b: D.Cauchy(a, b), 0.3), "StudentT": (lambda D, t, a, b: D.StudentT(b + 1.5, a, b), 0.3),
    "Poisson": (lambda D, t, a, b: D.Poisson(b), 2.0), "Chi2": (lambda D, t, a, b: D.Chi2(b), 0.7),
    "HalfNormal": (lambda D, t, a, b: D.HalfNormal(b), 0.7), "HalfCauchy": (lambda D, t, a, b: D.HalfCauchy(b), 0.7),
    "Gumbel": (lambda D, t, a, b: D.Gumbel(a, b), 0.3), "Weibull": (lambda D, t, a, b: D.Weibull(b, b + 1), 0.7),
    "Pareto": (lambda D, t, a, b: D.Pareto(b, a.exp()), 3.0), "Kumaraswamy": (lambda D, t, a, b: D.Kumaraswamy(b, a.exp()), 0.4),
    "InverseGamma": (lambda D, t, a, b: D.InverseGamma(b + 1, a.exp()), 0.6), "FisherSnedecor": (lambda D, t, a, b: D.FisherSnedecor(b, 3 * b), 0.7),
    "Geometric": (lambda D, t, a, b: D.Geometric(a.sigmoid()), 2.0), "GeometricLogits": (lambda D, t, a, b: D.Geometric(logits=a), 2.0),
    "NegativeBinomial": (lambda D, t, a, b: D.NegativeBinomial(b, logits=a), 2.0), "Binomial": (lambda D, t, a, b: D.Binomial(5, a.sigmoid()), 2.0),
    "BinomialLogits": (lambda D, t, a, b: D.Binomial(t([5, 5, 5]), logits=a), 2.0),
    "RelaxedBernoulli": (lambda D, t, a, b: D.RelaxedBernoulli(t(0.7), logits=a), 0.3),
    "Multinomial": (lambda D, t, a, b: D.Multinomial(4, logits=a), [1.0, 2.0, 1.0]),
    "OneHotCategorical": (lambda D, t, a, b: D.OneHotCategorical(logits=a), [0.0, 1.0, 0.0]),
    "OneHotCategoricalStraightThrough": (lambda D, t, a, b: D.OneHotCategoricalStraightThrough(a.softmax(-1)), [0.0, 1.0, 0.0]),
    "RelaxedOneHotCategorical": (lambda D, t, a, b: D.RelaxedOneHotCategorical(t(0.7), logits=a), P),
    "LogisticNormal": (lambda D, t, a, b: D.LogisticNormal(a, b), [0.1, 0.2, 0.3, 0.4]),
    "MixtureSameFamily": (lambda D, t, a, b: D.MixtureSameFamily(D.Categorical(t(P)), D.Normal(a, b)), 0.3),
    "MixtureOfVectors": (lambda D, t, a, b: D.MixtureSameFamily(D.Categorical(logits=a[:2]), D.Independent(D.Normal(t([[0.0, 1.0], [2.0, 3.0]]), 1.5), 1)), [0.3, 1.0]),
    "MultivariateNormal": (lambda D, t, a, b: D.MultivariateNormal(a[:2], t(COVARIANCE) * b[0]), [0.3, 0.1]),
    "MultivariateNormalPrecision": (lambda D, t, a, b: D.MultivariateNormal(a[:2], precision_matrix=t(COVARIANCE) * b[0]), [0.3, 0.1]),
    "MultivariateNormalTril": (lambda D, t, a, b: D.MultivariateNormal(a[:2], scale_tril=t([[[1.0, 0.0], [0.3, 0.5]], [[2.0, 0.0], [0.1, 1.0]]]) * b[0]), [0.3, 0.1]),
}
MAKE |= {
    "VonMises": (lambda D, t, a, b: D.VonMises(a, b), 0.3),
    "ContinuousBernoulli": (lambda D, t, a, b: D.ContinuousBernoulli(a.sigmoid()), 0.3),
    "ContinuousBernoulliLogits": (lambda D, t, a, b: D.ContinuousBernoulli(logits=a * t([1.0, 0.001, 3.0])), 0.3),
    "GeneralizedPareto": (lambda D, t, a, b: D.GeneralizedPareto(a, b, a * t([1.0, 0.5, 0.0])), 0.8),
    "LowRankMultivariateNormal": (lambda D, t, a, b: D.LowRankMultivariateNormal(a, t([[1.0, 0.3], [0.2, -1.0], [0.0, 0.4]]) * b[0], b), [0.3, 0.1, 0.0]),
    "LKJCholesky": (lambda D, t, a, b: D.LKJCholesky(3, b[0]), [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]),
    "LKJCholeskyBatch": (lambda D, t, a, b: D.LKJCholesky(2, b), [[1.0, 0.0], [0.6, 0.8]]),
    "Wishart": (lambda D, t, a, b: D.Wishart(b[2] + 1.5, t(COVARIANCE) * b[0]), COVARIANCE),
    "WishartBatch": (lambda D, t, a, b: D.Wishart(b + 2, precision_matrix=t(COVARIANCE)), COVARIANCE),
    "WishartTril": (lambda D, t, a, b: D.Wishart(b[2] + 3, scale_tril=t([[[1.0, 0.0], [0.3, 0.5]], [[2.0, 0.0], [0.1, 1.0]]]) * b[0]), COVARIANCE),
}
ASKED = ["mean", "variance", "mode", "stddev"]
CALLED = {"entropy": (), "cdf": (0.4,), "icdf": (0.4,), "enumerate_support": ()}


def parameters(m):
    return (m.tensor(x, requires_grad=True) for x in ([0.1, -0.4, 0.7], [0.5, 1.5, 2.0]))


def attempt(f):
    try:
        found = f()
        repr(found)  # values of a pending program are checked when somebody looks
        return found
    except Exception as error:
        return type(error).__name__


def facts(m, name):
    make, value = MAKE[name]
    a, b = parameters(m)
    d = make(m.distributions, m.tensor, a, b)
    out = {"repr": repr(d), "support": attempt(lambda: repr(d.support)), "shapes": (tuple(d.batch_shape), tuple(d.event_shape)), "rsample": d.has_rsample}
    log_prob = d.log_prob(m.tensor(value))
    log_prob.sum().backward(retain_graph=True)
    out["log_prob"], out["slopes"] = log_prob, (a.grad, b.grad)
    for n in ASKED:
        out[n] = attempt(lambda n=n: getattr(d, n))
    for n, args in CALLED.items():
        out[n] = attempt(lambda n=n, args=args: getattr(d, n)(*map(m.tensor, args)))
    m.manual_seed(1)
    out["sample"] = d.sample((4,))
    if d.has_rsample:
        a.grad = b.grad = None
        with m.set_grad_enabled(not name.startswith("Wishart")):  # torch writes into what its backward reads
            drawn = d.rsample((3, 2))
        if not drawn.requires_grad:
            drawn.requires_grad_()
        (drawn * m.arange(1.0, 1.0 + drawn.shape[-1])).sum().backward()
        out["drawn"], out["through"] = drawn, (a.grad, b.grad)
    wide = d.expand((2, *d.batch_shape))
    out["wide"] = (repr(wide), tuple(wide.batch_shape), wide.log_prob(m.tensor(value)), type(wide).__name__, wide.sample().shape)
    return out


# Gradients through gamma samples: torch approximates them to about 1e-3, JAX computes them.
ROUGH = {"FisherSnedecor.through": 1e-3}


def compare(mine, real, where):
    if isinstance(real, tuple):
        assert len(mine) == len(real), where
        for i, (x, y) in enumerate(zip(mine, real)):
            compare(x, y, f"{where}[{i}]")
    elif isinstance(real, torch.Tensor):
        assert not isinstance(mine, str), (where, mine, real)
        assert str(mine.dtype) == str(real.dtype) and tuple(mine.shape) == tuple(real.shape), (where, mine, real)
        np.testing.assert_allclose(mine.detach().numpy(), real.detach().numpy(), rtol=ROUGH.get(where.partition("[")[0], 2e-4), atol=2e-5, err_msg=where)
    else:
        assert mine == real, where


@pytest.mark.parametrize("name", MAKE)
def test_beside_torch(name):
    mine, real = facts(torchlike, name), facts(torch, name)
    for key in real:
        if (name, key) != ("Kumaraswamy", "mode"):  # torch's formula takes the logarithm of a negative number: always NaN
            compare(mine[key], real[key], f"{name}.{key}")


@pytest.mark.parametrize("name", ["StudentT", "Gumbel", "NegativeBinomial", "MultivariateNormal", "MixtureSameFamily"])
def test_compiled(name):
    with tier("compiled"):
        mine = facts(torchlike, name)
    for key, real in facts(torch, name).items():
        compare(mine[key], real, f"{name}.{key}")


def test_divergences():
    """Every pair of families: the same number, or the same refusal."""
    def found(m):
        out = {}
        t = m.tensor
        D = m.distributions
        made = [D.Normal(t([0.1, 1.0]), t([0.5, 2.0])), D.Laplace(t([0.1, 1.0]), t([0.5, 2.0])), D.Gumbel(t([0.3, 1.0]), t([1.5, 2.0])), D.Cauchy(t([0.1, 1.0]), t([0.5, 2.0])),
                D.Gamma(t([1.1, 3.0]), t([0.5, 2.0])), D.Beta(t([1.1, 3.0]), t([0.5, 2.0])), D.Exponential(t([1.1, 3.0])), D.Pareto(t([1.1, 3.0]), t([1.5, 2.0])),
                D.Uniform(t([1.1, 3.0]), t([1.5, 4.0])), D.Poisson(t([1.1, 3.0])), D.Bernoulli(t([0.1, 0.6])), D.Binomial(4, t([0.1, 0.6])), D.Geometric(t([0.1, 0.6])),
                D.HalfNormal(t([0.1, 0.6])), D.LogNormal(t([0.1, 1.0]), t([0.5, 2.0])), D.ContinuousBernoulli(t([0.1, 0.5]))]
        others = [D.Normal(t([0.4, 0.0]), t([1.5, 1.0])), D.Laplace(t([0.4, 0.0]), t([1.5, 1.0])), D.Gumbel(t([0.4, 0.0]), t([1.5, 1.0])), D.Cauchy(t([0.4, 0.0]), t([1.5, 1.0])),
                  D.Gamma(t([2.1, 0.7]), t([0.9, 1.0])), D.Beta(t([2.1, 0.7]), t([0.9, 1.0])), D.Exponential(t([2.1, 0.7])), D.Pareto(t([0.9, 4.0]), t([2.1, 0.7])),
                  D.Uniform(t([0.9, 3.5]), t([2.1, 5.0])), D.Poisson(t([2.1, 0.7])), D.Bernoulli(t([0.3, 0.2])), D.Binomial(4, t([0.3, 0.2])), D.Geometric(t([0.3, 0.2])),
                  D.HalfNormal(t([0.3, 0.2])), D.LogNormal(t([0.4, 0.0]), t([1.5, 1.0])), D.ContinuousBernoulli(t([0.3, 0.6]))]
        for p, q in itertools.product(made, others):
            out[type(p).__name__, type(q).__name__] = attempt(lambda p=p, q=q: D.kl_divergence(p, q))
        p, q = (D.MultivariateNormal(t(loc), t(COVARIANCE) * f) for loc, f in (([0.1, 0.2], 1.0), ([1.0, 0.0], 2.0)))
        out["vectors"] = D.kl_divergence(p, q)
        r, s = (D.LowRankMultivariateNormal(t(loc), t([[0.3], [1.0]]) * f, t([0.5, 2.0]) * f) for loc, f in (([0.1, 0.2], 1.0), ([1.0, 0.0], 2.0)))
        for name, pair in {"low rank": (r, s), "full, low rank": (p, s), "low rank, full": (r, q)}.items():
            out[name] = D.kl_divergence(*pair)
        out["one-hot"] = D.kl_divergence(D.OneHotCategorical(t(P)), D.OneHotCategorical(t([0.1, 0.1, 0.8])))
        return out
    mine, real = found(torchlike), found(torch)
    wrong = []
    for key in real:
        try:
            compare(mine[key], real[key], str(key))
        except AssertionError as error:
            wrong.append(f"{key}: {mine[key]} {real[key]} {str(error)[:60]}")
    assert not wrong, "\n".join(wrong)


def test_kumaraswamy_mode_is_where_the_density_peaks():
    d = torchlike.distributions.Kumaraswamy(torchlike.tensor([2.0, 5.0, 0.5]), torchlike.tensor([3.0, 2.0, 2.0]))
    assert d.mode.isnan().tolist() == [False, False, True]
    at = d.mode.nan_to_num(0.5)
    for step in (-1e-2, 1e-2):
        assert (d.log_prob(at) > d.log_prob(at + step))[:2].all()


def test_stick_breaking():
    out = []
    for m in (torchlike, torch):
        t = m.distributions.StickBreakingTransform()
        x = m.tensor([[0.3, -1.0, 2.0], [0.0, 0.0, 0.0]])
        y = t(x)
        out.append((y, t.inv(y), t.log_abs_det_jacobian(x, y), tuple(t.forward_shape((2, 3))), tuple(t.inverse_shape((2, 3)))))
    compare(out[0], out[1], "stick breaking")


STRUCTURED = {  # name -> (made of D, input)
    "corr_cholesky": (lambda D: D.CorrCholeskyTransform(), [[0.3, -1.0, 2.0, 0.1, 0.0, 0.7], [0.0, 1.0, 0.5, -0.2, 3.0, 0.0]]),
    "positive_definite": (lambda D: D.PositiveDefiniteTransform(), [[0.3, -1.0], [2.0, 0.1]]),
    "cat": (lambda D: D.CatTransform([D.ExpTransform(), D.identity_transform, D.TanhTransform()], dim=-1, lengths=[1, 2, 1]), [[0.3, -1.0, 2.0, 0.1], [0.0, 1.0, 0.5, -0.2]]),
    "cat of vectors": (lambda D: D.CatTransform([D.StickBreakingTransform(), D.StickBreakingTransform()], dim=0), [[0.3, -1.0, 2.0], [0.0, 1.0, 0.5]]),
    "stack": (lambda D: D.StackTransform([D.ExpTransform(), D.AffineTransform(1.0, -2.0)], dim=0), [[0.3, -1.0, 2.0], [0.0, 1.0, 0.5]]),
    "reshape": (lambda D: D.ReshapeTransform((4,), (2, 2)), [[0.3, -1.0, 2.0, 0.1]]),
    "cdf": (lambda D: D.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), [0.3, -1.0, 2.0]),
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_transforms(name):
    make, given = STRUCTURED[name]
    out = []
    for m in (torchlike, torch):
        t, x = make(m.distributions), m.tensor(given)
        y = t(x)
        out.append((y, t.inv(y), attempt(lambda t=t, x=x, y=y: t.log_abs_det_jacobian(x, y)), attempt(lambda t=t: t.bijective), attempt(lambda t=t: t.event_dim),
                    attempt(lambda t=t, y=y: t.codomain.check(y)), attempt(lambda t=t, x=x: tuple(t.forward_shape(x.shape))),
                    attempt(lambda t=t, y=y: tuple(t.inverse_shape(y.shape))), repr(t), attempt(lambda t=t, m=m: t(m.ones(3, 7, 7))) if name != "cdf" else None))
    compare(out[0], out[1], name)


def test_transforms_to_constraints():
    """What each registry finds for every constraint."""
    def found(m):
        D, C = m.distributions, m.distributions.constraints
        every = [C.corr_cholesky, C.lower_cholesky, C.positive_definite, C.positive_semidefinite, C.cat([C.positive, C.real], -1, [1, 2]), C.stack([C.positive, C.simplex], 0)]
        return [attempt(lambda r=r, c=c: repr(r(c))) for r in (D.biject_to, D.transform_to) for c in every]
    assert found(torchlike) == found(torch)


def test_wishart_draws_by_bartletts_decomposition_alone():  # peft calls it
    drawn = []
    for m in (torch, torchlike):
        m.manual_seed(3)
        drawn.append(m.distributions.Wishart(4.0, scale_tril=m.eye(3))._bartlett_sampling())
    assert tuple(drawn[1].shape) == (3, 3)
    np.testing.assert_allclose(drawn[1].numpy(), drawn[0].numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_through_wishart_samples():
    """Scale and samples go together: sample(s^2 V) = s^2 sample(V), so d/ds at 1 is twice the sample."""
    t = torchlike
    s = t.tensor(1.0, dtype=t.float64, requires_grad=True)
    t.manual_seed(2)
    drawn = t.distributions.Wishart(5.0, scale_tril=s * t.tensor([[1.0, 0.0], [0.3, 0.5]], dtype=t.float64)).rsample((3,)).sum()
    drawn.backward()
    np.testing.assert_allclose(s.grad.item(), 2 * drawn.item(), rtol=1e-8)


OF_NUMBERS = ["Normal(0.5, 2.0)", "Laplace(0.5, 2.0)", "Gamma(2.0, 1.0)", "Gamma(0.5, 1.0)", "Beta(2.0, 3.0)", "Bernoulli(0.3)", "Exponential(2.0)", "LogNormal(0.5, 1.0)",
              "Uniform(-1.0, 2.0)", "Cauchy(0.5, 2.0)", "StudentT(3.0)", "Poisson(3.0)", "Chi2(3.0)", "HalfNormal(2.0)", "HalfCauchy(2.0)", "Gumbel(0.5, 2.0)", "Weibull(1.5, 2.0)",
              "Pareto(1.0, 3.0)", "Kumaraswamy(2.0, 3.0)", "InverseGamma(3.0, 1.0)", "FisherSnedecor(3.0, 5.0)", "Geometric(0.3)", "NegativeBinomial(5.0, 0.4)", "Binomial(7, 0.4)",
              "ContinuousBernoulli(0.3)", "GeneralizedPareto(0.5, 2.0, 0.1)", "VonMises(0.5, 2.0)", "LKJCholesky(3, 1.5)"]


@pytest.mark.parametrize("made", OF_NUMBERS)
def test_parameters_that_are_numbers(made):
    """One sample, several, and the density at them."""
    found = []
    for m in (torchlike, torch):
        m.manual_seed(3)
        d = eval(made, vars(m.distributions))
        one, some = d.sample(), d.sample((2, 3))
        found.append((one, some, d.log_prob(one), d.log_prob(some), repr(d)))
    compare(found[0], found[1], made)
