"""Operations on arrays of strings, with which the library does not compute: those that move
elements, whose places are moved in their stead, and comparisons."""

import numpy as np

from .._binding.arrays import Array
from .._binding.nested import mapped

_COMPARED = {"equal": np.equal, "not_equal": np.not_equal}


def is_string(x):
    """Whether x is an array of strings, or of bytes that are such, or one of them."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "SU" or x.dtype.kind == "O" and \
            isinstance(next(x.flat, None), (str, bytes))
    return isinstance(x, (str, bytes))


def _is_list_of(x):
    return isinstance(x, (list, tuple)) and len(x) > 0 and all(isinstance(v, (str, bytes)) or
                                                               _is_list_of(v) for v in x)


def _text(x):
    return np.vectorize(lambda v: v.decode() if isinstance(v, bytes) else str(v), "O")(x)


def of_strings(name, values, named, compute, moves):
    """The result of an operation if there are strings among its operands; else NotImplemented.
    compute(name, values, named) computes it of numbers; `moves`: it moves elements."""
    if not any(is_string(v) or isinstance(v, (list, tuple)) and any(map(is_string, v))
               for v in values[:2]):
        return NotImplemented
    if name == "cast" and "string" in (*values[1:], named.get("dtype")):
        return np.asarray(values[0]).view(Array)
    if name in _COMPARED:
        return np.asarray(_COMPARED[name](*map(_text, values))).astype(bool).view(Array)
    if not moves:
        return NotImplemented
    pool = []

    def place(x):
        x = np.asarray(x)
        if not is_string(x):
            return x
        first = sum(map(len, pool))
        pool.append(x.astype("O").ravel())
        return np.arange(first, first + x.size, dtype=np.int32).reshape(x.shape)
    moved = compute(name, [mapped(values[0], place, _is_list_of), *values[1:]], named)
    elements = np.concatenate(pool)
    return mapped(moved, lambda places: elements[np.asarray(places)].view(Array))
