"""Symbolic tensors: what Input returns, and layers called on them."""

import ctypes
import json
import numbers

import numpy as np

from .._binding.arrays import KERAS_NAMES, dtype_number, shape_of
from .._binding.described import plain, slice_form, unique_name
from .extents import Extent, Shape, as_extents, compute
from .._binding.library import Owned, arguments, lib, struct
from .operators import Operators, users_line
from .traces import tracing
from .values import _DRAWS, Readable, Value, current, eager, record, stacked


class Tensor(Operators):
    """A value of a model that is being made: Keras' KerasTensor. Arithmetic, comparisons and
    indices make others."""

    _masked = False         # whether it may bring a mask along
    _from = None            # the layer that made it, which lives as long, and its operands
    _measured = ()          # metrics that this call updates, with their tensors

    def __init__(self, address, needs=()):
        self._symbol = Owned(lib.cornu_symbol_take(address), lib.cornu_symbol_free, *needs)

    @property
    def pointer(self):
        return self._symbol.address

    @property
    def shape(self):
        """Its extents; None is unknown, as that of the batch."""
        return Shape(shape_of(lib.cornu_symbol_type(self.pointer).shape), self)

    @property
    def dtype(self):
        return KERAS_NAMES[lib.cornu_symbol_type(self.pointer).dtype]

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def _keras_mask(self):
        """Keras' name of the mask that it brings along, or None."""
        return operation("mask_of", self) if self._masked else None

    def __repr__(self):
        return "<cornu.Tensor shape=%s dtype=%s>" % (self.shape, self.dtype)

    def __iter__(self):
        raise TypeError("a symbolic tensor has no elements to iterate over; in %s" % users_line())

    def __eq__(self, other):
        """In a layer's call that of the elements; elsewhere, as in Keras, of the objects."""
        if tracing() is None or other is None or isinstance(other, str):
            return self is other
        return operation("equal", self, other)

    def __ne__(self, other):
        if other is None or isinstance(other, str):
            return self is not other
        return operation("not_equal", self, other)

    __hash__ = Operators.__hash__

    def __bool__(self):
        raise TypeError("a symbolic tensor has no value, so that it is neither true nor false: use "
                        "ops.where or ops.cond in place of if; in %s" % users_line())


def input_tensor(shape=None, batch_size=None, dtype=None, name=None, batch_shape=None, scale=None,
                 sparse=None, ragged=None, tensor=None, optional=False):
    """A symbolic tensor for the model's data.

    shape: the extents without the batch, None where they differ between batches
    batch_size: the rows of every batch, or None
    dtype: "float32", that of indices, "int32", or "string"
    scale: the factor for integer data, such as 1 / 255 for pixels; Keras has no such argument
    """
    if sparse or ragged or optional or tensor is not None:
        raise NotImplementedError("Input: sparse, ragged and optional tensors are not supported, "
                                  "nor an Input of a tensor")
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
                    scale=float(scale or 0), scalar=not shape)
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


class Form:
    """Arguments of a call in Keras' form for files, in which tensors are numbered."""

    def __init__(self):
        self.tensors, self.extents = [], []

    def _extent_of(self, tensor):
        """The tensor's place among those of extents."""
        known = [i for i, t in enumerate(self.extents) if t is tensor]
        if not known:
            self.extents.append(tensor)
        return known[0] if known else len(self.extents) - 1

    def with_extents(self, given):
        """The arguments with the tensors whose extents are among them."""
        if self.extents:
            given["__extents__"] = [self(t) for t in self.extents]
        return given

    def __call__(self, value):
        if isinstance(value, Readable) and tracing() is not None:
            value = tracing().read(value)
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return {"class_name": "__keras_tensor__", "config": len(self.tensors) - 1}
        if isinstance(value, Extent):
            return value.form(self._extent_of)
        if isinstance(value, (list, tuple)):
            return [self(v) for v in value]
        if isinstance(value, dict):
            return {key: self(v) for key, v in value.items()}
        if isinstance(value, slice):
            return slice_form(self(value.start), self(value.stop), self(value.step))
        return plain(value)

    def pointers(self):
        return arguments(*[t.pointer for t in self.tensors])


_LEAVES = (int, float, bool, str, type(None), np.ndarray)


