"""PackedSequence: sequences of different lengths in one tensor, step by step."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from torchlike._tensor import Tensor


def _torch() -> Any:
    import torchlike as torch  # factories and dtypes live above this file

    return torch


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    torch = _torch()
    output = torch.empty_like(permutation)
    output[permutation] = torch.arange(0, permutation.numel(), device=permutation.device)
    return output


class PackedSequence_(namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])):
    """The fields of PackedSequence."""

    __slots__ = ()
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


PackedSequence_.__name__ = "PackedSequence_"


class PackedSequence(PackedSequence_):
    """Steps of sequences sorted by length: `data` holds step 0 of all, then step 1 of those long enough, and so on.

    `batch_sizes[t]` (on the CPU) counts the sequences that have a step t. Made by `pack_padded_sequence` and others.
    """

    def __new__(cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError("batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
                             "manually. They should be instantiated by functions like pack_sequence and "
                             "pack_padded_sequences in nn.utils.rnn. "
                             "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Cast or move `data` (and move the indices); `batch_sizes` stays on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [None if i is None else i.to(data.device, non_blocking=kwargs.get("non_blocking", False))
                   for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the GPU."""
        return self.to("cuda", *args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the CPU."""
        return self.to("cpu", *args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """With `data` in pinned memory."""
        indices = [None if i is None else i.pin_memory() for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda


def _cast(name: str, dtype: str) -> Any:
    def cast(self: PackedSequence) -> PackedSequence:
        return self.to(self.data.new_empty(0).to(getattr(_torch(), dtype)).dtype)

    cast.__name__, cast.__doc__ = name, f"With `data` as {dtype}."
    return cast


for _name, _dtype in (("double", "float64"), ("float", "float32"), ("half", "float16"), ("long", "int64"),
                      ("int", "int32"), ("short", "int16"), ("char", "int8"), ("byte", "uint8")):
    setattr(PackedSequence, _name, _cast(_name, _dtype))
PackedSequence.__module__ = "torchlike.nn.utils.rnn"  # where it is public, and where pickles look for it
