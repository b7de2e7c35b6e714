"""torch.backends.cpu: what XLA compiles for."""

import platform


def get_cpu_capability() -> str:
    """The machine's kind: XLA detects its vector instructions itself."""
    return platform.machine()
