"""torchvision's image operations (torch.ops.image) against pictures that Pillow wrote and formulas in NumPy: torchvision itself is not here."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import torchlike as torch

torch.ops.load_library("torchvision/image.so")
IMAGE = torch.ops.image
UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGBA = range(5)
RNG = np.random.default_rng(0)
COLORS = RNG.integers(0, 256, (9, 7, 4), dtype=np.uint8)
SMOOTH = (np.add.outer(3 * np.arange(20), 4 * np.arange(26))[..., None] + np.array([0, 20, 60])).astype(np.uint8)


def tensor(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def file(array, kind, mode=None, **settings):
    written = io.BytesIO()
    (Image.fromarray(array) if mode is None else Image.fromarray(array).convert(mode)).save(written, kind, **settings)
    return tensor(written.getvalue())


def png(array, depth, color, **chunks):
    """A PNG file of big-endian samples, without filters."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = array.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2" if depth == 16 else "u1").tobytes() for row in array)
    more = b"".join(chunk(name.encode(), data) for name, data in chunks.items())
    return tensor(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)) + more
                  + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def shown(decoded):
    return decoded.numpy().transpose(1, 2, 0)


def test_png_modes():
    decoded = IMAGE.decode_png(file(COLORS, "PNG"), UNCHANGED)
    assert np.array_equal(shown(decoded), COLORS) and decoded.stride() == (1, 28, 4)
    weights = np.array([9794, 19234, 3740])
    gray = ((COLORS[..., :3].astype(int) @ weights) >> 15)[..., None]
    for mode, expected in {RGBA: COLORS, RGB: COLORS[..., :3], GRAY: gray, GRAY_ALPHA: np.concatenate([gray, COLORS[..., 3:]], -1)}.items():
        assert np.array_equal(shown(IMAGE.decode_png(file(COLORS, "PNG"), mode)), expected), mode
    only = file(COLORS[..., 0], "PNG")
    assert np.array_equal(shown(IMAGE.decode_png(only, RGBA)), np.dstack([COLORS[..., 0]] * 3 + [np.full((9, 7), 255)]))
    with pytest.raises(RuntimeError, match="mode is not supported"):
        IMAGE.decode_png(only, 7)


