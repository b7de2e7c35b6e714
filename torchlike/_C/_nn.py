"""torch._C._nn."""

from ..nn.modules.module import _parse_to  # noqa: F401
