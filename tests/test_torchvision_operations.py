"""torchvision's operations against plain formulas, at once on the host and in compiled programs.

torchvision itself is built on PyTorch's C++ library and is not installed beside the PyTorch that the other tests compare with.
"""
import contextlib

import numpy as np
import pytest

from torchlike._core import executor

ROIS = np.array([[0, 1.3, 2.1, 9.7, 8.2], [1, -3.1, -2, 4, 5], [1, 5, 5, 5.5, 5.2], [0, 8, 3, 30, 12], [1, 6, 6, 2, 3]], np.float32)


@pytest.fixture
def ops(subject):
    subject.ops.load_library("torchvision/_C.so")
    return subject.ops.torchvision


@pytest.mark.parametrize("library, operation", [("_C", "torchvision.nms"), ("_C_stable", "torchvision.nms"),
                                                ("image", "image.decode_png"), ("image_stable", "image.decode_png")])
def test_names_of_the_libraries(subject, library, operation):
    """torchvision calls them otherwise from 0.29 on."""
    subject.ops.load_library(f"torchvision/{library}.so")
    space, name = operation.split(".")
    assert callable(getattr(getattr(subject.ops, space), name))


@pytest.fixture(params=["host", "compiled"])
def where(request):
    with executor.tier("compiled") if request.param == "compiled" else contextlib.nullcontext():
        yield


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.maximum(high - low, 0))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


@pytest.mark.parametrize("n, span", [(0, 1), (1, 1), (300, 5), (300, 50)])
def test_nms(subject, ops, n, span):
    r = np.random.default_rng(0)
    low = r.random((n, 2)) * span
    boxes, scores = np.concatenate([low, low + r.random((n, 2)) * 4], 1).astype(np.float32), r.integers(0, 50, n).astype(np.float32)
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        if all(overlap(boxes[i], boxes[j]) <= 0.3 for j in kept):
            kept.append(i)
    assert ops.nms(subject.tensor(boxes), subject.tensor(scores), 0.3).tolist() == kept


def test_nms_compares_in_float64(subject, ops):
    """An overlap of float32(0.1) is more than 0.1, and one of float32(0.7) is less than 0.7."""
    for threshold, kept in (0.1, [0]), (0.7, [0, 1]):
        boxes = subject.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, float(np.float32(threshold))]])
        assert ops.nms(boxes, subject.tensor([2.0, 1.0]), threshold).tolist() == kept


def bilinear(image, y, x):
    """A channel-first image between pixels; zeros from one pixel outside on."""
    _, h, w = image.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(len(image))
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    i, j = int(y), int(x)
    k, m = min(i + 1, h - 1), min(j + 1, w - 1)
    return (image[:, i, j] * (1 - y + i) + image[:, k, j] * (y - i)) * (1 - x + j) + (image[:, i, m] * (1 - y + i) + image[:, k, m] * (y - i)) * (x - j)


def aligned_mean(image, roi, bins, scale, ratio, shift, least):
    """Of one region: (channels, *bins)."""
    x1, y1, x2, y2 = roi[1:].astype(np.float64) * scale - shift
    size = [max(v, 1) if least else v for v in (y2 - y1, x2 - x1)]
    count = [ratio if ratio > 0 else int(np.ceil(s / b)) for s, b in zip(size, bins)]
    out = np.zeros((len(image), *bins))
    for p, q in np.ndindex(*bins):
        for i, j in np.ndindex(*(max(c, 0) for c in count)):
            out[:, p, q] += bilinear(image, y1 + (p + (i + 0.5) / count[0]) * size[0] / bins[0], x1 + (q + (j + 0.5) / count[1]) * size[1] / bins[1])
    return out / max(np.prod(count), 1)


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(subject, ops, where, ratio, aligned):
    x = np.random.default_rng(0).random((2, 3, 10, 12), np.float32)
    want = [aligned_mean(x[int(r[0])], r, (2, 3), 0.8, ratio, 0.5 * aligned, not aligned) for r in ROIS]
    got = ops.roi_align(subject.tensor(x), subject.tensor(ROIS), 0.8, 2, 3, ratio, aligned)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ratio", [-1, 2])
def test_ps_roi_align(subject, ops, where, ratio):
    x, rois = np.random.default_rng(0).random((2, 12, 10, 12), np.float32), ROIS[:4]
    every = [aligned_mean(x[int(r[0])], r, (2, 3), 0.8, ratio, 0.5, False) for r in rois]
    mapping = np.arange(12).reshape(2, 2, 3)
    want = [np.take_along_axis(e.reshape(12, 6), mapping.reshape(2, 6), 0).reshape(2, 2, 3) for e in every]
    got, channels = ops.ps_roi_align(subject.tensor(x), subject.tensor(rois), 0.8, 2, 3, ratio)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)
    assert channels.dtype is subject.int32 and channels[3].tolist() == mapping.tolist()


