"""Images of files as arrays, without another package: the library reads PNG, JPEG, BMP, GIF, PNM
and DICOM. Where Pillow is installed, images are Pillow's, as in Keras."""

import ctypes
import os
import struct as _binary
import zlib

import numpy as np

from .._binding.arrays import array_of
from .._binding.library import lib, struct

# A kernel and its radius in pixels; `antialias` widens it where an image shrinks.


def _cubic(a):
    def kernel(x):
        x = np.abs(x)
        return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1,
                        np.where(x < 2, (((x - 5) * x + 8) * x - 4) * a, 0))
    return kernel


def _lanczos(radius):
    return lambda x: np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0)


_TRIANGLE = (lambda x: np.maximum(1 - np.abs(x), 0)), 1
# Those of Pillow, by Keras' names for load_img.
_PILLOW = {"bilinear": _TRIANGLE, "bicubic": (_cubic(-0.5), 2), "lanczos": (_lanczos(3), 3),
           "box": ((lambda x: ((x > -0.5) & (x <= 0.5)).astype(float)), 0.5),
           "hamming": ((lambda x: np.where(np.abs(x) < 1, np.sinc(x) * (
               0.54 + 0.46 * np.cos(np.pi * x)), 0)), 1)}
# Those of keras.ops.image.resize.
_OPS = {"bilinear": _TRIANGLE, "bicubic": (_cubic(-0.5), 2), "lanczos3": (_lanczos(3), 3),
        "lanczos5": (_lanczos(5), 5)}


def _weights(size, to, kernel, radius, antialias, start=0, extent=None):
    """(to, size): the part of each pixel of a row in each of the resized one, which shows the
    `extent` pixels from `start` on."""
    scale = (extent or size) / to
    wide = max(scale, 1.0) if antialias else 1.0
    centres = start + (np.arange(to) + 0.5) * scale
    at = np.arange(size)
    found = kernel((at[None] + 0.5 - centres[:, None]) / wide)
    if antialias:       # as Pillow cuts the kernel
        first = np.maximum((centres - radius * wide + 0.5).astype(int), 0)
        last = np.minimum((centres + radius * wide + 0.5).astype(int), size)
        found = np.where((at >= first[:, None]) & (at < last[:, None]), found, 0)
    return found / found.sum(1, keepdims=True)


def _nearest(to, start, extent):
    """The nearest pixels of a row, at positions that Pillow sums up."""
    scale = extent / to
    return np.cumsum([start + 0.5 * scale] + [scale] * (to - 1)).astype(int)


def _pass(x, axis, to, method, start, extent):
    """Pillow's pass along an axis: weights of 22 bits, rounded to bytes, or doubles for 16 bits."""
    if (x.shape[axis], start) == (to, 0) and extent == to:
        return x
    weights = _weights(x.shape[axis], to, *_PILLOW[method], True, start, extent)
    if x.dtype == np.uint16:
        made = np.floor(np.tensordot(weights, x, (1, axis)) + 0.5)
        return np.moveaxis(np.clip(made, 0, 65535).astype(np.uint16), 0, axis)
    fixed = np.sign(weights) * np.floor(np.abs(weights) * (1 << 22) + 0.5)
    sums = np.tensordot(fixed.astype(np.int64), x.astype(np.int64), (1, axis))
    made = np.clip((sums + (1 << 21)) >> 22, 0, 255).astype(np.uint8)
    return np.moveaxis(made, 0, axis)


def resized_bytes(x, height, width, method, part=None):
    """u8 or u16 (H, W, C), or a part of it, (top, left, rows, columns), to (height, width, C), as
    Pillow's Image.resize."""
    top, left, rows, columns = part or (0, 0) + x.shape[:2]
    if method == "nearest":
        return x[_nearest(height, top, rows)][:, _nearest(width, left, columns)]
    if method not in _PILLOW:
        raise ValueError("interpolation is %r, expected one of nearest, %s"
                         % (method, ", ".join(_PILLOW)))
    return _pass(_pass(x, 1, width, method, left, columns), 0, height, method, top, rows)


