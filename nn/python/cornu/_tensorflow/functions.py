"""TensorFlow's functions by Cornu's: each with TensorFlow's arguments, by their names there.

Any number of operands is one argument, a tuple, as is what else is given by name: `kwargs`.
"""

import numpy as np

from .. import ops, random
from . import complex as complex_numbers, images, indexing


# ---- Those that differ by their arguments' names alone ----

def _by_place(operation):
    return lambda **given: operation(*given.values())


_SAME = {
    "add": "add", "subtract": "subtract", "multiply": "multiply",
    "divide": "true_divide", "math.divide_no_nan": "divide_no_nan",
    "math.floordiv": "floor_divide", "math.floormod": "mod", "math.mod": "mod", "pow": "power",
    "negative": "negative", "math.reciprocal": "reciprocal", "sign": "sign", "square": "square",
    "sqrt": "sqrt", "math.rsqrt": "rsqrt", "exp": "exp", "math.expm1": "expm1",
    "math.log": "log", "math.log1p": "log1p", "math.erf": "erf", "sin": "sin", "cos": "cos",
    "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "floor": "floor",
    "math.ceil": "ceil", "round": "round", "maximum": "maximum", "minimum": "minimum",
    "equal": "equal", "not_equal": "not_equal", "less": "less", "less_equal": "less_equal",
    "greater": "greater", "greater_equal": "greater_equal", "logical_and": "logical_and",
    "logical_or": "logical_or", "logical_not": "logical_not", "math.logical_xor": "logical_xor",
    "math.is_nan": "isnan", "math.is_inf": "isinf", "math.is_finite": "isfinite",
    "sigmoid": "sigmoid", "math.log_sigmoid": "log_sigmoid", "math.softplus": "softplus",
    "nn.relu": "relu", "nn.relu6": "relu6", "nn.elu": "elu", "nn.selu": "selu",
    "nn.softsign": "softsign", "nn.silu": "silu", "identity": "copy",
    "stop_gradient": "stop_gradient", "reshape": "reshape", "expand_dims": "expand_dims",
    "tile": "tile", "broadcast_to": "broadcast_to", "reverse": "flip", "roll": "roll",
    "repeat": "repeat", "squeeze": "squeeze", "transpose": "transpose", "tensordot": "tensordot",
    "clip_by_value": "clip", "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "max",
    "reduce_min": "min", "reduce_prod": "prod", "reduce_any": "any", "reduce_all": "all",
    "math.reduce_std": "std", "math.reduce_variance": "var", "reduce_logsumexp": "logsumexp",
    "concat": "concatenate", "stack": "stack", "fill": "full", "shape": "shape", "size": "size",
    "rank": "ndim", "bincount": "bincount", "math.segment_sum": "segment_sum",
    "math.unsorted_segment_sum": "segment_sum", "math.unsorted_segment_max": "segment_max",
    "math.unsorted_segment_min": "segment_min", "math.unsorted_segment_prod": "segment_prod",
    "image.rgb_to_grayscale": "rgb_to_grayscale", "image.rgb_to_hsv": "rgb_to_hsv",
    "image.hsv_to_rgb": "hsv_to_rgb", "nn.depth_to_space": "depth_to_space",
    "nn.space_to_depth": "space_to_depth",
}


# ---- Making and shaping ----

def convert_to_tensor(value, dtype=None, dtype_hint=None):
    return ops.convert_to_tensor(value, dtype)


def ones(shape, dtype="float32"):
    return ops.ones(shape, dtype)


def zeros(shape, dtype="float32"):
    return ops.zeros(shape, dtype)


def ones_like(input, dtype=None):       # pylint: disable=redefined-builtin
    return ops.ones_like(input, dtype=dtype)


def zeros_like(input, dtype=None):      # pylint: disable=redefined-builtin
    return ops.zeros_like(input, dtype=dtype)


def range_(start, limit=None, delta=1, dtype=None):
    return ops.arange(start, limit, delta, dtype=dtype)


