"""Losses and functions as metrics of the program's own, traced for files: with what they compute a
program that does not have them trains on, also in C."""

import json

from .._binding.library import lib
from .._tensors.extents import extents_of
from .._tensors.symbols import Tensor
from .._tensors.traces import tracing
from .callables import has_rows
from .forms import type_of
from .traced import Layer

_REDUCTIONS = {lib.constants["CORNU_MEAN"]: "sum_over_batch_size",
               lib.constants["CORNU_SUM"]: "sum",
               lib.constants["CORNU_MEAN_WITH_SAMPLE_WEIGHT"]: "mean_with_sample_weight"}


class _Values(Layer):
    """The values of a loss; each_row: one for each row, which is not known while it is traced."""

    def __init__(self, loss, each_row):
        super().__init__(name=loss.name)
        self._loss, self._each_row = loss, each_row

    def call(self, y_true, y_pred):
        made = self._loss.values(tracing().tensor, y_true, y_pred)
        if not self._each_row:
            return self._loss.spread(made, extents_of(y_pred)[0])
        if not has_rows(made, y_pred):
            raise ValueError("%s: returned %s, expected a value for each row"
                             % (self.name, made.shape))
        return made

    def get_config(self):
        return {"name": self.name}


def _placeholder(value):
    kind = type_of(value)
    kind.shape.extent[0] = lib.constants["CORNU_NONE"]
    return Tensor(lib.cornu_placeholder(kind, "y"))


class TracedLoss:
    """Called when a loss has been recorded, it traces it for such operands, and sets what files
    have of it. What cannot be traced stays as it is: named, for programs that have it."""

    def __init__(self, loss, record, of, struct):
        self._loss, self._record, self._of, self._struct = loss, record, of, struct
        self._layer = None

    def __call__(self, true, pred, each_row):
        before = dict(vars(self._of)) if hasattr(self._of, "__dict__") else {}
        try:
            self._trace([_placeholder(true), _placeholder(pred)], each_row)
        except Exception:       # pylint: disable=broad-exception-caught
            pass
        finally:
            vars(self._of).update(before)   # which are of the recording

    def _trace(self, operands, each_row):
        layer = self._layer or _Values(self._loss, each_row)
        count = len(layer._signatures)
        layer._prepared(operands, {})
        if layer.weights or len(layer._signatures) == count:
            return
        self._layer = layer
        text = lib.take_text(lib.cornu_layer_to_json(layer._ready()))
        made = dict(self._record, traced={
            "layer": json.loads(text), "each_row": each_row,
            "reduction": _REDUCTIONS[self._loss.struct.reduction]})
        self._text = json.dumps(made, sort_keys=True).encode("utf-8")
        self._struct.record = self._text
