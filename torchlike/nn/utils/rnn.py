"""Sequences of different lengths: packing, padding, and back."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from torchlike._public import FUNCTIONS, named
from torchlike._tensor import Tensor
from torchlike.nn._packed import PackedSequence, PackedSequence_, _torch, invert_permutation
from torchlike.ops.joining import joined

from ..._core.errors import class_name

__all__ = ["PackedSequence", "PackedSequence_", "invert_permutation", "pack_padded_sequence", "pack_sequence",
           "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence"]


def pack_padded_sequence(input: Tensor, lengths: Tensor | list[int], batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Pack (T, B, *), or (B, T, *) with `batch_first`, whose sequences have the given lengths.

    `enforce_sorted` asks for decreasing lengths; otherwise they are sorted here and restored by `pad_packed_sequence`.
    """
    torch = _torch()
    if not isinstance(lengths, Tensor):
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    elif lengths.device.type != "cpu":
        _refuse_lengths(lengths)
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = torch.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    return PackedSequence(*_pack_padded_sequence(input, lengths, batch_first), sorted_indices, None)


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The steps of a padded batch of sequences, the longest first, one after the other; and of how many sequences each step is."""
    torch = _torch()
    steps = input.transpose(0, 1) if batch_first else input
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.dim() != 1:
        _refuse_lengths(lengths)
    sizes = _batch_sizes(lengths.to(torch.int64).tolist(), steps.size(1))
    rows = torch.tensor(_row_numbers(sizes, steps.size(1)), device=input.device)
    return steps.reshape(-1, *steps.shape[2:]).index_select(0, rows), torch.tensor(sizes, dtype=torch.int64, device="cpu")


def _refuse_lengths(lengths: Tensor) -> NoReturn:
    raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} {lengths.dtype.short} tensor")


def _batch_sizes(lengths: list[int], batch: int) -> list[int]:
    """How many sequences have a step t, for each t. Checks the lengths as torch does."""
    if len(lengths) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
                           f"(batch_size={batch})")
    if min(lengths) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that "
                           "is <= 0")
    if any(a < b for a, b in zip(lengths, lengths[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                           "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                           "requirement if you do not need ONNX exportability.")
    return [sum(length > t for length in lengths) for t in range(lengths[0])]


def _row_numbers(sizes: list[int], batch: int) -> list[int]:
    """Where the rows of the packed data lie in a padded (T * batch, *) tensor."""
    return [t * batch + row for t, size in enumerate(sizes) for row in range(size)]


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The padded tensor (T, B, *), or (B, T, *) with `batch_first`, and the lengths of its sequences."""
    longest = len(sequence.batch_sizes)
    if total_length is not None and total_length < longest:
        raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                         f"total_length={total_length} and max sequence length being {longest}")
    padded, lengths = _pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length or longest)
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int) -> tuple[Tensor, Tensor]:
    """The padded batch of packed steps, of `total_length` steps (as many as there are, where that is not above 0), and the sequences' lengths."""
    torch = _torch()
    sizes = batch_sizes.tolist()
    longest = len(sizes)
    if 0 < total_length < longest:
        raise RuntimeError("Expected total_length to be at least the length of the longest sequence in input, but got "
                           f"total_length={total_length} and max sequence length being {longest}")
    steps = total_length if total_length > 0 else longest
    lengths = torch.tensor([sum(size > i for size in sizes) for i in range(sizes[0])], dtype=torch.int64, device="cpu")
    rows = torch.tensor(_row_numbers(sizes, sizes[0]), device=data.device)
    padded = data.new_full((steps * sizes[0], *data.shape[1:]), padding_value).index_copy(0, rows, data)
    padded = padded.view(steps, sizes[0], *data.shape[1:])
    return padded.transpose(0, 1) if batch_first else padded, lengths


FUNCTIONS.update(_pack_padded_sequence=_pack_padded_sequence, _pad_packed_sequence=_pad_packed_sequence)  # copies of this file call torch._VF's


def _fits(value, dtype) -> bool:
    """Whether value is surely a number of dtype."""
    if dtype.is_floating_point:
        return value.__class__ in (int, float) and (abs(value) <= 1e4 or math.isinf(value))
    return value.__class__ in (int, float) and value in range(128) and not dtype.is_complex


def _filled(arrays: list[np.ndarray], longest: int, dim: int, value, left: bool) -> np.ndarray:
    """Arrays of various lengths stacked along dim, and what they lack."""
    shape = longest, *arrays[0].shape[1:]
    made = np.full((*shape[:dim], len(arrays), *shape[dim:]), value, arrays[0].dtype)
    for row, a in zip(np.moveaxis(made, dim, 0), arrays):
        row[longest - len(a) if left else 0:][:len(a)] = a
    return made


def pad_sequence(sequences: Tensor | list[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Stack tensors (L_i, *) as (max L, B, *), or (B, max L, *) with `batch_first`, filling with `padding_value`."""
    torch = _torch()
    if not isinstance(sequences, Iterable):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, but got arg of type: "
                           f"{type(sequences)}")
    sequences = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for i, s in enumerate(sequences):
        if not isinstance(s, torch.Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(s)}")
    longest = max(s.size(0) for s in sequences)
    trailing = sequences[0].shape[1:]
    if _fits(padding_value, sequences[0].dtype) and all(s.shape[1:] == trailing for s in sequences):
        made = joined(sequences, lambda arrays, dim: _filled(arrays, longest, dim, padding_value, padding_side == "left"), 0 if batch_first else 1)
        if made is not None:
            return made
    padded = []
    for s in sequences:
        if s.shape[1:] != trailing:
            s = s.new_empty((s.size(0), *trailing)).copy_(s)  # whose error it is where they do not fit
        fill = sequences[0].new_full((longest - s.size(0), *trailing), padding_value)
        s = s.to(fill.dtype)
        padded.append(torch.cat([s, fill] if padding_side == "right" else [fill, s]))
    return named(torch.stack(padded, dim=0 if batch_first else 1), "CopySlices")  # torch copies each into a tensor of the filling


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Copies of the sequences of a padded tensor, each cut to its length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    places = _torch().arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[places < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors (L_i, *)."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors that `pack_sequence` packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
