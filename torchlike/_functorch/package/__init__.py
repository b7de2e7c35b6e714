"""What `import functorch` finds: the package that PyTorch installs beside itself."""
from ... import __version__  # noqa: F401
from ...fx.experimental.proxy_tensor import make_fx  # noqa: F401
from ..deprecated import (  # noqa: F401
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)
from ..make_functional import FunctionalModule, FunctionalModuleWithBuffers  # noqa: F401
