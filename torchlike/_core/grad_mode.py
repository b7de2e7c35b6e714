"""Whether operations are recorded for differentiation; one setting per thread."""
from __future__ import annotations

import threading


class _Mode(threading.local):
    enabled = True
    inference = False
    anomaly = False


mode = _Mode()
inference = [0]  # threads and blocks inside inference_mode: the record path looks here before it asks the thread's mode
