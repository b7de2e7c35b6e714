"""The operations as PyTorch defines them, in float64 with its own derivatives."""

import jax
import numpy as np
import torch
from torch.nn import functional as F


def layer_norm(x, weight=None, bias=None, residual=None, axes=1, eps=1e-5):
    total = x if residual is None else x + residual
    y = F.layer_norm(total, x.shape[-axes:], weight, bias, eps)
    return y if residual is None else (y, total)


def rms_norm(x, weight=None, residual=None, axes=1, eps=1e-6):
    total = x if residual is None else x + residual
    y = F.rms_norm(total, x.shape[-axes:], weight, eps)
    return y if residual is None else (y, total)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    return F.group_norm(x, groups, weight, bias, eps)


def cross_entropy(logits, target, class_weight=None, ignore_index=-100, label_smoothing=0.0, reduction="mean"):
    return F.cross_entropy(
        logits, target, class_weight, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction
    )


def linear_cross_entropy(x, weight, target, bias=None, chunk=None, **options):
    return cross_entropy(F.linear(x, weight, bias), target, **options)


def grouped_mm(x, weight, group_sizes):
    rows = x.split([*group_sizes.tolist(), len(x) - int(group_sizes.sum())])
    return torch.cat([*(a @ w for a, w in zip(rows, weight, strict=False)), rows[-1] @ (0 * weight[0])])


def recurrent_layer(mode, x, h0, c0, w_ih, w_hh, b_ih=None, b_hh=None, lengths=None, reverse=False):
    cell = getattr(torch, f"{mode}_cell")
    h, c, ys = h0, c0, [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        new_h, new_c = cell(x[t], h if c is None else (h, c), w_ih, w_hh, b_ih, b_hh), None
        if c is not None:
            new_h, new_c = new_h
        alive = torch.ones(len(h), 1, dtype=torch.bool) if lengths is None else (t < lengths)[:, None]
        h = torch.where(alive, new_h, h)
        c = None if c is None else torch.where(alive, new_c, c)
        ys[t] = torch.where(alive, h, 0)
    return (torch.stack(ys), h) if c is None else (torch.stack(ys), h, c)


def widened(array) -> torch.Tensor:
    array = np.asarray(array)
    return torch.from_numpy(array.astype("int64" if array.dtype.kind == "i" else "float64"))


def outputs(spec, arrays: dict) -> list[torch.Tensor]:
    wide = {k: v if isinstance(v, torch.Tensor) else widened(v) for k, v in arrays.items()}
    return jax.tree.leaves(globals()[spec.op](**wide, **spec.static))


def expected(spec, arrays: dict, cotangents: list):
    """Outputs (a list) and gradients by name."""
    wide = {k: widened(v).requires_grad_(k in spec.gradients) for k, v in arrays.items()}
    outs = outputs(spec, wide)
    grads = torch.autograd.grad(outs, [wide[n] for n in spec.gradients], [widened(c) for c in cotangents])
    return [o.detach() for o in outs], dict(zip(spec.gradients, grads, strict=True))
