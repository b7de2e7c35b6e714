"""What libraries of distributions build on: names, signatures, classes of their own, beside real torch."""
import inspect

import pytest

MODULES = ("constraints", "transforms")


@pytest.mark.parametrize("name", MODULES)
def test_public_names(subject, oracle, name):
    mine, real = (getattr(torch.distributions, name) for torch in (subject, oracle))
    assert sorted(mine.__all__) == sorted(real.__all__)
    for n in real.__all__:
        kinds = getattr(mine, n), getattr(real, n)
        if inspect.isclass(kinds[1]) and kinds[1].__init__ is not object.__init__:
            assert list(inspect.signature(kinds[0]).parameters) == list(inspect.signature(kinds[1]).parameters), n


def test_constraints_of_a_programs_own(subject, oracle):
    """A subclass without arguments, a check that needs tensors."""
    def facts(torch):
        c = torch.distributions.constraints

        class Positive(type(c.positive)):
            def __init__(self):
                super().__init__(lower_bound=0.0)

        class Even(c.Constraint):
            is_discrete = True

            def check(self, value):
                return value.remainder(2).eq(0)

        class Thing(torch.distributions.Distribution):
            arg_constraints = {"scale": Positive(), "count": Even()}

            def __init__(self, scale, count):
                self.scale, self.count = scale, count
                super().__init__(validate_args=True)
        Thing(torch.tensor(1.0), torch.tensor(2.0))
        with pytest.raises(ValueError):
            Thing(torch.tensor(-1.0), torch.tensor(2.0))
        with pytest.raises(ValueError):
            (Thing(torch.tensor(1.0), torch.tensor(3.0)).count + 1).item()  # the check waits for a value to be looked at
        return str(c.greater_than(lower_bound=1)), str(c.interval(lower_bound=0, upper_bound=2))
    assert facts(subject) == facts(oracle)


def test_transforms_that_are_modules(subject, oracle):
    """A transform with parameters initialises the Module beside it; kl_divergence between classes with another base."""
    def facts(torch):
        d = torch.distributions

        class Scale(d.Transform, torch.nn.Module):
            bijective, domain, codomain = True, d.constraints.real, d.constraints.real

            def __init__(self):
                super().__init__()
                self.log_scale = torch.nn.Parameter(torch.tensor(0.5))

            def _call(self, x):
                return x * self.log_scale.exp()

            def _inverse(self, y):
                return y * (-self.log_scale).exp()

            def log_abs_det_jacobian(self, x, y):
                return self.log_scale.expand(x.shape)

            def __hash__(self):
                return torch.nn.Module.__hash__(self)
        scale = Scale()
        d.TransformedDistribution(d.Normal(0.0, 1.0), [scale]).log_prob(torch.tensor(1.0)).backward()

        class Base:
            pass

        class Mine(d.Normal, Base):
            pass
        d.kl.register_kl(Mine, Base)(lambda p, q: "found")
        return [n for n, _ in scale.named_parameters()], round(scale.log_scale.grad.item(), 4), d.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))
    assert facts(subject) == facts(oracle)


def test_helpers_of_the_multivariate_normal(subject, oracle):
    """laplace imports the first."""
    def facts(torch):
        m = __import__(f"{torch.__name__}.distributions.multivariate_normal", fromlist=["x"])
        p, x = torch.tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 3.0]]]), torch.tensor([[1.0, 2.0], [3.0, -1.0]])
        lower = m._precision_to_scale_tril(p)
        return [[[round(v, 5) for v in row] for row in r.reshape(-1, 2).tolist()] for r in (lower, m._batch_mahalanobis(lower, x), m._batch_mv(p, x))]
    assert facts(subject) == facts(oracle)


def test_parts_of_a_mixture(subject, oracle):
    """What subclasses and losses of libraries take from MixtureSameFamily: a value beside the components, also after expand."""
    def facts(torch):
        d = torch.distributions
        scalar = d.MixtureSameFamily(d.Categorical(torch.ones(2, 3)), d.Normal(torch.zeros(2, 3), 1.0))
        vector = d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Independent(d.Normal(torch.zeros(2, 3), 1.0), 1))
        return [(tuple(m._pad(torch.ones(4, *m.batch_shape, *m.event_shape)).shape), m._event_ndims, m._num_component)
                for m in (scalar, vector, scalar.expand((5, 2)), vector.expand((5,)))]
    assert facts(subject) == facts(oracle)