def pixels(roi, bins, scale, shape, more):
    """For each bin its rows and its columns."""
    x1, y1, x2, y2 = (int(np.trunc(v + np.copysign(0.5, v))) for v in roi[1:] * np.float32(scale))
    spans = []
    for low, high, n, length in (y1, y2, bins[0], shape[0]), (x1, x2, bins[1], shape[1]):
        step = max(high - low + more, 1) / n
        spans.append([range(*np.clip([int(np.floor(p * step)) + low, int(np.ceil((p + 1) * step)) + low], 0, length)) for p in range(n)])
    return spans


def test_roi_pool(subject, ops, where):
    x = np.random.default_rng(0).random((2, 3, 10, 12), np.float32)
    got, at = ops.roi_pool(subject.tensor(x), subject.tensor(ROIS), 0.8, 2, 3)
    g = np.random.default_rng(1).random(got.shape, np.float32)
    back = np.zeros_like(x)
    for k, r in enumerate(ROIS):
        rows, columns = pixels(r, (2, 3), 0.8, (10, 12), 1)
        for c, p, q in np.ndindex(3, 2, 3):
            part = x[int(r[0]), c][np.ix_(rows[p], columns[q])]
            assert got[k, c, p, q].item() == (part.max() if part.size else 0)
            assert at[k, c, p, q].item() == (np.flatnonzero(x[int(r[0]), c] == part.max())[0] if part.size else -1)
            if part.size:
                back[int(r[0]), c].reshape(-1)[at[k, c, p, q].item()] += g[k, c, p, q]
    np.testing.assert_allclose(ops._roi_pool_backward(subject.tensor(g), subject.tensor(ROIS), at, 0.8, 2, 3, *x.shape).numpy(), back, rtol=1e-5)


def test_ps_roi_pool(subject, ops, where):
    x = np.random.default_rng(0).random((2, 12, 10, 12), np.float32)
    got, _ = ops.ps_roi_pool(subject.tensor(x), subject.tensor(ROIS), 0.8, 2, 3)
    for k, r in enumerate(ROIS):
        rows, columns = pixels(r, (2, 3), 0.8, (9, 11), 0)
        for c, p, q in np.ndindex(2, 2, 3):
            part = x[int(r[0]), (c * 2 + p) * 3 + q][np.ix_(rows[p], columns[q])]
            np.testing.assert_allclose(got[k, c, p, q].item(), part.mean() if part.size else 0, rtol=1e-5)


@pytest.mark.parametrize("ratio", [-1, 2])
def test_backwards_are_adjoints(subject, ops, where, ratio):
    r = np.random.default_rng(0)
    x, rois = subject.tensor(r.random((2, 12, 10, 12), np.float32)), subject.tensor(ROIS[:2])
    y = ops.roi_align(x, rois, 0.8, 2, 3, ratio, True)
    g = subject.tensor(r.random(y.shape, np.float32))
    np.testing.assert_allclose((ops._roi_align_backward(g, rois, 0.8, 2, 3, *x.shape, ratio, True) * x).sum().item(), (g * y).sum().item(), rtol=1e-5)
    y, channels = ops.ps_roi_align(x, rois, 0.8, 2, 3, ratio)
    g = subject.tensor(r.random(y.shape, np.float32))
    np.testing.assert_allclose((ops._ps_roi_align_backward(g, rois, channels, 0.8, 2, 3, ratio, *x.shape) * x).sum().item(), (g * y).sum().item(), rtol=1e-5)


