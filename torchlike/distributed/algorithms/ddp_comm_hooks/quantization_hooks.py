"""Communication hooks that send gradients as bytes: each process gathers the quantized gradients of all and takes their mean."""
from __future__ import annotations

from typing import Any

from ...._core.dtype import float32, uint8
from ...._functions import torch
from ...._tensor import Tensor
from ....ao.quantization.observer import MinMaxObserver, PerChannelMinMaxObserver
from ....futures import Future
from ....nn.functional import pad
from ...collectives import all_gather
from ...process_group import ProcessGroup, default_group
from .default_hooks import done

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]


def _mean_of_bytes(group: ProcessGroup, rows: Tensor, observer: Any) -> Tensor:
    """The mean over processes of `rows`, each of which has been rounded to 256 numbers between its least and its greatest."""
    observer(rows)
    scale, zero = (t.float() for t in observer.calculate_qparams())
    steps = _gathered(torch.stack((scale, zero)).unsqueeze(-1), group)
    scale, zero = steps[group.rank()]
    quantized = ((rows / scale).round() + zero).clamp(0, 255).to(uint8)
    parts = [scale * (q.to(float32) - zero) for (scale, zero), q in zip(steps, _gathered(quantized, group), strict=True)]
    return sum(parts[1:], parts[0]) / group.size()


def _gathered(own: Tensor, group: ProcessGroup) -> list[Tensor]:
    found = [torch.empty_like(own) for _ in range(group.size())]
    all_gather(found, own, group=group)
    return found


def quantization_pertensor_hook(process_group: Any, bucket: Any) -> Future:
    """One scale for a bucket."""
    return done(_mean_of_bytes(default_group(process_group), bucket.buffer().unsqueeze(0), MinMaxObserver()).squeeze(0))


def quantization_perchannel_hook(process_group: Any, bucket: Any, bucket_size: int = 512) -> Future:
    """A scale for every `bucket_size` numbers."""
    buffer = bucket.buffer()
    rows = pad(buffer, (0, -len(buffer) % bucket_size)).view(-1, bucket_size)
    return done(_mean_of_bytes(default_group(process_group), rows, PerChannelMinMaxObserver()).flatten()[:len(buffer)])
