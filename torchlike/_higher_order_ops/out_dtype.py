"""out_dtype: an operator whose result has another dtype than its arguments give it, as products of int8 that are summed in int32."""
from __future__ import annotations

from typing import Any

from .._core import dtype as dt
from .._ops import OpOverload, aten
from .._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from .._tensor import Tensor
from ..autograd.function import Function
from ..utils._pytree import tree_leaves, tree_map_only

_ALLOWED = [aten.linear.default, aten.mm.default, aten.conv2d.default, aten.convolution.default, aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar]


class _Underivable(Function):
    """A result in a graph whose backward is refused, as in torch."""

    @staticmethod
    def forward(ctx, made, *inputs):
        return made

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("Autograd not implemented for out_dtype")


def out_dtype(op: OpOverload, output_dtype: dt.dtype, *args: Any) -> Tensor:
    """op(*args), computed in the dtype that the arguments' and `output_dtype` promote to, as `output_dtype`. ValueError for operators other than products,
    convolutions, mul and div. It has no derivative: a backward through it raises RuntimeError."""
    if not isinstance(op, OpOverload):
        raise ValueError("out_dtype's first argument must be an OpOverload")
    if op._schema.is_mutable:
        raise ValueError("out_dtype's first argument needs to be a functional operator")
    returns = op._schema.returns
    if len(returns) != 1 or str(returns[0].type) != "Tensor":
        raise ValueError(f"out_dtype's can only apply to ops that return a single tensorInstead got [{', '.join(str(r.type) for r in returns)}]")
    if op not in _ALLOWED:
        raise ValueError(f"out_dtype only allows the following operators: {_ALLOWED}.")
    inputs = [x for x in tree_leaves(args) if isinstance(x, Tensor)]
    computed = elementwise_dtypes(*[x for x in tree_leaves(args) if isinstance(x, (Tensor, bool, int, float, complex))], Tensor([1]).to(output_dtype),
                                  type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[0]
    made = op(*tree_map_only(Tensor, lambda x: x.detach().to(computed), args)).to(output_dtype)
    return _Underivable.apply(made, *inputs) if any(x.requires_grad for x in inputs) else made
