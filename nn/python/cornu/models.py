"""Models: Sequential and functional ones, from building to prediction."""

import ctypes
import json
import os
import tempfile
import weakref

import numpy as np

from . import callbacks as _callbacks
from ._arrays import Borrowed, shape_of
from ._described import Described, plain, unique_name
from ._library import Owned, lib, struct
from ._symbols import Tensor, input_config, set_extents
from .devices import find as _find_device
from .layers import Layer, Weight, Weighted, _by_address
from .optimizers import Optimizer

# The model that last put a weight on a device, by the weight's address, while it lives.
_placed_weights = weakref.WeakValueDictionary()
_NONE = lib.constants["CORNU_NONE"]
_VERBOSE = {"auto": "CORNU_AUTO", 0: "CORNU_SILENT", 1: "CORNU_BAR", 2: "CORNU_LINES"}


def _verbose(value):
    if value not in _VERBOSE:
        raise ValueError("verbose is %r, expected 0, 1, 2 or auto" % (value,))
    return lib.constants[_VERBOSE[value]]


def _listed(values):
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple)) else [values]


class Model(Weighted):
    """A model from symbolic tensors to others: Model(inputs, outputs). Each is one tensor, a list
    or a dictionary of them."""

    def __init__(self, inputs=None, outputs=None, name=None):
        if inputs is None or outputs is None:
            raise TypeError("Model takes inputs and outputs; models that are subclasses are for C")
        config = struct("CornuModelConfig", name=name or unique_name("functional"))
        tensors = self._set_tensors(config, "input", inputs)
        tensors += self._set_tensors(config, "output", outputs)
        self._begin(lib.cornu_model_from(ctypes.byref(config)))
        self._tensors = tensors

    @staticmethod
    def _set_tensors(config, what, given):
        if isinstance(given, dict):
            keys = sorted(given)
            texts = [key.encode("utf-8") for key in keys]
            for i, text in enumerate(texts):
                getattr(config, what + "_keys")[i] = text
            given = [given[key] for key in keys]
        given = _listed(given)
        if len(given) > lib.constants["CORNU_MAX_MODEL_TENSORS"]:
            raise ValueError("there are %d %ss, expected at most %d"
                             % (len(given), what, lib.constants["CORNU_MAX_MODEL_TENSORS"]))
        for i, tensor in enumerate(given):
            if not isinstance(tensor, Tensor):
                raise TypeError("%ss[%d] is %r, expected a symbolic tensor" % (what, i, tensor))
            getattr(config, what + "s")[i] = tensor.pointer
        return given

    def _begin(self, address):
        self._owned = Owned(address, lib.cornu_model_free)
        self._reset()

    def _reset(self):
        self.optimizer, self._compiled, self._stopping, self.history = None, None, False, None
        self._predicts = False
        self._shared = None     # the device of another model with the same weights

    @classmethod
    def _of(cls, address):
        made = object.__new__(cls)
        made._begin(address)
        return made

    # ---- What it is made of ----

    @property
    def pointer(self):
        return self._owned.address

    def _layer_pointer(self):
        return lib.cornu_as_layer(self.pointer)

    @property
    def name(self):
        return lib.cornu_model_name(self.pointer)

    @property
    def layers(self):
        """The layers, in Keras' order."""
        return [Layer._view(lib.cornu_model_layer(self.pointer, i), self._owned)
                for i in range(lib.cornu_model_layer_count(self.pointer))]

    def get_layer(self, name=None, index=None):
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError("%s: there is no layer %r, expected one of %s"
                         % (self.name, name, ", ".join(x.name for x in self.layers)))

    def _symbols(self, what):
        at = getattr(lib, "cornu_model_" + what)
        count = getattr(lib, "cornu_model_%s_count" % what)(self.pointer)
        return [Tensor(at(self.pointer, i)) for i in range(count)]

    @property
    def inputs(self):
        return self._symbols("input") if self.built else []

    @property
    def outputs(self):
        return self._symbols("output") if self.built else []

    @property
    def input_shape(self):
        shapes = [t.shape for t in self.inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self):
        shapes = [t.shape for t in self.outputs]
        return shapes[0] if len(shapes) == 1 else shapes

    def _names(self, what):
        name = getattr(lib, "cornu_model_%s_name" % what)
        count = getattr(lib, "cornu_model_%s_count" % what)(self.pointer)
        return [name(self.pointer, i) for i in range(count)]

    @property
    def input_names(self):
        return self._names("input")

    @property
    def output_names(self):
        return self._names("output")

    @property
    def weights(self):
        return [Weight(lib.cornu_model_weight(self.pointer, i), self)
                for i in range(lib.cornu_model_weight_count(self.pointer))]

    def count_params(self):
        return lib.cornu_model_parameters(self.pointer)

    def __call__(self, inputs):
        """Calls the model, as a layer, on symbolic tensors."""
        tensors = [inputs[key] for key in self.input_names] if isinstance(inputs, dict) \
            else _listed(inputs)
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError("%s: called on %s, expected symbolic tensors; predict takes arrays"
                                % (self.name, type(tensor).__name__))
        return self._called(tensors)

    def build(self, input_shape):
        """Makes the weights, for data of this shape; axis 0 is the batch."""
        shape = lib.type("CornuShape")()
        extents = tuple(input_shape)[1:]
        shape.rank = len(extents)
        for i, extent in enumerate(extents):
            shape.extent[i] = _NONE if extent is None else extent
        lib.cornu_model_build(self.pointer, shape)

    def summary(self, line_length=None, show_trainable=False, expand_nested=False, print_fn=None):
        """Prints Keras' table of the layers, by print_fn if there is one."""
        config = struct("CornuSummaryConfig", model=self.pointer, line_length=line_length or 0,
                        show_trainable=show_trainable, expand_nested=expand_nested)
        lines = []
        take = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(
            lambda _, text: lines.append(text.decode("utf-8")))
        config.print_fn = ctypes.cast(take, ctypes.c_void_p).value
        lib.cornu_summary_from(ctypes.byref(config))
        (print_fn or print)("".join(lines).rstrip("\n"))

    # ---- Compiling ----

    def compile(self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None,
                weighted_metrics=None, run_eagerly=False, steps_per_execution=1,
                jit_compile="auto", auto_scale_loss=True, device=None, gradient_norm=False,
                debug_nans=False):
        """Keras' compile. Losses and metrics are names or objects; for several outputs lists, or
        dictionaries by their names.

        device: "cpu", "tpu", "pjrt:PLUGIN", …, or a cornu.Device that models share
        gradient_norm: fit also logs the norm of all gradients
        debug_nans: a step fails that makes a number nan or infinite, naming the layer
        """
        config = {"optimizer": plain(optimizer), "loss": plain(loss),
                  "loss_weights": plain(loss_weights), "metrics": plain(metrics),
                  "weighted_metrics": plain(weighted_metrics), "run_eagerly": bool(run_eagerly),
                  "steps_per_execution": int(steps_per_execution), "jit_compile": jit_compile,
                  "auto_scale_loss": bool(auto_scale_loss), "gradient_norm": bool(gradient_norm),
                  "debug_nans": bool(debug_nans)}
        self._compile(config, device)
        self.optimizer = optimizer if isinstance(optimizer, Optimizer) else Optimizer._of(optimizer)
        self.optimizer._model = weakref.ref(self)
        self._compiled = config

    def _compile(self, config, device):
        pointer = _find_device(device) or self._device_of_others()
        lib.cornu_compile_from_json(self.pointer, json.dumps(config), pointer)
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
        return self._shared

    def _claim_weights(self):
        for address in self._weight_addresses():
            _placed_weights[address] = self._owned.counted

    def _need(self, what):
        """fit and evaluate need what compile was told; predict does not."""
        if self._compiled is None:
            raise ValueError("%s: call compile() before %s()" % (self.name, what))

    def _ready_to_predict(self, xs):
        if not self.built:
            self.build(xs[0].shape)
        if lib.cornu_model_compiled(self.pointer) or self._predicts:
            return
        if self._device_of_others():
            self._compile({"optimizer": "sgd"}, None)
        self._claim_weights()
        self._predicts = True

    # ---- Data ----

    def _ordered(self, what, given):
        """The arrays for inputs or outputs, from one, a list, or a dictionary by their names."""
        if isinstance(given, list) and not any(hasattr(v, "shape") for v in given) and \
                getattr(lib, "cornu_model_%s_count" % what)(self.pointer) == 1:
            return [np.asarray(given)]      # of numbers
        if not isinstance(given, dict):
            return _listed(given)
        names = self._names(what)
        unknown = sorted(set(given) - set(names))
        if unknown or len(given) < len(names):
            raise ValueError("%s: the %ss are %s, %s are given"
                             % (self.name, what, ", ".join(names), ", ".join(sorted(given))))
        return [given[name] for name in names]

    def _lend(self, lent, to, what, given):
        """Sets the array `to` of a config from data."""
        given = self._ordered(what, given)
        if len(given) > len(to):
            raise ValueError("%s: %d arrays are given, expected at most %d"
                             % (self.name, len(given), len(to)))
        for i, values in enumerate(given):
            to[i] = lent.array(values)

    def _lend_weights(self, lent, config, prefix, weights):
        if weights is None:
            return
        if isinstance(weights, dict) or isinstance(weights, (list, tuple)) and \
                not np.isscalar(weights[0]):
            self._lend(lent, getattr(config, prefix + "sample_weights"), "output", weights)
        else:
            setattr(config, prefix + "sample_weight", lent.array(weights))

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

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None,
            validation_split=0.0, validation_data=None, shuffle=True, class_weight=None,
            sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None,
            validation_batch_size=None, validation_freq=1):
        """Trains; returns the History. Arrays have a row per sample, of any number type; several
        inputs or outputs are lists, or dictionaries by their names. validation_data is (x, y) or
        (x, y, sample_weight)."""
        self._need("fit")
        lent = Borrowed()
        config = struct("CornuFitConfig", model=self.pointer, batch_size=batch_size or 0,
                        epochs=epochs or lib.constants["CORNU_ZERO"], verbose=_verbose(verbose),
                        validation_split=validation_split, no_shuffle=not shuffle,
                        initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch or 0,
                        validation_steps=validation_steps or 0,
                        validation_batch_size=validation_batch_size or 0,
                        validation_freq=validation_freq)
        self._lend(lent, config.xs, "input", x)
        self._build_for(config.xs)
        self._lend(lent, config.ys, "output", y)
        self._lend_weights(lent, config, "", sample_weight)
        if class_weight is not None:
            config.class_weight = self._class_weights(lent, class_weight)
        if validation_data is not None:
            if len(validation_data) not in (2, 3):
                raise ValueError("validation_data has %d parts, expected (x, y) or "
                                 "(x, y, sample_weight)" % len(validation_data))
            self._lend(lent, config.validation_xs, "input", validation_data[0])
            self._lend(lent, config.validation_ys, "output", validation_data[1])
            self._lend_weights(lent, config, "validation_",
                               validation_data[2] if len(validation_data) > 2 else None)
        self._stopping = False
        with _callbacks.Run(self, callbacks, verbose) as run:
            run.fill(config.callbacks)
            self.history = _callbacks.History(lib.cornu_fit_from(ctypes.byref(config)), self)
        return self.history

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
        names = [lib.cornu_model_metric_name(self.pointer, i)
                 for i in range(lib.cornu_model_metric_count(self.pointer))]
        return names[:-1] if self._compiled and self._compiled["gradient_norm"] else names

    def _results(self, values, return_dict):
        names = self.metrics_names
        if return_dict:
            return dict(zip(names, values))
        return values[0] if len(names) == 1 else list(values[:len(names)])

    def _values(self):
        return (ctypes.c_double * max(lib.cornu_model_metric_count(self.pointer), 1))()

    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None,
                 steps=None, callbacks=None, return_dict=False):
        """The loss and the metrics, in the order of metrics_names, or a dictionary of them."""
        self._need("evaluate")
        lent, values = Borrowed(), self._values()
        config = struct("CornuEvaluateConfig", model=self.pointer, batch_size=batch_size or 0,
                        verbose=_verbose(verbose), steps=steps or 0,
                        results=ctypes.addressof(values))
        self._lend(lent, config.xs, "input", x)
        self._build_for(config.xs)
        self._lend(lent, config.ys, "output", y)
        self._lend_weights(lent, config, "", sample_weight)
        with _callbacks.Run(self, callbacks, verbose) as run:
            run.fill(config.callbacks)
            lib.cornu_evaluate_from(ctypes.byref(config))
        return self._results(list(values), return_dict)

    # ---- Prediction ----

    def _outputs_for(self, xs, rows):
        """Arrays for the predictions of `rows` rows, of which xs are the first."""
        shapes = [t.shape[1:] for t in self.outputs]
        if any(None in shape for shape in shapes):
            lent = Borrowed()
            types = (lib.type("CornuType") * len(shapes))()
            arrays = (lib.type("CornuArray") * len(xs))(*[lent.array(x) for x in xs])
            lib.cornu_model_predict_types(self.pointer, ctypes.addressof(arrays),
                                          ctypes.addressof(types))
            shapes = [shape_of(t.shape)[1:] for t in types]
        return [np.zeros((rows,) + shape, np.float32) for shape in shapes]

    def _returned(self, outputs):
        return outputs[0] if len(outputs) == 1 else outputs

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """The predictions, a float32 array with a row per row of x; a list of several outputs."""
        lent = Borrowed()
        xs = [np.asarray(a) for a in self._ordered("input", x)]
        if not xs or any(a.ndim == 0 for a in xs):
            raise ValueError("%s: predict takes arrays with a row per sample" % self.name)
        self._ready_to_predict(xs)
        size = batch_size or 32
        rows = len(xs[0]) if steps is None else min(len(xs[0]), steps * size)
        outputs = self._outputs_for([a[:size] for a in xs], rows)
        config = struct("CornuPredictConfig", model=self.pointer, batch_size=batch_size or 0,
                        verbose=_verbose(verbose), steps=steps or 0)
        self._lend(lent, config.xs, "input", xs)
        for i, output in enumerate(outputs):
            config.tos[i] = lent.array(output)
        with _callbacks.Run(self, callbacks, verbose) as run:
            run.fill(config.callbacks)
            lib.cornu_predict_from(ctypes.byref(config))
        return self._returned(outputs)

    def predict_on_batch(self, x):
        lent = Borrowed()
        xs = [np.asarray(a) for a in self._ordered("input", x)]
        self._ready_to_predict(xs)
        outputs = self._outputs_for(xs, len(xs[0]))
        arrays = (lib.type("CornuArray") * len(xs))(*[lent.array(a) for a in xs])
        to = (lib.type("CornuArray") * len(outputs))(*[lent.array(a) for a in outputs])
        lib.cornu_predict_on_batch_many(self.pointer, ctypes.addressof(arrays),
                                        ctypes.addressof(to))
        return self._returned(outputs)

    # ---- One batch ----

    def _on_batch(self, function, x, y, sample_weight, class_weight, return_dict):
        self._need("train_on_batch")
        lent, values = Borrowed(), self._values()
        xs, ys = self._ordered("input", x), self._ordered("output", y)
        if not self.built:
            self.build(np.shape(xs[0]))
        if len(xs) == len(ys) == 1:
            config = struct("CornuOnBatchConfig", model=self.pointer, x=lent.array(xs[0]),
                            y=lent.array(ys[0]), values=ctypes.addressof(values))
            if sample_weight is not None:
                config.sample_weight = lent.array(sample_weight)
            if class_weight is not None:
                config.class_weight = self._class_weights(lent, class_weight)
            getattr(lib, function + "_from")(ctypes.byref(config))
        else:
            if sample_weight is not None or class_weight is not None:
                raise NotImplementedError("weights of a batch for several inputs or outputs; fit "
                                          "takes them")
            arrays = [(lib.type("CornuArray") * len(a))(*[lent.array(v) for v in a])
                      for a in (xs, ys)]
            getattr(lib, function + "_many")(self.pointer, ctypes.addressof(arrays[0]),
                                             ctypes.addressof(arrays[1]),
                                             ctypes.addressof(values))
        return self._results(list(values), return_dict)

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        """One step; returns the loss and metrics of this batch, as evaluate does."""
        return self._on_batch("cornu_train_on_batch", x, y, sample_weight, class_weight,
                              return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        return self._on_batch("cornu_test_on_batch", x, y, sample_weight, None, return_dict)

    def reset_metrics(self):
        lib.cornu_model_reset_metrics(self.pointer)

    def reset_states(self):
        """The states of stateful layers become zeros."""
        lib.cornu_model_reset_states(self.pointer)

    # ---- Files ----

    def save(self, path):
        """Saves the model; the suffix is the format: .safetensors, .keras, .onnx, …"""
        lib.cornu_model_save(self.pointer, path)

    def export(self, path, opset_version=0):
        """Saves the model for other programs, as .onnx."""
        config = struct("CornuExportConfig", model=self.pointer, path=os.fspath(path),
                        opset_version=opset_version)
        lib.cornu_model_export_from(ctypes.byref(config))

    def save_weights(self, path):
        """Saves the weights: .weights.h5, .npz or .safetensors."""
        lib.cornu_model_save_weights(self.pointer, path)

    def load_weights(self, path):
        lib.cornu_model_load_weights(self.pointer, path)

    def to_json(self):
        """The architecture, as Keras' JSON."""
        return lib.take_text(lib.cornu_model_to_json(self.pointer))

    def to_keras(self):
        """The same model in Keras, with its weights and, if compiled, its optimizer. It goes
        through a .keras file or, without libhdf5, as JSON and arrays, uncompiled."""
        import keras
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            if not _can_save(path):
                return _to_keras_by_arrays(self)
            self.save(path)
            return keras.models.load_model(path)

    def __repr__(self):
        return "<cornu.%s name=%s>" % (type(self).__name__, self.name)


class Sequential(Model):
    """Layers in a row: Sequential([Input((28, 28)), Flatten(), Dense(10)]). Without an Input the
    first data build it."""

    def __init__(self, layers=None, name=None):
        self._pending, self._owned = name or unique_name("sequential"), None
        self._reset()
        for layer in layers or []:
            self.add(layer)

    def _start(self, given=((), None, None, None, None)):
        shape, batch_size, dtype, _, scale = given
        of = input_config(shape, batch_size, dtype, None, scale)
        config = struct("CornuSequentialConfig", name=self._pending, batch_size=of.batch_size,
                        input_dtype=of.dtype, input_scale=of.scale)
        set_extents(config.input_shape, shape)
        self._begin(lib.cornu_sequential_from(ctypes.byref(config)))

    @property
    def pointer(self):
        if self._owned is None:
            self._start()
        return self._owned.address

    def add(self, layer):
        """Appends a layer, a model, or first the Input."""
        if isinstance(layer, Tensor):
            if self._owned is not None or not hasattr(layer, "_input"):
                raise ValueError("%s: a symbolic tensor is not a layer; an Input comes first"
                                 % self._pending)
            return self._start(layer._input)
        if isinstance(layer, type) and issubclass(layer, Described):
            raise TypeError("%s is a class; expected a layer, %s(…)" % (layer, layer.__name__))
        if not isinstance(layer, Weighted):
            raise TypeError("%r is not a layer of this package" % (layer,))
        pointer = self.pointer
        address = layer._layer_pointer()
        if isinstance(layer, Layer):
            layer._calls += 1
        lib.cornu_model_add(pointer, address)
        _by_address[address] = layer


class Predictor:
    """A copy of a model that predicts for any number of threads at once.

    max_batch_size: rows computed at once; a call of more takes several turns
    threads: 1 is fastest with as many callers as processors; 0: as many as there are
    device: a cornu.Device like which the predictor opens one; default the model's
    """

    def __init__(self, model, max_batch_size=0, threads=0, device=None):
        config = struct("CornuPredictorConfig", model=model.pointer, threads=threads,
                        max_batch_size=max_batch_size, device=_find_device(device))
        self._owned = Owned(lib.cornu_predictor_from(ctypes.byref(config)),
                            lib.cornu_predictor_free)
        count = lib.cornu_predictor_input_count(self._owned.address)
        self.input_names = [lib.cornu_predictor_input_name(self._owned.address, i)
                            for i in range(count)]
        self._shapes = [shape_of(lib.cornu_predictor_output_type(self._owned.address, i).shape)[1:]
                        for i in range(lib.cornu_predictor_output_count(self._owned.address))]
        if any(None in shape for shape in self._shapes):
            raise NotImplementedError("%s: its outputs have extents that differ from call to call"
                                      % model.name)

    def predict(self, x):
        """As Model.predict, from any thread."""
        if isinstance(x, dict):
            if sorted(x) != sorted(self.input_names):
                raise ValueError("the inputs are %s, %s are given"
                                 % (", ".join(self.input_names), ", ".join(sorted(x))))
            x = [x[name] for name in self.input_names]
        xs = [np.asarray(v) for v in (x if isinstance(x, (list, tuple)) and
                                      len(self.input_names) > 1 else [x])]
        if len(xs) != len(self.input_names) or any(v.ndim == 0 for v in xs):
            raise ValueError("%d arrays are given, expected %d with a row per sample"
                             % (len(xs), len(self.input_names)))
        lent, outputs = Borrowed(), [np.empty((len(xs[0]),) + s, np.float32) for s in self._shapes]
        kind = lib.type("CornuArray")
        arrays = (kind * len(xs))(*[lent.array(v) for v in xs])
        to = (kind * len(outputs))(*[lent.array(v) for v in outputs])
        lib.cornu_predictor_predict(self._owned.address, ctypes.addressof(arrays),
                                    ctypes.addressof(to))
        return outputs[0] if len(outputs) == 1 else outputs

    __call__ = predict


def load(path, compile=True, device=None):
    """Loads a model; one of .keras is compiled as it was saved, if it was."""
    if compile and os.fspath(path).endswith((".keras", ".h5")):
        try:
            return _compiled(Model._of(lib.cornu_model_load_compiled(path, _find_device(device))))
        except NotImplementedError:
            pass        # it was not compiled, or with something that the library does not have
    return Model._of(lib.cornu_model_load(path))


def _compiled(model):
    model.optimizer = Optimizer._of(None)
    model.optimizer._model = weakref.ref(model)
    model._compiled = {"gradient_norm": False}
    return model


def load_model(filepath, compile=True, device=None):
    """Keras' name of load."""
    return load(filepath, compile, device)


def model_from_json(text):
    """An uncompiled model of this architecture, Keras' JSON."""
    return Model._of(lib.cornu_model_from_json(text))


def clone_model(model):
    """An uncompiled model of the same architecture with weights of its own."""
    return Model._of(lib.cornu_model_clone(model.pointer))


def from_keras(model):
    """A model of Keras, with its weights; compiled if it is, and the library can. It goes through a
    .keras file or, without libhdf5, as JSON and arrays, less the optimizer's state."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        if not _can_save(path):
            return _from_keras_by_arrays(model)
        model.save(path)
        return load(path)


def _can_save(path):
    """Whether the library that such a file needs is there."""
    try:
        lib.cornu_model_save_check(path)
        return True
    except NotImplementedError:
        return False


def _from_keras_by_arrays(model):
    made = model_from_json(model.to_json())
    made.set_weights(model.get_weights())
    config = model.get_compile_config() if getattr(model, "compiled", False) else None
    if config:
        try:
            made._compile(config, None)
            _compiled(made)
        except NotImplementedError:
            pass        # compiled with something that the library does not have
    return made


def _to_keras_by_arrays(model):
    import keras
    made = keras.models.model_from_json(model.to_json())
    made.set_weights(model.get_weights())
    return made


__all__ = ["Model", "Predictor", "Sequential", "clone_model", "from_keras", "load", "load_model",
           "model_from_json"]
