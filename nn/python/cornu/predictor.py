"""One model for many callers."""

import ctypes

import numpy as np

from ._binding.arrays import Borrowed, shape_of
from ._binding.library import Owned, lib, struct
from .devices import find as _find_device


class Predictor:
    """A copy of a model that predicts for any number of threads at once.

    max_batch_size: rows computed at once; a call of more takes several turns
    threads: 1 is fastest with as many callers as processors; 0: as many as there are
    device: a cornu.Device like which the predictor opens one; default the model's
    """

    def __init__(self, model, max_batch_size: int = 0, threads: int = 0, device=None):
        config = struct("CornuPredictorConfig", model=model.pointer, threads=threads,
                        max_batch_size=max_batch_size, device=_find_device(device))
        self._owned = Owned(lib.cornu_predictor_from(ctypes.byref(config)),
                            lib.cornu_predictor_free)
        count = lib.cornu_predictor_input_count(self._owned.address)
        self.input_names = [lib.cornu_predictor_input_name(self._owned.address, i)
                            for i in range(count)]
        self._outputs = lib.cornu_predictor_output_count(self._owned.address)
        self._shapes = [shape_of(lib.cornu_predictor_output_type(self._owned.address, i).shape)[1:]
                        for i in range(self._outputs)]
        self._function = lib.cornu_model_is_function(
            lib.cornu_predictor_model(self._owned.address))
        self._asks = self._function or any(None in shape for shape in self._shapes)

    def _arrays(self, lent, xs):
        """Arrays for the outputs."""
        if not self._asks:
            return [np.empty((len(xs[0]),) + s, np.float32) for s in self._shapes]
        types = (lib.type("CornuType") * self._outputs)()
        lib.cornu_predictor_output_types(self._owned.address, lent.arrays(xs),
                                         ctypes.addressof(types))
        return [np.empty(shape_of(t.shape), np.float32) for t in types]

    def predict(self, x):
        """As Model.predict, from any thread. A model whose axis 0 is not one batch of all inputs
        and outputs runs once on what is given."""
        if isinstance(x, dict):
            if sorted(x) != sorted(self.input_names):
                raise ValueError("the inputs are %s, %s are given"
                                 % (", ".join(self.input_names), ", ".join(sorted(x))))
            x = [x[name] for name in self.input_names]
        several = isinstance(x, (list, tuple)) and len(self.input_names) > 1
        xs = [np.asarray(v) for v in x] if several else [np.asarray(x)]
        if len(xs) != len(self.input_names) or \
                not self._function and any(v.ndim == 0 for v in xs):
            raise ValueError("%d arrays are given, expected %d with a row per sample"
                             % (len(xs), len(self.input_names)))
        lent = Borrowed()
        outputs = self._arrays(lent, xs)
        lib.cornu_predictor_predict(self._owned.address, lent.arrays(xs), lent.arrays(outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    __call__ = predict
