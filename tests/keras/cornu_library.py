"""Models in libcornu.so, for scripts that compare Cornu with Keras in one process."""

import ctypes
import os
import re

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "device", "type.h")) as header:
    MAX_RANK = int(re.search(r"CORNU_MAX_RANK = (\d+)", header.read()).group(1))


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("extent", ctypes.c_int64 * MAX_RANK)]


class Type(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("shape", Shape)]


class Array(ctypes.Structure):
    _fields_ = [("type", Type), ("data", ctypes.c_void_p)]


def array(values):
    """An f32 array; NumPy keeps the memory."""
    assert values.dtype == np.float32 and values.flags.c_contiguous
    extents = (ctypes.c_int64 * MAX_RANK)(*values.shape)
    return Array(Type(0, Shape(values.ndim, extents)), values.ctypes.data)


class Cornu:
    """A model in libcornu.so."""

    def __init__(self, path):
        self.library = ctypes.CDLL(os.path.join(os.environ.get("BUILD", "build"), "libcornu.so"))
        for name, result in {"cornu_model_load_compiled": ctypes.c_void_p,
                             "cornu_error_message": ctypes.c_char_p,
                             "cornu_model_weight": ctypes.c_void_p,
                             "cornu_model_parameters": ctypes.c_int64}.items():
            getattr(self.library, name).restype = result
        self.model = None
        self.model = ctypes.c_void_p(self.library.cornu_model_load_compiled(path.encode(), None))
        self.check(0 if self.model else 1)

    def check(self, status):
        if status:
            raise RuntimeError(self.library.cornu_error_message().decode())

    def predict(self, x, shape):
        y = np.zeros(shape, np.float32)
        self.check(self.library.cornu_predict_on_batch_many(
            self.model, ctypes.byref(array(x)), ctypes.byref(array(y))))
        return y

    def train(self, x, y):
        values = (ctypes.c_double * 8)()
        self.check(self.library.cornu_train_on_batch_many(
            self.model, ctypes.byref(array(x)), ctypes.byref(array(y)), values))
        return values[0]

    def parameters(self):
        return self.library.cornu_model_parameters(self.model)

    def save(self, path):
        self.check(self.library.cornu_model_save(self.model, path.encode()))

    def free(self):
        self.library.cornu_model_free(self.model)
