"""torch.utils.benchmark.utils.sparse_fuzzer."""
from ..fuzzer import FuzzedSparseTensor  # noqa: F401
