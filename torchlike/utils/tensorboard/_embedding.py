"""What TensorBoard's projector reads: points, their labels and pictures as files, and a list of them."""
from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ._image import as_height_width_channels, png, to_bytes
from .summary import as_array

__all__ = ["entry", "folder", "write"]


def folder(tag: str, step: int) -> str:
    """Where an embedding's files are, in the log folder."""
    for character in "%/\\":
        tag = tag.replace(character, f"%{ord(character):02x}")
    return f"{step:05d}/{tag}"


def write(path: str, points: Any, metadata: list | None, pictures: Any, header: list | None) -> None:
    """The files: points (N, D); metadata, a label for each, or a row of as many as `header` has; pictures (N, C, H, W)."""
    points = as_array(points)
    if os.path.isdir(path):
        print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
    elif os.path.exists(path):
        raise NotADirectoryError(f"Path: `{path}` exists, but is a file. Cannot proceed.")
    os.makedirs(path, exist_ok=True)
    if metadata is not None:
        if len(points) != len(metadata):
            raise AssertionError("#labels should equal with #data points")
        if header and len(header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        rows = ["\t".join(map(str, row)) for row in [header, *metadata]] if header else list(map(str, metadata))
        _save(path, "metadata.tsv", "\n".join(rows) + "\n")
    if pictures is not None:
        pictures = as_array(pictures)
        if len(points) != len(pictures):
            raise AssertionError("#images should equal with #data points")
        _save(path, "sprite.png", _sprite(pictures))
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    _save(path, "tensors.tsv", "".join("\t".join(str(x.item()) for x in row) + "\n" for row in points))


def _sprite(pictures: np.ndarray) -> bytes:
    """One square picture of all, row by row."""
    grid = to_bytes(as_height_width_channels(pictures, "NCHW", math.ceil(len(pictures) ** 0.5)))
    square = np.zeros((grid.shape[1], grid.shape[1], 3), np.uint8)
    square[:len(grid)] = grid
    return png(square)


def _save(path: str, name: str, content: str | bytes) -> None:
    with open(os.path.join(path, name), "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)


def entry(tag: str, step: int, metadata: list | None, pictures: Any) -> str:
    """The embedding's part of projector_config.pbtxt."""
    where = folder(tag, step)
    lines = [f'  tensor_name: "{_quoted(tag)}:{step:05d}"']
    if metadata is not None:
        lines.append(f'  metadata_path: "{_quoted(where)}/metadata.tsv"')
    if pictures is not None:
        lines += ["  sprite {", f'    image_path: "{_quoted(where)}/sprite.png"', *(f"    single_image_dim: {pictures.shape[d]}" for d in (3, 2)), "  }"]
    lines.append(f'  tensor_path: "{_quoted(where)}/tensors.tsv"')
    return "embeddings {\n" + "\n".join(lines) + "\n}\n"


def _quoted(text: str) -> str:
    """As protocol buffers' text format writes a string."""
    plain = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "'": "\\'", "\\": "\\\\"}
    return "".join(plain.get(c) or (c if c >= " " and c != "\x7f" else f"\\{ord(c):03o}") for c in text)
