"""What `torch._dynamo.explain` returns, under the name by which tests ask for it."""
from ..explanation import ExplainOutput  # noqa: F401
