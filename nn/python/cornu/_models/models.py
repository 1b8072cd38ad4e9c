"""Functional models, and subclasses with a call of their own."""

import contextlib
import ctypes
import json
import os
import weakref

import numpy as np

from .configured import Configured, note_arguments
from .._binding.arrays import to_array
from .._binding.described import unique_name
from .._binding.library import Owned, lib, struct
from .._tensors.calls import call_model, is_array, is_of_arrays, leaves
from .._tensors.symbols import Tensor, find_tensor, input_tensor, made_by, operation
from .._tensors.functions import Variable, rehearse
from .._tensors.values import Value, current
from . import notebook
from .feeds import is_feed
from ..saving import check_overwrite
from .training import Trained, listed
from ..errors import ShapeError
from .._own.bodies import (Body, Called, Part, called_with, first_batches, has_call, inputs_as,
                           inputs_like, inputs_of, outputs_of, overridden, part_of)
from .._tensors.traces import tracing
from .._binding.nested import filled
from .._own.forms import form_of, measured_by
from .._tensorflow import as_attribute
from ..layers import BuiltIn, Layer, Weight, Weighted, by_address, check_tensors

_MOST_KEPT = 16     # models of one for data of other extents


class Model(Trained, Configured, Weighted):
    """A model from symbolic tensors to others: Model(inputs, outputs). Each is one tensor, a list
    or a dictionary of them. A subclass may have __init__ and call instead, as a Layer."""

    def __new__(cls, *args, **kwargs):
        made = object.__new__(cls)
        note_arguments(made, args, kwargs)
        return made

    _body = None            # of a subclass with a call of its own
    _base = None            # of one whose call is around that of inputs and outputs: their model

    def __setattr__(self, name, value):
        old, value = vars(self).get(name), as_attribute(value)
        super().__setattr__(name, value)
        if isinstance(value, Variable) and self._body is not None:
            value.belong_to(self._body)
        elif self._body and self._owned and is_array(old) and is_array(value) and old is not value:
            self._body.forget_calls()
            self._renewed = inputs_as(self)

    _renewed = None         # the inputs that it is made of again, as an array of its call changed
    _hashes = None          # see calls.py
    _form = None            # of its outputs, where they are no tensor or list of tensors
    _parts = ()             # of a subclass without one: the models that its train_step calls

    def __init__(self, inputs=None, outputs=None, name=None, **kwargs):
        if inputs is None and outputs is None and type(self) is not Model:
            self._reset()
            self._owned, self._body = None, Body(self, name=name, **kwargs)
            return
        if inputs is None or outputs is None:
            raise TypeError("Model takes inputs and outputs, or is subclassed with a method call")
        if type(self).call is not Model.call:
            return self._extend(Model(inputs, outputs, name=name), name, **kwargs)
        config = struct("CornuModelConfig", name=name or unique_name("functional"),
                        only_called=kwargs.get("only_called", False))
        tensors = self._set_tensors(config, "input", inputs)
        tensors += self._set_tensors(config, "output", outputs)
        self._begin(lib.cornu_model_from(ctypes.byref(config)))
        self._tensors, self._form = tensors, form_of(outputs)
        self._measures = measured_by(tensors)

    @staticmethod
    def _beside(inputs, outputs):
        """A model of other outputs, for calls alone."""
        return Model(inputs, outputs, only_called=True)

    @staticmethod
    def _set_tensors(config, what, given):
        if isinstance(given, dict):
            keys = sorted(given)
            texts = [key.encode("utf-8") for key in keys]
            for i, text in enumerate(texts):
                getattr(config, what + "_keys")[i] = text
            given = [given[key] for key in keys]
        given = leaves(given)
        if len(given) > lib.constants["CORNU_MAX_MODEL_TENSORS"]:
            raise ValueError("there are %d %ss, expected at most %d"
                             % (len(given), what, lib.constants["CORNU_MAX_MODEL_TENSORS"]))
        for i, tensor in enumerate(given):
            if not isinstance(tensor, Tensor):
                raise TypeError("%ss[%d] is %r, expected a symbolic tensor" % (what, i, tensor))
            getattr(config, what + "s")[i] = tensor.pointer
        return given

    def _begin(self, address, keep=False):
        self._owned = Owned(address, lib.cornu_model_free)
        if not keep:
            self._reset()

    def _reset(self):
        self._again = None      # those of compile, where copies need them
        self._compiling = None  # the arguments of compile, before a subclass becomes a model
        self.optimizer, self._compiled, self._stopping, self.history = None, None, False, None
        self._predicts, self._output_types, self._device = False, None, None
        self._input_shapes = None
        self._shared = None     # the device of another model with the same weights
        self._placed, self._eager, self._elsewhere = None, {}, {}       # of calls on arrays
        self._of_extents = {}   # models for data of other extents, see _fitting_model

    @classmethod
    def _of(cls, address):
        made = object.__new__(cls)
        made._begin(address)
        return made

    # ---- What it is made of ----

    @property
    def pointer(self):
        if self._owned is None and self._base is not None and self._base.built:
            self._make_from(inputs_as(self._base))
        if self._owned is None and self._body is not None:
            raise ValueError("%s: the shapes of its data are not known yet: call it, fit, or build "
                             "it first" % self.name)
        return self._owned.address

    def _layer_pointer(self):
        return self._body._layer_pointer() if self._body and not self._parts else \
            lib.cornu_as_layer(self.pointer)

    # ---- Subclasses with a call of their own ----

    def _extend(self, base, name, **kwargs):
        """Makes this a model of the program's own, whose super().call is that of another model."""
        self._reset()
        self._owned, self._base = None, base
        self._body = Body(self, name=name or base.name, **kwargs)

    def call(self, *args, **kwargs):
        """Override it; for the model itself it is a call of it."""
        if self._base is not None:
            return self._base(*args, **kwargs)
        if self._body:
            raise NotImplementedError("%s has no method call" % type(self).__name__)
        return self(*args, **kwargs)

    def get_config(self):
        """The architecture, a dictionary; of a subclass with a call of its own the arguments of its
        __init__, or, for its own get_config, those of Model's."""
        if self._body is None:
            return super().get_config()
        if "get_config" in overridden(type(self)):
            return Layer.get_config(self._body)
        return self._body.get_config()

    def add_weight(self, *args, **kwargs):
        return self._body.add_weight(*args, **kwargs)

    def add_loss(self, loss):
        self._body.add_loss(loss)

    def _make_from(self, inputs):
        """Makes the functional model of one layer, the body, of symbolic inputs."""
        config = struct("CornuModelConfig", name=self.name)
        tensors = self._set_tensors(config, "input", inputs)
        made = self._body._called([inputs], {})
        tensors += self._set_tensors(config, "output", outputs_of(made))
        self._begin(lib.cornu_model_from(ctypes.byref(config)), keep=True)
        if not self._body._training_matters():
            lib.cornu_model_train_as_inference(self.pointer, True)
        self._tensors, self._form = tensors, form_of(made)
        self._measures, self._measuring = measured_by(tensors), None
        self._compile_known()

    def _make_of_parts(self):
        """Makes the model of a subclass that has no call, but a train_step that calls models which
        are its attributes: one with the inputs and outputs of all."""
        parts = [part_of(layer) for _, layer in self._body._sublayers()]
        found = [part for part in parts if part is not None]
        if not found:
            raise ValueError("%s has no method call: expected layers and models as attributes that "
                             "its train_step calls" % self.name)
        config, ins, outs, names = struct("CornuModelConfig", name=self.name), [], [], set()
        for model in found:
            given = [input_tensor(t.shape[1:], dtype=t.dtype, name=unique_name(model.name + "_in"))
                     for t in model.inputs]
            ins += given
            part = Part(model) if model.name in names else model
            names.add(model.name)
            outs += leaves(part(given[0] if len(given) == 1 else given))
        tensors = (self._set_tensors(config, "input", ins) +
                   self._set_tensors(config, "output", outs))
        self._begin(lib.cornu_model_from(ctypes.byref(config)), keep=True)
        self._parts, self._tensors = found, tensors
        self._compile_known()

    def _unknown(self):
        """Whether the shapes of its data must be known first."""
        return self._body is not None and self._owned is None

    def _compile_known(self):
        """Compiles as compile was told before the shapes were known."""
        if self._compiling is not None:
            given, self._compiling = self._compiling, None
            chosen = self.optimizer
            Trained.compile(self, **given)      # what a subclass makes of it came before
            if chosen is not given["optimizer"]:
                self.optimizer = chosen         # which it set after compile

    def _know_data(self, x, y=None):
        """The data, by whose shapes a subclass becomes a model."""
        if self._renewed is not None:
            inputs, self._renewed = self._renewed, None
            self._eager, self._predicts, self._output_types = {}, False, None
            self._make_from(inputs)
            if self._compiled:
                self._compile(self._compiled, self._device, self._own_step)
        if not self._unknown() or x is None:
            return x
        first, other, x = first_batches(x) if is_feed(x) else \
            ((x,) if y is None else (x, y), x, x)
        if self._body and type(self).call is Model.call and self._overrides("train_step"):
            if not all(layer.built for _, layer in self._body._sublayers()):
                several = len(first) > 1 or isinstance(first[0], (list, tuple))
                rehearse(self.train_step, tuple(first) if several else first[0])
            self._make_of_parts()
        elif self._body:
            self._make_of_batch(first, other)
        else:
            self.build(np.shape(first[0]))
        return x

    _is_asked = False       # what its train_step calls it with
    def _make_of_batch(self, parts, other):
        """Makes the model of x, open where other batches may differ, if its call takes that; where
        it does not take x, of what train_step makes of x, or of the models that it calls."""
        known, open_ = inputs_like(parts[0]), inputs_like(parts[0], other)
        try:
            return self._make_from(open_)
        except Exception as error:      # whatever the program's call raises
            if [t.shape for t in leaves(known)] != [t.shape for t in leaves(open_)]:
                return self._make_of_batch(parts, parts[0])
            if not self._overrides("train_step"):
                raise
            inputs = called_with(self, parts)
            try:
                return self._make_of_parts() if inputs is None else \
                    self._make_from(inputs_like(inputs))
            except ValueError:
                raise error from None

    @property
    def name(self):
        return self._body.name if self._body else lib.cornu_model_name(self.pointer)

    @property
    def layers(self):
        """The layers, in Keras' order."""
        if self._body:
            return [layer for _, layer in self._body._sublayers()]
        found = [self._layer_at(lib.cornu_model_layer(self.pointer, i))
                 for i in range(lib.cornu_model_layer_count(self.pointer))]
        for layer in found:
            layer._model = layer._model or weakref.ref(self._owned.counted)
        return found

    def _layer_at(self, address):
        """The object for a layer, which may be a model."""
        if address in by_address or not lib.cornu_as_model(address):
            return BuiltIn._view(address, self._owned)
        made = object.__new__(Model)
        made._owned = Owned(lib.cornu_as_model(address), lambda _: None, self._owned)
        made._reset()
        by_address[address] = made
        return made

    def _adopt(self, address, owner):
        """Makes this new object the one of a layer from a file: of its body, or a model."""
        if self._body is not None:
            return self._body._adopt(address, owner)
        self._forget(self._owned)
        self._owned = Owned(lib.cornu_as_model(address), lambda _: None, owner)
        by_address[address] = self

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
        return made_by(self, [], [Tensor(at(self.pointer, i)) for i in range(count)])

    @property
    def is_function(self) -> bool:
        """Whether axis 0 is not one batch of all inputs and outputs, as in some files."""
        return self._owned is not None and lib.cornu_model_is_function(self.pointer)

    @property
    def inputs(self):
        return self._symbols("input") if self.built else []

    @property
    def outputs(self):
        return self._symbols("output") if self.built else []

    @property
    def input_shape(self):
        return self._one([t.shape for t in self.inputs])

    @property
    def output_shape(self):
        return self._one([t.shape for t in self.outputs])

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
        if self._body:
            return self._body.weights
        found = [Weight(lib.cornu_model_weight(self.pointer, i), self)
                 for i in range(lib.cornu_model_weight_count(self.pointer))]
        if self._has_own_layers():      # whose order is that of their attributes
            order = {}
            for weight in (w for layer in self.layers for w in layer.weights):
                order.setdefault(weight._address, (len(order), weight.dtype))
            for weight in found:
                weight.dtype = order.get(weight._address, (0, weight.dtype))[1]
            found.sort(key=lambda w: order.get(w._address, (len(order),))[0])
        return found

    def _has_own_layers(self):
        """Whether layers of the program's own are among its layers, or in models that are."""
        return self._body is not None or any(
            layer._is_traced or isinstance(layer, Model) and layer._has_own_layers()
            for layer in self.layers)

    def count_params(self) -> int:
        return lib.cornu_model_parameters(self.pointer)

    def __call__(self, inputs, training=None, mask=None):
        """Calls the model: as a layer, on symbolic tensors; on arrays, which computes at once; in a
        function, on recorded tensors."""
        if self._is_asked:
            raise Called(inputs)
        if self._body:
            given = {"training": training, "mask": mask}
            if tracing() is None and not isinstance(find_tensor([inputs, mask]), Tensor):
                if current() is None and not isinstance(find_tensor([inputs]), Value):
                    with contextlib.suppress(ShapeError, NotImplementedError, TypeError):
                        self._know_data(inputs)     # else the body runs as it is, or says why not
                if self._owned is not None and not self._parts and self._fits(inputs) and \
                        not self._body._stores:
                    return call_model(self, self._ordered("input", inputs),
                                      self._body._usual_training(training), mask)
            return self._body(inputs, **{k: v for k, v in given.items() if v is not None})
        if tracing() is None and not isinstance(find_tensor([inputs, mask]), Tensor):
            if self.is_function and current() is None:
                return self.predict_on_batch(inputs)
            return call_model(self, self._ordered("input", self._call_inputs(inputs)), training,
                              mask)
        given = {"training": training, "mask": mask}
        kwargs = {key: value for key, value in given.items() if value is not None}
        if self._unknown():
            tensor = find_tensor([inputs])      # a Sequential of own layers, which these wait for
            tensor = to_array(inputs) if tensor is None else tensor     # a constant of a call
            dtype = str(tensor.dtype)
            self.build(tensor.shape, None if "float" in dtype else dtype)
        if tracing() is not None:
            inputs, kwargs = tracing().symbols(inputs), tracing().symbols(kwargs)
        check_tensors(self.name, [inputs, *kwargs.values()])
        return self._called([self._call_inputs(inputs)], kwargs)

    def _fitting_model(self, x):
        """The model itself, or, for arrays of other extents than those of the data that its own
        call was traced for, or where it was made of its parts, one that predicts these with the
        same weights."""
        if self._body is None or self._own_step is not None and self._own_step.struct.predict:
            return self
        if not has_call(type(self)) if self._parts else self._fits(x):
            return self
        given = self._ordered("input", x)
        key = tuple(np.shape(array)[1:] for array in given)
        if not self._parts and any(np.ndim(array) != len(t.shape)
                                   for array, t in zip(given, self.inputs)):
            return self     # which may add a trailing axis
        if key not in self._of_extents:
            while len(self._of_extents) >= _MOST_KEPT:
                del self._of_extents[next(iter(self._of_extents))]
            inputs = inputs_like(x)
            self._of_extents[key] = Model(inputs, self._body._called([inputs], {}), self.name)
        return self._of_extents[key]

    def _fits(self, inputs):
        """Whether the model, whose extents are those of its first data, takes these. Of others it
        is made anew, as a layer is."""
        given = self._ordered("input", inputs)
        return len(given) != len(self.inputs) or all(
            len(np.shape(x)) == len(t.shape) and
            all(a is None or a == b for a, b in zip(t.shape, np.shape(x)))
            for x, t in zip(given, self.inputs))

    def _call_inputs(self, inputs):
        """One, or a list, of those in dictionaries by their names and in nested lists."""
        if isinstance(inputs, dict):
            return self._ordered("input", inputs)
        nested = isinstance(inputs, (list, tuple)) and \
            any(isinstance(each, (list, tuple)) and is_of_arrays(each) for each in inputs)
        return leaves(inputs) if nested else inputs

    def _called(self, args, kwargs):
        given = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
        given = [self._of_rank(x, of) for x, of in zip(given, self.inputs)] + \
            list(given[len(self.inputs):])
        args = [given if isinstance(args[0], (list, tuple)) else given[0], *args[1:]]
        return self._formed(super()._called(args, kwargs))

    @staticmethod
    def _of_rank(x, of):
        """A tensor with a trailing axis of extent 1 as an input has it, or has it not."""
        if not isinstance(x, Tensor):
            return x
        if len(x.shape) == len(of.shape) - 1 and of.shape[-1] == 1:
            return operation("expand_dims", x, -1)
        if len(x.shape) == len(of.shape) + 1 and x.shape[-1] == 1:
            return operation("squeeze", x, -1)
        return x

    def _formed(self, made):
        """Its outputs, a list or one, in the form that it was made with."""
        return made if self._form is None else filled(self._form, listed(made))

    # The model's own, as in Keras, not those of a call of it.
    @property
    def input(self):
        return self._one(self.inputs)

    @property
    def output(self):
        return self._one(self.outputs)

    def _one(self, tensors):
        return tensors[0] if len(tensors) == 1 else tensors

    def build(self, input_shape):
        """Makes the weights, for data of this shape; axis 0 is the batch."""
        if self._body:
            known = self._owned is not None or self._body._building     # super().build(…)
            return None if known else self._make_from(inputs_of(input_shape))
        return None     # its inputs say the shapes, whatever is given

    def summary(self, line_length: int = None, show_trainable: bool = False,
                expand_nested: bool = False, print_fn=None) -> None:
        """Prints Keras' table of the layers, by print_fn if there is one. A notebook shows it with
        its columns aligned."""
        text = self._summary_text(line_length, show_trainable, expand_nested)
        if print_fn is not None or not notebook.shown(text):
            (print_fn or print)(text)

    def _repr_html_(self):
        return notebook.text_as_html(self._summary_text())

    def _summary_text(self, line_length=None, show_trainable=False, expand_nested=False):
        config = struct("CornuSummaryConfig", model=self.pointer, line_length=line_length or 0,
                        show_trainable=show_trainable, expand_nested=expand_nested)
        lines = []
        take = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(
            lambda _, text: lines.append(text.decode("utf-8")))
        config.print_fn = ctypes.cast(take, ctypes.c_void_p).value
        lib.cornu_summary_from(ctypes.byref(config))
        return "".join(lines).rstrip("\n")

    # ---- Files ----

    def save(self, filepath, overwrite: bool = True) -> None:
        """Saves the model; the suffix is the format: .safetensors, .keras, .onnx, …"""
        check_overwrite(filepath, overwrite)
        lib.cornu_model_save(self.pointer, filepath)
        if os.fspath(filepath).endswith(".keras"):
            from .assets import add_to
            add_to(filepath, self)

    def export(self, path, opset_version: int = 0, format: str = None, **kwargs) -> None:
        """Saves the model for other programs; the suffix is the format, which `format` may say,
        too: "onnx" or "litert". Of .onnx the opset can be chosen. A path without suffix, or
        "tf_saved_model", is TensorFlow's SavedModel, which Keras writes: it needs both."""
        if format == "tf_saved_model" or format is None and \
                not os.path.splitext(os.fspath(path))[1]:
            return self.to_keras().export(os.fspath(path), format="tf_saved_model", **kwargs)
        ending = {None: "", "onnx": ".onnx", "litert": ".tflite", "tflite": ".tflite"}.get(format)
        if ending is None or not os.fspath(path).endswith(ending):
            raise ValueError("export: the format is %r for %r, expected \"onnx\" for a path in "
                             ".onnx or \"litert\" for one in .tflite" % (format, os.fspath(path)))
        if not os.fspath(path).endswith(".onnx"):
            return self.save(path)
        config = struct("CornuExportConfig", model=self.pointer, path=os.fspath(path),
                        opset_version=opset_version)
        lib.cornu_model_export_from(ctypes.byref(config))

    def save_weights(self, filepath, overwrite: bool = True) -> None:
        """Saves the weights: .weights.h5, .npz or .safetensors."""
        check_overwrite(filepath, overwrite)
        lib.cornu_model_save_weights(self.pointer, filepath)

    def load_weights(self, filepath, skip_mismatch: bool = False) -> None:
        """Loads the weights; with skip_mismatch of a .keras file also those alone that fit."""
        from .files import load_weights
        load_weights(self, filepath, skip_mismatch)

    def to_json(self) -> str:
        """The architecture, as Keras' JSON."""
        return lib.take_text(lib.cornu_model_to_json(self.pointer))

    def get_compile_config(self):
        """The arguments of compile, as Keras' files have them; None before it."""
        if self._compiled is None:
            return None
        from .assets import compiled_by
        return compiled_by(self) or \
            json.loads(lib.take_text(lib.cornu_compile_to_json(self.pointer)))

    def __reduce__(self):
        """The whole model, as in a file, with the optimizer's variables, for pickle and
        copy.deepcopy."""
        from .files import pickled, unpickled
        return unpickled, (type(self), pickled(self))

    def to_keras(self):
        """The same model in Keras, with its weights and, if compiled, its optimizer. It goes
        through a .keras file or, without libhdf5, as JSON and arrays, uncompiled."""
        from .files import to_keras
        return to_keras(self)

    def __repr__(self):
        return "<cornu.%s name=%s>" % (type(self).__name__, self.name)


__all__ = ["Model"]
