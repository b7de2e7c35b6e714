"""Tensors inside of transforms, for the libraries that bring containers of their own to vmap, or look at what wraps a tensor."""
from .._functorch._wrappers import (  # noqa: F401
    get_unwrapped,
    is_batchedtensor,
    is_functorch_wrapped_tensor,
    is_gradtrackingtensor,
    maybe_current_level,
    maybe_get_bdim,
    maybe_get_level,
)
from .._functorch.vmap import _add_batch_dim, _remove_batch_dim  # noqa: F401
