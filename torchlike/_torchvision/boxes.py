"""torchvision's operations on boxes: which of those that overlap stay, and how much rotated ones overlap."""
import numpy as np

from .._core import dtype as dt
from .._core.errors import not_implemented
from .._core.registry import Op
from .._custom_operator import kernel
from .._tensor import Tensor, apply, as_tensor_value
from ..ops.from_data import place
from ..ops.sorting import argsort_array

_BLOCK = 128  # boxes that are compared with all later ones at once


def floats_only(x: Tensor, kernel: str, *others) -> None:
    """torch's error for what a C++ kernel does not compute."""
    if x.dtype not in (dt.float32, dt.float64, *others):
        raise not_implemented(kernel, x.dtype)


def _overlaps(one: list, many: list) -> np.ndarray:
    """Intersection over union of boxes (x1, y1, x2, y2, area): a row for each of `one`."""
    a, b = [v[:, None] for v in one], many
    width = np.minimum(a[2], b[2])
    width -= np.maximum(a[0], b[0])
    np.maximum(width, 0, out=width)
    common = np.minimum(a[3], b[3])
    common -= np.maximum(a[1], b[1])
    np.maximum(common, 0, out=common)
    common *= width
    union = np.add(a[4], b[4], out=width)
    union -= common
    with np.errstate(all="ignore"):
        common /= union
    return common


def kept(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> np.ndarray:
    """Numbers of the boxes that no better one, kept itself, overlaps by more than the threshold; the best first."""
    order = argsort_array(np, scores, 0, True)
    x1, y1, x2, y2 = columns = list(np.ascontiguousarray(boxes[order].T))
    columns.append((x2 - x1) * (y2 - y1))
    limit = boxes.dtype.type(threshold)  # the largest number of this dtype up to the threshold: as if compared in float64
    if float(limit) > threshold:
        limit = np.nextafter(limit, boxes.dtype.type(-np.inf))
    found = []
    while len(order):
        near = _overlaps([c[:_BLOCK] for c in columns], [c[:_BLOCK] for c in columns]) > limit
        stays = np.ones(len(near), bool)
        for i in range(len(near)):
            if stays[i]:
                stays[i + 1:] &= ~near[i, i + 1:]
        found.append(order[:_BLOCK][stays])
        best, rest = [c[:_BLOCK][stays] for c in columns], [c[_BLOCK:] for c in columns]
        free = np.concatenate([~(_overlaps(best, [c[i:i + 1024] for c in rest]) > limit).any(0) for i in range(0, len(rest[0]), 1024)] or [np.zeros(0, bool)])
        order, columns = order[_BLOCK:][free], [c[free] for c in rest]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


@kernel("torchvision::nms", "default")
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: its result's size depends on the data, so it runs at once, on the host."""
    if dets.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.dim()}D")
    if dets.size(1) != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if dets.size(0) != scores.size(0):
        raise RuntimeError(f"boxes and scores should have same number of elements in dimension 0, got {dets.size(0)} and {scores.size(0)}")
    if dets.dtype is not scores.dtype:
        raise RuntimeError("dets should have the same type as scores")
    found = np.zeros(0, np.int64)
    if dets.numel():
        floats_only(dets, "nms_kernel")
        found = kept(dets._host_array(), scores._host_array(), iou_threshold)
    return as_tensor_value(found) if dets.device.type == "cpu" else place(found, dets.device)


_PARALLEL = 1e-9  # of a side's length: what it may come nearer to a line and still count as parallel to it


def _sides(xp, boxes, center):
    """Of boxes (x, y, width, height, degrees): the middle from `center`, (..., 1, 2); unit vectors along width and height,
    (..., 2, 2); half of both; where the four sides begin and how they go, (..., 4, 2)."""
    angle = boxes[..., 4] * (-np.pi / 180)
    along = xp.stack([xp.cos(angle), xp.sin(angle), -xp.sin(angle), xp.cos(angle)], -1).reshape(*angle.shape, 2, 2)
    middle, half = (boxes[..., :2] - center)[..., None, :], boxes[..., 2:4] / 2
    w, h = [along[..., i:i + 1, :] * half[..., i, None, None] for i in (0, 1)]
    return middle, along, half, middle + xp.concatenate([-w - h, w - h, w + h, h - w], -2), 2 * xp.concatenate([w, h, -w, -h], -2)


def _enclosed(xp, starts, ways, middle, along, half, edge: int):
    """What the parts of one box's sides inside another give to twice the common area, by Green's theorem. Sides on the other's edge
    count where `edge` is 1, and do not where it is -1."""
    first, last = xp.zeros(starts.shape[:-1]), xp.ones(starts.shape[:-1])
    for i in (0, 1):
        at, step = [(x * along[..., i:i + 1, :]).sum(-1) for x in (starts - middle, ways)]
        limit = half[..., i, None]
        near = _PARALLEL * (abs(ways).sum(-1) + limit)
        parallel = abs(step) <= near
        step = xp.where(parallel, 1, step)
        a, b = (-limit - at) / step, (limit - at) / step
        first = xp.maximum(first, xp.where(parallel, 0, xp.minimum(a, b)))
        last = xp.minimum(last, xp.where(parallel, xp.where(abs(at) <= limit + edge * near, 1, -1), xp.maximum(a, b)))
    return ((starts[..., 0] * ways[..., 1] - starts[..., 1] * ways[..., 0]) * xp.maximum(last - first, 0)).sum(-1)


def _rotated(xp, boxes1, boxes2):
    if xp is not np:
        return _rotated_part(xp, boxes1, boxes2)
    rows = max(2000 // len(boxes2), 1)  # what is in between stays in the cache
    return np.concatenate([_rotated_part(np, boxes1[i:i + rows], boxes2) for i in range(0, len(boxes1), rows)])


def _rotated_part(xp, boxes1, boxes2):
    a, b = boxes1[:, None].astype(np.float64), boxes2[None].astype(np.float64)
    center = (a[..., :2] + b[..., :2]) / 2
    (*first, p, u), (*second, q, v) = _sides(xp, a, center), _sides(xp, b, center)
    common = abs(_enclosed(xp, p, u, *second, 1) + _enclosed(xp, q, v, *first, -1)) / 2
    areas = [x[..., 2] * x[..., 3] for x in (a, b)]
    empty = (areas[0] < 1e-14) | (areas[1] < 1e-14)
    return xp.where(empty, 0, common / xp.where(empty, 1, areas[0] + areas[1] - common)).astype(np.float32)


_ROTATED = Op("box_iou_rotated", _rotated, vjp=False, shape=lambda a, b: ((a.shape[0], b.shape[0]), dt.float32))


@kernel("torchvision::box_iou_rotated", "default")
def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Intersection over union of all pairs of rotated boxes (x, y, width, height, degrees against the clock), as float32."""
    for boxes, name, rows in (boxes1, "boxes1", "N"), (boxes2, "boxes2", "M"):
        if boxes.dim() != 2 or boxes.size(1) != 5:
            raise RuntimeError(f"{name} should have shape ({rows}, 5), got {list(boxes.shape)}")
    if boxes1.dtype is not boxes2.dtype:
        raise RuntimeError("boxes1 and boxes2 must have the same dtype")
    if not (boxes1.size(0) and boxes2.size(0)):
        return boxes1.new_zeros((boxes1.size(0), boxes2.size(0)), dtype=dt.float32)
    floats_only(boxes1, "box_iou_rotated_cpu")
    return apply(_ROTATED, (boxes1, boxes2), ())
