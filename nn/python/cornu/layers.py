"""Keras' layers, by the library's tables: Dense(10, activation="softmax")(x)."""

import ctypes
import itertools
import json
import numbers
import weakref

import numpy as np

from ._arrays import Borrowed, shape_of
from ._errors import CornuError
from ._described import Described, make_classes, snake_case, unique_name
from ._library import Owned, lib, struct
from ._symbols import Form, Tensor, find_tensor, input_tensor as Input, operands, results
from ._values import Readable, Value, current


# The objects of Python for layers of the library, by address, while they live.
by_address = weakref.WeakValueDictionary()


class Weight(Readable):
    """A variable of a layer: its path, shape and value, a NumPy array (float32). Functions read it
    and assign it."""

    dtype, pending = "float32", None

    def __init__(self, address, owner):
        self._weight = lib.type("CornuWeight").from_address(address)
        self._address, self._owner = address, owner

    @property
    def path(self):
        return self._weight.path.decode("utf-8")

    @property
    def name(self):
        return self.path.rpartition("/")[2]

    @property
    def shape(self):
        return shape_of(self._weight.type.shape)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def trainable(self):
        return bool(lib.cornu_layer_trains(self._owner._layer_pointer(), self._address))

    def _native(self):
        if not self._weight.variable:
            raise ValueError("%s is on no device: call its model on arrays first, or compile it"
                             % self.path)
        return self._weight.variable

    def _keeper(self):
        return self._owner._owned

    def _read(self, recording):
        from ._functions import Borrowed as Device
        address = self._native()
        recording.use(Device(lib.cornu_variable_device(address), self._owner._owned))
        recording.placed.append((self._weight, address))
        return recording.read(address, self._owner._owned)

    def numpy(self):
        from ._functions import finish_pending
        finish_pending()
        values = np.empty(self.shape, np.float32)
        lib.cornu_weight_read(self._address, Borrowed().array(values))
        return values

    @property
    def value(self):
        """Its value: in a function a recorded tensor, else an array."""
        return self.numpy() if current() is None else self._read(current())

    def assign(self, value):
        """Sets the value, of the same shape; in a function, at the end of each run."""
        recording = value.recording if isinstance(value, Value) else current()
        if recording is not None and not recording.closed:
            from ._functions import assign_in
            self._read(recording)
            return assign_in(recording, self._native(), recording.value(value), "float32", self)
        lent = Borrowed()
        value = np.asarray(value, np.float32)
        lib.cornu_weight_write(self._address, lent.array(value))

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        return "<cornu Weight %s shape=%s>" % (self.path, self.shape)


class Weighted:
    """What layers and models have in common: `pointer`, the library's layer, and its weights."""

    def _layer(self):
        return lib.type("CornuLayer").from_address(self._layer_pointer())

    @property
    def weights(self):
        """All variables, in Keras' order."""
        layer = self._layer()
        addresses = (ctypes.c_void_p * layer.weight_count).from_address(layer.weights) \
            if layer.weight_count else []
        return [Weight(address, self) for address in addresses]

    @property
    def trainable_weights(self):
        return [w for w in self.weights
                if lib.cornu_layer_trains(self._layer_pointer(), w._address)]

    @property
    def non_trainable_weights(self):
        trainable = {w.path for w in self.trainable_weights}
        return [w for w in self.weights if w.path not in trainable]

    def get_weights(self):
        """The values of all variables: a list of float32 arrays."""
        return [w.numpy() for w in self.weights]

    def set_weights(self, values):
        """Sets all variables, from arrays of their shapes; nothing unless all fit."""
        weights = self.weights
        if len(values) != len(weights):
            raise ValueError("%s: %d weights are given, expected %d"
                             % (self.name, len(values), len(weights)))
        values = [np.asarray(v, np.float32) for v in values]
        for weight, value in zip(weights, values):
            if weight.shape != value.shape:
                raise ValueError("%s: %s has the shape %s, %s is given"
                                 % (self.name, weight.path, weight.shape, value.shape))
        for weight, value in zip(weights, values):
            weight.assign(value)

    def count_params(self):
        """The number of elements of all weights."""
        return sum(int(np.prod(w.shape, dtype=np.int64)) for w in self.weights)

    @property
    def built(self):
        return bool(self._layer().built)

    @property
    def trainable(self):
        """Read by the first training step after compile."""
        return not self._layer().frozen

    @trainable.setter
    def trainable(self, value):
        lib.cornu_layer_set_trainable(self._layer_pointer(), bool(value))

    # ---- Calls ----

    _losses = ()        # of the last call in a function or under a tape

    @property
    def losses(self):
        """In a function: what regularizers and layers add to the loss, of the last call."""
        return list(self._losses)

    @property
    def variables(self):
        return self.weights

    @property
    def trainable_variables(self):
        return self.trainable_weights

    @property
    def non_trainable_variables(self):
        return self.non_trainable_weights

    _first = None       # a result of the first call, while this object made it
    _model = None       # a weak reference to the address of a model that calls the layer

    def _called(self, args, kwargs):
        """The tensors that a call with Keras' arguments returns: one, or a list of several."""
        form = Form()
        call = json.dumps({"args": form(args), "kwargs": form(kwargs)})
        pointer = self._layer_pointer()
        by_address[pointer] = self
        made = lib.cornu_call_from_json(pointer, call, *form.pointers())
        if self._first is None:
            self._first = Tensor(made)
        return results(made)

    def _first_call(self):
        """A result of the layer's first call."""
        if self._first is not None:
            return self._first.pointer
        model = self._model() if self._model else None
        if model is None or not model.address:
            raise AttributeError("%s: the layer has not been called on a symbolic tensor, so that "
                                 "it has no input and output" % self.name)
        return lib.cornu_model_symbol(model.address, self.name)

    @property
    def input(self):
        """The symbolic tensor of the first call, or a list of several."""
        return operands(self._first_call())

    @property
    def output(self):
        """What the first call returned: Model(model.inputs, model.get_layer("a").output)."""
        return results(self._first_call())


