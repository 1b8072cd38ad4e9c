"""Models of 8 bits, in integers."""

import os

import numpy as np

from ._binding.arrays import Borrowed, shape_of
from ._binding.library import Owned, lib


class Int8Model:
    """A .tflite file that is quantized in whole, computed in the integers of LiteRT's reference
    kernels. cornu.load loads it as a model in f32, as well as files that are quantized in part.
    """

    def __init__(self, path):
        self._owned = Owned(lib.cornu_int8_load(path), lib.cornu_int8_free)
        of = self._owned.address
        self._inputs = lib.cornu_int8_input_count(of)
        self._shapes = [shape_of(lib.cornu_int8_output_shape_at(of, i))[1:]
                        for i in range(lib.cornu_int8_output_count(of))]

    def predict(self, x):
        """Real numbers for real numbers, a row per sample; not from several threads at once."""
        xs = [np.asarray(v) for v in (x if isinstance(x, (list, tuple)) and self._inputs > 1
                                      else [x])]
        if len(xs) != self._inputs or any(v.ndim == 0 for v in xs):
            raise ValueError("%d arrays are given, expected %d with a row per sample"
                             % (len(xs), self._inputs))
        lent, outputs = Borrowed(), [np.empty((len(xs[0]),) + s, np.float32) for s in self._shapes]
        lib.cornu_int8_predict_many(self._owned.address, lent.arrays(xs), len(xs),
                                    lent.arrays(outputs), len(outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    __call__ = predict

    def compile_to_c(self, path, name=None):
        """Writes the model as a .c file and its header, which need no library; its integers are
        those of the model. name: what all names in it begin with; default that of the file."""
        lib.cornu_int8_compile_to_c(self._owned.address, os.fspath(path), name)
