"""Models and layers called on arrays and on recorded tensors."""

import ctypes

import numpy as np

from .._binding.arrays import Borrowed, shape_of
from .._binding.library import lib
from .._binding.nested import Place, filled, mapped
from .operators import operate
from .symbols import Tensor, input_tensor
from .._tensorflow import in_graph
from ..errors import ShapeError, UnsupportedError
from .values import (Array, Compiled, Counter, Readable, Recording, Same, Value, current, kept,
                      recorded, state, to_array)

_MOST_KEPT = 16      # recordings of one model, and models of one layer
edits = []           # of layers, since the package was imported; calls of before are made anew


def is_array(x):
    """Whether a layer computes with it at once: an array, or a list of numbers."""
    return isinstance(x, (np.ndarray, np.generic, Value, Readable)) or (
        hasattr(x, "__array__") and not isinstance(x, Tensor))


def is_of_arrays(x):
    """Whether tensors or arrays are in lists, not numbers."""
    return any(hasattr(leaf, "shape") for leaf in leaves(x))


def leaves(x):
    """The tensors and arrays in lists and dictionaries."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        return [leaf for each in x for leaf in leaves(each)]
    return [x]


def recording_of(values):
    """The recording that a call on these belongs to; None: it computes at once."""
    for value in values:
        if isinstance(value, Value) and not value.recording.closed:
            return value.recording
    return current()


def stored(x):
    """An array of numbers or strings."""
    array = np.asarray(x.numpy() if hasattr(x, "numpy") else x)
    return array if array.dtype.kind in "SUO" else to_array(array)


def _first(made):
    """What a batch of one image becomes, without the batch."""
    return mapped(made, lambda x: x[0])


# Layers of images, of which models also take one image, (H, W, C), beside batches.
_OF_IMAGES = {"AugMix", "AutoContrast", "CenterCrop", "Equalization", "RandAugment", "Resizing",
              "Solarization"}
_OF_ANY = {"InputLayer", "Normalization", "Rescaling"}


def is_one_image(model, given):
    """Whether a model of layers of images alone is called on one image, not a batch."""
    if len(given) != 1 or isinstance(given[0], (Value, Readable)) or np.ndim(given[0]) != 3 or \
            model.built and len(model.inputs[0].shape) == 3:
        return False
    names = {getattr(each, "class_name", None) or type(each).__name__ for each in model.layers}
    of_images = {name for name in names if name.startswith("Random") or name in _OF_IMAGES}
    return bool(of_images) and names - of_images <= _OF_ANY


# ---- Models ----

class Placed:
    """Where a model's weights are, as of a call."""

    variable = None     # of a model without weights

    def __init__(self, model, device):
        if not model._predicts and not lib.cornu_model_compiled(model.pointer):
            device = model._device_of_others() or device
        lib.cornu_model_place(model.pointer, device)
        model._claim_weights()
        model._predicts = True
        self.address, self.counted = lib.cornu_model_device(model.pointer), model._owned.counted
        weights = model.weights
        self.first = (weights[0]._weight, weights[0]._weight.variable) if weights else (self, None)

    def is_elsewhere(self, device):
        """Whether it is of a model without weights, which may be on any device, on another one."""
        return self.first[1] is None and device != self.address

    def is_current(self):
        return self.first[0].variable == self.first[1]


def place(model, recording, x):
    """Puts the model, built for x, on the recording's device, or the recording on the model's."""
    if not model.built:
        model.build(np.shape(x))
    placed = model._placed
    if placed is None or not placed.is_current():
        placed = model._placed = Placed(model, recording.device)
    recording.use(placed)
    recording.kept.append(model._owned)
    recording.placed.append(placed.first)


def _on(device, model):
    """A model for this device: itself, or, of one without weights that is on another, such as that
    of a thread, a model of it."""
    if model._placed is None or not model._placed.is_elsewhere(device):
        return model
    if device not in model._elsewhere:
        from .._models.models import Model
        inputs = [input_tensor(t.shape[1:], dtype=t.dtype) for t in model.inputs]
        made = model(inputs[0] if len(inputs) == 1 else inputs)
        model._elsewhere[device] = Model(inputs, [t for t in leaves(made) if isinstance(t, Tensor)],
                                         name=model.name, only_called=True)
    return model._elsewhere[device]


