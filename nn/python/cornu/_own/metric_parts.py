"""Metrics of the library within those of the program: the one that a class extends, and those that
are its attributes. In a step the library has one metric, whose states are those of all of them.
"""

import ctypes

import numpy as np

from .._binding.library import lib
from .._tensors.operators import operate
from .._tensors.values import Recording, state

_METRIC, _ARRAY = lib.type("CornuMetric"), lib.type("CornuArray")
_POINTER, _SHAPE = ctypes.c_void_p, lib.type("CornuShape")
BUILD = ctypes.CFUNCTYPE(lib.type("u32"), _POINTER, _SHAPE, _SHAPE)
UPDATE = ctypes.CFUNCTYPE(lib.type("u32"), _POINTER, ctypes.POINTER(lib.type("CornuMetricCall")),
                          ctypes.POINTER(_POINTER), ctypes.POINTER(_POINTER))
RESULT = ctypes.CFUNCTYPE(ctypes.c_double, _POINTER, ctypes.POINTER(_ARRAY))
_RESULT_AT = ctypes.CFUNCTYPE(ctypes.c_double, _POINTER, ctypes.POINTER(_ARRAY), ctypes.c_int64)


class Part:
    """A metric of the library's while one of the program's is part of a step: the states that it
    has there. Within update they are tensors, within result arrays of the host."""

    def __init__(self, metric):
        self.metric, self._owned = metric, metric._owned_metric()
        self.struct = _METRIC.from_address(self._owned.address)
        self.tensors = self.arrays = None

    @property
    def count(self):
        return self.struct.state_count

    def build(self, y_true, y_pred):
        _checked(BUILD(self.struct.build)(self._owned.address, y_true, y_pred))

    def update(self, recording, y_true, y_pred, weight):
        """Keras' update_state: the states after a batch, of rows that are all valid."""
        y_true, y_pred = recording.value(y_true), recording.value(y_pred)
        y_pred = operate("cast", y_pred, "float32")
        if self.tensors is None:        # the shapes alone are asked for
            kinds = [lib.cornu_tensor_type(x.pointer) for x in (y_true, y_pred)]
            return self.build(*[kind.shape for kind in kinds])
        rows = y_pred.shape[0]
        valid, count = recording.value(np.ones(rows, bool)), recording.value(np.int32(rows))
        call = lib.type("CornuMetricCall")(y_true=y_true.pointer, y_pred=y_pred.pointer,
                                           valid=valid.pointer,
                                           count=lib.cornu_op_convert(count.pointer, _I64))
        if weight is not None:
            weight = operate("cast", recording.value(weight), "float32")
            if weight.ndim > 1 and weight.shape[-1] == 1:
                weight = operate("squeeze", weight, -1)
            call.weight = weight.pointer
        old, new = ((_POINTER * self.count)() for _ in range(2))
        old[:] = self.tensors
        _checked(UPDATE(self.struct.update)(self._owned.address, ctypes.byref(call), old, new))
        self.tensors = [recording.settled(pointer) for pointer in new]

    def result(self):
        """A number, or a list of them."""
        address = self._owned.address
        if not self.struct.result_count:
            return [RESULT(self.struct.result)(address, self.arrays)]
        at = _RESULT_AT(self.struct.result_at)
        return [at(address, self.arrays, i) for i in range(self.struct.result_count)]


_I64 = lib.dtypes.index("i64")


def _checked(status):
    if status:
        lib.cornu_error_take()
        lib.fail(status)


class lent:
    """with lent(parts): the metrics of these parts are those."""

    def __init__(self, parts):
        self._parts = parts

    def __enter__(self):
        for part in self._parts:
            part.metric._part = part

    def __exit__(self, *_):
        for part in self._parts:
            part.metric._part = part.tensors = part.arrays = None


def build_parts(metric, parts, shapes):
    """Builds the parts whose states depend on shapes: update_state is called once for those."""
    recording = Recording(state.device)
    with lent(parts), recording:
        metric.update_state(*[recording.constant(np.ones(shape, kind))
                              for shape, kind in zip(shapes, ("int32", "float32"))])
