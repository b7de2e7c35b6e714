"""What programs ask of operators by name."""
from .._ops import lookup_op  # noqa: F401
