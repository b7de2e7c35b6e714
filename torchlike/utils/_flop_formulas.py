"""What the operations that are recorded cost, in PyTorch's numbers, under the names of its operators."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .._core.registry import Plan

Cost = tuple[str, int] | None  # an operator of torch.ops.aten, and floating-point operations


def _product(plan: Plan) -> Cost:
    """A product of matrices. As in PyTorch, products with vectors do not count."""
    a, b = (x.shape for x in plan.avals[:2])
    if len(a) < 2 or len(b) < 2:
        return None
    name = "addmm" if len(plan.avals) > 2 else "mm" if len(b) == 2 else "bmm"
    return name, 2 * math.prod(plan.outs[0].shape) * a[-1]


def _product_gradients(plan: Plan, needs: Sequence[bool]) -> Cost:
    found = _product(plan)
    return found and ("mm" if found[0] == "addmm" else found[0], found[1] * sum(needs[:2]))


def _convolution(plan: Plan) -> Cost:
    x, w = (v.shape for v in plan.avals[:2])
    places = x if plan.op.name == "conv_transpose" else plan.outs[0].shape
    return "convolution", 2 * math.prod(w) * x[0] * math.prod(places[2:])


def _convolution_gradients(plan: Plan, needs: Sequence[bool]) -> Cost:
    groups = plan.statics[-1]  # PyTorch takes the gradient of the weight for one of all groups
    return "convolution_backward", _convolution(plan)[1] * (needs[0] + needs[1] * groups)


def _scores(plan: Plan) -> tuple[int, int, int]:
    """Twice the number of an attention's scores, the sizes of its keys and of its values."""
    q, k, v = (x.shape for x in plan.avals[:3])
    return 2 * math.prod(q[:-1]) * k[-2], k[-1], v[-1]


def _attention(plan: Plan) -> Cost:
    """Two products, or PyTorch's fused kernel. That of the CPU, for keys and values of one size and no dropout, does not count; the meta device has none."""
    twice, size, values = _scores(plan)
    device, count = plan.device.type, twice * (size + values)
    if plan.op.name == "scaled_dot_product_attention" or device == "meta" or (device == "cpu" and size != values):
        return "bmm", count
    return None if device == "cpu" else ("_scaled_dot_product_flash_attention", count)


def _attention_gradients(plan: Plan, needs: Sequence[bool]) -> Cost:
    found = _attention(plan)
    twice, size, values = _scores(plan)
    if found is None or found[0] != "bmm":  # a fused kernel computes all, the scores once more; counted as the forward's operator
        return found and (found[0], twice * (3 * size + 2 * values))
    q, k, v = needs[:3]
    return "bmm", twice * (size * (q + k) + values * ((q or k) + v))


def _recurrent(plan: Plan) -> Cost:
    """An LSTM does not count on the CPU, where PyTorch has a kernel for it; nor what is packed, whose lengths are data."""
    if plan.avals[-1] is not None or (plan.op.name == "lstm_sequence" and plan.device.type == "cpu"):
        return None
    steps, batch, _ = plan.avals[0].shape
    return "addmm", 2 * steps * batch * sum(size for _, size in _matrices(plan))


def _matrices(plan: Plan) -> list[tuple[int, int]]:
    """(number of the argument, elements) of each matrix: the inputs', the hidden state's."""
    return [(i, a.numel) for i, a in enumerate(plan.avals) if a is not None and len(a.shape) == 2]


def _recurrent_gradients(plan: Plan, needs: Sequence[bool]) -> Cost:
    if _recurrent(plan) is None:
        return None
    steps, batch, _ = plan.avals[0].shape
    (_, inputs), (_, hidden), *projection = matrices = _matrices(plan)
    weights = sum(size for i, size in matrices if needs[i])
    x, first = needs[:2]
    return "mm", 2 * batch * (steps * (inputs * x + weights + sum(size for _, size in projection)) + (steps - 1 + first) * hidden)


_PRODUCTS = dict.fromkeys(("mm", "bmm", "matmul", "linear", "linear_alone"), (_product, _product_gradients))
_CONVOLUTIONS = dict.fromkeys(("convolution", "conv_transpose"), (_convolution, _convolution_gradients))
_ATTENTIONS = dict.fromkeys(("attention", "fused_attention", "tiled_attention", "scaled_dot_product_attention"), (_attention, _attention_gradients))
_RECURRENT = dict.fromkeys(("rnn_sequence", "lstm_sequence", "projected_lstm_sequence", "gru_sequence"), (_recurrent, _recurrent_gradients))
_FORMULAS: dict[str, tuple[Callable[[Plan], Cost], Callable[[Plan, Sequence[bool]], Cost]]] = {**_PRODUCTS, **_CONVOLUTIONS, **_ATTENTIONS, **_RECURRENT}

COUNTED = ("mm", "addmm", "bmm", "convolution", "convolution_backward", "_scaled_dot_product_flash_attention")


def cost(plan: Plan) -> Cost:
    """An operation's name in torch.ops.aten, and what it costs; None if it does not count."""
    formulas = _FORMULAS.get(plan.op.name)
    if formulas is not None:
        return formulas[0](plan)
    forward = getattr(plan.op, "forward", None)
    formulas = forward and _FORMULAS.get(forward.name)
    return formulas[1](*plan.statics) if formulas else None
