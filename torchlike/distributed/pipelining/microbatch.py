"""A batch's arguments in microbatches, and the results of microbatches as those of the batch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torchlike
from torchlike._tensor import Tensor
from torchlike.fx.node import map_aggregate
from torchlike.nn.attention.flex_attention import BlockMask
from torchlike.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]

DEFAULT_CHUNK_DIM = 0


class _CustomReducer:
    """As an entry of an `output_merge_spec`: that output becomes `reduce_fn` of `init_value` and all microbatches' values."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    pass


sum_reducer = _LossReducer(torchlike.tensor(0.0), operator.add)


class TensorChunkSpec:
    """A tensor is split along `split_dim`."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any:
        """A spec for each of some positional arguments."""
        return map_aggregate(chunk_dims, TensorChunkSpec)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> Any:
        """A spec for each of some keyword arguments."""
        return map_aggregate(chunk_dims, TensorChunkSpec)


class _Replicate:
    """Every microbatch has the whole value."""


def _split_block_mask(block_mask: BlockMask, num_chunks: int) -> list[BlockMask]:
    """Masks of the parts of a batch; a mask of one for all samples serves all parts."""
    samples = block_mask.kv_num_blocks.size(0)
    if samples == 1:
        return [block_mask] * num_chunks
    if samples < num_chunks:
        raise AssertionError("Block mask has fewer batch size than the number of chunks. ")

    def split(t: Tensor | None) -> Sequence[Tensor | None]:
        return [None] * num_chunks if t is None else torchlike.tensor_split(t, num_chunks, 0)

    def from_sample(first: int) -> Callable:
        return lambda b, h, q_idx, kv_idx: block_mask.mask_mod(b + torchlike.full_like(b, first), h, q_idx, kv_idx)

    made, first = [], 0
    for numbers, indices, full_numbers, full_indices in zip(*map(split, (block_mask.kv_num_blocks, block_mask.kv_indices, block_mask.full_kv_num_blocks,
                                                                           block_mask.full_kv_indices))):
        made.append(BlockMask.from_kv_blocks(kv_num_blocks=numbers, kv_indices=indices, full_kv_num_blocks=full_numbers, full_kv_indices=full_indices,
                                             BLOCK_SIZE=block_mask.BLOCK_SIZE, mask_mod=from_sample(first), seq_lengths=block_mask.seq_lengths))
        first += numbers.size(0)
    return made


def _split_tensor(tensor: Tensor, spec: TensorChunkSpec, num_chunks: int) -> Sequence[Tensor]:
    size = tensor.size(spec.split_dim)
    if size < num_chunks:
        raise AssertionError(f"Tensor size {size} is smaller than num_chunks")
    chunks = torchlike.tensor_split(tensor, num_chunks, spec.split_dim)
    if tensor.requires_grad and tensor.is_leaf:
        for chunk in chunks:  # a stage reads its inputs' .grad
            chunk.retain_grad()
    return chunks


def _is_mask(value: Any) -> bool:
    return isinstance(value, BlockMask)


def _split_dict(args: dict, specs: dict, num_chunks: int) -> list[dict]:
    """The microbatches of named arguments: as many as `num_chunks`, or fewer where a tensor is smaller."""
    if not args:
        return [{} for _ in range(num_chunks)]
    if len(args) != len(specs):
        raise AssertionError(f"args_dict.keys() = {list(args)} args_chunk_spec.keys() = {list(specs)}")
    values, structure = tree_flatten(args, is_leaf=_is_mask)
    flat_specs = tree_flatten(specs, is_leaf=_is_mask)[0]
    pairs = list(zip(values, flat_specs, strict=True))

    def size(value: Any, spec: Any) -> int:
        if spec is _Replicate or isinstance(spec, _Replicate):
            return num_chunks
        if not isinstance(value, (Tensor, BlockMask)):
            raise ValueError(f"Unsupported chunk spec: {spec} and value: {value} combination.")
        if not isinstance(spec, TensorChunkSpec):
            raise AssertionError(f"Expected TensorChunkSpec, got {type(spec)}")
        if isinstance(value, Tensor):
            return value.size(spec.split_dim)
        if spec.split_dim != 0:
            raise AssertionError("BlockMask only supports split_dim=0")
        samples = value.kv_num_blocks.size(0)
        return num_chunks if samples == 1 else samples

    count = min(num_chunks, *(size(v, s) for v, s in pairs))

    def split(value: Any, spec: Any) -> Sequence:
        if not isinstance(spec, TensorChunkSpec):
            return [value] * count
        return _split_tensor(value, spec, count) if isinstance(value, Tensor) else _split_block_mask(value, count)

    return [tree_unflatten(list(chunk), structure) for chunk in zip(*(split(v, s) for v, s in pairs))]


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
    kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
) -> tuple[list[tuple], list[dict]]:
    """The arguments of each microbatch. Without specs tensors are split along their first dimension, and all else goes to every microbatch."""
    kwargs = {} if kwargs is None else kwargs

    def usual(value: Any) -> Any:
        return TensorChunkSpec(DEFAULT_CHUNK_DIM) if isinstance(value, (Tensor, BlockMask)) else _Replicate()

    if args_chunk_spec is None:
        args_chunk_spec = tree_map(usual, args, is_leaf=_is_mask)
    if kwargs_chunk_spec is None:
        kwargs_chunk_spec = tree_map(usual, kwargs, is_leaf=_is_mask)
    numbered, specs = dict(enumerate(args)), dict(enumerate(args_chunk_spec))
    args_split = _split_dict(numbered, specs, chunks)
    kwargs_split = _split_dict(kwargs, kwargs_chunk_spec, len(args_split))
    if len(kwargs_split) < len(args_split):  # the positional ones are numbers only, say
        args_split = _split_dict(numbered, specs, len(kwargs_split))
    if len(args_split) != len(kwargs_split):
        raise RuntimeError(f"args and kwargs are split into different number of chunks: {len(args_split)}, {len(kwargs_split)}")
    return [tuple(chunk[i] for i in range(len(chunk))) for chunk in args_split], kwargs_split


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """The microbatches' results as one: joined along the dimensions that `chunk_spec` says (None: the first), reduced, or, where all are equal, taken.

    ValueError where a result has another structure than the spec.
    """
    if chunk_spec is None:
        flat, structure = tree_flatten(chunks[0])
        specs = [TensorChunkSpec(DEFAULT_CHUNK_DIM)] * len(flat)
    else:
        specs, structure = tree_flatten(chunk_spec)
    rows = []
    for chunk in chunks:
        rows.append(tree_flatten(chunk)[0])
        if len(rows[-1]) != len(specs):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")

    def merged(spec: Any, values: tuple) -> Any:
        if isinstance(spec, TensorChunkSpec):
            return torchlike.cat(values, dim=spec.split_dim)
        if isinstance(spec, _CustomReducer):
            total = spec.init_value
            for value in values:
                total = spec.reduce_fn(total, value)
            return total
        for value in values[1:]:
            if not value == values[0]:
                raise AssertionError(f"Expected {values[0]}, got {value}")
        return values[0]

    return tree_unflatten([merged(spec, values) for spec, values in zip(specs, zip(*rows))], structure)
