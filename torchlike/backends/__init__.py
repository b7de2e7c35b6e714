"""torch.backends: which libraries there are, and the settings by which programs steer them.

XLA chooses algorithms by itself. Settings are kept and can be read back; those that merely permit something (TF32,
benchmarking) need not change anything, and results never depend on them.
"""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum  # noqa: F401