def linspace(start, stop, num, axis=0):
    return ops.linspace(start, stop, num, axis=axis)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32"):
    made = ops.eye(num_rows, num_columns, dtype=dtype)
    return made if batch_shape is None else ops.broadcast_to(made, [*batch_shape, *made.shape])


def meshgrid(args, kwargs=None):
    return ops.meshgrid(*args, **kwargs or {})


def one_hot(indices, depth, on_value=None, off_value=None, axis=-1, dtype="float32"):
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
    made = ops.one_hot(indices, depth, axis=axis, dtype=dtype)
    return made if (on, off) == (1, 0) else made * (on - off) + off


def pad(tensor, paddings, mode="CONSTANT", constant_values=0):
    mode = mode.lower()
    return ops.pad(tensor, np.asarray(paddings).tolist(), mode=mode,
                   constant_values=constant_values if mode == "constant" else None)


def split(value, num_or_size_splits, axis=0, num=None):
    """Sizes are those of the parts, of which one may be -1; Keras has places to cut at."""
    sizes = num_or_size_splits
    if not isinstance(sizes, int):
        sizes = np.array(sizes)
        sizes[sizes < 0] = np.shape(value)[axis] - sizes[sizes >= 0].sum() if -1 in sizes else 0
        sizes = np.cumsum(sizes)[:-1].tolist()
    return ops.split(value, sizes, axis=axis)


def unstack(value, num=None, axis=0):
    return ops.unstack(value, num, axis)


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0):
    """Of batch_dims leading axes, rows have indices of their own."""
    axis = batch_dims if axis is None else axis
    if not batch_dims:
        return ops.take(params, indices, axis=axis)
    if batch_dims != axis or batch_dims != len(indices.shape) - 1:
        raise NotImplementedError("tf.gather: batch_dims %d with the axis %d and indices of %d "
                                  "axes, expected indices with one axis more than batch_dims"
                                  % (batch_dims, axis, len(indices.shape)))
    rest = len(params.shape) - axis - 1
    wide = ops.reshape(indices, [*ops.shape(indices), *[1] * rest])
    return ops.take_along_axis(params, ops.broadcast_to(
        wide, [*ops.shape(indices), *ops.shape(params)[axis + 1:]]), axis=axis)


def where(condition, x=None, y=None):
    return ops.where(condition, x, y)


def cumulative(scan, start):
    """Exclusive sums and products begin with their neutral element."""
    def call(x, axis=0, exclusive=False, reverse=False):
        x = ops.flip(x, axis) if reverse else x
        made = scan(x, axis=axis)
        if exclusive:
            ends = [(1, 0) if i == axis % len(x.shape) else (0, 0) for i in range(len(x.shape))]
            cut = tuple(slice(0, -1) if width[0] else slice(None) for width in ends)
            made = ops.pad(made[cut], ends, constant_values=start)
        return ops.flip(made, axis) if reverse else made
    return call


def sort(values, axis=-1, direction="ASCENDING"):
    made = ops.sort(values, axis=axis)
    return made if direction == "ASCENDING" else ops.flip(made, axis)


def argsort(values, axis=-1, direction="ASCENDING", stable=False):
    return ops.argsort(values if direction == "ASCENDING" else -values, axis=axis)


def arg(extreme):
    def call(input, axis=0, output_type=None):      # pylint: disable=redefined-builtin
        return extreme(input, axis=axis)
    return call


def top_k(input, k=1, sorted=True, index_type=None):    # pylint: disable=redefined-builtin
    return ops.top_k(input, k, sorted)


def in_top_k(targets, predictions, k):
    return ops.in_top_k(targets, predictions, k)


# ---- Sums and products ----

def matmul(a, b, transpose_a=False, transpose_b=False):
    return ops.matmul(ops.swapaxes(a, -1, -2) if transpose_a else a,
                      ops.swapaxes(b, -1, -2) if transpose_b else b)


