"""torch.backends: which libraries there are, and the settings by which programs steer them.

XLA chooses algorithms by itself. Settings are kept and can be read back. Whether TF32 is allowed is a setting that programs for
a GPU obey (see `_core/precision.py`); the others change nothing.
"""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum, quantized, xnnpack  # noqa: F401
from ._settings import assignable as __allow_nonbracketed_mutation  # noqa: F401  (monai's set_determinism)
from ._settings import disable_global_flags, flags_frozen  # noqa: F401
