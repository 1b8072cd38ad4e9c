"""TensorFlow's functions of indices and of matrices by Cornu's."""

import numpy as np

from .. import ops


def _is_known(x):
    return isinstance(x, (np.ndarray, list, tuple, int))


# ---- Elements by their indices ----

def gather_nd(params, indices, batch_dims=0):
    """Those at indices (…, K), of the first K axes after batch_dims of them."""
    indices, shape = ops.convert_to_tensor(indices), ops.shape(params)
    count, lead = indices.shape[-1], list(ops.shape(indices))[:-1]
    at = [indices[..., i] for i in range(count)]
    for axis in range(batch_dims):
        numbers = ops.cast(ops.arange(shape[axis]), indices.dtype)
        wide = ops.reshape(numbers, [-1 if i == axis else 1 for i in range(len(lead))])
        at.insert(axis, ops.broadcast_to(wide, lead))
    count, flat = count + batch_dims, 0
    for index, extent in zip(at, shape):
        flat = flat * extent + index
    rest = list(shape)[count:]
    return ops.take(ops.reshape(params, [-1, *rest]), flat, axis=0)


def boolean_mask(tensor, mask, axis=None):
    """The rows of a mask whose elements are known; else their number is not."""
    if not _is_known(mask):
        raise NotImplementedError("tf.boolean_mask: the mask is a tensor, %r, so that the number "
                                  "of rows is not known: multiply by it, or use tf.where" % (mask,))
    axis, mask = axis or 0, np.asarray(mask, bool)
    shape, most = list(ops.shape(tensor)), axis + mask.ndim
    flat = ops.reshape(tensor, [*shape[:axis], -1, *shape[most:]])
    return ops.take(flat, np.flatnonzero(mask).astype("int32"), axis=axis)


def scatter_nd(indices, updates, shape):
    return ops.scatter(indices, updates, tuple(shape))


def tensor_scatter_nd_update(tensor, indices, updates):
    return ops.scatter_update(tensor, indices, updates)


def tensor_scatter_nd_add(tensor, indices, updates):
    return tensor + ops.scatter(indices, updates, ops.shape(tensor))


def tensor_scatter_nd_sub(tensor, indices, updates):
    return tensor - ops.scatter(indices, updates, ops.shape(tensor))


def slice_(input_, begin, size):
    """A size of -1 goes to the end."""
    return input_[tuple(slice(int(first), None if count == -1 else int(first) + int(count))
                        for first, count in zip(begin, size))]


def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0,
                  new_axis_mask=0, shrink_axis_mask=0, var=None):
    """Of a mask bit i is axis i: it goes from the beginning, to the end, or is left out."""
    if ellipsis_mask or new_axis_mask:
        raise NotImplementedError("tf.strided_slice: ellipsis_mask and new_axis_mask")
    at = []
    for i, (first, last) in enumerate(zip(begin, end)):
        at.append(int(first) if shrink_axis_mask >> i & 1 else slice(
            None if begin_mask >> i & 1 else int(first), None if end_mask >> i & 1 else int(last),
            None if strides is None else int(strides[i])))
    return input_[tuple(at)]


def sequence_mask(lengths, maxlen=None, dtype="bool"):
    if maxlen is None:
        raise NotImplementedError("tf.sequence_mask without maxlen, of lengths that are a tensor: "
                                  "the extent of the mask is not known")
    made = ops.arange(maxlen) < ops.cast(ops.expand_dims(lengths, -1), "int32")
    return made if dtype == "bool" else ops.cast(made, dtype)


def searchsorted(sorted_sequence, values, side="left", out_type="int32"):
    return ops.cast(ops.searchsorted(sorted_sequence, values, side=side), out_type)


def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype="int32"):
    """Of labels by rows and predictions by columns."""
    if num_classes is None:
        raise NotImplementedError("tf.math.confusion_matrix of tensors without num_classes")
    rows = ops.one_hot(labels, num_classes)
    rows = rows if weights is None else rows * ops.expand_dims(weights, -1)
    return ops.cast(ops.matmul(ops.transpose(rows), ops.one_hot(predictions, num_classes)), dtype)


# ---- Matrices, in the last two axes ----

def _places(x):
    """The numbers of rows, (M, 1), and columns, (N,)."""
    return np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])


def band_part(input, num_lower, num_upper):      # pylint: disable=redefined-builtin
    """Zero below `num_lower` and above `num_upper` diagonals; -1: all stay."""
    rows, columns = _places(input)
    stays = ((num_lower < 0) | (rows - columns <= num_lower)) & \
        ((num_upper < 0) | (columns - rows <= num_upper))
    return ops.where(stays, input, ops.zeros_like(input))


def _main(k):
    if k != 0:
        raise NotImplementedError("tf.linalg: the diagonal k = %r, expected 0" % (k,))


def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0,
         align="RIGHT_LEFT"):
    _main(k)
    return ops.expand_dims(diagonal, -1) * ops.eye(diagonal.shape[-1], dtype=diagonal.dtype)


def diag_part(input, name="diag_part", k=0, padding_value=0,     # pylint: disable=redefined-builtin
              align="RIGHT_LEFT"):
    _main(k)
    return ops.diagonal(input, axis1=-2, axis2=-1)


def set_diag(input, diagonal, name="set_diag", k=0,     # pylint: disable=redefined-builtin
             align="RIGHT_LEFT"):
    _main(k)
    rows, columns = _places(input)
    wide = ops.expand_dims(diagonal, -1 if input.shape[-2] <= input.shape[-1] else -2)
    return ops.where(rows == columns, wide, input)


def trace(x):
    return ops.sum(ops.diagonal(x, axis1=-2, axis2=-1), axis=-1)


# ---- Norms ----

def global_norm(t_list):
    return ops.sqrt(sum(ops.sum(ops.square(t)) for t in t_list))


def clip_by_global_norm(t_list, clip_norm, use_norm=None):
    found = global_norm(t_list) if use_norm is None else use_norm
    scale = clip_norm / ops.maximum(found, clip_norm)
    return [t * scale for t in t_list], found


def reduce_euclidean_norm(input_tensor, axis=None, keepdims=False):
    return ops.sqrt(ops.sum(ops.square(input_tensor), axis=axis, keepdims=keepdims))


def count_nonzero(input, axis=None, keepdims=None,      # pylint: disable=redefined-builtin
                  dtype="int64"):
    return ops.sum(ops.cast(ops.not_equal(input, 0), dtype), axis=axis, keepdims=bool(keepdims))


FUNCTIONS = {made.__name__: made for made in (
    gather_nd, boolean_mask, scatter_nd, tensor_scatter_nd_update, tensor_scatter_nd_add,
    tensor_scatter_nd_sub, strided_slice, sequence_mask, searchsorted, clip_by_global_norm)}
FUNCTIONS.update({"linalg." + made.__name__: made for made in (
    band_part, diag, diag_part, set_diag, trace, global_norm)})
FUNCTIONS.update({"math." + made.__name__: made for made in (
    reduce_euclidean_norm, count_nonzero, confusion_matrix)})
FUNCTIONS["slice"] = slice_
