"""The names that torch.compile takes as `backend=`."""
from ...compiler import list_backends  # noqa: F401
