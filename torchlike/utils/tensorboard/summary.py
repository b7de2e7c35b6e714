"""Summaries: the messages that TensorBoard shows. Each function returns one encoded `Summary`.

Messages and field numbers are TensorFlow's event.proto, summary.proto, tensor.proto and TensorBoard's hparams plugin.
"""
from __future__ import annotations

import io
import json
import struct
import time
import wave
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._core.dtype import bfloat16
from torchlike._tensor import Tensor

from . import _image
from ._wire import bytes_field, double_field, doubles_field, float_field, int_field, ints_field

__all__ = [
    "audio", "custom_scalars", "figure_png", "hparams", "histogram", "histogram_raw", "image", "image_boxes", "image_file", "mesh", "pr_curve",
    "pr_curve_raw", "scalar", "tensor", "text", "video",
]

DT_FLOAT, DT_DOUBLE, DT_STRING = 1, 2, 7


def as_array(data: Any) -> np.ndarray:
    """NumPy's view of a tensor, an array, a number or a list."""
    if isinstance(data, Tensor):
        data = data.detach().cpu()
        return (data.float() if data.dtype is bfloat16 else data).numpy()
    if isinstance(data, (list, tuple)):
        return np.array([as_array(x) for x in data])
    if isinstance(data, (np.ndarray, np.generic, int, float, complex)):
        return np.asarray(data)
    raise NotImplementedError(f"Got {type(data)}, but numpy array or torch tensor are expected.")


def _summary(tag: str, *fields: bytes) -> bytes:
    return bytes_field(1, b"".join([bytes_field(1, tag), *fields]))


def _metadata(plugin: str, content: bytes = b"", description: str = "") -> bytes:
    data = bytes_field(1, bytes_field(1, plugin) + (bytes_field(2, content) if content else b""))
    return bytes_field(9, data + (bytes_field(3, description) if description else b""))


def _tensor(dtype: int, shape: Sequence[int] | None, content: bytes) -> bytes:
    dims = b"" if shape is None else bytes_field(2, b"".join(bytes_field(2, int_field(1, n)) for n in shape))
    return bytes_field(8, int_field(1, dtype) + dims + content)


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> bytes:
    """One number."""
    array = as_array(value)
    if array.squeeze().ndim != 0:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and "
                             f"{array.squeeze().ndim} dimensions.")
    number = float(array.squeeze())
    if new_style and double_precision:
        return _summary(tag, _tensor(DT_DOUBLE, None, doubles_field(6, [number])), _metadata("scalars"))
    if new_style:
        return _summary(tag, _tensor(DT_FLOAT, None, bytes_field(5, struct.pack("<f", number))), _metadata("scalars"))
    return _summary(tag, float_field(2, number))


def tensor(tag: str, value: Any) -> bytes:
    """A float tensor."""
    array = as_array(value)
    if array.dtype not in (np.float32, np.float64):
        raise ValueError(f"tensor has dtype {array.dtype}, which is not supported: use float32 or float64")
    dtype, field, code = (DT_FLOAT, 5, "f") if array.dtype == np.float32 else (DT_DOUBLE, 6, "d")
    content = bytes_field(field, struct.pack(f"<{array.size}{code}", *array.reshape(-1).tolist()))
    return _summary(tag, _tensor(dtype, array.shape, content), _metadata("tensor"))


def default_bins() -> list[float]:
    """Edges that grow by a tenth, from 1e-12 to 1e20 on both sides of 0."""
    edges, v = [], 1e-12
    while v < 1e20:
        edges.append(v)
        v *= 1.1
    return [-e for e in reversed(edges)] + [0.0] + edges


