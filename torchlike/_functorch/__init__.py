"""Where PyTorch keeps torch.func's parts; libraries import some of them by these names."""
from . import config  # noqa: F401  (programs set `torch._functorch.config.enable_autograd_cache` without an import of it)