def check_tensors(name, values):
    """TypeError unless arguments of a call are symbolic tensors, or say how to call."""
    for value in values:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            check_tensors(name, value)
        elif not isinstance(value, (Tensor, str, numbers.Number, type(None))):
            raise TypeError("%s: called on %s; expected symbolic tensors, from cornu.Input. A "
                            "model's predict takes arrays" % (name, type(value).__name__))


class Layer(Weighted, Described):
    """The base of all layers. Classes of your own are for C (nn/layers/README.md)."""

    description = {}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if not self._config.get("name"):
            self._config["name"] = unique_name(snake_case(self.class_name))
        self._calls, self._owned, self._wrappers = 0, None, {}
        self._make()

    def _make(self):
        text = json.dumps(self.to_dict())
        try:
            address = lib.cornu_layer_from_json(text)
        except CornuError:
            missing = [f["name"] for f in self.description["fields"]
                       if f.get("required") and f["name"] not in self._config]
            if not missing:
                raise
            raise TypeError("%s: missing a required argument: %r"
                            % (self.class_name, missing[0])) from None
        self._owned = Owned(address, lib.cornu_layer_free)
        by_address[self._owned.address] = self

    @classmethod
    def _view(cls, address, owner):
        """The object for a layer of a model; `owner` keeps it alive."""
        if address in by_address:
            return by_address[address]
        kind = lib.type("CornuLayerClass").from_address(
            lib.type("CornuLayer").from_address(address).kind).class_name.decode("utf-8")
        known = globals().get(kind)
        made = object.__new__(known if isinstance(known, type) and issubclass(known, Layer)
                              else Layer)
        made._config, made._calls, made._owned = None, 1, Owned(address, lambda _: None, owner)
        made._wrappers = {}
        made.class_name = kind
        by_address[address] = made
        return made

    def __reduce__(self):
        if self.built and self.weights:
            raise TypeError("%s: a layer with weights is copied and pickled with its model"
                            % self.name)
        return type(self).from_config, (self.get_config(),)

    def _layer_pointer(self):
        return self._owned.address

    @property
    def name(self):
        return self._layer().name.decode("utf-8")

    def get_config(self):
        """All arguments, as in Keras' files."""
        text = lib.take_text(lib.cornu_layer_to_json(self._layer_pointer()))
        return json.loads(text)["config"]

    def to_dict(self):
        if self._config is not None:
            return super().to_dict()
        return json.loads(lib.take_text(lib.cornu_layer_to_json(self._layer_pointer())))

    @property
    def dtype_policy(self):
        """The name of the precision policy."""
        dtype = self.get_config().get("dtype")
        return dtype["config"]["name"] if isinstance(dtype, dict) else dtype

    def __call__(self, *args, **kwargs):
        """Calls the layer on symbolic tensors, on arrays, which computes at once, or, in a function,
        on recorded tensors: layer(x), layer([a, b]), layer(query, value). Other arguments of Keras'
        call are given by name: layer(x, initial_state=[h, c], mask=m)."""
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        if not isinstance(find_tensor([*args, *kwargs.values()]), Tensor):
            from ._calls import call_layer
            own = self.description.get("call_arguments", "").split()
            self._configure({key: kwargs.pop(key) for key in own if key in kwargs})
            return call_layer(self, args, kwargs)
        check_tensors(self.name, [*args, *kwargs.values()])
        own = self.description.get("call_arguments", "").split()
        self._configure({key: kwargs.pop(key) for key in own if key in kwargs})
        self._calls += 1
        return self._called(args, kwargs)

    def _configure(self, given):
        """Arguments of a call that are the layer's own here, such as use_causal_mask."""
        if not given:
            return
        if self._calls:
            for name, value in given.items():
                if self._config is None or self._config.get(name) != value:
                    raise ValueError("%s: %s is %r in this call and not in the first one"
                                     % (self.name, name, value))
            return
        self._config.update(given)
        self._make()

    def enable_lora(self, rank, lora_alpha=None):
        """Freezes the kernel and trains a low-rank addition to it, before compiling."""
        lib.cornu_layer_enable_lora(self._layer_pointer(), int(rank), float(lora_alpha or 0))

    def __repr__(self):
        return "<cornu %s name=%s>" % (self.class_name, self.name)


