"""Pictures from arrays: layouts, grids and PNG."""
from __future__ import annotations

import struct
import zlib

import numpy as np

__all__ = ["as_height_width_channels", "png", "to_bytes"]


def as_height_width_channels(array: np.ndarray, layout: str) -> np.ndarray:
    """(H, W, 3) of an array in a layout such as 'CHW', 'HW' or 'NCHW'; a batch becomes a grid, 8 pictures a row."""
    layout = layout.upper()
    if len(set(layout)) != len(layout):
        raise AssertionError(f"You can not use the same dimension shordhand twice.         input_format: {layout}")
    if array.ndim != len(layout):
        raise AssertionError(
            f"size of input tensor and input format are different.         tensor shape: {array.shape}, "
            f"input_format: {layout}"
        )
    if layout == "HW":
        return np.repeat(array[:, :, None], 3, axis=2)
    if len(layout) == 4:
        return _grid(array.transpose([layout.index(c) for c in "NHWC"]))
    picture = array.transpose([layout.index(c) for c in "HWC"])
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture


def _grid(pictures: np.ndarray, columns: int = 8) -> np.ndarray:
    n, height, width, channels = pictures.shape
    if channels not in (1, 3):
        raise AssertionError(f"a grid of pictures needs 1 or 3 channels, got {channels}")
    columns = min(n, columns)
    rows = -(-n // columns)
    canvas = np.zeros((rows, columns, height, width, 3), pictures.dtype)
    canvas.reshape(-1, height, width, 3)[:n] = pictures  # one channel fills all three
    return canvas.swapaxes(1, 2).reshape(rows * height, columns * width, 3)


def to_bytes(array: np.ndarray) -> np.ndarray:
    """uint8 pixels: as they are, or of numbers between 0 and 1."""
    if array.dtype == np.uint8:
        return array
    return (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of (H, W, C) uint8 pixels with 1 (grey), 2 (grey, alpha), 3 (colour) or 4 (colour, alpha) channels."""
    height, width, channels = pixels.shape
    if channels not in (1, 2, 3, 4):
        raise ValueError(f"a picture has 1 to 4 channels, got {channels}")
    colour_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter: 0, none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    data = zlib.compress(rows.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
