"""torch.cuda.nccl: which NCCL there is. XLA calls it by itself."""
from __future__ import annotations

import re
from importlib.metadata import distributions


def version() -> tuple[int, ...]:
    """(major, minor, patch) of the NCCL that JAX's GPU plugin was installed with. AttributeError without one."""
    found = next((d for d in distributions() if re.fullmatch("nvidia-nccl(-cu[0-9]+)?", d.metadata["Name"] or "")), None)
    if found is None:
        raise AttributeError("there is no NCCL here")
    return tuple(map(int, found.version.split(".")[:3]))