def histogram(tag: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> bytes:
    """The distribution of all values, over `bins` as in numpy.histogram, or 'tensorflow': default_bins()."""
    values = as_array(values).astype(float).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    if isinstance(bins, str) and bins == "tensorflow":
        bins = default_bins()
    counts, edges = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.pad(counts, (0, -len(counts) % step)).reshape(-1, step).sum(1)
        edges = np.append(edges[:-1:step], edges[-1])
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = filled[0], filled[-1] + 1
    # limits are upper edges; an empty bucket before the first says where that one begins
    limits = edges[first:last + 1]
    counts = np.append(0, counts[first:last])
    return histogram_raw(tag, values.min(), values.max(), len(values), values.sum(), values.dot(values), limits, counts)


def histogram_raw(tag: str, min: float, max: float, num: int, sum: float, sum_squares: float,
                  bucket_limits: Sequence[float], bucket_counts: Sequence[float]) -> bytes:
    """A distribution that was counted already; limits are the upper edges of the buckets."""
    head = b"".join(double_field(i, float(v)) for i, v in enumerate((min, max, num, sum, sum_squares), 1))
    buckets = doubles_field(6, map(float, bucket_limits)) + doubles_field(7, map(float, bucket_counts))
    return _summary(tag, bytes_field(5, head + buckets))


def image(tag: str, data: Any, dataformats: str = "NCHW") -> bytes:
    """A picture of uint8 pixels or of numbers between 0 and 1; a batch is shown as a grid."""
    pixels = _image.as_height_width_channels(_image.to_bytes(as_array(data)), dataformats)
    return _picture(tag, *pixels.shape, _image.png(pixels))


def image_boxes(tag: str, data: Any, boxes: Any, rescale: float = 1, dataformats: str = "CHW", labels: list[str] | None = None) -> bytes:
    """A picture with boxes drawn on it, shown `rescale` times as large."""
    pixels = _image.as_height_width_channels(_image.to_bytes(as_array(data)), dataformats)
    return _picture(tag, *pixels.shape, _image.png(_image.with_boxes(pixels, as_array(boxes), labels, rescale)))


def video(tag: str, data: Any, fps: int = 4) -> bytes:
    """A moving picture (N, T, C, H, W) of uint8 pixels or of numbers between 0 and 1."""
    frame, content = _image.gif(_image.to_bytes(as_array(data)), fps)
    return _picture(tag, *frame.shape, content)


def image_file(tag: str, data: bytes) -> bytes:
    """A picture that is a PNG file already."""
    width, height, _, colour_type = struct.unpack(">IIBB", data[16:26])
    return _picture(tag, height, width, {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}[colour_type], data)


def figure_png(figure: Any) -> bytes:
    """The PNG file of a matplotlib figure."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=figure.dpi)
    return stream.getvalue()


def _picture(tag: str, height: int, width: int, channels: int, data: bytes) -> bytes:
    return _summary(tag, bytes_field(4, int_field(1, height) + int_field(2, width) + int_field(3, channels)
                                     + bytes_field(4, data)))


def audio(tag: str, data: Any, sample_rate: int = 44100) -> bytes:
    """Sound: one channel of samples between -1 and 1, as (L,) or (1, L)."""
    samples = as_array(data).squeeze()
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    stream = io.BytesIO()
    with wave.open(stream, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
    content = (float_field(1, sample_rate) + int_field(2, 1) + int_field(3, samples.shape[-1])
               + bytes_field(4, stream.getvalue()) + bytes_field(5, "audio/wav"))
    return _summary(tag, bytes_field(6, content))


def text(tag: str, string: str) -> bytes:
    """A text, shown as Markdown."""
    return _summary(tag + "/text_summary", _metadata("text"), _tensor(DT_STRING, (1,), bytes_field(8, string)))


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> bytes:
    """Precision and recall of predictions in [0, 1] against labels of 0 and 1, at evenly spaced thresholds."""
    num_thresholds = min(num_thresholds, 127)  # what the plugin shows
    labels, predictions = as_array(labels).reshape(-1), as_array(predictions).reshape(-1)
    weights = np.ones(labels.shape) if weights is None else as_array(weights).reshape(-1)
    bucket = np.floor(predictions * (num_thresholds - 1)).astype(int)

    def counted(which):
        return np.bincount(bucket, weights * which, minlength=num_thresholds)[::-1].cumsum()[::-1]

    true_positive, false_positive = counted(labels), counted(1 - labels)
    false_negative, true_negative = true_positive[0] - true_positive, false_positive[0] - false_positive
    tiny = 1e-7
    precision = true_positive / np.maximum(tiny, true_positive + false_positive)
    recall = true_positive / np.maximum(tiny, true_positive + false_negative)
    return pr_curve_raw(tag, true_positive, false_positive, true_negative, false_negative, precision, recall, num_thresholds)


def pr_curve_raw(tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any, num_thresholds: int = 127) -> bytes:
    """Precision and recall that were computed already; counts of true and false positives and negatives at each threshold."""
    num_thresholds = min(num_thresholds, 127)
    rows = np.stack(list(map(as_array, (tp, fp, tn, fn, precision, recall)))).astype("<f4")
    return _summary(tag, _metadata("pr_curves", int_field(2, num_thresholds)),
                    _tensor(DT_FLOAT, rows.shape, bytes_field(5, rows.tobytes())))


def custom_scalars(layout: dict[str, dict[str, list]]) -> bytes:
    """Charts of several scalars: {category: {chart: [kind, tags]}}, kind 'Multiline', or 'Margin' for a value and its limits."""
    content = b""
    for category, charts in layout.items():
        encoded = bytes_field(1, category)
        for title, (kind, tags, *_) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("len(tags) != 3")
                chart = bytes_field(3, bytes_field(1, b"".join(bytes_field(k, t) for k, t in enumerate(tags, 1))))
            else:
                chart = bytes_field(2, b"".join(bytes_field(1, t) for t in tags))
            encoded += bytes_field(2, bytes_field(1, title) + chart)
        content += bytes_field(2, encoded)
    return _summary("custom_scalars__config__", _tensor(DT_STRING, (), bytes_field(8, content)), _metadata("custom_scalars"))


def mesh(tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: dict | None = None) -> bytes:
    """Points (N, V, 3) in space, their colors (N, V, 3), and triangles (N, F, 3) by their points' numbers; settings for Three.js."""
    parts = [(kind, name, as_array(x)) for kind, name, x in ((1, "VERTEX", vertices), (2, "FACE", faces), (3, "COLOR", colors)) if x is not None]
    components = sum(1 << kind for kind, _, _ in parts)
    found = b""
    for kind, name, x in parts:
        content = bytes_field(2, tag) + int_field(3, kind) + bytes_field(5, json.dumps(config_dict or {}, sort_keys=True))
        content += ints_field(6, x.shape) + int_field(7, components)
        found += _summary(f"{tag}_{name}", _metadata("mesh", content), _tensor(DT_FLOAT, x.shape, bytes_field(5, x.astype("<f4").tobytes())))
    return found


def hparams(hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None = None) -> list[bytes]:
    """A run's hyperparameters and the tags of its results: three summaries."""
    for name, d in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(d, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    for key, values in domains.items():
        if key not in hparam_dict or not isinstance(values, list) or not all(
                isinstance(v, type(hparam_dict[key])) for v in values):
            raise TypeError(f"parameter: hparam_domain_discrete[{key}] should be a list of same type as "
                            f"hparam_dict[{key}].")
    infos, values = b"", b""
    for key, value in hparam_dict.items():
        if value is None:
            continue
        kind, encoded = _hparam(key, value)
        domain = b"".join(bytes_field(1, _hparam(key, v)[1]) for v in domains.get(key, ()))
        infos += bytes_field(4, bytes_field(1, key) + int_field(4, kind) + (bytes_field(5, domain) if domain else b""))
        values += bytes_field(1, bytes_field(1, key) + bytes_field(2, encoded))
    metrics = b"".join(bytes_field(5, bytes_field(1, bytes_field(2, key))) for key in metric_dict)
    now = double_field(5, time.time())
    success = int_field(1, 1)
    return [
        _summary("_hparams_/experiment", _metadata("hparams", bytes_field(2, infos + metrics))),
        _summary("_hparams_/session_start_info", _metadata("hparams", bytes_field(3, values + now))),
        _summary("_hparams_/session_end_info", _metadata("hparams", bytes_field(4, success))),
    ]


def _hparam(key: str, value: Any) -> tuple[int, bytes]:
    """A kind (1 text, 3 number) and a google.protobuf.Value."""
    if isinstance(value, Tensor):
        value = as_array(value).item()
    if isinstance(value, (bool, np.bool_, int, float, np.number)):
        return 3, double_field(2, float(value))
    if isinstance(value, str):
        return 1, bytes_field(3, value)
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
