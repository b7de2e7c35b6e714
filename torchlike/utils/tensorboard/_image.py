"""Pictures from arrays: layouts, grids and PNG."""
from __future__ import annotations

import io
import math
import struct
import zlib

import numpy as np

__all__ = ["as_height_width_channels", "gif", "png", "to_bytes", "with_boxes"]


def as_height_width_channels(array: np.ndarray, layout: str, columns: int = 8) -> np.ndarray:
    """(H, W, 3) of an array in a layout such as 'CHW', 'HW' or 'NCHW'; a batch becomes a grid of so many columns."""
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
        return _grid(array.transpose([layout.index(c) for c in "NHWC"]), columns)
    picture = array.transpose([layout.index(c) for c in "HWC"])
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture


def _grid(pictures: np.ndarray, columns: int) -> np.ndarray:
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


def gif(video: np.ndarray, fps: int) -> tuple[np.ndarray, bytes]:
    """A GIF file of (N, T, C, H, W) uint8 frames, a batch side by side; and its first frame (H, W, 3). Pillow writes it."""
    from PIL import Image
    n = len(video)
    rows = 2 ** ((n.bit_length() - 1) // 2)
    columns = 2 ** (n - 1).bit_length() // rows
    video = np.concatenate([video, np.zeros((rows * columns - n, *video.shape[1:]), video.dtype)])
    frames = [as_height_width_channels(frame, "NCHW", columns) for frame in video.swapaxes(0, 1)]
    stream = io.BytesIO()
    first, *rest = map(Image.fromarray, frames)
    first.save(stream, "GIF", save_all=True, append_images=rest, duration=1000 / fps, loop=0)
    return frames[0], stream.getvalue()


def with_boxes(pixels: np.ndarray, boxes: np.ndarray, labels: list[str] | None, rescale: float) -> np.ndarray:
    """A picture (H, W, C) with boxes (N, 4), rows (x1, y1, x2, y2), drawn in red by Pillow, and each one's label; `rescale` times as large."""
    from PIL import Image, ImageDraw, ImageFont
    picture = Image.fromarray(pixels)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default()
    for k, (left, top, right, bottom) in enumerate(boxes.tolist()):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], fill="Red", width=2)
        if labels is not None and labels[k]:
            x1, y1, x2, y2 = font.getbbox(labels[k])
            margin = math.ceil(0.05 * (y2 - y1))
            start = bottom - (y2 - y1) - 2 * margin
            draw.rectangle([(left, start), (left + x2 - x1, bottom)], fill="Red")
            draw.text((left + margin, start + margin), labels[k], fill="black", font=font)
    size = int(picture.width * rescale), int(picture.height * rescale)
    return np.asarray(picture.resize(size, Image.Resampling.LANCZOS))
