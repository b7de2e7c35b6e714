"""Whether operations are recorded for differentiation; one setting per thread."""
from __future__ import annotations

import threading


class _Mode(threading.local):
    enabled = True
    inference = False
    anomaly = False
    watchers: tuple = ()  # called as watch(node, input values) with every new graph node
    saved_hooks: tuple = ()  # (pack, unpack) pairs of saved_tensors_hooks; the last one holds
    saved_hooks_disabled: str | None = None  # the message of disable_saved_tensors_hooks
    allows_mutation = False  # inside allow_mutation_on_saved_tensors
    callbacks: list | None = None  # what runs when the outermost walk is over
    walk = None  # the backward walk that runs now: (nodes it reaches, nodes it runs or None for all)


mode = _Mode()
inference = [0]  # threads and blocks inside inference_mode: the record path looks here before it asks the thread's mode
backwards: list = []  # what runs nodes whose operations are seen by dispatch modes and classes, once there is such: _dispatch/backward.py
