"""Symbolic tensors: what Input returns, and layers called on them."""

import ctypes
import json
import numbers

from ._arrays import KERAS_NAMES, dtype_number, shape_of
from ._described import plain, unique_name
from ._library import Owned, arguments, lib, struct


class Tensor:
    """A value of a model that is being made: Keras' KerasTensor. Arithmetic makes others."""

    __array_priority__ = 100    # NumPy leaves operators to this class

    def __init__(self, address, needs=()):
        self._symbol = Owned(lib.cornu_symbol_take(address), lib.cornu_symbol_free, *needs)

    @property
    def pointer(self):
        return self._symbol.address

    @property
    def shape(self):
        """Its extents; None is unknown, as that of the batch."""
        return shape_of(lib.cornu_symbol_type(self.pointer).shape)

    @property
    def dtype(self):
        return KERAS_NAMES[lib.cornu_symbol_type(self.pointer).dtype]

    @property
    def ndim(self):
        return len(self.shape)

    def __repr__(self):
        return "<cornu.Tensor shape=%s dtype=%s>" % (self.shape, self.dtype)

    def __add__(self, other):
        return operation("add", self, other)

    def __radd__(self, other):
        return operation("add", other, self)

    def __sub__(self, other):
        return operation("subtract", self, other)

    def __rsub__(self, other):
        return operation("subtract", other, self)

    def __mul__(self, other):
        return operation("multiply", self, other)

    def __rmul__(self, other):
        return operation("multiply", other, self)

    def __truediv__(self, other):
        return operation("true_divide", self, other)

    def __rtruediv__(self, other):
        return operation("true_divide", other, self)

    def __pow__(self, other):
        return operation("power", self, other)

    def __matmul__(self, other):
        return operation("matmul", self, other)

    def __neg__(self):
        return operation("negative", self)

    def __abs__(self):
        return operation("absolute", self)


def input_tensor(shape=None, batch_size=None, dtype=None, name=None, batch_shape=None, scale=None):
    """A symbolic tensor for the model's data.

    shape: the extents without the batch, None where they differ between batches
    batch_size: the rows of every batch, or None
    dtype: "float32", that of indices, "int32", or "string"
    scale: the factor for integer data, such as 1 / 255 for pixels; Keras has no such argument
    """
    if batch_shape is not None:
        batch_size, shape = batch_shape[0], batch_shape[1:]
    if shape is None:
        raise ValueError("Input: shape is required")
    shape = (shape,) if isinstance(shape, numbers.Integral) else tuple(shape)
    config = input_config(shape, batch_size, dtype, name or unique_name("input_layer"), scale)
    made = Tensor(lib.cornu_input_from(ctypes.byref(config)))
    made._input = (shape, batch_size, dtype, name, scale)
    return made


def input_config(shape, batch_size, dtype, name, scale):
    config = struct("CornuInputConfig", name=name, batch_size=batch_size or 0,
                    scale=float(scale or 0))
    # Floats are converted to what layers compute in.
    if dtype is not None and "float" not in str(dtype):
        config.dtype = dtype_number(dtype)
    set_extents(config.shape, shape)
    return config


def set_extents(to, shape):
    """Copies extents into an array that ends at the first 0."""
    if len(shape) > len(to):
        raise ValueError("shape %r has too many axes, expected at most %d" % (shape, len(to)))
    for i, extent in enumerate(shape):
        if extent == 0:
            raise ValueError("shape %r has an extent of 0" % (shape,))
        to[i] = lib.constants["CORNU_NONE"] if extent is None else int(extent)


def operation(name, *values, **config):
    """keras.ops.NAME: symbolic tensors, or numbers beside them; other arguments by keyword."""
    tensors = []

    def form(value):
        if isinstance(value, Tensor):
            tensors.append(value)
            return None
        return [form(v) for v in value] if isinstance(value, (list, tuple)) else plain(value)

    config["args"] = [form(value) for value in values]
    if not tensors:
        raise TypeError("%s: expected a symbolic tensor of this package, %s came"
                        % (name, ", ".join(type(v).__name__ for v in values) or "nothing"))
    config.setdefault("name", unique_name(name))
    pointers, count = arguments(*[t.pointer for t in tensors])
    return Tensor(lib.cornu_operation_from(name, json.dumps(plain(config)), pointers, count))