def einsum(equation, inputs, kwargs=None):
    return ops.einsum(equation, *inputs)


def add_n(inputs):
    return sum(inputs[1:], inputs[0])


def norm(tensor, ord="euclidean", axis=None, keepdims=None):    # pylint: disable=redefined-builtin
    if ord == "euclidean":      # of all elements, if no axis is given
        return ops.sqrt(ops.sum(ops.square(tensor), axis=axis, keepdims=bool(keepdims)))
    return ops.norm(tensor, ord=ord, axis=axis, keepdims=bool(keepdims))


def l2_normalize(x, axis=None, epsilon=1e-12):
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=axis, keepdims=True), epsilon))


def clip_by_norm(t, clip_norm, axes=None):
    return t * (clip_norm / ops.maximum(norm(t, axis=axes, keepdims=True), clip_norm))


def l2_loss(t):
    return ops.sum(ops.square(t)) / 2


def squared_difference(x, y):
    return ops.square(x - y)


def xlogy(x, y):
    """0 where x is."""
    return ops.where(ops.equal(x, 0), 0.0, x * ops.log(ops.where(ops.equal(x, 0), 1.0, y)))


def saturate_cast(value, dtype):
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        value = ops.clip(value, np.iinfo(kind).min, np.iinfo(kind).max)
    return ops.cast(value, dtype)


def ensure_shape(x, shape):
    wanted = tuple(shape)
    if len(wanted) != len(x.shape) or any(
            a is not None and b is not None and a != b for a, b in zip(wanted, x.shape)):
        raise ValueError("tf.ensure_shape: the shape is %s, expected %s" % (x.shape, wanted))
    return x


def zero_fraction(value):
    return ops.mean(ops.cast(ops.equal(value, 0), "float32"))


def segment_mean(data, segment_ids, num_segments):
    """Of segments without rows 0."""
    count = ops.segment_sum(ops.ones_like(data), segment_ids, num_segments)
    return ops.segment_sum(data, segment_ids, num_segments) / ops.maximum(count, 1)


# ---- Networks ----

def softmax(logits, axis=-1):
    return ops.softmax(logits, axis=-1 if axis is None else axis)


def log_softmax(logits, axis=-1):
    return ops.log_softmax(logits, axis=-1 if axis is None else axis)


def leaky_relu(features, alpha=0.2):
    return ops.leaky_relu(features, alpha)


def gelu(features, approximate=False):
    return ops.gelu(features, approximate)


def _extents(given, count):
    """The extents of windows, strides or dilations without the batch and the channels."""
    if given is None or isinstance(given, int):
        return given
    given = [int(v) for v in given]
    return given * count if len(given) == 1 else given[1:1 + count] if len(given) > count else given


def convolution(operation, count):
    def call(input, filters, strides, padding,      # pylint: disable=redefined-builtin
             data_format=None, dilations=None):
        _check_format(data_format)
        return operation(input, filters, _extents(strides, count), padding.lower(),
                         dilation_rate=_extents(dilations, count) or 1)
    return call


def depthwise_conv2d(input, filter, strides, padding,   # pylint: disable=redefined-builtin
                     data_format=None, dilations=None):
    return convolution(ops.depthwise_conv, 2)(input, filter, strides, padding, data_format,
                                              dilations)


def conv2d_transpose(input, filters, output_shape,      # pylint: disable=redefined-builtin
                     strides, padding="SAME", data_format=None, dilations=None):
    _check_format(data_format)
    return ops.conv_transpose(input, filters, _extents(strides, 2), padding.lower(),
                              dilation_rate=_extents(dilations, 2) or 1)


def pooling(operation, count):
    def call(input, ksize, strides, padding,            # pylint: disable=redefined-builtin
             data_format=None):
        _check_format(data_format)
        return operation(input, _extents(ksize, count), _extents(strides, count), padding.lower())
    return call


def _check_format(data_format):
    if data_format is not None and not data_format.endswith("C"):
        raise NotImplementedError("the data format %s, expected channels last" % data_format)


