"""What test_utils.py runs in spawned processes, which import this file alone: not pytest, not real torch."""
import os
import time


def fail(i, text):
    if i == 1:
        raise ValueError(text)
    time.sleep(20)


def leave(i, code):
    os._exit(code)


def squares(i, queue):
    import torchlike as torch

    queue.put((i, torch.arange(3) ** 2 + i))
