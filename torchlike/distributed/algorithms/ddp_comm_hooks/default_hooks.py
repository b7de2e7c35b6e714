"""Communication hooks: the mean as it is, and with numbers of 16 bits on the way."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.dtype import bfloat16, float16
from ....futures import Future
from ...collectives import all_reduce
from ...process_group import default_group

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"]


def allreduce_hook(process_group: Any, bucket: Any) -> Future:
    """The mean over all processes."""
    return mean(process_group, bucket.buffer())


def mean(process_group: Any, tensor: Any) -> Future:
    """Of `tensor`, which is divided in place, over the processes."""
    group = default_group(process_group)
    return all_reduce(tensor.div_(group.size()), group=group, async_op=True).get_future().then(lambda f: f.value()[0])


def done(tensor: Any) -> Future:
    """A future that has its result."""
    future: Future = Future()
    future.set_result(tensor)
    return future


def _compressed(dtype: Any, process_group: Any, bucket: Any) -> Future:
    buffer = bucket.buffer()
    return mean(process_group, buffer.to(dtype)).then(lambda f: buffer.copy_(f.value()))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean, sent and summed as float16."""
    return _compressed(float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean, sent and summed as bfloat16."""
    return _compressed(bfloat16, process_group, bucket)


def _wrapper(dtype: Any, hook: Callable) -> Callable:
    def wrapped(state: Any, bucket: Any) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda f: buffer.copy_(f.value()))
    return wrapped


def fp16_compress_wrapper(hook: Callable) -> Callable:
    """`hook` on a buffer of float16."""
    return _wrapper(float16, hook)


def bf16_compress_wrapper(hook: Callable) -> Callable:
    """`hook` on a buffer of bfloat16."""
    return _wrapper(bfloat16, hook)
