"""What `torch.version` tells: the version, and which vendors' toolkits the build has (none: XLA brings its own)."""

from torchlike._alias import VERSION
from torchlike.torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = TorchVersion(VERSION)
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"
