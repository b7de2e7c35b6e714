"""torch._dynamo.backends: what torch.compile takes for a backend, and what says how a call went."""
from . import debugging, registry  # noqa: F401
