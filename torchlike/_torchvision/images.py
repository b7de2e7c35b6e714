"""torchvision's image files: PNG, JPEG, GIF and WebP. Pillow does the coding, what comes out is what torchvision promises.

Pictures are arrays (height, width, channels); the tensors are permuted views of them, as torchvision's are.
"""
from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from .._custom_operator import kernel
from .._tensor import Tensor, as_tensor_value
from ..library import define
from .gif import frames

if TYPE_CHECKING:
    from PIL.Image import Image

# torchvision.io.ImageReadMode
UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)
_CHANNELS = {GRAY: 1, GRAY_ALPHA: 2, RGB: 3, RGB_ALPHA: 4}
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_ORIENTATION = 0x0112  # EXIF's tag

for _name, _schema in {
    "read_file": "(str _0) -> Tensor _0",
    "write_file": "(str _0, Tensor _1) -> ()",
    "decode_image": "(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",
    "decode_png": "(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",
    "decode_jpeg": "(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",
    "decode_gif": "(Tensor _0) -> Tensor _0",
    "decode_webp": "(Tensor encoded_data, int mode) -> Tensor",
    "encode_png": "(Tensor _0, int _1) -> Tensor _0",
    "encode_jpeg": "(Tensor _0, int _1) -> Tensor _0",
    "_jpeg_version": "() -> int _0",
    "_is_compiled_against_turbo": "() -> bool _0",
}.items():
    define(f"image::{_name}", _schema)


# -- files ---------------------------------------------------------------------------------------------------------------


@kernel("image::read_file", "default")
def read_file(path: str) -> Tensor:
    """A file's bytes."""
    try:
        found = np.fromfile(path, np.uint8)
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{path}'") from None
    if not found.size:
        raise RuntimeError("Expected a non empty file")
    return as_tensor_value(found)


@kernel("image::write_file", "default")
def write_file(path: str, data: Tensor) -> None:
    """Bytes to a file."""
    _check_bytes(data)
    if data.ndim != 1:
        raise RuntimeError("Input data should be a 1-dimensional tensor")
    try:
        data._host_array().tofile(path)
    except OSError:
        raise RuntimeError("Error opening output file") from None


# -- from tensors and to tensors -----------------------------------------------------------------------------------------


def _check_bytes(data: Tensor) -> None:
    if data.device.type != "cpu":
        raise RuntimeError("Input tensor should be on CPU")
    if data.dtype.np != np.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")


def _encoded(data: Tensor) -> bytes:
    """The file that a vector of bytes is."""
    if not data.is_contiguous():
        raise RuntimeError("Input tensor must be contiguous.")
    if data.dtype.np != np.uint8:
        raise RuntimeError(f"Input tensor must have uint8 data type, got {str(data.dtype).removeprefix('torch.')}")
    if data.ndim != 1 or not data.numel():
        raise RuntimeError(f"Input tensor must be 1-dimensional and non-empty, got {data.ndim} dims  and {data.numel()} numels.")
    return data._host_array().tobytes()


def _picture(image: Tensor) -> Image:
    """The picture that a tensor (channels, height, width) shows."""
    from PIL import Image

    _check_bytes(image)
    if image.ndim != 3:
        raise RuntimeError("Input data should be a 3-dimensional tensor")
    if image.shape[0] not in (1, 3):
        raise RuntimeError(f"The number of channels should be 1 or 3, got: {image.shape[0]}")
    if not image.numel():
        raise RuntimeError("Image height or width is zero")
    array = image._host_array()
    return Image.fromarray(array[0] if len(array) == 1 else np.ascontiguousarray(array.transpose(1, 2, 0)))


def _opened(data: bytes, kind: str) -> Image:
    from PIL import Image

    try:
        return Image.open(io.BytesIO(data), formats=[kind])
    except Exception as error:  # Pillow's readers let through whatever a broken file makes them meet
        raise RuntimeError(f"The {kind} file cannot be read, probably it is corrupted: {error}") from None


def _pixels(picture: Image) -> np.ndarray:
    """An opened picture's numbers (height, width, channels)."""
    try:
        array = np.asarray(picture)
    except Exception as error:
        raise RuntimeError(f"The {picture.format} file is incomplete or corrupted: {error}") from None
    return array.reshape(picture.height, picture.width, -1)