def record_model(recording, model, inputs, training=False, mask=None):
    """The outputs of a model in a recording: a list of Values."""
    model = _on(recording.device, model)
    place(model, recording, inputs[0])
    values = [recording.value(x) for x in inputs]
    call = recording.call(training, draws=True)
    if mask is not None:
        call.mask = recording.value(mask).pointer
    added, count = ctypes.c_void_p(), lib.cornu_model_output_count(model.pointer)
    call.loss, call.penalized = ctypes.addressof(added), True
    given = (ctypes.c_void_p * len(values))(*[v.pointer for v in values])
    out = (ctypes.c_void_p * max(count, 1))()
    lib.cornu_model_call_many(model.pointer, given, len(values), ctypes.addressof(call),
                              ctypes.addressof(out), count)
    if recording.values is not None and training:
        recording.restores.update((w._address, w) for w in model.non_trainable_weights)
    model._losses = [Value(added.value, recording)] if added.value else []
    if hasattr(recording, "losses"):        # of a step
        recording.losses += model._losses
    return [_whole(Value(pointer, recording), tensor.dtype)
            for pointer, tensor in zip(out, model.outputs)]


def _whole(value, dtype):
    """Whole numbers, which the library's models compute as floats, as such."""
    return value if "float" in dtype or "float" not in value.dtype else value.astype(dtype)


def call_model(model, inputs, training=None, mask=None):
    """model(x): one output or a list of them, recorded or computed."""
    training = state.training if training is None else training
    made = in_graph(lambda *x: call_model(model, list(x), training, mask), *inputs)
    if made is not NotImplemented:
        return made
    if is_one_image(model, inputs):
        return _first(call_model(model, [np.asarray(x)[None] for x in inputs], training, mask))
    recording = recording_of([*inputs, mask])
    if recording is not None:
        made = record_model(recording, model, inputs, training, mask)
        return model._formed(made[0] if len(made) == 1 else made)
    from .functions import finish_pending
    finish_pending()
    formed, model = model._formed, _on(state.device.address, model)
    arrays = [stored(x) for x in inputs]
    if any(array.dtype.kind in "SUO" for array in arrays) or _has_hashes(model):
        return _viewed(model.predict_on_batch(arrays))
    if mask is not None:
        arrays.append(np.asarray(mask, bool))
    key = (len(edits), training if training is None else bool(training), mask is None,
           *[(a.dtype, a.shape) for a in arrays])
    known = model._eager.get(key)
    if known is None or not known.recording.is_current():
        known = _compile(model, key, arrays, training, mask is not None)
    made = known.run(arrays)
    count = lib.cornu_model_output_count(model.pointer)
    made, model._losses = made[:count], made[count:]
    return formed(made[0] if count == 1 else made)


def _has_hashes(model):
    """Whether it has layers that run before the step, of numbers, too."""
    if model._hashes is None:
        model._hashes = any(getattr(layer, "class_name", None) in ("Hashing", "HashedCrossing")
                            for layer in model.layers)
    return model._hashes


def _viewed(made):
    if isinstance(made, dict):
        return {key: _viewed(value) for key, value in made.items()}
    return type(made)(map(_viewed, made)) if isinstance(made, (list, tuple)) else made.view(Array)


def _compile(model, key, arrays, training, masked):
    while len(model._eager) >= _MOST_KEPT:
        del model._eager[next(iter(model._eager))]

    def make(device, tried):
        recording = Recording(device, state.counters.setdefault("models", Counter()), tried=tried)
        inputs = [recording.input(array) for array in arrays]
        made = record_model(recording, model, inputs[:-1] if masked else inputs, training,
                            inputs[-1] if masked else None)
        return Compiled(recording, inputs, made + model._losses)
    model._eager[key] = recorded(state.device, make)
    return model._eager[key]


# ---- Layers ----

def _is_of_numbers(x):
    while isinstance(x, (list, tuple)):
        if not x:
            return False
        x = x[0]
    return isinstance(x, (int, float, str))


