"""The name of torch.distributions.exp_family."""
from .distribution import ExponentialFamily  # noqa: F401
