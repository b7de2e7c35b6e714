"""The pictures of a GIF file, laid over each other as torchvision lays them. Pillow decodes each by itself: it has rules of its own for that."""
from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np


class _Frame(NamedTuple):
    """One picture: its place on the screen, its file's parts, and what its control block said."""

    left: int
    top: int
    width: int
    height: int
    interlaced: int  # the flag's bit
    colors: bytes
    data: bytes
    disposal: int
    transparent: int  # -1: none


def _color_table(flags: int) -> int:
    """The length of the table that a descriptor's flags announce."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _blocks_end(data: bytes, at: int) -> int:
    """The place behind a series of sub-blocks."""
    while data[at]:
        at += data[at] + 1
    return at + 1


def _parsed(data: bytes) -> tuple[int, int, bytes, list[_Frame]]:
    """The screen's width and height, the background color, the pictures."""
    width, height = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    shared = data[13:13 + _color_table(data[10])]
    background = shared[3 * data[11]:3 * data[11] + 3] or bytes(3)
    at, found, disposal, transparent = 13 + len(shared), [], 0, -1
    while data[at] != 0x3B:
        if data[at] == 0x21:  # an extension; 0xF9: control of the next picture
            if data[at + 1] == 0xF9:
                disposal, transparent = data[at + 3] >> 2 & 7, data[at + 6] if data[at + 3] & 1 else -1
            at = _blocks_end(data, at + 2)
        elif data[at] == 0x2C:
            left, top, w, h = (int.from_bytes(data[k:k + 2], "little") for k in range(at + 1, at + 9, 2))
            flags = data[at + 9]
            own = data[at + 10:at + 10 + _color_table(flags)]
            start = at + 10 + len(own)
            at = _blocks_end(data, start + 1)
            found.append(_Frame(left, top, w, h, flags & 0x40, own or shared, data[start:at], disposal, transparent))
            disposal, transparent = 0, -1
        else:
            raise ValueError("an unknown block")
    return width, height, background, found


def _indices(frame: _Frame) -> np.ndarray:
    """A picture's places in its table."""
    from PIL import Image

    size = frame.width.to_bytes(2, "little") + frame.height.to_bytes(2, "little")
    file = b"GIF89a" + size + bytes(3) + b"," + bytes(4) + size + bytes([frame.interlaced]) + frame.data + b";"
    with Image.open(io.BytesIO(file), formats=["GIF"]) as picture:
        return np.asarray(picture)


def frames(data: bytes) -> np.ndarray:
    """All pictures (number, height, width, RGB)."""
    try:
        width, height, background, found = _parsed(data)
        shown = np.empty((len(found), height, width, 3), np.uint8)
        screen = np.empty((height, width, 3), np.uint8)
        screen[:] = np.frombuffer(background, np.uint8)
        for k, frame in enumerate(found):
            indices = _indices(frame)
            colors = np.zeros((256, 3), np.uint8)
            colors[:len(frame.colors) // 3] = np.frombuffer(frame.colors, np.uint8).reshape(-1, 3)
            place = screen[frame.top:frame.top + frame.height, frame.left:frame.left + frame.width]
            indices = indices[:place.shape[0], :place.shape[1]]
            np.copyto(place, colors[indices], where=(indices != frame.transparent)[..., None])
            shown[k] = screen
            if frame.disposal == 2:
                place[:] = np.frombuffer(background, np.uint8)
    except Exception as error:  # a broken file makes the parser, or Pillow's, meet anything
        raise RuntimeError(f"The GIF file cannot be read, probably it is corrupted: {error}") from None
    if not found:
        raise RuntimeError("The GIF file has no pictures")
    return shown
