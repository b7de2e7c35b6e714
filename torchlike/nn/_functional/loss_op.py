"""Loss: an elementwise op with its reduction in it, so that a loss and its gradient are one operation each."""
from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.arrays import cast
from ..._core.aval import broadcast_shapes, result_dtype
from ..._core.derivative import ElementwiseDerivative
from ..._core.registry import Op, Plan, common_device
from ...ops.quotients import over


class Loss(Op):
    """`kernel(xp, *inputs, *statics)` gives the loss per element of the broadcast inputs; the last static of a call is the
    reduction. `grads`: one function per input as in Elementwise, None where no gradient flows; each multiplies `g`.

    Inputs are promoted together; `promote="same"` gives the result the first input's type. 16-bit floats are computed in
    float32.
    """

    pointwise = True  # of strides

    def __init__(self, name, kernel, grads, *, promote="arith", torch_name=None):
        super().__init__(name, kernel, torch_name=torch_name)
        self.promote = promote
        self.derivative = _LossDerivative(self, grads)

    def make(self, avals, statics) -> Plan:
        device = common_device(self, avals, statics)
        common = result_dtype(*(a for a in avals if a is None or not a.number))
        out = avals[0].dtype if self.promote == "same" else common
        *own, reduction = statics
        shape = broadcast_shapes(*(a.shape for a in avals if a is not None))
        kernel, kind, out_np, n = self.kernel, computed_in(common), out.np, _count(shape)

        def run(xp, *arrays):
            r = kernel(xp, *[None if x is None else cast(xp, x, kind) for x in arrays], *own)
            if reduction != "none":
                r = xp.sum(r)
                if reduction == "mean":
                    r = over(xp, r, n)
            return r if r.dtype == out_np else r.astype(out_np)
        return Plan(self, avals, statics, (shape if reduction == "none" else (), out), run, device)


def computed_in(d: dt.dtype) -> np.dtype:
    """The NumPy dtype in which numbers of type d are summed."""
    return np.dtype(np.float32) if d in (dt.float16, dt.bfloat16) else d.np


def _count(shape) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


class _LossDerivative(ElementwiseDerivative):
    def computed_in(self, plan):
        return computed_in(result_dtype(*(a for a in plan.avals if a is None or not a.number)))

    def incoming(self, plan, kind):
        if plan.statics[-1] != "mean":
            return lambda xp, g: cast(xp, g, kind)
        shape = broadcast_shapes(*(a.shape for a in plan.avals if a is not None))
        count = np.asarray(_count(shape) or 1, kind)
        return lambda xp, g: cast(xp, g, kind) / count