def resized(x, height, width, interpolation):
    """(..., H, W, C) to f32 (..., height, width, C), as keras.ops.image.resize."""
    x = np.asarray(x)
    if interpolation == "nearest":
        rows = ((np.arange(height) + 0.5) * x.shape[-3] / height).astype(int)
        columns = ((np.arange(width) + 0.5) * x.shape[-2] / width).astype(int)
        return np.take(np.take(x, rows, -3), columns, -2).astype(np.float32)
    if interpolation not in _OPS:
        raise ValueError("interpolation is %r, expected one of nearest, %s"
                         % (interpolation, ", ".join(_OPS)))
    down = _weights(x.shape[-3], height, *_OPS[interpolation], False).astype(np.float32)
    across = _weights(x.shape[-2], width, *_OPS[interpolation], False).astype(np.float32)
    return np.einsum("ih,...hwc,jw->...ijc", down, x.astype(np.float32), across, optimize=True)


# ---- Images ----

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


class Image:
    """An image of 8 bits a channel, or grey of 16 (mode "I;16"), in Pillow's words: size (width,
    height), mode, resize, convert and save; numpy.asarray(image) are its pixels, (H, W) or
    (H, W, C)."""

    def __init__(self, pixels):
        deep = np.asarray(pixels).dtype == np.uint16
        self._pixels = np.ascontiguousarray(pixels, np.uint16 if deep else np.uint8)

    @property
    def mode(self):
        return "I;16" if self._pixels.dtype == np.uint16 else _MODES[self._pixels.shape[2]]

    @property
    def size(self):
        return self._pixels.shape[1], self._pixels.shape[0]

    width = property(lambda self: self.size[0])
    height = property(lambda self: self.size[1])

    def __array__(self, dtype=None, copy=None):
        pixels = self._pixels[..., 0] if self._pixels.shape[2] == 1 else self._pixels
        return np.array(pixels, dtype)

    def resize(self, size, resample="bicubic"):
        """Another size, (width, height), by "nearest", "bilinear", "bicubic", …"""
        return Image(resized_bytes(self._pixels, size[1], size[0], resample))

    def convert(self, mode):
        """"L" is grey by the weights of ITU-R 601-2, "RGB" three channels."""
        if mode == self.mode:
            return Image(self._pixels)
        if self.mode == "I;16":
            return Image((self._pixels >> 8).astype(np.uint8)).convert(mode)
        if mode == "L":
            r, g, b = (self._pixels[..., i].astype(np.uint32) for i in range(3))
            return Image(((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16)[..., None])
        if mode == "RGB":
            return Image(np.repeat(self._pixels[..., :1], 3, 2) if self.mode == "L" else
                         self._pixels[..., :3])
        raise ValueError("convert: the mode is %r, expected 'L' or 'RGB'" % (mode,))

    def crop(self, box):
        """The part (left, upper, right, lower)."""
        left, upper, right, lower = box
        return Image(self._pixels[upper:lower, left:right])

    def save(self, path, format=None):
        """Writes a PNG file."""
        kind = (format or os.path.splitext(os.fspath(path))[1][1:]).lower()
        if kind != "png":
            raise ValueError("save: the format is %r, expected png" % kind)
        with open(path, "wb") as file:
            file.write(self._repr_png_())

    def _repr_png_(self):
        """The bytes of a PNG file, which notebooks show. Source: the PNG specification, 3rd ed."""
        height, width, channels = self._pixels.shape
        size = self._pixels.itemsize
        rows = np.zeros((height, width * channels * size + 1), np.uint8)    # without a filter
        rows[:, 1:] = self._pixels.astype(">u%d" % size).reshape(height, -1).view(np.uint8)
        header = _binary.pack(">IIBBBBB", width, height, 8 * size, {1: 0, 3: 2, 4: 6}[channels],
                              0, 0, 0)
        parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            _binary.pack(">I", len(data)) + kind + data +
            _binary.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)

    def __repr__(self):
        return "<cornu.utils.Image mode=%s size=%dx%d>" % ((self.mode,) + self.size)


def image_of(pixels):
    """Pillow's image of pixels (H, W, C), which programs hand to functions of Pillow; an Image where
    Pillow is not installed."""
    try:
        from PIL.Image import fromarray     # when the first image is made: the import takes a while
    except ImportError:
        return Image(pixels)
    return fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


class Memory:
    """What the library allocated, freed with the last array of it."""

    def __init__(self, address):
        self._address = address

    def __del__(self):
        lib.free(self._address)


def _read(function, path, channels):
    array = lib.type("CornuArray")()
    function(path, channels, ctypes.addressof(array))
    return array_of(array, Memory(array.data))


_CHANNELS = {"rgb": 3, "grayscale": 1, "rgba": 4}