def _upright(array: np.ndarray, orientation: int) -> Tensor:
    """The tensor (channels, height, width), mirrored and turned as EXIF's orientation says."""
    if orientation in (2, 3, 7, 8):
        array = array[:, ::-1]
    if orientation in (3, 4, 6, 7):
        array = array[::-1]
    made = as_tensor_value(np.ascontiguousarray(array))
    return made.permute(2, 1, 0) if 5 <= orientation <= 8 else made.permute(2, 0, 1)


def _orientation(picture: Image) -> int:
    found = picture.getexif().get(_ORIENTATION)
    return found if isinstance(found, int) else 1


# -- PNG -----------------------------------------------------------------------------------------------------------------


def _deep(data: bytes, color: int) -> np.ndarray:
    """The samples of a PNG file with 16 bits each, which Pillow reads as such for gray only."""
    if color == 4:  # two deep channels lie as four of 8 bits do
        header = data[12:24] + bytes([8, 6]) + data[26:29]
        halves = _pixels(_opened(data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:], "PNG"))
        return halves[..., ::2].astype(np.uint16) << 8 | halves[..., 1::2]
    if color == 0:
        return _pixels(_opened(data, "PNG")).astype(np.uint16)
    parts = []
    for order in "BL":  # Pillow keeps the high byte of each sample: of the other byte order, the low one
        picture = _opened(data, "PNG")
        picture.tile = [tile._replace(args=tile.args.replace("16B", "16" + order)) for tile in picture.tile]
        parts.append(_pixels(picture))
    return parts[0].astype(np.uint16) << 8 | parts[1]


def _looked_up(picture: Image, indices: np.ndarray) -> np.ndarray:
    """The colors, with alpha, that a palette's indices mean."""
    colors = np.zeros((256, 4), np.uint8)
    listed = np.array(picture.getpalette("RGB"), np.uint8).reshape(-1, 3)
    colors[:len(listed), :3], colors[:, 3] = listed, 255
    alpha = picture.info.get("transparency", b"")
    if isinstance(alpha, int):
        colors[alpha, 3] = 0
    else:
        colors[:len(alpha), 3] = np.frombuffer(alpha, np.uint8)
    return colors[indices[..., 0]]


def _gray(array: np.ndarray) -> np.ndarray:
    """libpng's gray of colors: weights 0.2989 and 0.587 in 15 bits, rounded for deep samples only."""
    wide = array.astype(np.uint32)
    sums = 9794 * wide[..., 0] + 19234 * wide[..., 1] + 3740 * wide[..., 2]
    return ((sums + (16384 if array.dtype == np.uint16 else 0)) >> 15).astype(array.dtype)[..., None]


@kernel("image::decode_png", "default")
def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """A PNG file: uint8, or uint16 where it has 16 bits a sample. A transparent color is not made alpha, a palette's alpha is."""
    encoded = _encoded(data)
    if not encoded.startswith(_PNG):
        raise RuntimeError("Content is not png!")
    if mode not in (UNCHANGED, *_CHANNELS):
        raise RuntimeError("The provided mode is not supported for PNG files")
    picture = _opened(encoded, "PNG")
    depth, color = encoded[24], encoded[25]
    if depth == 16:
        array = _deep(encoded, color)
    else:
        array = _pixels(picture)
        if array.dtype == bool:
            array = array.astype(np.uint8) * 255
    if mode != UNCHANGED:
        if color == 3:
            array = _looked_up(picture, array)
        array = _converted(array, mode, 2**depth - 1 if color == 0 else np.iinfo(array.dtype).max)
    return _upright(array, _orientation(picture) if apply_exif_orientation else 1)


def _converted(array: np.ndarray, mode: int, opaque: int) -> np.ndarray:
    """Samples with the channels of a mode."""
    channels = array.shape[-1]
    colors, alpha = (array[..., :-1], array[..., -1:]) if channels in (2, 4) else (array, None)
    if mode in (GRAY, GRAY_ALPHA) and channels > 2:
        colors = _gray(colors)
    elif mode in (RGB, RGB_ALPHA) and channels < 3:
        colors = colors.repeat(3, -1)
    if mode in (GRAY, RGB):
        return colors
    return np.concatenate([colors, np.full_like(colors[..., :1], opaque) if alpha is None else alpha], -1)


