"""A model's own training step: train_step, test_step and predict_step of a subclass, called once
for each type of the data, to record what fit, evaluate and predict run."""

import contextlib
import ctypes
import functools
import inspect
import weakref

import numpy as np

from .._tensors.calls import leaves
from .._tensors.functions import Deferred, gradients
from .._binding.library import lib, struct
from .._binding.nested import Place, filled, placed
from .._tensors.operators import operate, users_line
from .callables import (_FAILED, _POINTER, _POINTERS, _STATUS, _UPDATE, Into, address_of, guarded,
                   guarded_result)
from .._tensors.values import Value, current
from .partial import Partial

_CALL = lib.type("CornuStepCall")
_STEP = ctypes.CFUNCTYPE(_STATUS, _POINTER, ctypes.POINTER(_CALL))
_PREDICT = ctypes.CFUNCTYPE(_STATUS, _POINTER, ctypes.POINTER(_CALL), _POINTERS)


# ---- Structures of data ----

def flat(value, arrays):
    """A structure of arrays, in lists and dictionaries, with places for them; they are listed."""
    found = []
    form = placed(value, found, lambda _: True, _is_of_numbers)
    arrays += [np.asarray(v) for v in found]
    return form


def _is_of_numbers(value):
    while isinstance(value, (list, tuple)):
        if not value:
            return True
        value = value[0]
    return not hasattr(value, "shape") and not isinstance(value, dict)


class Arrays:
    """The arrays of a batch of training, or of test: how they are nested in x and y, and which of
    them have other rows than the first. `xs` and `ys` are the members of the library's struct
    that have their numbers."""

    def __init__(self, own, xs, ys):
        self._own, self._counts = own, {"input": xs, "output": ys}
        self.forms, self._others = {"input": Place(0), "output": None}, {}

    def given(self, what, given):
        """The arrays of x or y."""
        arrays = []
        if what == "weight":
            return [np.asarray(given)]
        self.forms[what] = None if given is None else flat(given, arrays)
        setattr(self._own, self._counts[what], len(arrays))
        return arrays

    def take(self, other):
        """Those that another step was given."""
        self.forms, self._others = other.forms, other._others
        for name in self._counts.values():
            setattr(self._own, name, getattr(other._own, name))

    def in_rows(self, arrays):
        """The arrays with as many rows in each as the first has, R: another, (N, ...), becomes
        (R, N, n), its rows filled up to R n numbers."""
        made, rows = list(arrays), len(arrays[0]) if arrays[0].ndim else 0
        for i, array in enumerate(arrays):
            if rows and array.ndim and (len(array) != rows or i in self._others):
                shape = array.shape[1:]
                if self._others.setdefault(i, shape) != shape:
                    raise ValueError("array %d of a batch has rows of %s, those before had %s: "
                                     "expected the same, as it has not as many as array 0"
                                     % (i, shape, self._others[i]))
                size = int(np.prod(shape))
                whole = np.pad(array.reshape(len(array), size), ((0, 0), (0, -size % rows)))
                made[i] = whole.reshape(len(array), rows, -1).swapaxes(0, 1)
        return made

    def forget_rows(self):
        """The next data may have others."""
        self._others.clear()

    def as_given(self, tensors):
        """The tensors of a step in the shapes of the arrays before in_rows."""
        return [self._unpacked(tensor, self._others[i]) if i in self._others else tensor
                for i, tensor in enumerate(tensors)]

    @staticmethod
    def _unpacked(tensor, shape):
        count = tensor.shape[1]
        rows = operate("reshape", operate("transpose", tensor, (1, 0, 2)), (count, -1))
        return operate("reshape", rows[:, :int(np.prod(shape))], (count, *shape))


# ---- Recording a step ----

class Logged:
    """The result of what the library logs by itself, by these names."""

    def __init__(self, names):
        self.names = names