def find_tensor(values):
    """What says how to compute: a symbolic tensor if there is one among the values, lists and
    dictionaries, or an extent of one; else a recorded one or a variable; else None."""
    found = None
    for value in values:
        if isinstance(value, _LEAVES):
            continue
        if isinstance(value, Tensor):
            return value
        if isinstance(value, slice):
            value = (value.start, value.stop, value.step)
        if isinstance(value, (list, tuple, dict)):
            value = find_tensor(value.values() if isinstance(value, dict) else value)
            if isinstance(value, Tensor):
                return value
        if isinstance(value, Extent) and not isinstance(found, Extent):
            found = value       # unless there is a tensor
        if found is None and isinstance(value, (Value, Readable)):
            found = value
    return found


data_format = ["channels_last"]     # of layers and operations that are not told: see cornu.config
_OF_CHANNELS = {"adaptive_average_pool", "adaptive_max_pool", "average_pool", "conv",
                "conv_transpose", "depthwise_conv", "max_pool", "separable_conv"}


def operation(name, /, *values, **named):
    """keras.ops.NAME with the arguments of Keras. With a symbolic tensor among them it is one of a
    model; with a recorded one, or a variable while there is a recording, it is recorded; of arrays
    and numbers it is computed. Several results are a list."""
    if name in _OF_CHANNELS and named.get("data_format") is None and \
            data_format[0] != "channels_last":
        named["data_format"] = data_format[0]
    values = [as_extents(value) for value in values]
    named = {key: as_extents(value) for key, value in named.items()}
    if name == "reshape" and len(values) == 2:
        values = _for_any_batch(*values)
    found = find_tensor(values)
    if found is None and named or isinstance(found, Readable):
        other = find_tensor(named.values())
        found = other if found is None or isinstance(other, (Tensor, Extent, Value)) else found
    if isinstance(found, Extent):
        made = compute(name, values, named)
        if made is not NotImplemented:
            return made
    if name == "cast" and isinstance(found, Tensor) and found.dtype == "string" and \
            "string" in (*values[1:], named.get("dtype")):
        return found
    if isinstance(found, (Tensor, Extent)) or (tracing() is not None and (
            isinstance(found, Readable) or found is None and name in _DRAWS)):
        return _symbolic(name, values, named)
    recording = current()
    if isinstance(found, Value) and not found.recording.closed:
        recording = found.recording
    elif recording is not None and found is None and recording.values is None and \
            name not in _DRAWS:
        recording = None        # a function's own constants
    if recording is None:
        return eager(name, values, named)
    return record(recording, name, values, named)


def _for_any_batch(x, newshape):
    """The arguments of reshape. Keras knows the rows of the batch where it makes the step: a shape
    that takes a whole number of rows, with the batch in axis 0, is one of as many as there are."""
    shape = (newshape,) if isinstance(newshape, numbers.Integral) else newshape
    if not isinstance(x, Tensor) or x.shape[:1] != (None,) or None in x.shape[1:] or \
            not all(isinstance(n, numbers.Integral) and n > 0 for n in shape):
        return x, newshape
    row, rest = int(np.prod(x.shape[1:])), int(np.prod(shape[1:]))
    fits = shape[0] * rest % row == 0 and (row % rest == 0 or rest % row == 0)
    return x, ((-1, *shape[1:]) if fits else newshape)


def _symbolic(name, values, named):
    trace = tracing()
    if trace is not None:
        made = trace.of_strings([values, named], lambda: _symbolic(name, values, named))
        if made is not NotImplemented:
            return made
    form, values = Form(), stacked(name, values)
    given = {key: form(value) for key, value in named.items()}
    given["args"] = form(values)
    if trace is not None and not form.tensors and not form.extents:
        form.extents.append(trace.anchor)       # of a call: what draws depends on one
    form.with_extents(given)
    of_program = given.get("name")
    given["name"] = of_program or (trace.unique_name if trace else unique_name)(name)
    made = results(lib.cornu_operation_from(name, json.dumps(given), *form.pointers()))
    if trace is not None:
        given["name"] = name
        trace.note(json.dumps(given), form.tensors, made)
    return made_by(None, form.tensors, made)


def _call_of(address, count, at):
    made = [Tensor(at(address, i)) for i in range(count(address))]
    return made[0] if len(made) == 1 else made


def results(address):
    """The tensors of the call that returned a symbol: one, or a list of several."""
    return _call_of(address, lib.cornu_call_results, lib.cornu_call_result)


def made_by(layer, tensors, made):
    """The results of a layer's call on tensors, which keep both."""
    for tensor in made if isinstance(made, list) else [made]:
        tensor._from = layer, tensors
    return made


def operands(address):
    """The tensors on which it was called, likewise; what cornu.Input made is its own."""
    if not lib.cornu_call_operands(address):
        return results(address)
    return _call_of(address, lib.cornu_call_operands, lib.cornu_call_operand)