class _Symbols:
    """Arguments of a layer's call with symbolic tensors in the place of arrays."""

    def __init__(self):
        self.given, self.key = [], []
        self.masks = {}     # the place of the mask of the array at a place

    def __call__(self, value):
        if isinstance(value, dict):
            return {word: self(v) for word, v in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self(v) for v in value])
        if isinstance(value, (list, tuple)) and not _is_of_numbers(value):
            return [self(v) for v in value]
        if not is_array(value) and not isinstance(value, (list, tuple)):
            self.key.append(value)
            return value
        mask, given = getattr(value, "_keras_mask", None), value
        if not isinstance(value, (Value, Readable)):
            value = stored(value)
        if not value.shape:
            raise ValueError("a layer is called on a scalar, expected an array with a row for each "
                             "sample")
        place = self._add(value)
        if current() is not None and "string" not in self.key[-1]:
            self.given[-1] = given      # by which a tape knows it
        if mask is not None:
            self.masks[place.i] = self._add(mask).i
        return place

    def _add(self, value):
        dtype = getattr(value.dtype, "name", value.dtype)
        dtype = "string" if getattr(value.dtype, "kind", "f") in "SUO" else dtype
        self.given.append(value)
        self.key.append((tuple(value.shape[1:]), dtype))
        return Place(len(self.given) - 1)

    def inputs(self):
        """Symbolic tensors of the model of this call, and what the layer is called on."""
        shapes = [part for part in self.key if isinstance(part, tuple)]
        made = [input_tensor(shape, dtype=None if "float" in dtype else dtype, name="x%d" % i)
                for i, (shape, dtype) in enumerate(shapes)]
        return made, [_with_mask(tensor, made[self.masks[i]]) if i in self.masks else tensor
                      for i, tensor in enumerate(made)]


def _with_mask(tensor, mask):
    """A symbolic tensor that brings this mask along."""
    from ..layers import Lambda
    return Lambda(lambda given: given[0], mask=lambda given, _: given[1])([tensor, mask])


def _word_of(layer):
    """What gives a word that a layer with a vocabulary knows, as it may refuse others; or None."""
    if not hasattr(type(layer), "get_vocabulary"):
        return None
    return lambda: next(iter(layer.get_vocabulary()[-1:]), None)


def is_scalar(x):
    return isinstance(x, (str, bytes)) or is_array(x) and len(x.shape) == 0


def _as_row(x):
    if not is_scalar(x):
        return x
    return operate("expand_dims", x, 0) if isinstance(x, (Value, Readable)) else \
        np.asarray(x.decode() if isinstance(x, bytes) else x)[None]


def _model_of_call(layer, symbols, args, kwargs):
    """The model of a call, of any number of rows; None where it makes strings."""
    from .._models.models import Model
    from .._own.forms import flat
    inputs, operands = symbols.inputs()
    first = layer._first
    made = layer._called(filled(args, operands), filled(kwargs, operands))
    layer._first = first
    tensors = []
    form = flat(made, tensors)      # what is no tensor stays in its place
    if [t.dtype for t in tensors] == ["string"]:
        return None
    masked = [(Place(i), tensor._keras_mask) for i, tensor in enumerate(tensors)
              if tensor._masked]
    model = Model(inputs, tensors + [mask for _, mask in masked], name=layer.name + "_call",
                  only_called=True)
    model._form = [form, [(result, Place(len(tensors) + i))
                          for i, (result, _) in enumerate(masked)]]
    return model


def _keep(layer, key, model):
    while len(layer._wrappers) >= _MOST_KEPT:
        del layer._wrappers[next(iter(layer._wrappers))]
    layer._wrappers[key] = model


_AS_IT_IS = object()        # in the place of the model of a call


def _called_as_it_is(layer, args, kwargs, training, error=None):
    """An own layer's call, run by Python on these operands: one that stores tensors in attributes,
    or that is no graph of any number of rows, such as one of lengths that grow or of elements that
    are shapes; `error` said so."""
    training, before = layer._usual_training(training), state.training
    if training is not None and layer._training_matters():
        kwargs["training"] = training
    state.training = training
    try:
        return layer.call(*args, **kwargs)
    except Exception:
        if error is None:
            raise
        raise error from None
    finally:
        state.training = before


