"""Whether operations are recorded for differentiation; one setting per thread."""
from __future__ import annotations

import threading


class _Mode(threading.local):
    enabled = True
    inference = False
    anomaly = False


mode = _Mode()
