"""torch.distributions: probability distributions, transforms and divergences."""
from . import constraints, transforms, utils  # noqa: F401
from .bernoulli import Bernoulli  # noqa: F401
from .beta import Beta  # noqa: F401
from .categorical import Categorical  # noqa: F401
from .constraint_registry import biject_to, transform_to  # noqa: F401
from .dirichlet import Dirichlet  # noqa: F401
from .distribution import Distribution, ExponentialFamily  # noqa: F401
from .exponential import Exponential  # noqa: F401
from .gamma import Gamma  # noqa: F401
from .independent import Independent  # noqa: F401
from .kl import kl_divergence, register_kl  # noqa: F401
from .laplace import Laplace  # noqa: F401
from .log_normal import LogNormal  # noqa: F401
from .normal import Normal  # noqa: F401
from .transformed_distribution import TransformedDistribution  # noqa: F401
from .transforms import (  # noqa: F401
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PowerTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from .uniform import Uniform  # noqa: F401
