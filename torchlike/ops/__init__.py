"""The operations, one file per family. Importing a family publishes its functions and methods."""
from . import basic, creation, indexing, pointwise, views  # noqa: F401