def moments(x, axes, shift=None, keepdims=False):
    return ops.moments(x, axes, keepdims=keepdims)


def sigmoid_cross_entropy_with_logits(labels, logits):
    return ops.relu(logits) - logits * labels + ops.log1p(ops.exp(-ops.absolute(logits)))


def softmax_cross_entropy_with_logits(labels, logits, axis=-1):
    return -ops.sum(labels * ops.log_softmax(logits, axis=axis), axis=axis)


def sparse_softmax_cross_entropy_with_logits(labels, logits):
    return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def embedding_lookup(params, ids, max_norm=None):
    return ops.take(params, ids, axis=0)


def bias_add(value, bias, data_format=None):
    _check_format(data_format)
    return value + bias


def dropout(x, rate, noise_shape=None, seed=None):
    return random.dropout(x, rate, noise_shape, seed)


def weighted_cross_entropy_with_logits(labels, logits, pos_weight):
    """Positive labels weigh pos_weight."""
    weight = 1 + (pos_weight - 1) * labels
    return (1 - labels) * logits + weight * (
        ops.log1p(ops.exp(-ops.absolute(logits))) + ops.relu(-logits))


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None,
             blank_index=None):
    """Of each sequence, in nats; labels (B, L), logits (T, B, C) or (B, T, C)."""
    logits = ops.transpose(logits, (1, 0, 2)) if logits_time_major else logits
    return ops.ctc_loss(labels, logits, label_length, logit_length, mask_index=blank_index or 0)


def separable_conv2d(input, depthwise_filter,           # pylint: disable=redefined-builtin
                     pointwise_filter, strides, padding, data_format=None, dilations=None):
    _check_format(data_format)
    return ops.separable_conv(input, depthwise_filter, pointwise_filter, _extents(strides, 2),
                              padding.lower(), dilation_rate=_extents(dilations, 2) or 1)


FUNCTIONS = {name: _by_place(getattr(ops, operation)) for name, operation in _SAME.items()
             if hasattr(ops, operation)}
FUNCTIONS.update({made.__name__: made for made in (
    convert_to_tensor, ones, zeros, ones_like, zeros_like, linspace, eye, meshgrid, one_hot,
    pad, split, unstack, gather, where, sort, argsort, matmul, einsum, add_n, norm,
    clip_by_norm, saturate_cast, ensure_shape)})
FUNCTIONS.update({"nn." + made.__name__: made for made in (
    softmax, log_softmax, leaky_relu, gelu, depthwise_conv2d, conv2d_transpose, moments, l2_loss,
    sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits, embedding_lookup, bias_add, dropout, zero_fraction,
    weighted_cross_entropy_with_logits, ctc_loss, separable_conv2d)})
FUNCTIONS.update({
    "range": range_, "argmax": arg(ops.argmax), "argmin": arg(ops.argmin),
    "cumsum": cumulative(ops.cumsum, 0), "math.cumprod": cumulative(ops.cumprod, 1),
    "math.top_k": top_k, "math.in_top_k": in_top_k, "math.l2_normalize": l2_normalize,
    "math.unsorted_segment_mean": segment_mean, "math.accumulate_n": add_n,
    "math.squared_difference": squared_difference, "math.xlogy": xlogy,
    "nn.conv1d": convolution(ops.conv, 1), "nn.conv2d": convolution(ops.conv, 2),
    "nn.conv3d": convolution(ops.conv, 3),
    "nn.avg_pool1d": pooling(ops.average_pool, 1), "nn.avg_pool2d": pooling(ops.average_pool, 2),
    "nn.max_pool1d": pooling(ops.max_pool, 1), "nn.max_pool2d": pooling(ops.max_pool, 2),
})
FUNCTIONS.update(complex_numbers.FUNCTIONS)
FUNCTIONS.update(images.FUNCTIONS)
FUNCTIONS.update(indexing.FUNCTIONS)