def call_layer(layer, args, kwargs):
    """layer(x) of arrays or recorded tensors: by a model of this call alone, which the layer
    keeps."""
    made = in_graph(lambda args, kwargs: call_layer(layer, args, kwargs), list(args), kwargs,
                    example=_word_of(layer))
    if made is not NotImplemented:
        return made
    if args and is_scalar(args[0]) and not layer._is_traced:    # a word or number of no batch
        try:
            made = call_layer(layer, [_as_row(value) for value in args], kwargs)
        except ShapeError:
            raise ValueError("a layer is called on a scalar, expected an array with a row for each "
                             "sample") from None
        return mapped(made, lambda row: row[0])
    training, given = kwargs.pop("training", None), (args, dict(kwargs))
    symbols = _Symbols()
    args, kwargs = [symbols(value) for value in args], symbols(kwargs)
    key = repr((symbols.key, args, kwargs.keys()))
    model = layer._wrappers.get(key)
    if model is None:
        try:
            model = _model_of_call(layer, symbols, args, kwargs)
        except (ShapeError, UnsupportedError, TypeError) as error:
            if not layer._is_traced:
                raise       # else the call may need numbers of rows, or elements, that a trace lacks
            made = _called_as_it_is(layer, *given, training, error)
            _keep(layer, key, _AS_IT_IS)
            return made
        if model is None:
            return _strings(layer, symbols.given)
        _keep(layer, key, model)
    if model is _AS_IT_IS or layer._is_traced and layer._stores:
        return _called_as_it_is(layer, *given, training)
    made, masked = call_model(model, symbols.given, training)
    for result, mask in masked:
        result._keras_mask = mask
    layer._losses = model._losses
    return made


def _strings(layer, given):
    """What a layer makes of arrays that is strings."""
    lent, out = Borrowed(), lib.type("CornuArray")()
    lib.cornu_layer_compute(layer._layer_pointer(), lent.arrays(given), len(given),
                            ctypes.byref(out))
    shape = shape_of(out.type.shape)
    texts = (ctypes.c_char_p * int(np.prod(shape, dtype=np.int64))).from_address(out.data)
    made = np.array([text.decode("utf-8") for text in texts]).reshape(shape).view(Array)
    lib.free(out.data)
    return made


# ---- Losses ----

def same_rank(a, b):
    """Keras' squeeze_or_expand_to_same_rank."""
    if a.ndim == b.ndim + 1 and a.shape[-1] == 1:
        return (a, operate("expand_dims", b, -1)) if b.ndim == 1 else (operate("squeeze", a, -1), b)
    if b.ndim == a.ndim + 1 and b.shape[-1] == 1:
        return (operate("expand_dims", a, -1), b) if a.ndim == 1 else (a, operate("squeeze", b, -1))
    return a, b


def _for_all(y_true, y_pred):
    """The labels, also where one is that of all predictions, as of a discriminator."""
    if np.shape(y_true) or not np.shape(y_pred):
        return y_true
    return operate("add", operate("zeros_like", y_pred), y_true)


def call_loss(loss, y_true, y_pred, sample_weight=None, values=False):
    """The loss of a batch, or its values of each row."""
    y_true = _for_all(y_true, y_pred)
    given = [x for x in (y_true, y_pred, sample_weight) if x is not None]
    recording = recording_of(given)
    if recording is not None:
        return _record_loss(recording, loss, given, values)
    arrays = [to_array(x) for x in given]
    key = (Same(loss), values, *[(a.dtype, a.shape) for a in arrays])

    def make():
        recording = Recording(state.device)
        inputs = [recording.input(array) for array in arrays]
        return Compiled(recording, inputs, [_record_loss(recording, loss, inputs, values)])
    return kept(key, make).run(arrays)[0]


def _record_loss(recording, loss, given, values):
    recording.journal = None
    tensors = [recording.value(x).pointer for x in given]
    recording.kept.append(loss._owned_loss())
    pointer = loss._owned_loss().address
    if values:
        return Value(lib.cornu_loss_record_values(pointer, *tensors), recording)
    return Value(lib.cornu_loss_record(pointer, *tensors, *[None] * (3 - len(tensors))), recording)


# ---- Metrics ----

def update_metric(metric, y_true, y_pred, sample_weight=None):
    """Adds a batch to the metric's states."""
    y_true = _for_all(y_true, y_pred)
    given = [x for x in (y_true, y_pred, sample_weight) if x is not None]
    recording = recording_of(given)
    if recording is not None:
        _record_metric(recording, metric, given)
        if recording.values is not None:
            recording.assigns, metric._pending = True, recording
        return
    metric._finish()
    arrays = [to_array(x) for x in given]
    key = (Same(metric), metric._epoch, *[(a.dtype, a.shape) for a in arrays])

    def make():
        recording = Recording(metric._device or state.device)
        inputs = [recording.input(array) for array in arrays]
        _record_metric(recording, metric, inputs)
        return Compiled(recording, inputs, [])
    kept(key, make).run(arrays)


def _record_metric(recording, metric, given):
    tensors = [recording.value(x).pointer for x in given]
    states = metric._states_on(recording)
    recording.kept.append(states)
    lib.cornu_metric_states_record(states.address, *tensors, *[None] * (3 - len(tensors)))
