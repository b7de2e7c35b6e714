"""`torch._dynamo.utils`, as far as libraries ask it something."""
from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """Whether `torch.compile` works for a kind of device ("cpu", "cuda", "cuda:0"): XLA compiles for these."""
    return str(device_type).partition(":")[0] in ("cpu", "cuda", "tpu")