class Step(Into):
    """The recording of a step."""

    def __init__(self, call, counted):
        super().__init__(call.graph, counted, call)
        self.address, self.losses, self._of = ctypes.addressof(call), [], self
        self.tracked = set()        # the names of what the library logs by itself
        call.penalized = True       # what layers add is in `losses`

    def call(self, training=False, draws=False):
        made = super().call(training)
        if made.training or made.augments:      # each draws numbers of its own
            made.seed = lib.cornu_step_seed(self.address)
        return made

    def tensors(self, pointers, count):
        return [Value(pointers[i], self) for i in range(count)]

    @contextlib.contextmanager
    def with_labels(self, y, weights):
        """While the losses and metrics of compile are computed, of these."""
        call = self._call
        before = [(tensors, list(tensors)) for tensors in (call.y, call.weights)]
        counts = call.y_count, call.weight_count
        y, weights = ([self.value(v) for v in values] for values in (y, weights))
        for to, values in ((call.y, y), (call.weights, weights)):
            for i, value in enumerate(values):
                to[i] = value.pointer
        call.y_count, call.weight_count = len(y), len(weights)
        try:
            yield
        finally:
            call.y_count, call.weight_count = counts
            for tensors, pointers in before:
                tensors[:] = pointers

    def log_all(self, logs):
        """Logs what a step returns, and no more."""
        shown = set()
        for name, value in logs.items():
            if isinstance(value, Logged):
                shown.update(value.names)
            else:
                shown.add(name)
                self._log(name, value)
        for name in self.tracked - shown:
            lib.cornu_step_hide_log(self.address, name)

    def _log(self, name, value):
        if isinstance(value, Deferred):
            return self._log_deferred(name, value)
        value = operate("cast", self.value(value), "float32")
        if value.ndim:      # as Keras' bar shows it
            value = operate("mean", value)
        lib.cornu_step_log_last(self.address, name, value.pointer)

    def _log_deferred(self, name, deferred):
        """A metric of the library's, whose result the host computes."""
        def update(_, call, old, new):
            new[0] = old[0]
            return 0

        def result(_, states):
            return float(np.mean(deferred.compute()))
        bridges = guarded(_UPDATE, update, _FAILED), guarded_result(result)
        made = struct("CornuMetric", name=name, state_count=1, update=address_of(bridges[0]),
                      result=address_of(bridges[1]))
        self.device_owner.kept.setdefault(name, (made, bridges))
        made = self.device_owner.kept[name][0]
        x = self._call.x[0]
        lib.cornu_step_log_metric(self.address, name, ctypes.addressof(made), x, x, None)


def _flattened(logs, to):
    for name, value in logs.items():
        if isinstance(value, dict):
            _flattened(value, to)
        else:
            to[name] = value
    return to


