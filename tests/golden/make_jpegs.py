"""JPEG images and what Pillow (libjpeg-turbo) decodes them to: tests/golden/jpegs/*.jpg, pixels.txt.

    python make_jpegs.py        # needs NumPy and Pillow alone

A case is a line "NAME H W", then red, green and blue of each pixel. Where the colours of a file
with four components are not marked, Pillow, Keras' load_img and browsers take them as Adobe stores
them, 0 for full ink.
"""
import io
import pathlib
import platform

import numpy as np
import PIL
from PIL import Image, features


def encode(image, **settings):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=100, **settings)
    return file.getvalue()


def bands(width, subsampling):
    """Red and blue, two columns each, so that columns between them depend on the weights."""
    pixels = np.zeros((8, width, 3), "uint8")
    for w in range(width):
        pixels[:, w] = (255, 0, 0) if w // 2 % 2 == 0 else (0, 0, 255)
    return encode(Image.fromarray(pixels), subsampling=subsampling)


def four(stored, adobe):
    """8 x 8 pixels of four components, stored so, with a marker of Adobe's that says `adobe`, the
    transform, or without one."""
    file = encode(Image.new("CMYK", (8, 8), tuple(255 - value for value in stored)))
    marker = file.index(b"\xff\xee")
    end = marker + 16
    assert file[marker + 4:marker + 9] == b"Adobe"
    if adobe is None:
        return file[:marker] + file[end:]
    return file[:end - 1] + bytes([adobe]) + file[end:]


CASES = {
    "bands_422": bands(6, "4:2:2"), "bands_422_odd": bands(7, "4:2:2"),
    "bands_422_one": bands(2, "4:2:2"), "bands_420": bands(6, "4:2:0"),
    "bands_444": bands(6, "4:4:4"), "cmyk_adobe": four((200, 60, 20, 255), 0),
    "cmyk_unmarked": four((200, 60, 20, 255), None), "cmyk_dark": four((200, 60, 20, 128), None),
    "ycck": four((97, 84, 201, 255), 2), "ycck_by_default": four((97, 84, 201, 255), 1),
}


def main():
    out = pathlib.Path(__file__).resolve().parent / "jpegs"
    out.mkdir(exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    (out / "VERSIONS").write_text(f"python {platform.python_version()}\npillow {PIL.__version__}\n"
                                  f"libjpeg-turbo {features.version('libjpeg_turbo')}\n")
    with open(out / "pixels.txt", "w") as file:
        for name, image in CASES.items():
            (out / f"{name}.jpg").write_bytes(image)
            pixels = np.asarray(Image.open(io.BytesIO(image)).convert("RGB"))
            print(name, *pixels.shape[:2], file=file)
            print(*pixels.ravel(), file=file)


if __name__ == "__main__":
    main()
