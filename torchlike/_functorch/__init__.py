"""Where PyTorch keeps torch.func's parts; libraries import some of them by these names."""
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    # programs set `torch._functorch.config.enable_autograd_cache` without an import of it: PyTorch's torch._dynamo has made one
    if name == "config":
        return import_module(f"{__name__}.config")
    raise AttributeError(f"module 'torch._functorch' has no attribute {name!r}: torch._functorch.{name} is not supported yet by torchlike")
