"""Resized images, from Keras: tests/golden/images/resize.txt.

    KERAS_BACKEND=jax python make_images.py

A case is a line "interpolation crop H W height width", then the values of the resized image. The
image is u8 (H, W, 2) with (31 h + 57 w w + 101 c + 7 h w) % 256 in it.
"""
import keras
import numpy as np

from common import folder

CASES = [
    ("bilinear", 0, 5, 7, 3, 4), ("bilinear", 0, 5, 7, 11, 13), ("bilinear", 0, 1, 1, 2, 3),
    ("bilinear", 0, 9, 4, 9, 4), ("bilinear", 0, 16, 12, 4, 3), ("nearest", 0, 5, 7, 3, 4),
    ("nearest", 0, 5, 7, 11, 13), ("bilinear", 1, 5, 12, 4, 4), ("bilinear", 1, 13, 6, 3, 5),
    ("nearest", 1, 8, 3, 5, 5),
]


def main():
    out = folder("images")
    with open(out / "resize.txt", "w") as file:
        for interpolation, crop, H, W, height, width in CASES:
            h, w, c = np.meshgrid(np.arange(H), np.arange(W), np.arange(2), indexing="ij")
            image = ((31 * h + 57 * w * w + 101 * c + 7 * h * w) % 256).astype("float32")
            if crop:
                image = keras.preprocessing.image.smart_resize(image, (height, width), interpolation)
            else:
                image = keras.ops.image.resize(image, (height, width), interpolation,
                                               antialias=False)
            print(interpolation, crop, H, W, height, width, file=file)
            print(*(f"{x:.4f}" for x in np.asarray(image).ravel()), file=file)


if __name__ == "__main__":
    main()
