"""torch._dynamo.decorators: what pickles of jagged tensors name. There is no tracer that reads it."""
from .._serialization.tensors import _DimRange  # noqa: F401