class Adapts:
    """Layers that learn from data before training."""

    def adapt(self, data, batch_size=None, steps=None):
        """Learns from data: an array, a list, or batches as fit takes, of which `steps` are read.
        What was learnt before is forgotten; a string is a document."""
        from ._feeds import Feed, is_feed
        lent, config = Borrowed(), struct("CornuAdaptConfig", layer=self._layer_pointer())
        if is_feed(data):
            feed = Feed(self, data if steps is None else itertools.islice(data, steps))
            config.data = feed.address
        else:
            values = np.asarray(data)
            config.x = lent.array(values if values.ndim else values[None])
            feed = None
        try:
            lib.cornu_adapt_from(ctypes.byref(config))
        finally:
            if feed and feed.error:
                raise feed.error

    def _ordered(self, what, given):
        """The part of a batch that is learnt from; see Feed."""
        return [np.asarray(given)] if what == "input" else []


class HasVocabulary:
    """Layers of words or integers."""

    def get_vocabulary(self, include_special_tokens=True):
        """The words of all places, in order; the special ones are the mask's and those for words
        that are not known."""
        return json.loads(lib.take_text(lib.cornu_layer_vocabulary_to_json(
            self._layer_pointer(), not include_special_tokens)))

    def vocabulary_size(self):
        return len(self.get_vocabulary())

    def set_vocabulary(self, vocabulary, idf_weights=None):
        """In place of adapt, before the layer is called."""
        if self._calls or self._config is None:
            raise ValueError("%s: the vocabulary is set before the layer is called" % self.name)
        self._config["vocabulary"] = vocabulary
        if idf_weights is not None:
            self._config["idf_weights"] = idf_weights
        self._make()


def _bases_of(entry):
    return [base for base, key in ((Adapts, "adapts"), (HasVocabulary, "has_vocabulary"))
            if entry.get(key)]


def InputLayer(shape=None, batch_size=None, dtype=None, name=None, batch_shape=None):
    """The layer with which a Sequential model may begin: InputLayer(shape=(28, 28))."""
    return Input(shape, batch_size, dtype, name, batch_shape)


def _function(name):
    """Keras' add([a, b]), which is Add()([a, b])."""
    def call(inputs, *args, **kwargs):
        return globals()[name.capitalize()](*args, **kwargs)(inputs)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "%s(...)(inputs)." % name.capitalize()
    return call


_FUNCTIONS = ["add", "subtract", "multiply", "average", "maximum", "minimum", "concatenate", "dot"]
for _name in _FUNCTIONS:
    globals()[_name] = _function(_name)

__all__ = ["Layer", "InputLayer", "Input", "Weight"] + _FUNCTIONS
__all__ += make_classes("layers", Layer, globals(), _bases_of)
