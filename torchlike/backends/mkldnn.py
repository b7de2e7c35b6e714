"""torch.backends.mkldnn (oneDNN): not used; the settings are kept."""

import sys
from contextlib import AbstractContextManager

from ._settings import Settings


def is_available() -> bool:
    return False


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Sets the settings for the length of a `with` block."""
    return sys.modules[__name__].temporarily(
        enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32, fp32_precision=fp32_precision
    )


class _Mkldnn(Settings):
    defaults = {"enabled": True, "deterministic": False, "allow_tf32": True, "fp32_precision": "none"}  # noqa: RUF012


sys.modules[__name__].__class__ = _Mkldnn
