"""Compiling, training, evaluating and predicting: what models do."""

import ctypes
import json
import warnings
import weakref

import numpy as np

from .. import callbacks as _callbacks
from .._binding.arrays import Borrowed, shape_of
from .._tensors.calls import is_of_arrays, leaves
from .._binding.described import Collecting, plain
from .feeds import Feed, in_order, is_feed, parts_of, refuse
from .._binding.library import lib, struct
from .._own.callables import Objects, Owner
from .._own.steps import Stepped, unpack_x_y_sample_weight
from .._tensors.values import Again
from ..distribution.strategies import keep
from ..devices import find as _find_device
from ..generator import generate, window_of
from ..optimizers import Optimizer, get as _get_optimizer

# The model that last put a weight on a device, by the weight's address, while it lives.
_placed_weights = weakref.WeakValueDictionary()
_VERBOSE = {"auto": "CORNU_AUTO", 0: "CORNU_SILENT", 1: "CORNU_BAR", 2: "CORNU_LINES"}
# Whether verbose="auto" prints; see cornu.config.
interactive = [True]


def _verbose(value):
    if value not in _VERBOSE:
        raise ValueError("verbose is %r, expected 0, 1, 2 or auto" % (value,))
    if value == "auto" and not interactive[0]:
        value = 0
    return lib.constants[_VERBOSE[value]]


def listed(values):
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple)) else [values]


class _Usual(str):
    """The optimizer where none is given."""


