"""Distributions and Fourier transforms beside real torch, in both tiers."""
import numpy as np
import pytest
import torch
from same import same

import torchlike
from torchlike._core.executor import tier

BOTH = pytest.mark.parametrize("which", ["numpy", "compiled"])
MAKE = {
    "Normal": (lambda D, a, b: D.Normal(a, b), 0.3), "Laplace": (lambda D, a, b: D.Laplace(a, b), 0.3),
    "Gamma": (lambda D, a, b: D.Gamma(a.exp(), b), 0.3), "Beta": (lambda D, a, b: D.Beta(a.exp(), b), 0.3),
    "Bernoulli": (lambda D, a, b: D.Bernoulli(logits=a * b), 1.0), "Exponential": (lambda D, a, b: D.Exponential(a.exp() * b), 0.3),
    "LogNormal": (lambda D, a, b: D.LogNormal(a, b), 0.3), "Uniform": (lambda D, a, b: D.Uniform(a - 2, a + b + 2), 0.1),
}


@BOTH
@pytest.mark.parametrize("name", MAKE)
def test_log_prob_and_samples(name, which):
    make, value = MAKE[name]
    found = []
    for m in (torch, torchlike):
        with tier(which):
            a, b = (m.tensor(x, requires_grad=True) for x in ([0.1, -0.4, 0.7], [0.5, 1.5, 2.0]))
            d = make(m.distributions, a, b)
            out = d.log_prob(m.full((3,), value))
            (out.sum() + d.entropy().sum()).backward()
            m.manual_seed(1)
            found.append([x.detach().numpy() for x in (out, d.sample((5,)), a.grad, b.grad)])
    for mine, real in zip(found[1], found[0]):
        assert mine.dtype == real.dtype
        np.testing.assert_allclose(mine, real, rtol=1e-4, atol=1e-5)


def test_refusals():
    for make in (lambda m: m.distributions.Normal(0, -1), lambda m: m.distributions.Categorical(m.ones(3)).log_prob(m.tensor(5))):
        with pytest.raises(ValueError) as real:
            make(torch)
        with pytest.raises(ValueError) as mine:
            make(torchlike)
        assert str(mine.value) == str(real.value)


BAD = {"Categorical": "probs", "Multinomial": "probs", "OneHotCategorical": "probs", "Bernoulli": "probs", "Geometric": "probs", "Poisson": "rate", "Dirichlet": "concentration"}


@pytest.mark.parametrize("name", BAD)
def test_parameters_that_were_computed_are_refused_at_construction(name):
    words = []
    for m in (torch, torchlike):
        with pytest.raises(ValueError) as refusal:
            getattr(m.distributions, name)(**{BAD[name]: m.tensor([-1.0, 1.5]) * 2})
        words.append(str(refusal.value))
    assert words[0] == words[1]


@pytest.mark.usefixtures("recorded")
def test_a_parameter_under_training_is_refused_when_it_is_looked_at():
    """torch refuses at construction; here a training step stays one program."""
    p = torchlike.tensor([-1.0, 1.5], requires_grad=True)
    loss = torchlike.distributions.Bernoulli(p * 2).entropy().sum()
    with pytest.raises(ValueError, match="found invalid values"):
        loss.item()


@BOTH
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fft(name, which):
    found = []
    for m in (torch, torchlike):
        with tier(which):
            x = m.tensor([[0.5, 1.0, -2.0, 0.3, 0.7], [1.0, 2.0, 3.0, -1.0, 0.0]], requires_grad=True)
            out = getattr(m.fft, name)(x, 7, norm="ortho")
            (out.abs() ** 2 * m.arange(1, out.shape[-1] + 1)).sum().backward()
            found.append([out.detach().resolve_conj().numpy(), x.grad.numpy()])
    for mine, real in zip(found[1], found[0]):
        assert mine.dtype == real.dtype
        np.testing.assert_allclose(mine, real, rtol=1e-4, atol=1e-5)


