"""Utilities around tensors: data loading, trees, hooks, exchange with other libraries."""
from .._alias import at_first_use as _at_first_use
from .._tensor import Size
from . import _pytree, collect_env, data, deterministic, dlpack, hooks
from ._swap import swap_tensors

_pytree.register_pytree_node(
    Size, lambda size: (list(size), None), lambda values, _: tuple(values),
    flatten_with_keys_fn=lambda size: ([(_pytree.SequenceKey(i), n) for i, n in enumerate(size)], None),
)

__all__ = ["collect_env", "data", "deterministic", "dlpack", "hooks", "swap_tensors"]

__getattr__ = _at_first_use(__name__, "_contextlib", "_dtype_abbrs", "_foreach_utils", "_mode_utils", "_python_dispatch", "checkpoint", "serialization", "weak")