@pytest.mark.parametrize("groups, offset_groups, use_mask", [(1, 1, False), (1, 2, True), (2, 1, True), (2, 4, True)])
def test_deform_conv2d(subject, oracle, ops, where, groups, offset_groups, use_mask):
    """Against real torch's grid_sample, of which a tap's samples are made, and its gradients."""
    r, (kh, kw), (stride, padding, dilation) = np.random.default_rng(0), (3, 2), ((2, 1), (1, 2), (1, 2))
    x, w, b = r.random((2, 8, 9, 7)), r.random((4, 8 // groups, kh, kw)), r.random(4)
    size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip((9, 7), padding, dilation, (kh, kw), stride)]
    offset, mask = r.normal(size=(2, offset_groups * kh * kw * 2, *size)) * 2, r.random((2, offset_groups * kh * kw, *size))
    leaves = [oracle.tensor(v, requires_grad=True) for v in (x, w, offset, mask, b)]
    tx, tw, to, tm, tb = leaves
    moved, factor = to.reshape(2, offset_groups, kh * kw, 2, *size), tm.reshape(2, offset_groups, kh * kw, 1, *size)
    taps = []
    for t in range(kh * kw):
        base = [oracle.arange(n) * s - p + k * d for n, s, p, k, d in zip(size, stride, padding, divmod(t, kw), dilation)]
        y, xx = moved[:, :, t, 0] + base[0][:, None], moved[:, :, t, 1] + base[1]
        grid = oracle.stack([2 * xx / 6 - 1, 2 * y / 8 - 1], -1).reshape(-1, *size, 2)
        found = oracle.nn.functional.grid_sample(tx.reshape(2 * offset_groups, -1, 9, 7), grid, align_corners=True).reshape(2, offset_groups, -1, *size)
        taps.append((found * factor[:, :, t] if use_mask else found).reshape(2, groups, -1, *size))
    want = oracle.einsum("tngchw,goct->ngohw", oracle.stack(taps), tw.reshape(groups, 4 // groups, -1, kh * kw))
    want = want.reshape(2, 4, *size) + tb[:, None, None]
    g = r.random(want.shape)
    want.backward(oracle.tensor(g))
    mine = [subject.tensor(v) for v in (x, w, offset, mask, b)]
    window = (*stride, *padding, *dilation, groups, offset_groups, use_mask)
    np.testing.assert_allclose(ops.deform_conv2d(*mine, *window).numpy(), want.detach().numpy(), rtol=1e-9)
    for got, leaf in zip(ops._deform_conv2d_backward(subject.tensor(g), *mine, *window), leaves):
        np.testing.assert_allclose(got.numpy(), np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_box_iou_rotated(subject, ops, where):
    """Upright boxes, the same box turned, a square in a square turned by 45 degrees, none."""
    a = np.array([[2, 2, 4, 2, 0], [5, 5, 2, 4, 30], [0, 0, 2, 2, 0], [3, 3, 2, 2, 10], [1, 1, 0, 0, 0]], np.float64)
    b = np.array([[3, 2, 4, 2, 180], [5, 5, 4, 2, 120], [0, 0, 2, 2, 45], [9, 9, 1, 1, 0], [1, 1, 2, 2, 0]], np.float64)
    octagon = 8 * (np.sqrt(2) - 1)
    got = ops.box_iou_rotated(subject.tensor(a), subject.tensor(b))
    assert got.dtype is subject.float32
    np.testing.assert_allclose(np.diag(got.numpy()), [6 / 10, 1, octagon / (8 - octagon), 0, 0], rtol=1e-6, atol=1e-9)


def test_errors(subject, ops):
    boxes, scores, x, rois = subject.zeros(3, 4), subject.zeros(3), subject.zeros(1, 4, 5, 5), subject.zeros(2, 5)
    for call, kind, message in (
        (lambda: ops.nms(scores, scores, 0.5), RuntimeError, "boxes should be a 2d tensor, got 1D"),
        (lambda: ops.nms(boxes, scores.double(), 0.5), RuntimeError, "dets should have the same type as scores"),
        (lambda: ops.nms(boxes.half(), scores.half(), 0.5), NotImplementedError, "\"nms_kernel\" not implemented for 'Half'"),
        (lambda: ops.roi_align(x, rois[:, :4], 1.0, 2, 2, 2, False), RuntimeError, r"rois must have shape as Tensor\[K, 5\]"),
        (lambda: ops.roi_align(x, rois.double(), 1.0, 2, 2, 2, False), RuntimeError, "torch.FloatTensor does not equal torch.DoubleTensor"),
        (lambda: ops.roi_align(x.int(), rois.int(), 1.0, 2, 2, 2, False), NotImplementedError, "\"roi_align_forward_kernel\" not implemented for 'Int'"),
        (lambda: ops.ps_roi_pool(x, rois, 1.0, 3, 3), RuntimeError, "input channels must be a multiple of pooling height"),
        (lambda: ops.box_iou_rotated(boxes, rois), RuntimeError, r"boxes1 should have shape \(N, 5\), got \[3, 4\]"),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_nothing_to_pool(subject, ops):
    for x, rois in (subject.zeros(2, 4, 5, 5), subject.zeros(0, 5)), (subject.zeros(0, 4, 5, 5), subject.zeros(0, 5)):
        assert ops.roi_align(x, rois, 1.0, 2, 2, 2, False).shape == (0, 4, 2, 2)
        assert [tuple(y.shape) for y in ops.ps_roi_align(x, rois, 1.0, 2, 2, 2)] == [(0, 1, 2, 2)] * 2
        assert ops.roi_pool(x, rois, 1.0, 2, 2)[1].dtype is subject.int32