def read_image(path, color_mode="rgb", deep=False):
    """The pixels of a file, u8 (H, W, C); u16 with `deep` for "grayscale" of a file that is grey
    and has 16 bits, but DICOM, whose window is shown. "rgb" and "grayscale" blend transparent
    images with white."""
    if color_mode not in _CHANNELS:
        raise ValueError("color_mode is %r, expected 'rgb', 'rgba' or 'grayscale'" % (color_mode,))
    path = os.fspath(path)
    if deep and color_mode == "grayscale":
        info = struct("CornuImageInfo")
        lib.cornu_image_info(path, ctypes.addressof(info))
        if info.bits == 16 and info.channels == 1 and info.format != b"DICOM":
            return _read(lib.cornu_image_load_f32, path, 1).astype(np.uint16)
    pixels = _read(lib.cornu_image_load, path, 4 if color_mode == "rgba" else 3)
    if color_mode == "grayscale":
        return np.asarray(Image(pixels).convert("L"))[..., None]
    return pixels


def _centre(height, width, to_height, to_width):
    """The largest centred part of that aspect ratio, as Keras rounds it: top, left, its extents."""
    rows = max(min(height, int(float(width * to_height) / to_width)), 1)
    columns = max(min(width, int(float(height * to_width) / to_height)), 1)
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def load_img(path, color_mode="rgb", target_size=None, interpolation="nearest",
             keep_aspect_ratio=False):
    """The image of a file, of target_size (height, width) if that is given. It is turned as its EXIF
    orientation says; "grayscale" keeps 16 bits, as Keras does."""
    pixels = read_image(path, color_mode, True)
    if target_size is not None and pixels.shape[:2] != tuple(target_size):
        part = _centre(*pixels.shape[:2], *target_size) if keep_aspect_ratio else None
        pixels = resized_bytes(pixels, *target_size, interpolation, part)
    return image_of(pixels)


def _first(data_format):
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError("data_format is %r, expected 'channels_last' or 'channels_first'"
                         % (data_format,))
    return data_format == "channels_first"


def img_to_array(img, data_format=None, dtype=None):
    """An image as float32 (H, W, C), or another dtype."""
    x = np.array(img, dtype or "float32")
    if x.ndim == 2:
        x = x[..., None]
    if x.ndim != 3:
        raise ValueError("img_to_array: the shape is %s, expected (H, W) or (H, W, C)"
                         % (x.shape,))
    return x.transpose(2, 0, 1) if _first(data_format) else x


def array_to_img(x, data_format=None, scale=True, dtype=None):
    """The image of an array (H, W, C), whose least and greatest values become 0 and 255 with
    `scale`."""
    x = np.array(x, dtype or "float32")
    if x.ndim != 3:
        raise ValueError("array_to_img: the shape is %s, expected (H, W, C)" % (x.shape,))
    x = x.transpose(1, 2, 0) if _first(data_format) else x
    if x.shape[2] not in _MODES:
        raise ValueError("array_to_img: there are %d channels, expected 1, 3 or 4" % x.shape[2])
    if scale:
        x = x - x.min()
        x = x / (x.max() or 1) * 255
    return image_of(x.astype(np.uint8))


def save_img(path, x, data_format=None, file_format=None, scale=True, **kwargs):
    """Writes an array (H, W, C) as a PNG file; with Pillow installed, as a file of any format that
    it writes, with its options."""
    image = array_to_img(x, data_format, scale)
    kind = (file_format or os.path.splitext(os.fspath(path))[1][1:]).lower()
    kind = "jpeg" if kind == "jpg" else kind
    if kind == "jpeg" and image.mode == "RGBA":
        image = image.convert("RGB")
    image.save(path, kind, **kwargs)


def smart_resize(x, size, interpolation="bilinear", data_format="channels_last", **kwargs):
    """Images (H, W, C) or (B, H, W, C) of another size, (height, width), without distortion: the
    largest centred part of that aspect ratio, resized."""
    x = np.asarray(x)
    if x.ndim not in (3, 4) or len(size) != 2:
        raise ValueError("smart_resize: the shape is %s and size %r, expected (H, W, C) or "
                         "(B, H, W, C), and two extents" % (x.shape, size))
    x = np.moveaxis(x, -3, -1) if _first(data_format) else x
    top, left, rows, columns = _centre(x.shape[-3], x.shape[-2], *size)
    x = resized(x[..., top:top + rows, left:left + columns, :], *size, interpolation)
    return np.moveaxis(x, -1, -3) if _first(data_format) else x
