"""What pipes of files are made of."""
from . import common  # noqa: F401
