"""torch.func: function transforms, and modules as functions of their parameters."""

from .._functorch.rearrange import rearrange  # noqa: F401
from .._functorch.vmap import vmap  # noqa: F401
from ._batch_norm import replace_all_batch_norm_modules_  # noqa: F401
from ._transforms import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp  # noqa: F401
from .functional_call import functional_call, stack_module_state  # noqa: F401

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "rearrange",
           "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap"]
