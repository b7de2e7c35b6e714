"""Convolutions, normalizations, resampling and padding."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._examples.sizes import Dyn
from ...nn._functional.grid import base_grid
from ...nn._functional.resampling_maps import matrix
from .._graph import LAST, Graph, Var
from ._table import NAMES, translates, whole


def batched(g: Graph, x: Var, n: int, f: Any) -> Var:
    """f of x, which has a batch and a channel before its n dimensions there."""
    missing = n + 2 - x.ndim
    if missing <= 0:
        return f(x)
    return g.op("Squeeze", f(g.op("Unsqueeze", x, list(range(missing)))), list(range(missing)))


@translates("convolution")
def _convolution(g: Graph, x: Var, w: Var, b: Var | None, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> Var:
    n = len(stride)
    g.title = f"conv{n}d"
    attributes = {"group": groups, "strides": list(stride), "dilations": list(dilation), "kernel_shape": list(w.shape[2:]),
                  "pads": [a for a, _ in padding] + [b for _, b in padding]}
    return batched(g, x, n, lambda x: g.op("Conv", x, w, b, **attributes))


@translates("conv_transpose")
def _conv_transpose(g: Graph, x: Var, w: Var, b: Var | None, stride: tuple, padding: tuple, output_padding: tuple, dilation: tuple, groups: int) -> Var:
    n = len(stride)
    g.title = f"conv_transpose{n}d"
    pads = [p if isinstance(p, tuple) else (p, p) for p in padding]
    attributes = {"group": groups, "strides": list(stride), "dilations": list(dilation), "kernel_shape": list(w.shape[2:]),
                  "output_padding": list(output_padding) if any(output_padding) else None, "pads": [a for a, _ in pads] + [b for _, b in pads]}
    return batched(g, x, n, lambda x: g.op("ConvTranspose", x, w, b, **attributes))


def several(x: Any, n: int) -> list:
    return [x] * n if isinstance(x, int) else list(x) * n if len(x) == 1 else list(x)


@whole("conv1d", "conv2d", "conv3d")
def _conv(g: Graph, x: Var, w: Var, b: Var | None, stride: Any, padding: Any, dilation: Any, groups: int) -> Var:
    n = w.ndim - 2
    dilation = several(dilation, n)
    if isinstance(padding, str):
        total = [0] * n if padding == "valid" else [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
        pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        pads = several(padding, n) * 2
    attributes = {"group": groups, "strides": several(stride, n), "dilations": dilation, "kernel_shape": list(w.shape[2:]), "pads": pads}
    return batched(g, x, n, lambda x: g.op("Conv", x, w, b, **attributes))


@whole("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transposed(g: Graph, x: Var, w: Var, b: Var | None, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any) -> Var:
    n = w.ndim - 2
    more = several(output_padding, n)
    attributes = {"group": groups, "strides": several(stride, n), "dilations": several(dilation, n), "kernel_shape": list(w.shape[2:]),
                  "output_padding": more if any(more) else None, "pads": several(padding, n) * 2}
    return batched(g, x, n, lambda x: g.op("ConvTranspose", x, w, b, **attributes))


# -- normalization -------------------------------------------------------------------------------------------------------------


def _or(g: Graph, x: Var | None, value: float, shape: Sequence, like: Var) -> Var:
    return g.const(np.full(tuple(shape), value, like.dtype.np)) if x is None else x


@translates("native_layer_norm", called="layer_norm")
def _layer_norm(g: Graph, x: Var, w: Var | None, b: Var | None, k: int, eps: float) -> Any:
    if w is None and any(isinstance(n, Dyn) for n in x.shape[-k:]):
        w = g.scalar(1.0, x.dtype)
    w = _or(g, w, 1, x.shape[-k:], x)
    n = len(g.results)
    return g.op("LayerNormalization", x, w, b, n=n if g.opset >= 17 else 1, axis=-k, epsilon=float(eps), stash_type=1)


@translates("rms_norm")
def _rms_norm(g: Graph, x: Var, w: Var | None, k: int, eps: float | None) -> Any:
    eps = float(np.finfo(x.dtype.np).eps) if eps is None else float(eps)
    if g.opset >= 23 and w is not None:
        return alone(g, g.op("RMSNormalization", x, w, axis=-k, epsilon=eps, stash_type=1))
    squares = g.op("ReduceMean", g.op("Mul", x, x), list(range(-k, 0)), keepdims=1)
    made = g.op("Div", x, g.op("Sqrt", g.op("Add", squares, g.scalar(eps, x.dtype))))
    return alone(g, made if w is None else g.op("Mul", made, w))


def alone(g: Graph, first: Var) -> Any:
    """The first result, where the others are read by derivatives only."""
    return first if len(g.results) == 1 else (first, *[None] * (len(g.results) - 1))


@translates("native_batch_norm_eval", called="batch_norm")
def _batch_norm(g: Graph, x: Var, w: Var | None, b: Var | None, mean: Var, var: Var, eps: float) -> Any:
    w, b = _or(g, w, 1, mean.shape, x), _or(g, b, 0, mean.shape, x)
    return alone(g, g.op("BatchNormalization", x, w, b, mean, var, epsilon=float(eps)))


@translates("native_batch_norm", called="batch_norm")
def _batch_norm_training(g: Graph, x: Var, w: Var | None, b: Var | None, eps: float) -> Any:
    """By the batch's own mean and variance."""
    shape = x.shape[1:2]
    ones, zeros = _or(g, None, 1, shape, x), _or(g, None, 0, shape, x)
    made = g.op("BatchNormalization", x, ones if w is None else w, zeros if b is None else b, zeros, ones, n=3, epsilon=float(eps), training_mode=1)
    return alone(g, made[0])