@kernel("image::encode_png", "default")
def encode_png(image: Tensor, compression_level: int) -> Tensor:
    """The PNG file of a picture."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _saved(_picture(image), "PNG", compress_level=compression_level)


def _saved(picture: Image, kind: str, **settings: int) -> Tensor:
    file = io.BytesIO()
    picture.save(file, kind, **settings)
    return as_tensor_value(np.frombuffer(file.getvalue(), np.uint8))


# -- JPEG ----------------------------------------------------------------------------------------------------------------


def _printed(array: np.ndarray) -> np.ndarray:
    """The colors of inks as Adobe's files store them: 255 is no ink."""
    product = array[..., :3].astype(np.uint16) * array[..., 3:]
    return ((product + 127) // 255).astype(np.uint8)


@kernel("image::decode_jpeg", "default")
def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """A JPEG file. The gray of colors is the brightness that the file stores, four inks stay as they are stored."""
    from PIL import Image

    encoded = _encoded(data)
    if not encoded.startswith(_JPEG[:2]):
        raise RuntimeError(f"Not a JPEG file: starts with 0x{encoded[0]:02x} 0x{encoded[1:2].hex() or '00'}")
    if mode not in (UNCHANGED, GRAY, RGB):
        raise RuntimeError("The provided mode is not supported for JPEG files")
    picture = _opened(encoded, "JPEG")
    orientation = _orientation(picture) if apply_exif_orientation else 1
    if picture.mode == "CMYK":
        picture.tile = [tile._replace(args=("CMYK", *tile.args[1:])) for tile in picture.tile]  # Pillow would turn Adobe's around
        array = _pixels(picture)
        if mode != UNCHANGED:
            array = _printed(array)
        if mode == GRAY:
            array = _pixels(Image.fromarray(array).convert("L"))
    else:
        if mode == GRAY:
            picture.draft("L", None)
        array = _pixels(picture)
        if mode == RGB and array.shape[-1] == 1:
            array = array.repeat(3, -1)
    return _upright(array, orientation)


@kernel("image::encode_jpeg", "default")
def encode_jpeg(image: Tensor, quality: int) -> Tensor:
    """The JPEG file of a picture."""
    return _saved(_picture(image), "JPEG", quality=quality)


@kernel("image::_jpeg_version", "default")
def _jpeg_version() -> int:
    """The interface of libjpeg that Pillow uses: 62 for 6.2."""
    from PIL import features

    return int((features.version_codec("jpg") or "-1").replace(".", ""))


@kernel("image::_is_compiled_against_turbo", "default")
def _is_compiled_against_turbo() -> bool:
    """Whether that is libjpeg-turbo."""
    from PIL import features

    return bool(features.check_feature("libjpeg_turbo"))


# -- the others ----------------------------------------------------------------------------------------------------------


@kernel("image::decode_gif", "default")
def decode_gif(data: Tensor) -> Tensor:
    """A GIF file's pictures in RGB: one (channels, height, width), several with a leading dimension."""
    shown = frames(_encoded(data))
    made = as_tensor_value(shown).permute(0, 3, 1, 2)
    return made[0] if len(shown) == 1 else made


@kernel("image::decode_webp", "default")
def decode_webp(data: Tensor, mode: int) -> Tensor:
    """A WebP file in RGB or RGBA: as it is stored for any mode but these two."""
    encoded = _encoded(data)
    picture = _opened(encoded, "WEBP")
    if getattr(picture, "n_frames", 1) > 1:
        raise RuntimeError("Animated webp files are not supported.")
    array = _pixels(picture)
    return _upright(_converted(array, mode, 255) if mode in (RGB, RGB_ALPHA) else array, 1)


@kernel("image::decode_image", "default")
def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """A file of any of these kinds."""
    if data.dtype.np != np.uint8:
        raise RuntimeError("Expected a torch.uint8 tensor")
    if data.ndim != 1 or not data.numel():
        raise RuntimeError("Expected a non empty 1-dimensional tensor")
    start = _encoded(data[:16])
    if start.startswith(_JPEG):
        return decode_jpeg(data, mode, apply_exif_orientation)
    if start.startswith(_PNG):
        return decode_png(data, mode, apply_exif_orientation)
    if start.startswith((b"GIF87a", b"GIF89a")):
        return decode_gif(data)
    if start.startswith(b"RIFF") and start[8:15] == b"WEBPVP8":
        return decode_webp(data, mode)
    raise RuntimeError("Unsupported image file. Only jpeg, png, webp and gif are currently supported. For avif and heic format, please rely on "
                       "`decode_avif` and `decode_heic` directly.")
