"""Nodes as older opsets write them. Translations are written for opset 18; these make of a node what the file's opset has."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import UnsupportedOperatorError

LEAST = 9
_FORMS: dict[str, list[tuple[int, Callable]]] = {}
_SINCE = {"Celu": 12, "Clip": 11, "CumSum": 11, "Einsum": 12, "GreaterOrEqual": 12, "LessOrEqual": 12, "Range": 11, "Round": 11, "ScatterElements": 11,
          "ScatterND": 11, "Trilu": 14, "GridSample": 16, "GatherElements": 11, "GatherND": 11, "BitwiseAnd": 18, "BitwiseOr": 18, "BitwiseXor": 18,
          "BitwiseNot": 18, "Resize": 11, "Pad": 11, "Col2Im": 18, "Mod": 10, "BitShift": 11}


def older(g: Any, kind: str, inputs: list, attributes: dict, n: int) -> Any:
    """The result in the graph's opset, or None where the node is the same there."""
    for below, form in _FORMS.get(kind, ()):
        if g.opset < below:
            made = form(g, inputs, attributes, n)
            if made is not None:
                return made
    if g.opset < _SINCE.get(kind, 0):
        raise UnsupportedOperatorError(f"aten::{kind}", g.opset, _SINCE[kind])
    return None


def _below(opset: int, *kinds: str) -> Callable:
    def register(form: Callable) -> Callable:
        for kind in kinds:
            _FORMS.setdefault(kind, []).append((opset, form))
        return form
    return register


def _axes_as_attribute(below: int, *kinds: str) -> None:
    for kind in kinds:
        def form(g: Any, inputs: list, attributes: dict, n: int, kind: str = kind) -> Any:
            if len(inputs) < 2:
                return None
            attributes.pop("noop_with_empty_axes", None)
            return g.op(kind, inputs[0], **attributes, axes=inputs[1].value.tolist())
        _below(below, kind)(form)


_axes_as_attribute(18, "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")
_axes_as_attribute(13, "ReduceSum", "Squeeze", "Unsqueeze")


@_below(18, "Split")
def _split(g: Any, inputs: list, attributes: dict, n: int) -> Any:
    if attributes.pop("num_outputs", None) is not None:
        return g.op("Split", *inputs, n=n, **attributes)
    if g.opset < 13 and len(inputs) > 1:
        return g.op("Split", inputs[0], n=n, **attributes, split=inputs[1].value.tolist())
    return None


@_below(18, "Resize")
def _resize(g: Any, inputs: list, attributes: dict, n: int) -> Any:
    if attributes.pop("antialias", None):
        raise UnsupportedOperatorError("aten::_upsample_bilinear2d_aa", g.opset, 18)
    if g.opset < 13 and len(inputs) > 1 and inputs[1] is None:
        inputs[1] = g.const(np.zeros(0, np.float32))
        if inputs[2] is None:
            inputs[2] = g.const(np.zeros(0, np.float32))
    return None


@_below(15, "Shape")
def _shape(g: Any, inputs: list, attributes: dict, n: int) -> Any:
    start, end = attributes.pop("start", None), attributes.pop("end", None)
    return None if start is None else g.op("Slice", g.op("Shape", *inputs), [start], [end], [0])


@_below(17, "LayerNormalization")
def _layer_norm(g: Any, inputs: list, attributes: dict, n: int) -> Any:
    x, weight, bias = (*inputs, None, None)[:3]
    axes = list(range(attributes["axis"], 0))
    centered = g.op("Sub", x, g.op("ReduceMean", x, axes, keepdims=1))
    kind = (x.dtype or weight.dtype).np
    two, eps = g.const(np.asarray(2, kind)), g.const(np.asarray(attributes["epsilon"], kind))
    spread = g.op("Sqrt", g.op("Add", g.op("ReduceMean", g.op("Pow", centered, two), axes, keepdims=1), eps))
    made = g.op("Mul", g.op("Div", centered, spread), weight)
    return made if bias is None else g.op("Add", made, bias)


@_below(14, "HardSwish")
def _hard_swish(g: Any, inputs: list, attributes: dict, n: int) -> Any:
    return g.op("Mul", inputs[0], g.op("HardSigmoid", inputs[0], alpha=1 / 6, beta=0.5))


@_below(18, "Mish")
def _mish(g: Any, inputs: list, attributes: dict, n: int) -> Any:
    return g.op("Mul", inputs[0], g.op("Tanh", g.op("Softplus", inputs[0])))


@_below(13, "Softmax", "LogSoftmax")
def _softmax(g: Any, inputs: list, attributes: dict, n: int) -> Any:
    """There all dimensions from `axis` on were one: the same for the last."""
    if attributes["axis"] != -1:
        raise UnsupportedOperatorError("aten::softmax", g.opset, 13)
    return None