@same
def test_transforms_to_intervals_whose_bounds_are_tensors(torch):  # sbi's BoxUniform
    c, x = torch.distributions.constraints, torch.tensor([0.1, 0.3])
    found = []
    for constraint in (c.interval(torch.tensor([0.0, -1.0]), torch.tensor([1.0, 2.0])), c.interval(0, 1), c.interval(torch.tensor(0.0), torch.tensor(1.0)),
                       c.half_open_interval(torch.zeros(2), torch.ones(2)), c.positive, c.greater_than(0), c.greater_than_eq(torch.zeros(2)), c.unit_interval,
                       c.independent(c.interval(torch.zeros(2), torch.ones(2)), 1)):
        for registry in (torch.distributions.transform_to, torch.distributions.biject_to):
            transform = registry(constraint)
            found.append((repr(transform), transform(x), transform.inv(transform(x))))
    return found


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 5)])
@pytest.mark.parametrize("rows", [(), (4,), (3, 4)])
def test_samples_of_both_layouts(shape, rows):
    """Where a sample has the parameters' shape, or one per row, they are drawn from as they lie."""
    found = []
    for t in (torch, torchlike):
        t.manual_seed(3)
        logits = t.arange(float(np.prod((*rows, 5)))).reshape(*rows, 5).sin()
        normal = t.distributions.Normal(logits, logits.exp())
        found.append([t.distributions.Categorical(logits=logits).sample(shape), normal.sample(shape), normal.rsample(shape), t.rand(3)])
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert ours.shape == theirs.shape
        assert np.allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("diag", [-5, -4, -2, -1, 0, 1, 3, 4])
@same
def test_lower_triangles_as_vectors(torch, diag):
    from importlib import import_module

    utils = import_module(f"{torch.__name__}.distributions.utils")
    x = torch.arange(32.0).reshape(2, 4, 4).requires_grad_()
    found = []
    try:
        found.append(utils.tril_matrix_to_vec(x, diag))
        found.append(utils.vec_to_tril_matrix(found[0], diag))
        found.append(torch.autograd.grad(found[1].square().sum(), x)[0])
    except ValueError as bad:
        found.append(str(bad))
    for length in (2, 5):
        try:
            found.append(utils.vec_to_tril_matrix(torch.arange(float(length)), -1))
        except ValueError as bad:
            found.append(str(bad))
    return found


@same
def test_gradients_at_logits_of_zero(torch):
    """A layer that starts at zero gives such logits."""
    d, found = torch.distributions, []
    x, y = torch.zeros(2, requires_grad=True), torch.tensor([0.0, 1.0], requires_grad=True)
    for make in (lambda x: d.Bernoulli(logits=x), lambda x: d.Binomial(3, logits=x), lambda x: d.ContinuousBernoulli(logits=x), lambda x: d.Geometric(logits=x),
                 lambda x: d.NegativeBinomial(2.0, logits=x)):
        found.append(torch.autograd.grad(make(x).log_prob(torch.tensor([0.0, 1.0])).sum(), x))
    found += [torch.autograd.grad(d.Bernoulli(logits=x).entropy().sum(), x), torch.autograd.grad(d.SigmoidTransform().log_abs_det_jacobian(x, x.sigmoid()).sum(), x)]
    return found, torch.autograd.grad(d.kl_divergence(d.Bernoulli(logits=x), d.Bernoulli(logits=y)).sum(), (x, y))


@same
def test_divergence_of_families_of_ones_own(torch):
    class Decay(torch.distributions.ExponentialFamily):
        """p(x) = rate exp(-rate x), with nothing known of divergences."""
        arg_constraints, support = {}, torch.distributions.constraints.positive

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape, validate_args=False)

        _natural_params = property(lambda self: (-self.rate,))

        def _log_normalizer(self, x):
            return -torch.log(-x)

    class Other(Decay):
        pass

    kl = torch.distributions.kl_divergence
    rate = torch.tensor([0.5, 2.0], requires_grad=True)
    p, q = Decay(torch.tensor([1.0, 3.0])), Decay(rate)
    try:
        kl(p, Other(rate))
    except NotImplementedError as bad:
        text = " ".join(str(bad).split())
    return kl(p, q), torch.autograd.grad(kl(p, q).sum(), rate), text


