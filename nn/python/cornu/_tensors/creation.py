"""Keras' operations that make arrays: of numbers they are NumPy's arrays; of extents of symbolic
tensors, or of tensors, they are computed by the model."""

import numpy as np

from .extents import Extent, Extents, as_extents
from .operators import operate
from .symbols import find_tensor
from .traces import tracing
from .values import Array, to_array


def _made(array, dtype=None):
    return to_array(array, dtype).view(Array)


def _computed(*values):
    return find_tensor(values) is not None


def _shape(shape):
    return [shape] if isinstance(shape, Extent) or np.ndim(shape) == 0 and \
        not isinstance(shape, Extents) else list(shape)


def _with_rows(shape):
    """Within a layer's call None in the place of the rows, as x.shape has it, is their number."""
    anchor = tracing().anchor if tracing() is not None else None
    if anchor is None or not isinstance(shape, (list, tuple)) or not shape or shape[0] is not None:
        return shape
    return [Extent(anchor, 0), *shape[1:]]


def full(shape, fill_value, dtype=None):
    """keras.ops.full."""
    shape = _with_rows(as_extents(shape))
    if _computed(shape, fill_value):
        return operate("full", _shape(shape), fill_value, dtype=dtype)
    return _made(np.full(shape, to_array(fill_value)), dtype)


def zeros(shape, dtype=None):
    """keras.ops.zeros."""
    return full(shape, 0.0, dtype or "float32")


def ones(shape, dtype=None):
    """keras.ops.ones."""
    return full(shape, 1.0, dtype or "float32")


def empty(shape, dtype=None):
    """keras.ops.empty: zeros."""
    return zeros(shape, dtype)


def arange(start, stop=None, step=None, dtype=None):
    """keras.ops.arange."""
    if _computed(start, stop, step):
        return operate("arange", start, stop, step, dtype=dtype)
    given = [v for v in (start, stop, step) if v is not None]
    usual = "int32" if all(np.asarray(v).dtype.kind in "iub" for v in given) else "float32"
    if step is None:
        step = 1
    return _made(np.arange(start, step=step) if stop is None else np.arange(start, stop, step),
                 dtype or usual)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """keras.ops.linspace."""
    if _computed(start, stop, num):
        return operate("linspace", start, stop, num=num, endpoint=endpoint, retstep=retstep,
                       dtype=dtype, axis=axis)
    made = np.linspace(start, stop, num, endpoint, retstep, axis=axis)
    if retstep:
        return _made(made[0], dtype or "float32"), made[1]
    return _made(made, dtype or "float32")


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    """keras.ops.logspace, of numbers."""
    return _made(np.logspace(start, stop, num, endpoint, base, axis=axis), dtype or "float32")


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """keras.ops.geomspace, of numbers."""
    return _made(np.geomspace(start, stop, num, endpoint, axis=axis), dtype or "float32")


def _band(compare, N, M, k, dtype):
    """Where the distance of column and row compares to k."""
    i, j = arange(N), arange(N if M is None else M)
    column = operate("expand_dims", i, 1) if k == 0 else operate("add", operate("expand_dims", i,
                                                                                1), k)
    return operate("cast", operate(compare, operate("expand_dims", j, 0), column),
                   dtype or "float32")


def eye(N, M=None, k=0, dtype=None):
    """keras.ops.eye."""
    if _computed(N, M, k):
        return _band("equal", N, M, k, dtype)
    return _made(np.eye(N, M, k), dtype or "float32")


def identity(n, dtype=None):
    """keras.ops.identity."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """keras.ops.tri: ones at and below diagonal k."""
    if _computed(N, M, k):
        return _band("less_equal", N, M, k, dtype)
    return _made(np.tri(N, M, k), dtype or "float32")


def bartlett(x):
    """keras.ops.bartlett."""
    return _made(np.bartlett(int(x)))


def blackman(x):
    """keras.ops.blackman."""
    return _made(np.blackman(int(x)))


def hamming(x):
    """keras.ops.hamming."""
    return _made(np.hamming(int(x)))


def hanning(x):
    """keras.ops.hanning."""
    return _made(np.hanning(int(x)))


def kaiser(x, beta):
    """keras.ops.kaiser."""
    return _made(np.kaiser(int(x), beta))


MADE = (full, zeros, ones, empty, arange, linspace, logspace, geomspace, eye, identity, tri,
        bartlett, blackman, hamming, hanning, kaiser)
