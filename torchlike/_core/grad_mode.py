"""Whether operations are recorded for differentiation; one setting per thread."""
from __future__ import annotations

import threading


class _Mode(threading.local):
    enabled = True
    inference = False
    anomaly = False
    watchers: tuple = ()  # called as watch(node, input values) with every new graph node


mode = _Mode()
inference = [0]  # threads and blocks inside inference_mode: the record path looks here before it asks the thread's mode
