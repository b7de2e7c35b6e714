"""torch._C._cpu: what PyTorch's C++ part tells of the processor."""
from typing import Any

from ..cpu import get_capabilities


def _get_cpu_capability() -> dict[str, Any]:
    """`torch.cpu.get_capabilities()` as a dict."""
    return dict(get_capabilities())