@pytest.mark.parametrize("color, channels", [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_png_of_16_bits(color, channels):
    deep = RNG.integers(0, 2**16, (5, 4, channels), dtype=np.uint16)
    decoded = IMAGE.decode_png(png(deep, 16, color), UNCHANGED)
    assert decoded.dtype is torch.uint16 and np.array_equal(shown(decoded), deep)
    if channels == 3:
        gray = (deep.astype(int) @ np.array([9794, 19234, 3740]) + 16384) >> 15
        assert np.array_equal(shown(IMAGE.decode_png(png(deep, 16, color), GRAY))[..., 0], gray)
        assert (shown(IMAGE.decode_png(png(deep, 16, color), RGBA))[..., 3] == 65535).all()


def test_png_palette():
    indices = RNG.integers(0, 4, (5, 6, 1), dtype=np.uint8)
    colors = RNG.integers(0, 256, (4, 3), dtype=np.uint8)
    written = png(indices, 8, 3, PLTE=colors.tobytes(), tRNS=b"\x10\x80")
    assert np.array_equal(shown(IMAGE.decode_png(written, UNCHANGED)), indices)
    expected = np.concatenate([colors, np.array([[16], [128], [255], [255]], np.uint8)], 1)[indices[..., 0]]
    assert np.array_equal(shown(IMAGE.decode_png(written, RGBA)), expected)


def test_png_of_one_bit():
    bits = RNG.random((5, 6)) > 0.5
    written = file(bits, "PNG", "1")
    assert np.array_equal(shown(IMAGE.decode_png(written, GRAY_ALPHA)), np.dstack([bits * 255, np.ones((5, 6))]))  # libpng's alpha of 1 bit


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_orientation(kind):
    turns = [np.array, np.fliplr, lambda a: np.rot90(a, 2), np.flipud, lambda a: a.swapaxes(0, 1), lambda a: np.rot90(a, 3),
             lambda a: np.rot90(a, 2).swapaxes(0, 1), np.rot90]
    for orientation, turn in enumerate(turns, 1):
        exif = Image.Exif()
        exif[0x0112] = orientation
        written = file(SMOOTH, kind, exif=exif)
        plain, upright = IMAGE.decode_image(written, RGB), IMAGE.decode_image(written, RGB, True)
        assert np.array_equal(shown(upright), turn(shown(plain))), orientation


def test_jpeg():
    written = file(SMOOTH, "JPEG")
    picture = Image.open(io.BytesIO(written.numpy().tobytes()))
    assert np.array_equal(shown(IMAGE.decode_jpeg(written, UNCHANGED)), np.asarray(picture))
    assert np.abs(shown(IMAGE.decode_jpeg(written, GRAY))[..., 0].astype(int) - np.asarray(picture.convert("L"))).max() <= 2
    gray = file(SMOOTH, "JPEG", "L")
    assert IMAGE.decode_jpeg(gray, UNCHANGED).shape == (1, 20, 26) and IMAGE.decode_jpeg(gray, RGB).shape == (3, 20, 26)
    with pytest.raises(RuntimeError, match="mode is not supported"):
        IMAGE.decode_jpeg(written, RGBA)


def test_jpeg_of_four_inks():
    inks = np.repeat(np.repeat(COLORS[:2, :3], 8, 0), 8, 1)
    written = io.BytesIO()
    Image.fromarray(inks, "CMYK").save(written, "JPEG", quality=100)
    stored = shown(IMAGE.decode_jpeg(tensor(written.getvalue()), UNCHANGED))
    assert np.array_equal(stored, 255 - np.asarray(Image.open(written)))
    product = stored[..., :3].astype(int) * stored[..., 3:]
    assert np.array_equal(shown(IMAGE.decode_jpeg(tensor(written.getvalue()), RGB)), np.rint(product / 255))


def test_gif():
    pictures = []
    for k in range(3):
        pixels = np.zeros((8, 9), np.uint8)
        pixels[k:k + 3, 2 * k:2 * k + 2] = k + 1
        picture = Image.fromarray(pixels, "P")
        picture.putpalette([10, 20, 30, 255, 0, 0, 0, 255, 0, 0, 0, 255])
        pictures.append(picture)
    for disposal, left in {1: 1, 2: 0}.items():  # what stays of the first picture
        written = io.BytesIO()
        pictures[0].save(written, "GIF", save_all=True, append_images=pictures[1:], disposal=disposal, transparency=0, background=0)
        decoded = IMAGE.decode_gif(tensor(written.getvalue()))
        assert decoded.shape == (3, 3, 8, 9) and decoded.is_contiguous(memory_format=torch.channels_last)
        assert decoded[1, :, 0, 0].tolist() == ([255, 0, 0] if left else [10, 20, 30]) and decoded[1, :, 1, 2].tolist() == [0, 255, 0]
    assert IMAGE.decode_image(file(SMOOTH, "GIF"), GRAY).shape == (3, 20, 26)


def test_webp():
    with_alpha = file(np.dstack([SMOOTH, SMOOTH[..., :1] | 1]), "WEBP", lossless=True, exact=True)
    assert np.array_equal(shown(IMAGE.decode_webp(with_alpha, RGB)), SMOOTH)
    assert IMAGE.decode_image(with_alpha, GRAY).shape == (4, 20, 26)


def test_encoding(tmp_path):
    image = torch.from_numpy(SMOOTH).permute(2, 0, 1)
    path = str(tmp_path / "picture")
    IMAGE.write_file(path, IMAGE.encode_png(image, 6))
    assert torch.equal(IMAGE.decode_image(IMAGE.read_file(path), UNCHANGED), image)
    small, large = IMAGE.encode_jpeg(image, 10), IMAGE.encode_jpeg(image[:1], 100)
    assert IMAGE.decode_jpeg(small, UNCHANGED).shape == (3, 20, 26)
    assert (IMAGE.decode_jpeg(large, UNCHANGED).int() - image[:1].int()).abs().max() <= 2


def test_errors(tmp_path):
    good, garbage = file(SMOOTH, "PNG"), torch.arange(50, dtype=torch.uint8)
    for decode in (IMAGE.decode_png, IMAGE.decode_jpeg, IMAGE.decode_webp, IMAGE.decode_image, lambda data, mode: IMAGE.decode_gif(data)):
        for bad in (garbage, good[:0], good.float(), good[:50].reshape(5, 10), good[::2]):
            with pytest.raises(RuntimeError):
                decode(bad, UNCHANGED)
    with pytest.raises(RuntimeError, match="corrupted"):
        IMAGE.decode_png(good[:-60], UNCHANGED)
    image = torch.zeros(3, 4, 4, dtype=torch.uint8)
    for bad in (image.float(), image[0], image[:2], image[:, :0]):
        with pytest.raises(RuntimeError):
            IMAGE.encode_png(bad, 6)
    with pytest.raises(RuntimeError, match="between 0 and 9"):
        IMAGE.encode_png(image, 10)
    with pytest.raises(RuntimeError, match="No such file"):
        IMAGE.read_file(str(tmp_path / "none"))
