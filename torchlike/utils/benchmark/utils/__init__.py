"""Where PyTorch keeps torch.utils.benchmark's parts; libraries import some of them by these names."""
from . import common, compare, fuzzer, sparse_fuzzer, timer  # noqa: F401
