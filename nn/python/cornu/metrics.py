"""Keras' metrics, by the library's tables. Where an argument is one, its name will do."""

import ctypes
import json

import numpy as np

from ._tensors.calls import recording_of, update_metric
from ._binding.described import Described, make_classes, snake_case, unique_name
from ._tensors.functions import Deferred, Variable
from ._binding.library import Owned, lib
from ._tensors.operators import operate
from ._tensors.stateless import StatelessMetric
from ._surface.missing import add_aliases, getter
from ._surface.registry import add_functions, add_registry
from ._tensors.traces import tracing
from ._tensors.values import Array, Value, current, to_array
from .config import floatx


# Those of whose names Keras makes a second one auc_1; others all have the name of their class.
_NUMBERED = {"AUC", "BinaryIoU", "FalseNegatives", "FalsePositives", "IoU", "MeanIoU", "OneHotIoU",
             "OneHotMeanIoU", "Precision", "PrecisionAtRecall", "Recall", "RecallAtPrecision",
             "SensitivityAtSpecificity", "SpecificityAtSensitivity", "TrueNegatives",
             "TruePositives"}


class Metric(StatelessMetric, Described):
    """The base of all metrics. Your own make variables by add_weight in __init__ and define
    update_state(y_true, y_pred, sample_weight=None) and result()."""

    _made, _states, _device, _epoch, _pending = None, None, None, 0, None
    _part = None        # what it is while another one of the program's is part of a step
    _variables = ()

    def __init__(self, *args, **kwargs):
        if self.class_name is None:
            self._begin_own(*args, **kwargs)
        else:
            super().__init__(*args, **kwargs)
            if self.class_name in _NUMBERED and self._config.get("name") is None:
                self._config["name"] = unique_name(snake_case(type(self).__name__))

    def _begin_own(self, dtype=None, name=None):
        self._config = {"name": name or unique_name(snake_case(type(self).__name__))}
        self._dtype = getattr(dtype, "name", dtype)

    _dtype = None

    @property
    def dtype(self):
        """The name of the dtype in which it computes."""
        return self._dtype or floatx()

    @property
    def is_own(self):
        """Of a class of the program's, or of the library's with methods of the program's."""
        return self.class_name is None or \
            bool(self.overridden("update_state", "result", "reset_state"))

    @property
    def name(self):
        return self._config["name"] if self.class_name is None else self._name()

    def add_variable(self, shape=(), initializer=None, dtype=None, aggregation=None, name=None):
        """A variable of a metric of your own, which reset_state sets to zeros."""
        made = Variable(initializer or "zeros", shape=shape, dtype=dtype or "float32",
                        name=name, trainable=False)
        self._variables = [*self._variables, made]
        return made

    def add_weight(self, shape=(), initializer=None, dtype=None, name=None):
        return self.add_variable(shape, initializer, dtype, name=name)

    @property
    def variables(self):
        """The variables of a metric of your own, and of those that it has as attributes."""
        return [*self._variables, *[v for each in self._inner() for v in each.variables]]

    def _inner(self):
        """The metrics among its attributes."""
        return [value for value in vars(self).values() if isinstance(value, Metric)]

    def library_parts(self):
        """The metrics of the library that it has: itself, and those of its attributes."""
        own = [self] if self.class_name is not None else []
        return own + [part for each in self._inner() for part in each.library_parts()]

    def __getstate__(self):
        return {key: value for key, value in vars(self).items()
                if key not in ("_made", "_states", "_device", "_pending") and
                not key.startswith("_function_of_")}

    def _states_on(self, recording):
        """The library's states, on the device of the first recording."""
        self._owned_metric()
        if self._states is None:
            self._device = recording._device
            self._states = Owned(lib.cornu_metric_states_create(self._made.address,
                                                                recording.device),
                                 lib.cornu_metric_states_free, self._made, recording._device)
        recording.use(self._device)
        return self._states

    def _owned_metric(self):
        """The library's metric of its class."""
        if self._made is None:
            self._made = Owned(lib.cornu_metric_from_json(json.dumps(self.to_dict())),
                               lib.cornu_metric_free)
        return self._made

    def _finish(self):
        if self._pending is not None:
            self._pending.finish()
            self._pending = None

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch; in a function, in each run."""
        if self._part is not None:
            return self._part.update(current(), y_true, y_pred, sample_weight)
        if tracing() is not None:
            return tracing().measure(self, [y_true, y_pred, sample_weight])
        return update_metric(self, y_true, y_pred, sample_weight)

    def result(self):
        """The result so far, an array; in a function what it will be after the run."""
        if self._part is not None:
            return _array(self._part.result())
        if current() is not None and current().values is None:
            return Deferred(self._result)
        return self._result()

    def _result(self):
        self._finish()
        if self._states is None:
            return np.zeros((), np.float32).view(Array)
        count = lib.cornu_metric_states_count(self._states.address)
        values = (ctypes.c_double * count)()
        lib.cornu_metric_states_result(self._states.address, ctypes.addressof(values))
        return _array(values)

    def reset_state(self):
        """Begins anew."""
        for variable in self._variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))
        for metric in self._inner():
            metric.reset_state()
        self._finish()
        if self._states is not None:
            lib.cornu_metric_states_reset(self._states.address)

    reset_states = reset_state

    def __call__(self, *args, **kwargs):
        self.update_state(*args, **kwargs)
        return self.result()


def _array(values):
    made = np.array(values, np.float32)
    return (made.reshape(()) if made.size == 1 else made).view(Array)


class _Total(Metric):
    """Sums of values and of their weights."""

    def __init__(self, name=None, dtype=None):
        self._config = {"name": name or self._usual_name}
        self.total, self.count = Variable(0.0), Variable(0.0)

    @property
    def variables(self):
        return [self.total, self.count]

    def update_state(self, values, sample_weight=None):
        """Adds values, an array or a scalar, each with its weight."""
        if tracing() is not None:
            return tracing().measure(self, [values, sample_weight])
        if isinstance(values, (list, tuple)) and any(isinstance(v, Value) for v in values):
            values = operate("stack", list(values))
        recording = recording_of([values, sample_weight])
        if recording is None:
            values = np.asarray(to_array(values), np.float32)
            weight = np.float32(1) if sample_weight is None else to_array(sample_weight)
            weight = np.broadcast_to(_aligned(weight, values.ndim), values.shape)
            self.total.assign(self.total.numpy() + np.sum(values * weight))
            self.count.assign(self.count.numpy() + np.sum(weight))
            return
        values = operate("cast", recording.value(values), "float32")
        count = float(np.prod(values.shape))
        if sample_weight is not None:
            weight = operate("cast", recording.value(sample_weight), "float32")
            weight = operate("broadcast_to", _aligned(weight, values.ndim), values.shape)
            values, count = values * weight, _sum(weight)
        self.total.assign_add(_sum(values))
        self.count.assign_add(count)

    def reset_state(self):
        self.total.assign(0.0)
        self.count.assign(0.0)

    reset_states = reset_state


def _sum(x):
    return operate("sum", x) if x.ndim else x


def _aligned(weight, ndim):
    while weight.ndim < ndim:
        weight = operate("expand_dims", weight, -1)
    return weight


class Mean(_Total):
    """The mean of the values that update_state was given: Mean(name="loss")."""

    _usual_name = "mean"

    def result(self):
        return operate("divide_no_nan", self.total.value, self.count.value)


class Sum(_Total):
    """Likewise their sum."""

    _usual_name = "sum"

    def result(self):
        return self.total.value


class MeanMetricWrapper(Mean):
    """The mean of what a function of (y_true, y_pred) gives: MeanMetricWrapper(fn, name="a")."""

    def __init__(self, fn, name=None, dtype=None, **kwargs):
        super().__init__(name=name)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = operate("cast", y_pred, "float32")
        super().update_state(self._fn(y_true, y_pred, **self._fn_kwargs), sample_weight)

    def get_config(self):
        from .saving import serialize_keras_object
        return {"name": self.name, "fn": serialize_keras_object(self._fn), **self._fn_kwargs}

    @classmethod
    def from_config(cls, config):
        from .saving import deserialize_keras_object
        return cls(**{**config, "fn": deserialize_keras_object(config["fn"])})


__all__ = ["Metric", "Mean", "MeanMetricWrapper", "Sum"] + make_classes("metrics", Metric,
                                                                        globals())
_functions = add_functions(globals())
__all__ += _functions + add_registry("metrics", Metric, globals(), _functions)
__all__ += add_aliases("metrics", globals())
__getattr__ = getter(__name__)
