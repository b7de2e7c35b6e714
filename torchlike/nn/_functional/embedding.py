"""Look-up tables: embedding and one_hot."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._arguments import as_int
from ..._core import dtype as dt
from ..._core.grad_mode import mode
from ..._core.registry import Op
from ..._core.value import is_tracer
from ..._functorch.vmap import is_batchedtensor
from ..._tensor import Tensor, apply
from ...ops.gathering import in_range
from ...ops.index_ranges import check_range
from ...ops.positions import rows_add
from .common import need


def _embedding(xp, weight, index, padding):
    return weight[index] if xp is np else xp.take(weight, narrow(index, len(weight)), axis=0, mode="clip")


def narrow(index, rows: int):
    """A traced index in 32 bits where they do: JAX's derivative of the look-up clips it, and knows integers of 64 bits only under a setting of the user's."""
    return index.astype(np.int32) if index.dtype == np.int64 and rows < 1 << 31 else index


def _embedding_vjp(xp, g, index, padding, plan):
    rows, width = plan.avals[0].shape
    g, index = g.reshape(-1, width), index.reshape(-1)
    if padding is not None:
        g = xp.where((index == padding)[:, None], xp.zeros((), g.dtype), g)
    if xp is np:
        return rows_add(rows, index, g), None
    if rows <= 4096 and g.shape[0] * rows <= 1 << 22:  # by a one-hot matrix where products are quick: 10 to 60 times slower on the CPU
        return lax.platform_dependent(g, index, cpu=lambda g, index: _summed(rows, index, g),
                                      default=lambda g, index: (index[:, None] == np.arange(rows)).astype(g.dtype).T @ g), None
    return _summed(rows, index, g), None


def _summed(rows, index, g):
    return jnp.zeros((rows, g.shape[1]), g.dtype).at[index].add(g)


EMBEDDING = Op("embedding", _embedding, shape=lambda w, i, padding: ((*i.shape, w.shape[1]), w.dtype), vjp=_embedding_vjp)
EMBEDDING.picks = True
EMBEDDING.asks = "_index_select", ("self", 0), ("index", 1)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of weight at the indices: (*) to (*, width). Rows at padding_idx get no gradient."""
    need(input, "embedding", "indices", 2)
    need(weight, "embedding", "weight", 1)
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if input.dtype not in (dt.int64, dt.int32):
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                           f"torch.{input.dtype.short}Tensor instead (while checking arguments for embedding)")
    rows = weight.shape[0]
    if padding_idx is not None:
        padding_idx = as_int(padding_idx, "padding_idx", symbolic=True)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    check_range(input, rows, lambda bad: "index out of range in self", negative=False)
    if max_norm is not None:
        _renorm_rows(weight, input, max_norm, norm_type)
    if sparse and weight.requires_grad and mode.enabled:
        from ...sparse.embedding import lookup  # programs without sparse tensors do not load it
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        return lookup(weight, input, padding_idx)
    if scale_grad_by_freq:
        counts = np.bincount(input._host_array().reshape(-1), minlength=rows)
        from ..._tensor import as_tensor_value
        scale = as_tensor_value((1.0 / counts[input._host_array()]).astype(weight.dtype.np), weight.device).unsqueeze(-1)
        made = apply(EMBEDDING, (weight, input), (padding_idx,))
        return made * scale + (made * (1 - scale)).detach()
    return apply(EMBEDDING, (weight, input), (padding_idx,))


def _renorm_rows(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Rows that are looked up and longer than max_norm are shortened, in place."""
    from ...autograd.grad_mode import no_grad
    with no_grad():
        used = np.unique(index._host_array())
        rows = weight.detach()[used.tolist()]
        norms = rows.norm(norm_type, 1, keepdim=True)
        weight.detach()[used.tolist()] = rows.where(~(norms > max_norm), rows * (max_norm / (norms + 1e-7)))


_ONE_HOT = Op("one_hot", lambda xp, x, n: (xp.expand_dims(x, -1) == np.arange(n)).astype(np.int64), vjp=False,
              shape=lambda a, n: ((*a.shape, n), dt.int64))


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Integers as rows of zeros with a one: (*) to (*, num_classes)."""
    if input.dtype is not dt.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    num_classes = as_int(num_classes, "num_classes")
    if not input.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return apply(_ONE_HOT, (input,), (num_classes,))
    if num_classes > 0 and is_tracer(input._current().array):  # JAX asks no values
        return apply(_ONE_HOT, (input,), (num_classes,))
    if num_classes > 0 and is_batchedtensor(input):
        in_range(input, num_classes, lambda bad: f"Class values must be {'non-negative' if bad < 0 else 'smaller than num_classes'}.", RuntimeError)
        return apply(_ONE_HOT, (input,), (num_classes,))
    host = input._host_array()
    if host.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(host.max()) + 1
    elif host.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return apply(_ONE_HOT, (input,), (num_classes,))
