"""torch.backends: which libraries there are, and the settings by which programs steer them.

XLA chooses algorithms by itself. Settings are kept and can be read back. Whether TF32 is allowed is a setting that programs for
a GPU obey (see `_core/precision.py`); the others change nothing.
"""

import sys as _sys
from contextlib import AbstractContextManager as _AbstractContextManager
from functools import partial as _partial

from . import (  # noqa: F401
    _fp32_precision,
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
    xnnpack,
)
from ._settings import Settings as _Settings
from ._settings import assignable as __allow_nonbracketed_mutation  # noqa: F401  (monai's set_determinism)
from ._settings import disable_global_flags, flags_frozen  # noqa: F401


def flags(fp32_precision: str = "none") -> _AbstractContextManager[None]:
    """Sets the precision of all libraries that have none of their own for the length of a `with` block."""
    return _sys.modules[__name__].temporarily(fp32_precision=fp32_precision)


fp32_precision: str  # which `_Backends` keeps


class _Backends(_Settings):
    computed = {"fp32_precision": (_partial(_fp32_precision.get, "generic"), _partial(_fp32_precision.put, "generic", "all"))}  # noqa: RUF012


_sys.modules[__name__].__class__ = _Backends
