"""TensorFlow's functions of images, (H, W, C) or (B, H, W, C), by Cornu's."""

import numpy as np

from .. import ops, random


def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False):
    """Floats, but of whole numbers by method="nearest"."""
    if method != "nearest" and "int" in str(images.dtype):
        images = ops.cast(images, "float32")
    return ops.image.resize(images, [int(v) for v in size], interpolation=method,
                            antialias=antialias)


def convert_image_dtype(image, dtype, saturate=False):
    kind = str(image.dtype)
    if "float" not in str(dtype):
        raise TypeError("tf.image.convert_image_dtype of %s to %s, expected floats" % (kind, dtype))
    image = ops.cast(image, dtype)
    return image if "float" in kind else image / float(np.iinfo(kind).max)


def _as_floats(max_val, a, b):
    """Both images, those of whole numbers in [0, 1], and the largest value of the first one's."""
    kind = str(a.dtype)
    if "float" not in kind:
        max_val = max_val / np.iinfo(kind).max
    return float(max_val), convert_image_dtype(a, "float32"), convert_image_dtype(b, "float32")


def flip_left_right(image):
    return ops.flip(image, -2)


def flip_up_down(image):
    return ops.flip(image, -3)


def grayscale_to_rgb(images):
    return ops.repeat(images, 3, -1)


def rot90(image, k=1):
    """Counterclockwise, k times by 90 degrees."""
    rows, columns = len(image.shape) - 3, len(image.shape) - 2
    if k % 4 == 2:
        return ops.flip(ops.flip(image, rows), columns)
    if k % 2 == 0:
        return image
    axes = list(range(len(image.shape)))
    axes[rows], axes[columns] = columns, rows
    return ops.flip(ops.transpose(image, axes), rows if k % 4 == 1 else columns)


# ---- Parts ----

def _cut(image, top, left, height, width):
    return image[..., top:top + height, left:left + width, :]


def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    return _cut(image, offset_height, offset_width, target_height, target_width)


def _padded(image, top, left, height, width):
    rows, columns = image.shape[-3], image.shape[-2]
    ends = [(top, height - top - rows), (left, width - left - columns), (0, 0)]
    return ops.pad(image, [(0, 0)] * (len(image.shape) - 3) + ends)


def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    return _padded(image, offset_height, offset_width, target_height, target_width)


def central_crop(image, central_fraction):
    height, width = image.shape[-3], image.shape[-2]
    top, left = (int((n - n * central_fraction) / 2) for n in (height, width))
    return _cut(image, top, left, height - 2 * top, width - 2 * left)


def resize_with_crop_or_pad(image, target_height, target_width):
    height, width = image.shape[-3], image.shape[-2]
    image = _cut(image, max(height - target_height, 0) // 2, max(width - target_width, 0) // 2,
                 min(height, target_height), min(width, target_width))
    return _padded(image, max(target_height - height, 0) // 2, max(target_width - width, 0) // 2,
                   target_height, target_width)


def extract_patches(images, sizes, strides, rates, padding):
    return ops.image.extract_patches(images, sizes[1:3], strides=strides[1:3],
                                     dilation_rate=rates[1:3], padding=padding.lower())


# ---- Colours ----

def adjust_brightness(image, delta):
    return image + delta


def adjust_contrast(images, contrast_factor):
    mean = ops.mean(images, axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor + mean


def _in_hsv(image, change):
    return ops.image.hsv_to_rgb(ops.concatenate(
        change(*ops.split(ops.image.rgb_to_hsv(image), 3, axis=-1)), axis=-1))


def adjust_saturation(image, saturation_factor):
    return _in_hsv(image, lambda h, s, v: [h, ops.clip(s * saturation_factor, 0, 1), v])


def adjust_hue(image, delta):
    return _in_hsv(image, lambda h, s, v: [ops.mod(h + delta, 1.0), s, v])


def per_image_standardization(image):
    axes = (-3, -2, -1)
    least = 1 / np.sqrt(np.prod(image.shape[-3:]))
    deviation = ops.maximum(ops.std(image, axis=axes, keepdims=True), least)
    return (image - ops.mean(image, axis=axes, keepdims=True)) / deviation


# ---- At random ----

def _between(low, high, seed):
    return random.uniform((), low, high, seed=seed)


def random_brightness(image, max_delta, seed=None):
    return adjust_brightness(image, _between(-max_delta, max_delta, seed))


def random_contrast(image, lower, upper, seed=None):
    return adjust_contrast(image, _between(lower, upper, seed))


def random_saturation(image, lower, upper, seed=None):
    return adjust_saturation(image, _between(lower, upper, seed))


def random_hue(image, max_delta, seed=None):
    return adjust_hue(image, _between(-max_delta, max_delta, seed))


def _flipped(image, flip, seed):
    """Half of the images."""
    shape = (*ops.shape(image)[:-3], 1, 1, 1)
    return ops.where(random.uniform(shape, seed=seed) < 0.5, flip(image), image)


def random_flip_left_right(image, seed=None):
    return _flipped(image, flip_left_right, seed)


def random_flip_up_down(image, seed=None):
    return _flipped(image, flip_up_down, seed)


# ---- Measures ----

def total_variation(images):
    """The sum of the differences of neighbours, of each image."""
    return sum(ops.sum(ops.absolute(change), axis=(-3, -2, -1)) for change in (
        images[..., 1:, :, :] - images[..., :-1, :, :],
        images[..., :, 1:, :] - images[..., :, :-1, :]))


def psnr(a, b, max_val):
    """In dB, of each image. Source: "Image Quality Metrics: PSNR vs. SSIM", 2010, section 2."""
    max_val, a, b = _as_floats(max_val, a, b)
    return 10 * ops.log10(max_val ** 2 / ops.mean(ops.square(a - b), axis=(-3, -2, -1)))


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03,
         return_index_map=False):
    """Of each image. Source: Wang and others, "Image Quality Assessment: From Error Visibility to
    Structural Similarity", 2004, section III.B."""
    max_val, img1, img2 = _as_floats(max_val, img1, img2)
    channels = img1.shape[-1]
    at = np.arange(filter_size) - (filter_size - 1) / 2
    line = np.exp(-at ** 2 / (2 * filter_sigma ** 2))
    window = np.outer(line, line) / line.sum() ** 2
    window = np.tile(window[:, :, None, None], (1, 1, channels, 1)).astype(np.float32)

    def local(x):
        return ops.depthwise_conv(x, window)

    mean1, mean2 = local(img1), local(img2)
    products, squares = mean1 * mean2, ops.square(mean1) + ops.square(mean2)
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    covariance = local(img1 * img2) - products
    variances = local(ops.square(img1) + ops.square(img2)) - squares
    made = (2 * products + c1) / (squares + c1) * (2 * covariance + c2) / (variances + c2)
    return ops.mean(made, -1) if return_index_map else ops.mean(made, (-3, -2, -1))


FUNCTIONS = {"image." + made.__name__: made for made in (
    resize, extract_patches, convert_image_dtype, flip_left_right, flip_up_down, grayscale_to_rgb,
    rot90, crop_to_bounding_box, pad_to_bounding_box, central_crop, resize_with_crop_or_pad,
    adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue, per_image_standardization)}

# Those that ask for no counterpart, or only once they have drawn: see connect.py.
REPLACED = {made.__name__: made for made in (
    random_brightness, random_contrast, random_saturation, random_hue, random_flip_left_right,
    random_flip_up_down, total_variation, psnr, ssim)}
