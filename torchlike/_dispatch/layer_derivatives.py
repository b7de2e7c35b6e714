"""Derivatives of products, convolutions, norms and losses as calls of PyTorch's operators."""
from __future__ import annotations

from .._core.grad_mode import mode
from .._ops import aten
from .._ops_layers import REDUCTIONS
from .._tensor import Tensor
from .derivatives import Given, conj, rule

# -- products --------------------------------------------------------------------------------------------------------------


@rule("mm", reads=((1,), (0,)))
def _mm(d):
    return lambda: d.g.mm(conj(d[1].t())), lambda: conj(d[0].t()).mm(d.g)


@rule("bmm", reads=((1,), (0,)))
def _bmm(d):
    return lambda: d.g.bmm(conj(d[1].transpose(1, 2))), lambda: conj(d[0].transpose(1, 2)).bmm(d.g)


@rule("mv", reads=((1,), (0,)))
def _mv(d):
    return lambda: d.g.view(-1, 1) * conj(d[1]), lambda: conj(d[0].t()).mv(d.g)


@rule("dot", reads=((1,), (0,)))
def _dot(d):
    return lambda: d.g * conj(d[1]), lambda: d.g * conj(d[0])


def _rows(x: Tensor) -> Tensor:
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


@rule("linear", "linear_alone", reads=((1,), (0,), ()))
def _linear(d):
    return (lambda: _rows(d.g).mm(d[1].t().t()).view(d.shape()) if d.g.ndim != 2 else d.g.mm(d[1].t().t()),
            lambda: _rows(d.g).t().mm(_rows(d[0])),
            lambda: _rows(d.g).sum([0], keepdim=True).view(d.shape(2)))


@rule("matmul", reads=((1,), (0,)))
def _matmul(d):
    a, b = d.avals[0].shape, d.avals[1].shape

    def left():
        if len(b) == 2 and len(a) > 2:
            return _rows(d.g).mm(conj(d[1].t())).view(a)
        if len(a) < 2 or len(b) < 2:
            g = d.g.unsqueeze(-2) if len(a) == 1 else d.g
            g, y = (g.unsqueeze(-1), d[1].unsqueeze(-1)) if len(b) == 1 else (g, d[1])
            made = g.matmul(conj(y.transpose(-1, -2)))
            return made.sum_to_size(1, *a).view(a) if len(a) == 1 else made
        return d.g.matmul(conj(d[1].transpose(-1, -2)))

    def right():
        if len(b) == 2 and len(a) > 2:
            return conj(_rows(d[0]).t()).mm(_rows(d.g))
        if len(a) < 2 or len(b) < 2:
            g = d.g.unsqueeze(-1) if len(b) == 1 else d.g
            g, x = (g.unsqueeze(-2), d[0].unsqueeze(-2)) if len(a) == 1 else (g, d[0])
            made = conj(x.transpose(-1, -2)).matmul(g)
            return made.sum_to_size(*b, 1).view(b) if len(b) == 1 else made
        return conj(d[0].transpose(-1, -2)).matmul(d.g)
    return left, right


# -- layers: one operator makes the gradients of all inputs ----------------------------------------------------------------------


def _bias_sizes(d: Given) -> list:
    return [0] if d.avals[2] is None else list(d.avals[2].shape)


@rule("convolution", reads=((0, 1),))
def _convolution(d):
    stride, padding, dilation, groups = d.statics
    if any(low != high for low, high in padding):
        return NotImplemented
    return lambda: aten.convolution_backward.default(d.g, d[0], d[1], _bias_sizes(d), list(stride), [low for low, _ in padding], list(dilation), False,
                                                     [0] * len(stride), groups, list(d.needs[:3]))


@rule("conv_transpose", reads=((0, 1),))
def _conv_transpose(d):
    stride, padding, more, dilation, groups = d.statics
    return lambda: aten.convolution_backward.default(d.g, d[0], d[1], _bias_sizes(d), list(stride), list(padding), list(dilation), True, list(more), groups,
                                                     list(d.needs[:3]))


@rule("native_layer_norm", reads=((0, 1, 2),), kept=2)
def _layer_norm(d):
    k, eps = d.statics
    shape, kept = d.shape(), d.kept
    if mode.enabled and d[0].requires_grad:  # a graph is made: what was kept depends on the input, too
        dims = tuple(range(len(shape) - k, len(shape)))
        kept = d[0].mean(dims, True), (d[0].var(dims, correction=0, keepdim=True) + eps).rsqrt()
    needs = [need and i < len(d.needs) for i, need in enumerate((*d.needs, False, False)[:3])]
    return lambda: aten.native_layer_norm_backward.default(d.g, d[0], shape[len(shape) - k:], *kept, d[1], d[2], needs)


@rule("mse_loss", reads=((0, 1), (0, 1)))
def _mse(d):
    number = _reduction(d)
    return lambda: aten.mse_loss_backward.default(d.g, d[0], d[1], number), lambda: aten.mse_loss_backward.default(d.g, d[1], d[0], number)


def _reduction(d: Given) -> int:
    return REDUCTIONS.index(next(s for s in d.statics if s in REDUCTIONS))


@rule("cross_entropy", reads=((1, 2),), kept=2)
def _cross_entropy(d):
    ignore, reduction, smoothing = d.statics
    if smoothing or len(d.avals[0].shape) != 2:
        return NotImplemented

    def run():
        logs, total = d.kept
        g = aten.nll_loss_backward.default(d.g, logs, d[1], d[2], REDUCTIONS.index(reduction), ignore, total)
        return aten._log_softmax_backward_data.default(g, logs, 1, d.avals[0].dtype)
    return run, None, None


@rule("nll_loss", reads=((0, 1, 2),), kept=1)
def _nll_loss(d):
    form = "nll_loss_backward" if len(d.avals[0].shape) <= 2 else "nll_loss2d_backward"
    return lambda: getattr(aten, form).default(d.g, d[0], d[1], d[2], _reduction(d), d.statics[0], d.kept[0]), None, None


@rule("binary_cross_entropy", reads=((0, 1, 2),))
def _bce(d):
    return lambda: aten.binary_cross_entropy_backward.default(d.g, d[0], d[1], d[2], *_last(d)), None, None


def _last(d: Given) -> list:
    """A loss's reduction, where it is not the mean."""
    number = _reduction(d)
    return [] if number == 1 else [number]


@rule("smooth_l1_loss", "huber_loss", reads=((0, 1, 2), (0, 1, 2)))
def _smooth(d):
    f, number = getattr(aten, f"{d.plan.op.name}_backward").default, _reduction(d)
    return lambda: f(d.g, d[0], d[1], number, d[2]), lambda: f(d.g, d[1], d[0], number, d[2]), None