class Trained(Stepped):
    """The part of Model that trains and predicts."""

    loss = None             # what compile was given; and with its weights:
    _loss_given = _metrics_given = (None, None)
    _trains_parts = None    # whether the optimizer trains some of the weights, in an own step

    def train_parts(self):
        """The step that is being recorded applies the optimizer to some of the weights."""
        self._trains_parts = False      # until it is compiled so

    def leave_to_others(self, variables):
        """The step that is being recorded has another optimizer for these: a weight has one."""
        own = {w._native() for w in self.trainable_weights} \
            if self.optimizer._model_of() is self else ()
        if any(v._native() in own for v in variables):
            self.train_parts()
            raise Again()

    def _compile_for_parts(self):
        if self._trains_parts is False:
            step = self._own_step
            self._trains_parts, self.optimizer._model = True, None
            Trained.compile(self, **self._again)
            self._own_step.takes_as(step)

    # ---- Compiling ----

    def compile(self, optimizer=_Usual("rmsprop"), loss=None, loss_weights=None, metrics=None,
                weighted_metrics=None, run_eagerly=False, steps_per_execution=1,
                jit_compile="auto", auto_scale_loss=True, device=None, gradient_norm=False,
                debug_nans=False):
        """Keras' compile. Losses and metrics are names or objects; for several outputs lists, or
        dictionaries by their names.

        device: "cpu", "tpu", "pjrt:PLUGIN", …, or a cornu.Device that models share
        gradient_norm: fit also logs the norm of all gradients
        debug_nans: a step fails that makes a number nan or infinite, naming the layer

        As in Keras, the loss and the metrics of the last compile stay where none are given.
        """
        if loss is None:
            loss, loss_weights = self._loss_given
        if metrics is None and weighted_metrics is None:
            metrics, weighted_metrics = self._metrics_given
        self._loss_given, self._metrics_given = (loss, loss_weights), (metrics, weighted_metrics)
        self.loss, self._partial = loss, None
        if self._unknown():
            self._compiling = {key: value for key, value in locals().items()
                               if key not in ("self", "__class__")}
            self.optimizer = optimizer
            return
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        own = Objects(Owner(self._owned.counted) if self.pointer else None)
        if self._parts:     # whose outputs a step does not compare with labels: see Partial
            loss = loss_weights = metrics = weighted_metrics = None
        own_optimizer = getattr(optimizer, "is_own", False)
        no_optimizer = optimizer is None or isinstance(optimizer, _Usual) or self._trains_parts
        optimizer = "rmsprop" if optimizer is None else optimizer
        with Collecting(own.schedule):
            optimizer_config = "sgd" if own_optimizer else plain(optimizer)
        config = {"optimizer": optimizer_config, "loss": plain(own.walk(loss, own.loss)),
                  "loss_weights": plain(loss_weights),
                  "metrics": plain(own.walk(metrics, own.metric)),
                  "weighted_metrics": plain(own.walk(weighted_metrics, own.metric)),
                  "run_eagerly": bool(run_eagerly),
                  "steps_per_execution": int(steps_per_execution), "jit_compile": jit_compile,
                  "auto_scale_loss": bool(auto_scale_loss), "gradient_norm": bool(gradient_norm),
                  "debug_nans": bool(debug_nans)}
        step = self._make_step(no_optimizer, loss is None, own_optimizer)
        with own:
            self._compile(config, device, step)
        self._owned.counted.own = own, step     # which live as long as the library's model
        self._own_step, self._device = step, device
        self._compiled_names = [lib.cornu_model_metric_name(self.pointer, i) for i in
                                range(lib.cornu_model_metric_count(self.pointer))]
        if step is not None and step.struct.own_updates:
            self.optimizer = _get_optimizer(optimizer)      # its own, if the step uses it
        else:
            self.optimizer = optimizer if isinstance(optimizer, Optimizer) else \
                Optimizer._of(optimizer)
            self.optimizer._model = weakref.ref(self)
        self._compiled = config
        self._again = given if own or step is not None else None

    def _compile(self, config, device, step=None):
        pointer = _find_device(device) or self._device_of_others()
        if pointer is None and device is None and self._placed is not None:
            pointer = self._placed.address
        lib.cornu_compile_step_from_json(self.pointer, json.dumps(config), pointer,
                                         step and step.address)
        if pointer is None:
            keep(self._owned, self.built)
        self._claim_weights()

    def _weight_addresses(self):
        return [lib.cornu_model_weight(self.pointer, i)
                for i in range(lib.cornu_model_weight_count(self.pointer))]

    def _device_of_others(self):
        """Models that share weights share a device: without one of its own choice a model takes
        that of another, which lives as long. None if there is no other."""
        for address in self._weight_addresses() if self._shared is None else []:
            other = _placed_weights.get(address)
            if other and other.address and other is not self._owned.counted:
                self._shared = lib.cornu_model_device(other.address)
                self._owned.needs(other)
                break
        if self._shared is None:
            self._share_with(vars(self).values())
        return self._shared

    def _share_with(self, values):
        """Models that are attributes, which a step calls, share the device, too."""
        for value in values:
            if isinstance(value, (list, tuple)):
                self._share_with(value)
            elif isinstance(value, Trained) and value is not self and value._owned is not None and \
                    self._shared is None and lib.cornu_model_device(value.pointer):
                self._shared = lib.cornu_model_device(value.pointer)
                self._owned.needs(value._owned.counted)

    def _claim_weights(self):
        for address in self._weight_addresses():
            _placed_weights[address] = self._owned.counted

    def _need(self, what):
        """fit and evaluate need what compile was told; predict does not."""
        if self._compiled is None:
            raise ValueError("%s: call compile() before %s()" % (self.name, what))

    def _ready_to_predict(self, xs):
        if not self.built:
            self.build(xs[0].shape, *(["string"] if xs[0].dtype.kind in "SUO" else []))
        if lib.cornu_model_compiled(self.pointer) or self._predicts:
            return
        if self._device_of_others():
            self._compile({"optimizer": "sgd"}, None)
        self._claim_weights()
        self._predicts = True

    # ---- Data ----

    def _given(self, what, given, tests=False):
        """The arrays of a batch: of an own step in any structure, else of inputs and outputs."""
        if self._own_step is not None:
            return self._own_step.arrays(what, given, tests)
        return self._ordered("output" if what == "weight" else what, given)

    def _to_predict(self, x):
        """Of an own step, the arrays that predict_step gets; else those of the inputs."""
        own = self._own_step is not None and self._own_step.struct.predict
        return self._own_step.arrays("input", x) if own else self._ordered("input", x)

    def _ordered(self, what, given):
        """The arrays for inputs or outputs, from one, a list, or a dictionary by their names."""
        if isinstance(given, list) and not any(hasattr(v, "shape") for v in given) and \
                getattr(lib, "cornu_model_%s_count" % what)(self.pointer) == 1:
            return [np.asarray(given)]      # of numbers
        if not isinstance(given, dict):
            given = listed(given)
            nested = any(isinstance(v, (list, tuple, dict)) and is_of_arrays(v) for v in given)
            return leaves(given) if nested else given
        names = self._names(what)
        unknown = sorted(set(given) - set(names))
        if what == "input" and set(names) <= set(given):
            if unknown and not self._has_warned:
                self._has_warned = True
                warnings.warn("%s: no inputs are %s, which are ignored"
                              % (self.name, ", ".join(unknown)), stacklevel=2)
            return [self._ranked(given[name], i) for i, name in enumerate(names)]
        if unknown or len(given) < len(names):
            raise ValueError("%s: the %ss are %s, %s are given"
                             % (self.name, what, ", ".join(names), ", ".join(sorted(given))))
        return [given[name] for name in names]

    _has_warned = False     # of members of dictionaries that are no inputs

    def _ranked(self, array, i):
        """The array for input i, with its trailing axis of extent 1, which may be missing."""
        if self._input_shapes is None:
            self._input_shapes = [tuple(t.shape) for t in self.inputs]
        shape = self._input_shapes[i] if self._input_shapes else ()
        if getattr(array, "ndim", None) == len(shape) - 1 and shape[-1:] == (1,):
            return np.asarray(array)[..., None]
        return array

    def _lend(self, lent, to, what, given, tests):
        """Sets the array `to` of a config from data."""
        for i, values in enumerate(self._fitting(to, self._given(what, given, tests))):
            to[i] = lent.array(values)

    def _fitting(self, to, given):
        if len(given) > len(to):
            raise ValueError("%s: %d arrays are given, expected at most %d"
                             % (self.name, len(given), len(to)))
        return given

    def _labels(self, x, y, tests=False):
        """The arrays of y. An output without a loss needs none: it gets a column of zeros."""
        given = self._given("output", y, tests)
        count = lib.cornu_model_output_count(self.pointer)
        if self._own_step is not None or len(given) == count or not x:
            return given
        wanted = [i for i in range(count) if lib.cornu_model_loss(self.pointer, i)]
        if len(wanted) != len(given) or (not wanted and self._config_has_metrics()):
            return given
        made = [np.zeros((x[0].shape[0], 1), np.float32)] * count
        for i, values in zip(wanted, given):
            made[i] = values
        return made

    def _config_has_metrics(self):
        return bool(self._compiled["metrics"] or self._compiled["weighted_metrics"])

    def _lend_data(self, lent, to, x, y, sample_weight, tests=False):
        """Sets the data of a config, or those of its validation."""
        self._lend(lent, to.xs, "input", x, tests)
        if self._own_step is None:
            self._build_for(to.xs)
        first = [np.asarray(a) for a in self._given("input", x, tests)[:1]] if x is not None else []
        for i, values in enumerate(self._fitting(to.ys, self._labels(first, y, tests))):
            to.ys[i] = lent.array(values)
        if sample_weight is not None:
            self._lend_weights(lent, to, sample_weight)

    def _lend_weights(self, lent, to, weights):
        if isinstance(weights, dict):
            names = self._names("output")
            unknown = sorted(set(weights) - set(names))
            if unknown:
                raise ValueError("%s: the outputs are %s, sample_weight has %s"
                                 % (self.name, ", ".join(names), ", ".join(unknown)))
            weights = [weights.get(name) for name in names]
        if isinstance(weights, (list, tuple)) and not np.isscalar(weights[0]):
            given = next((w for w in weights if w is not None), ())
            for i, values in enumerate(self._fitting(to.sample_weights, weights)):
                to.sample_weights[i] = lent.array(      # of others, weights of 1
                    np.ones(len(given)) if values is None else values)
        else:
            to.sample_weight = lent.array(weights)

    @staticmethod
    def _class_weights(lent, weights):
        """An array by class of a dictionary by class; others weigh 1."""
        if isinstance(weights, dict):
            every = np.ones(max(weights) + 1)
            for number, weight in weights.items():
                every[number] = weight
            weights = every
        return lent.array(np.asarray(weights, np.float64))

    # ---- Training ----

    def fit(self, x=None, y=None, batch_size: int = None, epochs: int = 1, verbose="auto",
            callbacks=None, validation_split: float = 0.0, validation_data=None,
            shuffle: bool = True, class_weight=None, sample_weight=None, initial_epoch: int = 0,
            steps_per_epoch: int = None, validation_steps: int = None,
            validation_batch_size: int = None,
            validation_freq: int = 1) -> _callbacks.History:
        """Trains; returns the History. Arrays have a row per sample, of any number type; several
        inputs or outputs are lists, or dictionaries by their names. validation_data is (x, y) or
        (x, y, sample_weight).

        x and validation_data may be batches instead: a generator, a PyDataset, a DataLoader, ...,
        of (x, y) or (x, y, sample_weight). Each is a step, of as many rows as it has. Of a
        generator steps_per_epoch batches are an epoch; without it, all of them. Validation has the
        same batches in each epoch: those of a generator are kept.
        """
        x = self._know_data(x, y)
        self._need("fit")
        lent, feeds = Borrowed(), []
        config = struct("CornuFitConfig", model=self.pointer, batch_size=batch_size or 0,
                        epochs=epochs or lib.constants["CORNU_ZERO"], verbose=_verbose(verbose),
                        validation_split=validation_split, no_shuffle=not shuffle,
                        initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch or 0,
                        validation_steps=validation_steps or 0,
                        validation_batch_size=validation_batch_size or 0,
                        validation_freq=validation_freq)
        if self._own_step is not None:
            self._own_step.tests_alike()
        if is_feed(x):
            refuse(y=y is not None, sample_weight=sample_weight is not None,
                   validation_split=validation_split)
            config.data, config.batch_size = self._feed(feeds, x, shuffle), 0
        else:
            self._lend_data(lent, config, x, y, sample_weight)
        if class_weight is not None:
            config.class_weight = self._class_weights(lent, class_weight)
        if is_feed(validation_data):
            config.validation_batch_size = 0
            config.validation_data.data = self._feed(feeds, validation_data, again=True,
                                                     tests=True)
        elif validation_data is not None:
            self._lend_data(lent, config.validation_data,
                            *unpack_x_y_sample_weight(validation_data), tests=True)
        self._stopping = False
        self._running(callbacks, verbose, feeds, config, lambda: setattr(
            self, "history", _callbacks.History(lib.cornu_fit_from(ctypes.byref(config)), self)))
        return self.history

    def _running(self, callbacks, verbose, feeds, config, run_it):
        """Calls the library with the callbacks."""
        def once():
            with _callbacks.Run(self, callbacks, verbose, feeds) as run:
                run.fill(config.callbacks)
                return run_it()
        return self._recording_again(once)

    def _feed(self, feeds, data, shuffle=False, again=False, tests=False):
        """The address of a data set of batches, kept in `feeds`."""
        from ..data.pipeline import FileDataset, FileFeed
        read = isinstance(data, FileDataset) and data.batch_size and self._own_step is None
        feeds.append(FileFeed(self, data) if read else Feed(self, data, shuffle, again, tests))
        if not self.built:
            self.build(feeds[-1].shape)
        return feeds[-1].address

    def _build_for(self, arrays):
        """A model without an input shape gets that of its first data."""
        shape = shape_of(arrays[0].type.shape)
        if not self.built and shape:
            self.build(shape)

    @property
    def stop_training(self):
        return self._stopping

    @stop_training.setter
    def stop_training(self, value):
        self._stopping = bool(value)
        if value:
            lib.cornu_model_stop_training(self.pointer)

    @property
    def metrics_names(self):
        """"loss", then the metrics: the names of what evaluate returns."""
        return self._shown_names(False)

    def _shown_names(self, training):
        return [name for _, name in self._shown(training)]

    def _shown(self, training):
        """(number, name) of the logs, those of an own step as Keras orders them."""
        shown = [(i, lib.cornu_model_metric_name(self.pointer, i))
                 for i in range(lib.cornu_model_metric_count(self.pointer))
                 if lib.cornu_model_metric_shown(self.pointer, i, training)]
        if self._own_step is not None and len(shown) > 1:
            known = self._metric_order()
            shown.sort(key=lambda log: (known.index(log[1]) if log[1] in known else len(known),
                                        log[1]))
        return shown

    def _results(self, values, return_dict, training=False):
        shown = self._shown(training)
        if return_dict:
            return {name: values[i] for i, name in shown}
        return values[shown[0][0]] if len(shown) == 1 else [values[i] for i, _ in shown]

    def _values(self):
        return (ctypes.c_double * (lib.cornu_model_metric_count(self.pointer) +
                                   lib.constants["CORNU_MAX_STEP_LOGS"]))()

    def evaluate(self, x=None, y=None, batch_size: int = None, verbose="auto",
                 sample_weight=None, steps: int = None, callbacks=None,
                 return_dict: bool = False):
        """The loss and the metrics, in the order of metrics_names, or a dictionary of them."""
        x = self._know_data(x, y)
        self._need("evaluate")
        if self._own_step is not None:
            self._own_step.tested.forget_rows()
        lent, feeds, values = Borrowed(), [], self._values()
        config = struct("CornuEvaluateConfig", model=self.pointer, batch_size=batch_size or 0,
                        verbose=_verbose(verbose), steps=steps or 0,
                        results=ctypes.addressof(values))
        if is_feed(x):
            refuse(y=y is not None, sample_weight=sample_weight is not None)
            config.data, config.batch_size = self._feed(feeds, x, tests=True), 0
        else:
            self._lend_data(lent, config, x, y, sample_weight, tests=True)
        self._running(callbacks, verbose, feeds, config,
                      lambda: lib.cornu_evaluate_from(ctypes.byref(config)))
        return self._results(list(values), return_dict)

    # ---- Prediction ----

    def _known_outputs(self):
        """(shape of a row, dtype) of each."""
        if self._output_types is None:
            self._output_types = [(t.shape[1:], t.dtype) for t in self.outputs]
        return self._output_types

    def _outputs_for(self, xs, rows):
        """Arrays for the predictions of `rows` rows, of which xs are the first; of a function, of
        all."""
        shapes = [shape for shape, _ in self._known_outputs()]
        if self.is_function or any(None in shape for shape in shapes):
            lent = Borrowed()
            types = (lib.type("CornuType") * len(shapes))()
            lib.cornu_model_predict_types(self.pointer, lent.arrays(xs), ctypes.addressof(types))
            if self.is_function:
                return [np.zeros(shape_of(t.shape), np.float32) for t in types]
            shapes = [shape_of(t.shape)[1:] for t in types]
        return [np.zeros((rows,) + shape, np.float32) for shape in shapes]

    def _returned(self, outputs):
        """In the form of the outputs; whole numbers as such."""
        outputs = [made if "float" in kind else made.astype(kind)
                   for made, (_, kind) in zip(outputs, self._known_outputs())]
        return self._formed(outputs[0] if len(outputs) == 1 else outputs)

    def predict(self, x, batch_size: int = None, verbose="auto", steps: int = None,
                callbacks=None):
        """The predictions, a float32 array with a row per row of x; a list of several outputs. x
        may be batches, as for fit, of which only the inputs are used."""
        x = self._know_data(x)
        if is_feed(x):
            refuse(callbacks=callbacks)
            return self._predict_batches(x, steps)
        other = self._fitting_model(x)
        if other is not self:
            return other.predict(x, batch_size, verbose, steps, callbacks)
        lent = Borrowed()
        xs = [np.asarray(a) for a in self._to_predict(x)]
        if self.is_function:    # which says why it cannot
            lib.cornu_predict_from(ctypes.byref(struct("CornuEvaluateConfig", model=self.pointer)))
        if not xs or any(a.ndim == 0 for a in xs):
            raise ValueError("%s: predict takes arrays with a row per sample" % self.name)
        self._ready_to_predict(xs)
        fixed = lib.cornu_model_batch_size(self.pointer)
        size = batch_size or (fixed if fixed > 0 else 32)
        rows = len(xs[0]) if steps is None else min(len(xs[0]), steps * size)
        outputs = self._outputs_for([a[:size] for a in xs], rows)
        config = struct("CornuEvaluateConfig", model=self.pointer, batch_size=batch_size or 0,
                        verbose=_verbose(verbose), steps=steps or 0)
        for i, values in enumerate(self._fitting(config.xs, xs)):
            config.xs[i] = lent.array(values)
        for i, output in enumerate(outputs):
            config.tos[i] = lent.array(output)
        with _callbacks.Run(self, callbacks, verbose) as run:
            run.fill(config.callbacks)
            lib.cornu_predict_from(ctypes.byref(config))
        return self._returned(outputs)

    def _predict_batches(self, batches, steps):
        parts = []
        for i, batch in enumerate(in_order(batches)):
            if i == steps:
                break
            parts.append(leaves(self.predict_on_batch(parts_of(batch)[0])))
        if not parts:
            raise ValueError("%s: the iterator has no batch" % self.name)
        return self._returned([np.concatenate(part) for part in zip(*parts)])

    def predict_on_batch(self, x):
        lent = Borrowed()
        x = self._know_data(x)
        other = self._fitting_model(x)
        if other is not self:
            return other.predict_on_batch(x)
        xs = [np.asarray(a) for a in self._to_predict(x)]
        self._ready_to_predict(xs)
        outputs = self._outputs_for(xs, 0 if self.is_function else len(xs[0]))
        lib.cornu_predict_on_batch_many(self.pointer, lent.arrays(xs), lent.arrays(outputs))
        return self._returned(outputs)

    def generate(self, prime, count: int, temperature: float = 1.0, top_k: int = 0,
                 top_p: float = 1.0, seed: int = 0, stop=(), logits: bool = False, on_token=None,
                 sequence_length: int = 0, window: str = "slides"):
        """The `count` tokens that follow those of `prime`, a sequence of integers; of a list of
        sequences a list for each. Each is drawn from what the model, (None, T) to (None, T, V),
        predicts after the last one: step by step where it can (cornu.Generator), else of the whole
        window.

        temperature: 0: always the most probable token
        top_k, top_p: draw from the most probable ones only; 0, 1: from all
        stop: sequences of tokens, after one of which a sequence ends
        logits: the model predicts these, not probabilities
        on_token: called with each token as soon as it is drawn, or with the number of its sequence
            and it; False ends the sequence
        sequence_length, window: as of cornu.Generator
        """
        return generate(prime, count, temperature, top_k, top_p, seed, stop, logits, on_token,
                        model=self.pointer, sequence_length=sequence_length,
                        window=window_of(window))

    # ---- One batch ----

    def _on_batch(self, function, x, y, sample_weight, class_weight, return_dict):
        x = self._know_data(x, y)
        self._need("train_on_batch")
        lent, values = Borrowed(), self._values()
        tests = function == "cornu_test_on_batch"
        xs, ys = self._given("input", x, tests), self._given("output", y, tests)
        self.reset_own_metrics()
        if not self.built:
            self.build(np.shape(xs[0]))
        if len(xs) == 1 and len(ys) <= 1 and (ys or self._own_step is not None):
            config = struct("CornuOnBatchConfig", model=self.pointer, x=lent.array(xs[0]),
                            values=ctypes.addressof(values))
            if ys:
                config.y = lent.array(ys[0])
            if sample_weight is not None:
                config.sample_weight = lent.array(sample_weight)
            if class_weight is not None:
                config.class_weight = self._class_weights(lent, class_weight)
            self._recording_again(lambda: getattr(lib, function + "_from")(ctypes.byref(config)))
        else:
            if sample_weight is not None or class_weight is not None:
                raise NotImplementedError("weights of a batch for several inputs or outputs; fit "
                                          "takes them")
            self._recording_again(lambda: getattr(lib, function + "_many")(
                self.pointer, lent.arrays(xs), lent.arrays(ys), ctypes.addressof(values)))
        return self._results(list(values), return_dict, not tests)

    def _recording_again(self, run_it):
        """Calls the library; again where recording a step made variables."""
        while True:
            try:
                return run_it()
            except Again:
                self._compile_for_parts()
            finally:
                lib.raise_late()

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        """One step; returns the loss and metrics of this batch, as evaluate does."""
        return self._on_batch("cornu_train_on_batch", x, y, sample_weight, class_weight,
                              return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        return self._on_batch("cornu_test_on_batch", x, y, sample_weight, None, return_dict)

    def reset_metrics(self):
        self.reset_own_metrics()
        lib.cornu_model_reset_metrics(self.pointer)

    def reset_states(self):
        """The states of stateful layers become zeros."""
        lib.cornu_model_reset_states(self.pointer)
