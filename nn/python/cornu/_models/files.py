"""Models in files, as JSON, and in Keras."""

import contextlib
import ctypes
import os
import warnings
import tempfile
import weakref

from .._binding.library import lib, struct
from ..devices import find as _find_device
from ..errors import ShapeError
from .assets import build_configs, read_from
from .models import Model
from .sequential import Sequential
from .._own.callables import Resolving
from .._tensors.symbols import set_extents
from ..optimizers import Optimizer
from ..saving import custom_object_scope, in_scope
from ..utils.feature_space import FeatureSpace


def _named(model):
    """The model, of the class that its file names, if the program has registered it; within a scope
    of custom objects with its layers' objects, which are made of what the scope names."""
    model = _of_class(model)
    if in_scope():
        model._viewed = list(_every_layer(model))
    return model


def _of_class(model):
    """A subclass of Model is in files as a model of one layer, its body."""
    last = lib.cornu_model_layer(model.pointer, lib.cornu_model_layer_count(model.pointer) - 1)
    name = lib.cornu_traced_class(last) if last else None
    if name is None or model._parts or isinstance(model, Sequential):
        return model
    inner = model._layer_at(last)
    if not isinstance(inner, Model) or inner._body is None:
        return model
    for key in ("_owned", "optimizer", "_compiled"):
        setattr(inner, key, getattr(model, key))
    if inner.optimizer is not None:
        inner.optimizer._model = weakref.ref(inner)
    return inner


def _every_layer(model):
    for layer in model.layers:
        yield layer
        if isinstance(layer, Model):
            yield from _every_layer(layer)


def load(path, compile: bool = True, device=None, input_shapes=None) -> Model:
    """Loads a model; one of .keras is compiled as it was saved, if it was.

    input_shapes: of .onnx and .tflite files, extents of inputs that these leave open: for each
    input all of its shape, None where it stays open: [(None, 3, 48, 320)]
    """
    of_keras = os.fspath(path).endswith(".keras")
    with Resolving() as resolving:
        made = _loaded(path, compile, device, input_shapes)
    with build_configs(path) if of_keras else contextlib.nullcontext():
        resolving.keep_with(made, _every_layer(made))
        made = _named(made)
        if of_keras:
            read_from(path, made, compile)
    return FeatureSpace.of_file(path, made) if of_keras else made


def load_weights(model, path, skip_mismatch):
    """Model.load_weights."""
    try:
        lib.cornu_model_load_weights(model.pointer, path)
    except ShapeError:
        if not skip_mismatch:
            raise
        _load_matching(model, path)


def _load_matching(model, path):
    """Gives a model the weights of a file's model that have the places and shapes of its own; warns
    of others."""
    theirs = load(path, compile=False).weights
    mine, skipped = model.weights, []
    if len(theirs) != len(mine):
        by_name = {weight.path.partition("/")[2]: weight for weight in theirs}
        theirs = [by_name.get(weight.path.partition("/")[2]) for weight in mine]
    for weight, other in zip(mine, theirs):
        if other is not None and other.shape == weight.shape:
            weight.assign(other.numpy())
        else:
            skipped.append("%s %s" % (weight.path, weight.shape))
    warnings.warn("%s: %s has no weights of the shapes of %s, which keep their values"
                  % (model.name, path, ", ".join(skipped)), stacklevel=4)



def _loaded(path, compile, device, input_shapes):
    if compile and os.fspath(path).endswith((".keras", ".h5", ".hdf5")):
        try:
            return _compiled(Model._of(lib.cornu_model_load_compiled(path, _find_device(device))))
        except NotImplementedError:
            pass        # it was not compiled, or with something that the library does not have
    config = struct("CornuLoadConfig", path=os.fspath(path))
    shapes = input_shapes or []
    if len(shapes) > lib.constants["CORNU_MAX_MODEL_TENSORS"]:
        raise ValueError("%d input_shapes are given, expected at most %d"
                         % (len(shapes), lib.constants["CORNU_MAX_MODEL_TENSORS"]))
    rank = lib.constants["CORNU_MAX_RANK"]
    for i, shape in enumerate(shapes):
        row = [0] * rank
        set_extents(row, shape or ())
        config.input_shapes[i * rank:(i + 1) * rank] = row
    return Model._of(lib.cornu_model_load_from(ctypes.byref(config)))


def _compiled(model):
    model.optimizer = Optimizer._of(None)
    model.optimizer._model = weakref.ref(model)
    model._compiled = {"gradient_norm": False}
    model._claim_weights()
    return model


def load_model(filepath, custom_objects=None, compile: bool = True, safe_mode: bool = True,
               device=None) -> Model:
    """Keras' name of load; custom_objects are known by name while the file is read."""
    with custom_object_scope(custom_objects):
        return load(filepath, compile, device)


def model_from_json(json_string: str, custom_objects=None) -> Model:
    """An uncompiled model of this architecture, Keras' JSON."""
    with custom_object_scope(custom_objects), Resolving() as resolving:
        made = Model._of(lib.cornu_model_from_json(json_string))
        resolving.keep_with(made, _every_layer(made))
        return _named(made)


def clone_model(model: Model) -> Model:
    """An uncompiled model of the same architecture with weights of its own."""
    with Resolving(live=True) as resolving:
        made = Model._of(lib.cornu_model_clone(model.pointer))
    resolving.keep_with(made, _every_layer(made))
    return made


def pickled(model):
    """What unpickled makes a model of: its file's bytes, or its JSON if it is not built."""
    state = {"compile": model._compiled, "optimizer": model.optimizer, "device": model._device,
             "again": model._again}
    if state["compile"] and "optimizer" not in state["compile"]:    # it came from a file
        state["compile"] = dict(model.get_compile_config(), **state["compile"])
    if not model.built:
        return dict(state, json=model.to_json())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        model.save(path)
        with open(path, "rb") as file:
            return dict(state, file=file.read())


def unpickled(cls, state):
    if "json" in state:
        made = cls._of(lib.cornu_model_from_json(state["json"]))
        return _compiled_again(made, state)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        with open(path, "wb") as file:
            file.write(state["file"])
        made = load(path, compile=False)
        made.__class__ = cls
        _compiled_again(made, state)
        if state["compile"]:
            made.load_weights(path)     # and the optimizer's variables
        return made


def _compiled_again(model, state):
    if state["again"]:      # functions and classes of the program's own are pickled by name
        model.compile(**state["again"])
    elif state["compile"]:
        model._compile(state["compile"], state["device"])
        model._compiled, model._device = state["compile"], state["device"]
        model.optimizer = state["optimizer"]
        model.optimizer._model = weakref.ref(model)
    return model


def from_keras(model) -> Model:
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


def to_keras(model):
    """See Model.to_keras."""
    import keras
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        if not _can_save(path):
            return _to_keras_by_arrays(model)
        model.save(path)
        return keras.models.load_model(path)


def _to_keras_by_arrays(model):
    import keras
    made = keras.models.model_from_json(model.to_json())
    made.set_weights(model.get_weights())
    return made