def _in_tuples(value):
    if isinstance(value, dict):
        return {key: _in_tuples(v) for key, v in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    made = [_in_tuples(v) for v in value]
    return type(value)(*made) if hasattr(value, "_fields") else tuple(made)


class OwnStep:
    """The library's struct of a model's own step. It keeps the model by a weak reference, as the
    library's model keeps it."""

    def __init__(self, model, train, test, predict, own_updates):
        self._model, self.counted, self.kept = weakref.ref(model), model._owned.counted, {}
        self.struct = struct("CornuOwnStep", more_logs=True, valid_rows=True, own_data=True, xs=1,
                             own_updates=own_updates)
        self._bridges = []
        self.trained = Arrays(self.struct, "xs", "ys")      # and predicted
        self.tested = Arrays(self.struct, "test_xs", "test_ys")
        for wanted, field, method in ((train, "train", "train_step"), (test, "test", "test_step")):
            if wanted:
                self._set(field, guarded(_STEP, self._recorder(method), _FAILED))
        if predict:
            self._set("predict", guarded(_PREDICT, self._predict, _FAILED))

    def _set(self, field, bridge):
        self._bridges.append(bridge)
        setattr(self.struct, field, address_of(bridge))

    @property
    def address(self):
        return ctypes.addressof(self.struct)

    def _arrays(self, tests):
        return self.tested if tests else self.trained

    def arrays(self, what, given, tests=False):
        """The arrays of x or y, whose structure the step gets."""
        return self._arrays(tests).given(what, given)

    def in_rows(self, arrays, tests):
        """The arrays of a batch with as many rows in each as the first has."""
        return self._arrays(tests).in_rows(arrays)

    def tests_alike(self):
        """The data of test are those of training, until others are given."""
        self.struct.test_xs = self.struct.test_ys = 0
        self.trained.forget_rows()
        self.tested.forget_rows()

    def takes_as(self, other):
        """Data in the same forms, which another step was given."""
        self.trained.take(other.trained)
        self.tested.take(other.tested)

    def _begin(self, pointer):
        model, call = self._model(), pointer.contents
        if model is None:
            raise ReferenceError("the model of this step is gone")
        recording = Step(call, self)
        recording.device_owner, recording.model = self, model
        return model, call, recording

    @staticmethod
    def _data(call, recording, arrays):
        """As Keras packs it: x, (x, y) or (x, y, sample_weight); lists are tuples, as tf.data has
        them."""
        given = arrays.as_given(recording.tensors(call.x, call.x_count) +
                                recording.tensors(call.y, call.y_count))
        x = _in_tuples(filled(arrays.forms["input"], given[:call.x_count]))
        if not call.y_count and not call.weight_count:
            return (x,) if isinstance(x, tuple) else x
        y = _in_tuples(filled(arrays.forms["output"], given[call.x_count:])) \
            if call.y_count else None
        weights = recording.tensors(call.weights, call.weight_count)
        return (x, y, weights[0] if len(weights) == 1 else weights) if weights else (x, y)

    def _recorder(self, method):
        def record(_, pointer):
            model, call, recording = self._begin(pointer)
            arrays = self._arrays(method == "test_step" and self.struct.test_xs)
            with recording:
                logs = model._run_step(getattr(model, method), self._data(call, recording, arrays))
                if isinstance(logs, Logged):    # of a metric with several results
                    logs = {"": logs}
                if not isinstance(logs, dict):
                    raise TypeError("%s.%s returned %s, expected a dictionary of logs"
                                    % (type(model).__name__, method, type(logs).__name__))
                recording.log_all(_flattened(logs, {}))
            recording.closed = True
            return 0
        return record

    def _predict(self, _, pointer, out):
        model, call, recording = self._begin(pointer)
        with recording:
            made = model.predict_step(self._data(call, recording, self.trained))
            for i, value in enumerate(leaves(made)):
                out[i] = recording.value(value).pointer
        recording.closed = True
        return 0


def step():
    """The step that is being recorded."""
    recording = current()
    if not isinstance(recording, Step):
        raise RuntimeError("called outside of train_step and test_step; in %s" % users_line())
    return recording


# ---- What `metrics` of a compiled model has ----

class LossTracker:
    """Keras' mean of the loss, "loss"."""

    name = "loss"
    variables = ()

    def update_state(self, loss, sample_weight=None):
        recording = step()
        loss = operate("cast", recording.value(loss), "float32")
        weight = recording.value(1.0 if sample_weight is None else sample_weight)
        if loss.ndim and weight.ndim == loss.ndim:      # of each element, as Keras' Mean takes it
            weighted, weight = operate("sum", loss * weight), operate("sum", weight)
            loss = operate("divide_no_nan", weighted, weight)
        recording.tracked.add(self.name)
        lib.cornu_step_log(recording.address, self.name, loss.pointer,
                           operate("cast", weight, "float32").pointer)

    def result(self):
        return Logged([self.name]) if self.name in step().tracked else 0.0

    def reset_state(self):
        pass

    def stateless_update_state(self, metric_variables, *args, **kwargs):
        self.update_state(*args, **kwargs)
        return []

    def stateless_result(self, metric_variables):
        return self.result()


class CompiledMetrics(LossTracker):
    """The metrics of compile."""

    name = "compile_metrics"

    def __init__(self, model):
        self._model = model

    def update_state(self, y, y_pred, sample_weight=None):
        if y is None and not step()._call.y_count:
            return      # there is nothing to compare with
        partial = self._model._partial_for(y, y_pred)
        if partial is None:
            self._model._compute(lib.cornu_step_compute_metrics, y, y_pred, sample_weight)
            step().tracked.update(self._names())
        else:
            partial.update_metrics(y, y_pred, sample_weight)

    def _names(self):
        return [name for name in self._model._compiled_names
                if name not in ("loss", "gradient_norm")]

    def result(self):
        return Logged(self._names())


class AllMetrics:
    """What Model.compiled_metrics returns. Means, such as that of the loss, become those of the
    predictions, as in Keras."""

    def __init__(self, model):
        self._model = model

    def update_state(self, y, y_pred, sample_weight=None):
        from ..metrics import Mean
        partial = self._model._partial
        compiled = partial.metrics if partial else ()
        for metric in self._model.metrics:
            if isinstance(metric, CompiledMetrics) or metric in compiled or \
                    not isinstance(metric, (Mean, LossTracker)):
                metric.update_state(y, y_pred, sample_weight=sample_weight)
            elif isinstance(metric, LossTracker):
                metric.update_state(operate("mean", y_pred), sample_weight=float(_rows(y_pred)))
            else:
                metric.update_state(y_pred, sample_weight=sample_weight)


def unpack_x_y_sample_weight(data):
    """keras.utils.unpack_x_y_sample_weight."""
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if len(data) > 3:
        raise ValueError("data has %d parts, expected x, (x, y) or (x, y, sample_weight)"
                         % len(data))
    return data + (None,) * (3 - len(data))


class Stepped:
    """The part of Model that a subclass overrides."""

    _own_step = None    # the OwnStep that it is compiled with
    _partial = None     # the Partial that its step computes losses and metrics with

    def _run_step(self, method, data):
        """train_step(data), or JAX' train_step(state, data), which returns logs and the state."""
        if len(inspect.signature(method).parameters) < 2:
            return method(data)
        optimizer = self.optimizer.variables if method.__name__ == "train_step" else None
        parts = [self.trainable_variables, self.non_trainable_variables, optimizer,
                 [v for metric in self.metrics for v in metric.variables]]
        variables = [part for part in parts if part is not None]
        before = [[step().value(v) for v in part] for part in variables]
        logs, state = method(tuple(list(part) for part in before), data)
        if [len(part) for part in state] != [len(part) for part in before]:
            raise ValueError("%s.%s returned a state of %s values, expected %s; in %s" % (
                type(self).__name__, method.__name__, [len(part) for part in state],
                [len(part) for part in before], users_line()))
        for part, old, new in zip(variables, before, state):
            for variable, was, value in zip(part, old, new):
                if value is not was:
                    variable.assign(value)
        return logs

    def train_step(self, data):
        """Records a step; called with a batch of recorded tensors. Returns the logs."""
        x, y, weight = unpack_x_y_sample_weight(data)
        y_pred = self._measuring_call(x, self._body is None or self._body._training_matters())
        loss = self._loss_of(x, y, y_pred, weight, True)
        self._loss_tracker.update_state(loss, sample_weight=float(_rows(x)))
        if self.optimizer.is_own:
            variables = self.trainable_weights
            self.optimizer.apply(gradients(loss, variables), variables)
        else:
            lib.cornu_step_minimize(step().address, None, step().value(loss).pointer)
        return self.compute_metrics(x, y, y_pred, sample_weight=weight)

    def test_step(self, data):
        x, y, weight = unpack_x_y_sample_weight(data)
        y_pred = self._measuring_call(x, False)
        loss = self._loss_of(x, y, y_pred, weight, False)
        self._loss_tracker.update_state(loss, sample_weight=float(_rows(x)))
        return self.compute_metrics(x, y, y_pred, sample_weight=weight)

    _measures = ()      # the metrics that layers update in their calls, with their tensors
    _measuring = None   # the model of these, beside the outputs

    def _measuring_call(self, x, training):
        """A call that updates these metrics, too."""
        if not self._measures:
            return self(x, training=training)
        if self._measuring is None:
            count = lib.cornu_model_input_count(self.pointer)
            self._measuring = self._beside(self._tensors[:count], self._tensors[count:] + [
                tensor for _, of in self._measures for tensor in of])
        made = leaves(self._measuring(x, training=training))
        at = count = lib.cornu_model_output_count(self.pointer)
        for metric, of in self._measures:
            metric.update_state(*made[at:at + len(of)])
            at += len(of)
        return self._formed(made[0] if count == 1 else made[:count])

    def predict_step(self, data):
        return self(unpack_x_y_sample_weight(data)[0], training=False)

    def _loss_of(self, x, y, y_pred, weight, training):
        """compute_loss, which may lack the argument `training`."""
        takes = inspect.signature(self.compute_loss).parameters
        given = {"training": training} if "training" in takes else {}
        return self.compute_loss(x, y, y_pred, weight, **given)     # whatever their names are

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The losses of compile and those that layers added."""
        recording, total = step(), None
        if self.loss is not None if self._parts else any(
                lib.cornu_model_loss(self.pointer, i) for i in
                range(lib.cornu_model_output_count(self.pointer))):
            total = self._compiled_loss(y, y_pred, sample_weight)
        for loss in [*recording.losses, *self._weight_losses()]:
            total = loss if total is None else total + loss
        if total is None:
            raise ValueError("%s: compiled without loss; override compute_loss, or compile with "
                             "one" % self.name)
        return total

    def _compiled_loss(self, y, y_pred, sample_weight):
        """The sum of the losses of compile."""
        partial = self._partial_for(y, y_pred)
        if partial is not None:
            return partial.loss(y, y_pred, sample_weight)
        return Value(self._compute(lib.cornu_step_compute_loss, y, y_pred, sample_weight), step())

    def _partial_for(self, y, y_pred):
        """What computes with other labels or predictions than one of each output; else None."""
        count = lib.cornu_model_output_count(self.pointer)
        if y is None or y_pred is None or not self._parts and \
                len(leaves(y)) == len(leaves(y_pred)) == count:
            return None
        if self._partial is None:
            self._partial = Partial(self, self._again, y, y_pred)
        return self._partial

    def _compute(self, function, y, y_pred, sample_weight):
        """What the library computes of the losses or metrics of compile, of labels and predictions
        of all outputs."""
        recording = step()
        preds = [recording.value(p) for p in self._ordered("output", y_pred)]
        weights = self._ordered("output", sample_weight)
        pointers = (ctypes.c_void_p * len(preds))(*[p.pointer for p in preds])
        with recording.with_labels(self._ordered("output", y), weights):
            return function(recording.address, pointers)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates the metrics of compile; returns all results."""
        self._compile_metrics.update_state(y, y_pred, sample_weight=sample_weight)
        return self.get_metrics_result()

    # ---- Names of Keras 2, which Keras on TensorFlow still has ----

    def compiled_loss(self, y, y_pred, sample_weight=None, regularization_losses=None):
        return self.compute_loss(x=None, y=y, y_pred=y_pred, sample_weight=sample_weight)

    @property
    def compiled_metrics(self):
        return AllMetrics(self)

    def get_metrics_result(self):
        return {metric.name: metric.result() for metric in self.metrics}

    @property
    def _loss_tracker(self):
        return LossTracker()

    @property
    def _compile_metrics(self):
        return CompiledMetrics(self)

    @property
    def metrics(self):
        """The mean of the loss, the metrics of compile, and those that are attributes."""
        compiled = self._partial.metrics if self._partial else [self._compile_metrics]
        known = [self._loss_tracker, *compiled] if self._compiled is not None else []
        return known + self._attribute_metrics()

    def _metric_order(self):
        """The names of `metrics`."""
        found = []
        for metric in self.metrics:
            found += self._compiled_names if isinstance(metric, CompiledMetrics) else [metric.name]
        return found

    def _attribute_metrics(self):
        found = []
        for value in vars(self).values():
            kind = _holds_metrics(type(value))
            if kind is not None:
                found += [value] if kind == "one" else \
                    [each for each in value if _holds_metrics(type(each)) == "one"]
        return found + [metric for metric in dict.fromkeys(m for m, _ in self._measures)
                        if metric not in found]

    def reset_own_metrics(self):
        """Of an own step, those that the library does not know."""
        if self._own_step is None:
            return
        found = self.metrics
        if type(self).metrics is not Stepped.metrics:       # which may leave some out
            found = [*found, *self._attribute_metrics()]
        for metric in {id(m): m for m in found}.values():
            metric.reset_state()

    def _overrides(self, *names):
        return any(getattr(type(self), name) is not getattr(Stepped, name) for name in names)

    def _make_step(self, no_optimizer, no_loss=False, own_optimizer=False):
        """The own step of a subclass that has one, or of a model that trains by what its layers add
        to the loss, without labels, or by an optimizer of the program's; else None."""
        common = self._overrides("compute_loss", "compute_metrics") or no_loss or own_optimizer or \
            bool(self._measures)
        train, test = self._overrides("train_step"), self._overrides("test_step")
        predict = self._overrides("predict_step")
        if not (common or train or test or predict):
            return None
        return OwnStep(self, train or common, test or common, predict,
                       train and no_optimizer or own_optimizer)


@functools.lru_cache(maxsize=1024)
def _holds_metrics(kind):
    """Of the type of an attribute: "one", a list, which may hold "several", or None."""
    from ..metrics import Metric
    return "one" if issubclass(kind, Metric) else \
        "several" if issubclass(kind, (list, tuple)) else None


def _rows(x):
    while isinstance(x, (list, tuple, dict)):
        x = next(iter(x.values())) if isinstance(x, dict) else x[0]
    return x.shape[0]
