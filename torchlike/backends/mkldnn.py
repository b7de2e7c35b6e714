"""torch.backends.mkldnn (oneDNN): not used; the settings are kept."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from . import _fp32_precision
from ._settings import Settings
from ._verbose import verbose  # noqa: F401

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
matmul, conv, rnn = (_fp32_precision.Operation("mkldnn", operation) for operation in ("matmul", "conv", "rnn"))


def is_available() -> bool:
    return False


@contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Sets the settings for the length of a `with` block."""
    before = _fp32_precision.get("mkldnn")
    with sys.modules[__name__].temporarily(enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32):
        _fp32_precision.put("mkldnn", "all", fp32_precision)
        try:
            yield
        finally:
            _fp32_precision.put("mkldnn", "all", before)


# settings, which `_Mkldnn` keeps
enabled: bool
deterministic: bool
allow_tf32: bool
fp32_precision: str


class _Mkldnn(Settings):
    defaults = {"enabled": True, "deterministic": False, "allow_tf32": True}  # noqa: RUF012
    # as in torch (2.13), to set the library's sets the one for all
    computed = {"fp32_precision": (partial(_fp32_precision.get, "mkldnn"), partial(_fp32_precision.put, "generic", "all"))}  # noqa: RUF012


sys.modules[__name__].__class__ = _Mkldnn