def _by_channel(g: Graph, x: Var | None, n: int) -> Var | None:
    return None if x is None else g.op("Unsqueeze", x, list(range(1, n + 1)))


@whole("group_norm")
def _group_norm(g: Graph, x: Var, groups: int, w: Var | None, b: Var | None, eps: float) -> Var:
    channels, spatial = x.shape[1], x.ndim - 2
    if g.opset >= 21:
        return g.op("GroupNormalization", x, _or(g, w, 1, (channels,), x), _or(g, b, 0, (channels,), x), num_groups=groups, epsilon=float(eps))
    rows = g.op("Reshape", x, [0, groups, -1])
    made = g.op("InstanceNormalization", rows, g.const(np.ones(groups, x.dtype.np)), g.const(np.zeros(groups, x.dtype.np)), epsilon=float(eps))
    made = g.op("Reshape", made, g.op("Shape", x))
    made = made if w is None else g.op("Mul", made, g.view_of_constant(w, (channels, *[1] * spatial)))
    return made if b is None else g.op("Add", made, g.view_of_constant(b, (channels, *[1] * spatial)) if spatial else b)


@whole("instance_norm")
def _instance_norm(g: Graph, x: Var, mean: Any, var: Any, w: Var | None, b: Var | None, by_input: bool, momentum: float, eps: float) -> Var:
    channels = (x.shape[1],)
    if not by_input or x.ndim < 3:
        return NotImplemented
    return g.op("InstanceNormalization", x, _or(g, w, 1, channels, x), _or(g, b, 0, channels, x), epsilon=float(eps))


# -- resampling ----------------------------------------------------------------------------------------------------------------


_MODES = {"nearest": ("nearest", "asymmetric"), "nearest_exact": ("nearest", "half_pixel"), "nearest-exact": ("nearest", "half_pixel"),
          "bilinear": ("linear", "half_pixel"), "linear": ("linear", "half_pixel"), "trilinear": ("linear", "half_pixel"), "bicubic": ("cubic", "half_pixel")}


def _resize(g: Graph, x: Var, specs: tuple) -> Var:
    mode, align, antialias = specs[0][2], specs[0][3], specs[0][5]
    if mode not in _MODES:
        return NotImplemented
    kind, place = _MODES[mode]
    scales = [s[4] for s in specs]
    attributes: dict[str, Any] = {"mode": kind, "coordinate_transformation_mode": "align_corners" if align else place}
    if kind == "nearest":
        attributes["nearest_mode"] = "floor" if mode == "nearest" else "round_prefer_ceil"
    if kind == "cubic":
        attributes["cubic_coeff_a"] = -0.5 if antialias else -0.75
    if antialias:
        attributes.update(antialias=1, exclude_outside=1)
    if all(isinstance(s, float) and s > 0 for s in scales):
        return g.op("Resize", x, None, g.const(np.asarray([1, 1, *scales], np.float32)), **attributes)
    return g.op("Resize", x, None, None, g.sizes([*x.shape[:2], *[s[1] for s in specs]]), **attributes)