@pytest.mark.parametrize("transform", [0, 1, 2])
@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("event", [0, 1, 2])
@pytest.mark.parametrize("n", [2, 3])
@same
def test_transforms_that_change_the_number_of_dimensions(torch, transform, batch, event, n):
    d, shape = torch.distributions, (2, 3, 4, 5)
    base = d.Normal(0.0, 1.0).expand(shape[4 - batch - event:])
    base = d.Independent(base, event) if event else base
    transforms = [d.AffineTransform(torch.zeros(shape[4 - transform:]), 1), d.ReshapeTransform((4, 5), (20,)), d.ReshapeTransform((3, 20), (6, 10))]
    try:
        made = d.TransformedDistribution(base, transforms[:n])
    except ValueError as bad:
        return str(bad)
    x = made.sample((2,))
    return made.batch_shape, made.event_shape, x, made.log_prob(x)


@same
def test_a_base_that_fits_is_taken_as_it_is(torch):
    """So that a base with an `__init__` of its own needs no `expand` (gluonts' StudentT), which refuses it."""
    d = torch.distributions

    class Mine(d.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)
    base = Mine(torch.zeros(3))
    made = d.TransformedDistribution(base, [d.AffineTransform(torch.ones(3), 2.0)])
    try:
        d.TransformedDistribution(base, [d.AffineTransform(torch.ones(2, 3), 2.0)])
    except NotImplementedError as bad:
        return made.base_dist is base, made.log_prob(torch.ones(3)), str(bad)


@same
def test_numbers_are_no_samples(torch):
    d, found = torch.distributions, []
    for made in (d.HalfCauchy(1.0), d.HalfNormal(1.0), d.HalfCauchy(1.0, validate_args=False)):
        try:
            found.append(made.log_prob(1))
        except (ValueError, AttributeError) as bad:
            found.append(str(bad))
    return found


def test_saved_transforms():
    import copy
    import io
    import pickle

    d, x = torchlike.distributions, torchlike.tensor([0.3, -0.5])
    affine = d.AffineTransform(torchlike.tensor([1.0, 2.0]), 3.0)
    for made in (affine, affine.inv, d.ComposeTransform([d.ExpTransform(), affine]).inv):
        kept = made.inv  # the references that cannot be pickled
        f = io.BytesIO()
        torchlike.save(d.TransformedDistribution(d.Normal(x, 1.0), [made]), f)
        f.seek(0)
        loaded = torchlike.load(f, weights_only=False).transforms[0]
        for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), loaded):
            assert again(made.inv(x)).allclose(x) and again.inv.inv is again and kept is made.inv


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dirichlet_samples_of_small_parameters(dtype):
    """Almost all of them lie in a corner: their gamma samples are far below float32's smallest number."""
    found = []
    for t in (torch, torchlike):
        t.manual_seed(1)
        alpha = t.tensor([[1e-2, 1e-2], [1e-3, 2e-2], [0.3, 4.0]], dtype=getattr(t, dtype))
        found.append([t._sample_dirichlet(alpha.expand(1000, 3, 2)).numpy(), t.rand(1).numpy()])
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert abs((found[1][0][:, 0, 0] < 0.1).mean() - 0.5) < 0.05


@same
def test_known_parameters_are_checked_though_a_gradient_flows_through_them(torch):
    def refused(*values):
        try:
            torch.distributions.Beta(*[torch.tensor([v], requires_grad=True) for v in values])
        except ValueError as error:
            return str(error).split("\n")[0]
    return refused(0.0, 1.0), refused(1.0, -1.0), refused(1.0, 2.0)
