"""Mapped tensors, for the libraries that bring containers of their own to vmap."""
from .._functorch.vmap import _add_batch_dim, _remove_batch_dim, get_unwrapped, is_batchedtensor  # noqa: F401
