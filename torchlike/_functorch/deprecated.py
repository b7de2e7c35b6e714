"""The functions of the package `functorch`: those of torch.func, and the warning that they have moved there."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from .. import func
from . import make_functional as _modules


def _moved(function: Callable, new: str) -> Callable:
    name = function.__name__
    message = (f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is deprecated as of PyTorch 2.0 and "
               f"will be deleted in a future version of PyTorch >= 2.3. Please use `{new}` instead; see the PyTorch 2.0 release notes and/or the "
               "`torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html")

    @functools.wraps(function)
    def warned(*args, **kwargs):
        warnings.warn(message, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)
    return warned


functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = (_moved(getattr(func, name), f"torch.func.{name}") for name in (
    "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp"))
vmap = _moved(func.vmap, "torch.vmap")
make_functional = _moved(_modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _moved(_modules.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = _moved(_modules.combine_state_for_ensemble, "torch.func.stack_module_state")
