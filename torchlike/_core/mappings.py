"""How many memory mappings the process has. Each executable of XLA's takes six or more, and Linux allows a process 65,530."""
from __future__ import annotations

MOST = "/proc/sys/vm/max_map_count"


def are_half_used() -> bool:
    """Whether more than half of them are taken; False on other systems, which have no such limit."""
    try:
        with open("/proc/self/maps", "rb") as mappings, open(MOST) as most:
            return 2 * sum(1 for _ in mappings) > int(most.read())
    except OSError:
        return False