for _kind in ("nearest", "nearest_exact", "linear", "bilinear", "trilinear", "bicubic"):
    for _n in (1, 2, 3):
        translates(f"upsample_{_kind}{_n}d")(_resize)


@translates(*[f"window_means{_n}d" for _n in (1, 2, 3)], called="adaptive_avg_pool")
def _window_means(g: Graph, x: Var, specs: tuple) -> Var:
    """Products with matrices, along the last dimension first."""
    if any(isinstance(n, Dyn) for s in specs for n in s[:2]):
        return NotImplemented
    order, kind = [*range(x.ndim)], x.dtype.np
    for spec in reversed(specs):
        x = g.op("MatMul", x, g.const(matrix(*spec).T.astype(kind)))
        turned = [*order[:-len(specs)], order[-1], *order[-len(specs):-1]]  # the next one comes last
        x = x if len(specs) == 1 else g.op("Transpose", x, perm=turned)
    return x


@translates("grid_sampler_2d", "grid_sampler_3d", called="grid_sampler")
def _grid_sampler(g: Graph, x: Var, grid: Var, mode: Any, padding: Any, align: bool) -> Var:
    if g.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return g.op("GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=int(align))


@translates("affine_grid_generator")
def _affine_grid(g: Graph, theta: Var, size: tuple, align: bool) -> Var:
    shape = g.results[0][0]
    if any(isinstance(n, Dyn) for n in shape[1:]):
        return g.op("AffineGrid", theta, g.sizes(size), align_corners=int(align)) if g.opset >= 20 else NotImplemented
    where = g.const(base_grid(np, tuple(size), align, theta.dtype.np))
    return g.reshape(g.op("MatMul", where, g.moved(theta, 1, 2)), shape)


@whole("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(g: Graph, x: Var, r: int) -> Var:
    if x.ndim != 4 or x.shape[1] == g.results[0][0][1] * r * r:
        return g.op("DepthToSpace", x, blocksize=r, mode="CRD") if x.ndim == 4 else NotImplemented
    return NotImplemented


@translates("im2col")
def _unfold(g: Graph, x: Var, sizes: tuple, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> Var:
    """The columns of all windows: picked along one dimension after the other."""
    n = len(kernel)
    if any(padding):
        x = g.op("Pad", x, [0, 0, *padding] * 2, g.scalar(0, x.dtype), mode="constant")
    for i in range(n):
        at = np.arange(kernel[i])[:, None] * dilation[i] + np.arange(sizes[i]) * stride[i]
        x = g.op("Gather", x, g.const(at), axis=2 + 2 * i)
    x = g.op("Transpose", x, perm=[0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2)])
    return g.reshape(x, g.results[0][0])


@translates("col2im")
def _fold(g: Graph, columns: Var, shape: tuple, sizes: tuple, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> Var:
    return g.op("Col2Im", columns, g.sizes(g.results[0][0][2:]), list(kernel), dilations=list(dilation), pads=list(padding) * 2, strides=list(stride))


# -- padding -------------------------------------------------------------------------------------------------------------------


def _pads(g: Graph, x: Var, pads: tuple) -> Var:
    full = [(0, 0)] * (x.ndim - len(pads)) + list(pads)
    return g.sizes([a for a, _ in full] + [b for _, b in full])


@translates("constant_pad_nd")
def _constant_pad(g: Graph, x: Var, value: Any, pads: tuple) -> Var:
    return g.op("Pad", x, _pads(g, x, pads), g.scalar(value, x.dtype), mode="constant")


def _edge(g: Graph, x: Var, pads: tuple, mode: str) -> Var:
    return g.op("Pad", x, _pads(g, x, pads), mode="reflect" if mode == "reflect" else "edge")


def _circular(g: Graph, x: Var, pads: tuple, mode: str) -> Var:
    lead = x.ndim - len(pads)
    for i, (a, b) in enumerate(pads):
        d = lead + i
        if a == 0 and b == 0:
            continue
        parts = [g.op("Slice", x, g.size(-1 * a), [LAST], [d])] if a != 0 else []
        parts.append(x)
        if b != 0:
            parts.append(g.op("Slice", x, [0], g.size(b), [d]))
        x = g.op("Concat", *parts, axis=d)
    return x


for _n in (1, 2, 3):
    translates(f"reflect_pad{_n}d", f"replicate_pad{_n}d", called="pad")(_edge)
    translates(f"circular_pad{_n}d", called="pad")(_circular)
NAMES["constant_pad_nd"] = "pad"
