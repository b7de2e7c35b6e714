"""Where PyTorch keeps torch.func's parts; libraries import some of them by these names."""
from .._alias import at_first_use

__getattr__ = at_first_use(__name__, "config", "eager_transforms")  # programs set `torch._functorch.config.enable_autograd_cache` without an import of it
