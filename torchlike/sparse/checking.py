"""What gradcheck needs of sparse inputs: which elements they specify, and the same pattern with other values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import Tensor, as_tensor_value
from ..ops.layouts import LAYOUTS
from .conversions import to_sparse
from .coo import Coo
from .tensor import SparseTensor


def full(x: SparseTensor) -> SparseTensor:
    """The same tensor with all elements specified, those that were not as zeros. Gradients flow to x."""
    block = None if isinstance(x, Coo) else x.block
    everywhere = to_sparse(as_tensor_value(np.ones(x._dims), x.device), layout=LAYOUTS[x.layout_name], blocksize=block, dense_dim=x.dense_dim())
    return x.to_dense().sparse_mask(everywhere)


def numbers_of_values(x: SparseTensor) -> np.ndarray:
    """For each element the place of its value among x's flat values, -1 where x specifies none. Of several values at one place it is the first."""
    count = x._entries.numel()
    if isinstance(x, Coo) and not x.is_coalesced():
        numbers = np.full(x._dims, -1)
        for k, place in reversed(list(enumerate(x.host().T))):
            numbers[tuple(place)] = np.arange(count).reshape(x._entries.shape)[k]
        return numbers
    counted = x._like(as_tensor_value(np.arange(1, count + 1).reshape(x._entries.shape), x.device))
    return counted.to_dense()._host_array() - 1


class Moved:
    """A sparse input at values near its own."""

    def __init__(self, x: SparseTensor, masked: bool) -> None:
        self._at = (x if masked else full(x)).detach()
        self._numbers = numbers_of_values(self._at)
        self._base = self._at._entries._host_array()
        self.specified = self._numbers >= 0

    def by(self, step: np.ndarray) -> SparseTensor:
        """With a step added to the elements that it specifies."""
        values = self._base.reshape(-1).copy()
        values[self._numbers[self.specified]] += step[self.specified].astype(values.dtype)
        return self._at._like(self._at._entries.new_tensor(values.reshape(self._base.shape)).requires_grad_())


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """A gradcheck (`torch.autograd.gradcheck`, or a partial of it) for functions of sparse tensors whose results may be sparse, too.

    What it is given are the values of sparse inputs: of all elements, or with `masked=True` of those that are specified.
    """
    def check(func: Callable, inputs: Any, **options: Any) -> bool:
        masked = options.pop("masked", False)
        parts = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        patterns = [(x if masked else full(x)).detach() if isinstance(x, SparseTensor) and x.requires_grad else None for x in parts]

        def strided(result: Any) -> Any:
            if isinstance(result, SparseTensor) and result.requires_grad:
                return result.to_dense(masked_grad=masked)
            return result

        def of_values(*args: Any, **kwargs: Any) -> Any:
            outputs = func(*(a if p is None else p._like(a) for a, p in zip(args, patterns)), **kwargs)
            return tuple(map(strided, outputs)) if isinstance(outputs, (list, tuple)) else strided(outputs)
        return gradcheck(of_values, tuple(x if p is None else p._entries.detach().requires_grad_() for x, p in zip(parts, patterns)), **options)
    return check


def incorrect(g: Tensor, x: Tensor) -> str | None:
    """What a sparse gradient has not as its input, in gradcheck's words."""
    if g.layout is not x.layout:
        return f"grad is incorrect layout ({g.layout} is not {x.layout})"
    kind = g.layout_name.replace("_coo", "")
    for name, found, expected in (("sparse_dim", g.sparse_dim(), x.sparse_dim()), ("dense_dim", g.dense_dim(), x.dense_dim())):
        if found != expected:
            return f"grad is {kind} tensor, but has incorrect {name} {found}, expected {expected}"
    return None
