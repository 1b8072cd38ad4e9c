"""Operations of Keras that are a few others."""

import numpy as np

from .ctc import ctc_decode
from .operators import operate, users_line
from .symbols import find_tensor
from .values import Array, Value, to_array
from .._tensorflow import cast_sparse


def cast(x, dtype, name=None):      # pylint: disable=redefined-outer-name
    """keras.ops.cast; TensorFlow's sparse tensors stay such."""
    made = cast_sparse(x, dtype)
    given = {} if name is None else {"name": name}
    return operate("cast", x, dtype, **given) if made is NotImplemented else made


def _split(x, indices_or_sections, axis):
    given = indices_or_sections
    return operate("split", x, list(given) if isinstance(given, (tuple, list)) else given, axis)


def vsplit(x, indices_or_sections):
    """keras.ops.vsplit: along axis 0."""
    return _split(x, indices_or_sections, 0)


def hsplit(x, indices_or_sections):
    """keras.ops.hsplit: along axis 1, of a vector along axis 0."""
    return _split(x, indices_or_sections, 1 if len(np.shape(x)) > 1 else 0)


def dsplit(x, indices_or_sections):
    """keras.ops.dsplit: along axis 2."""
    return _split(x, indices_or_sections, 2)


def dtype(x):
    """keras.ops.dtype: its name."""
    given = getattr(x, "dtype", None)
    return to_array(x).dtype.name if given is None else getattr(given, "name", given)


def argpartition(x, kth, axis=-1):
    """keras.ops.argpartition: the indices that sort x, which do."""
    return operate("argsort", x, axis)


def _nan_argument(name, sign, x, axis, keepdims):
    missing = operate("isnan", x)
    last = operate("log", operate("zeros_like", x)) * sign      # an infinity, which files have not
    found = operate(name, operate("where", missing, last, x), axis, keepdims)
    none = operate("all", missing, axis, keepdims)
    return operate("where", none, -1, found)


def nanargmax(x, axis=None, keepdims=False):
    """keras.ops.nanargmax; -1 where all are nan."""
    return _nan_argument("argmax", 1.0, x, axis, keepdims)


def nanargmin(x, axis=None, keepdims=False):
    """keras.ops.nanargmin; -1 where all are nan."""
    return _nan_argument("argmin", -1.0, x, axis, keepdims)


def corrcoef(x):
    """keras.ops.corrcoef: of the rows of x (N, samples), (N, N)."""
    x = operate("cast", x, "float32")
    x = x - operate("mean", x, -1, True)
    covariance = operate("matmul", x, operate("transpose", x))
    deviation = operate("sqrt", operate("diagonal", covariance))
    made = covariance / operate("expand_dims", deviation, 1) / operate("expand_dims", deviation, 0)
    return operate("clip", made, -1.0, 1.0)


def _of_arrays(name, compute):
    """An operation whose result has a shape or a method that a compiled step has not: NumPy's, of
    arrays alone."""
    def call(*values, **arguments):
        if find_tensor([*values, *arguments.values()]) is not None or \
                any(isinstance(v, Value) for v in values):
            raise NotImplementedError("ops.%s is computed of arrays, and not in a model or a "
                                      "cornu.function; in %s" % (name, users_line()))
        made = compute(*[np.asarray(to_array(v)) if hasattr(v, "__array__") else v
                         for v in values], **arguments)
        if isinstance(made, tuple):
            return tuple(to_array(each).view(Array) for each in made)
        return to_array(made).view(Array)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "keras.ops.%s, of arrays." % name
    return call


def _svd(x, full_matrices=True, compute_uv=True):
    made = np.linalg.svd(x, full_matrices, compute_uv)
    return tuple(made) if compute_uv else made


def _bincount(x, weights=None, minlength=0, sparse=False):
    def row(numbers, weight):
        return np.bincount(numbers, weight, max(minlength, int(x.max(initial=-1)) + 1))
    weights = weights if weights is None else np.asarray(weights)
    if x.ndim == 1:
        return row(x, weights)
    return np.stack([row(x[i], None if weights is None else weights[i]) for i in range(len(x))])


def _unique(x, sorted=True, return_index=False, return_inverse=False, return_counts=False,
            axis=None, size=None, fill_value=None):
    if size is not None:
        raise NotImplementedError("ops.unique: size is not supported")
    return np.unique(x, return_index, return_inverse, return_counts, axis)


_ARRAYS = {"nonzero": np.nonzero, "bincount": _bincount, "unique": _unique,
           "histogram": np.histogram, "svd": _svd,
           "qr": lambda x, mode="reduced": tuple(np.linalg.qr(x, mode)),
           "eigh": lambda x: tuple(np.linalg.eigh(x)), "pinv": np.linalg.pinv,
           "lstsq": lambda a, b, rcond=None: np.linalg.lstsq(a, b, rcond)[0],
           "matrix_rank": np.linalg.matrix_rank, "gcd": np.gcd, "lcm": np.lcm}
COMPOSED = (cast, vsplit, hsplit, dsplit, dtype, argpartition, nanargmax, nanargmin, corrcoef,
            ctc_decode,
            *[_of_arrays(name, compute) for name, compute in _ARRAYS.items()])
