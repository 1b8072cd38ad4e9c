"""Keras' layers, by the library's tables: Dense(10, activation="softmax")(x)."""

import ctypes
import itertools
import json

import numpy as np

from ._binding.arrays import Borrowed, set_shape, shape_of
from ._binding.errors import CornuError
from ._binding.described import Described, described, make_classes, plain, snake_case, unique_name
from ._binding.library import Owned, lib, struct
from ._tensors.operators import operate
from ._surface.missing import add_aliases, getter, missing_attribute
from ._surface.registry import add_registry
from ._tensors.symbols import Tensor, data_format, find_tensor, input_tensor as Input
from ._own.input_spec import InputSpec
from ._own.extended import Extended, overrides
from ._own.lambdas import Lambda, Wrapper
from ._own.open_layers import base_for
from ._own.callables import Objects, Resolving, is_own, name_of
from ._own.traced import Layer, made_of_config
from ._tensors.traces import tracing
from ._tensors.values import Array
from ._own.wrappers import Wraps, layer_fields
from ._models.weighted import Weight, Weighted, by_address, check_tensors



def _class_of(record):
    """The class of a file's layer: of its registered name, or given by its own name. One that is
    registered in some package is no other package's."""
    from .saving import get_registered_name, get_registered_object
    for name in (record["registered_name"], record["class_name"]):
        known = get_registered_object(name)
        own = None if known is None else get_registered_name(known)
        if own == record["registered_name"] or (own is not None and ">" not in own):
            return known
    return None


def _as_tuple(value):
    """A list of whole numbers, such as extents, or of such lists as tuples; else the value."""
    if not isinstance(value, list) or not value:
        return value
    made = tuple(map(_as_tuple, value))
    return made if all(each is None or isinstance(each, (int, tuple)) for each in made) else value


class BuiltIn(Described, Layer):
    """A layer of the library, by its arguments."""

    _is_traced = False

    def __init_subclass__(cls, **kwargs):
        if "description" not in vars(cls) and not issubclass(cls, Extended) and \
                cls.__module__ != __name__ and overrides(cls, BuiltIn):
            cls.__bases__ = (base_for(cls), *cls.__bases__)
        super().__init_subclass__(**kwargs)

    # Those of the library's layer, not those of a class of the program's own.
    weights, trainable_weights = Weighted.weights, Weighted.trainable_weights
    built, trainable = Weighted.built, Weighted.trainable
    _called, _has_layer, _adopt = Weighted._called, Weighted._has_layer, Weighted._adopt

    def __init__(self, *args, **kwargs):
        self._input_shape = kwargs.pop("input_shape", None)   # of a Sequential that begins with it
        if "input_dim" in kwargs and "input_dim" not in self.field_names:
            self._input_shape = (kwargs.pop("input_dim"),)
        given = kwargs.pop("weights", None) if self.class_name == "Embedding" else None
        Described.__init__(self, *args, **kwargs)
        mode = self._config.get("output_mode")
        if mode in ("binary", "tf-idf"):        # Keras' other words
            self._config["output_mode"] = "multi_hot" if mode == "binary" else "tf_idf"
        if "data_format" in self.field_names and data_format[0] != "channels_last" and \
                self._config.get("data_format") is None:
            self._config["data_format"] = data_format[0]
        for name in {"padding", "data_format"} & set(self._config):
            if isinstance(self._config[name], str):
                self._config[name] = self._config[name].lower()     # Keras takes "VALID"
        if not self._config.get("name"):
            self._config["name"] = unique_name(snake_case(self.class_name))
        self._make()
        if given is not None:       # whose shapes are known
            self.build((None,))
            self.set_weights(given if isinstance(given, (list, tuple)) else [given])
        if tracing() is not None:
            tracing().made.append(self)

    def __setattr__(self, name, value):
        """The activation may be changed: Keras' layers read it when they are called."""
        if name == "activation" and self.__dict__.get("_owned") is not None:
            from . import activations
            from ._tensors.calls import edits
            named = getattr(activations.get(value), "_cornu_name", None)
            if named is None:
                raise NotImplementedError("%s.activation becomes %r, expected one of Keras' by its "
                                          "name" % (self.name, value))
            lib.cornu_layer_set_activation(
                self._layer_pointer(), described["names"]["activations"].index(named) +
                lib.constants["CORNU_LINEAR"])
            edits.append(self.name)
            self._after = None
            if self._config is not None:
                self._config["activation"] = named
            return
        super().__setattr__(name, value)

    def __getattr__(self, name):
        """A weight by its name: dense.kernel."""
        if not name.startswith("_") and self.__dict__.get("_owned") is not None:
            for weight in self.weights:
                if weight.name == name:
                    return weight
        if name in ("input", "output"):
            self._first_call()      # which says why there is none
        if name in self.field_names and self.__dict__.get("_owned") is not None:
            return self._argument(name)
        try:
            return missing_attribute(self, name)
        except AttributeError as error:
            if "which Keras has" in str(error):
                raise
        raise AttributeError("%s has no attribute %r%s" % (
            self.class_name, name, "" if name.startswith("_") or self.__dict__.get("_owned") is None
            or self.built else "; it has no weights before it is built"))

    def _argument(self, name):
        """An argument that it was given, or the usual one: dense.units."""
        value = (self._config or {}).get(name)
        if value is None:
            value = self.get_config().get(name)
        kind = next((f["type"] for f in self.description["fields"] if f["name"] == name), "")
        if kind.startswith(("single", "pair", "triple")) and not isinstance(value, tuple):
            made = self.get_config().get(name)
            return tuple(made) if isinstance(made, list) else made      # (2, 2) of 2
        if name.endswith("activation"):
            from . import activations
            return activations.get(value)
        return value

    def _makes_mask(self):
        return self.class_name == "Masking" or bool((self._config or {}).get("mask_zero"))

    _built_for = None   # the shapes of build
    _after = None       # the activation, where it is a function of the program's own

    def _own_arguments(self, own):
        """The arguments, with functions of the program's own among `own`."""
        config = dict(self._config)
        for name, value in self._config.items():
            if not is_own(value):
                continue
            if name == "activation" and not any(word in self.field_names for word in
                                                ("recurrent_activation", "return_sequences")):
                if self._config.get("activity_regularizer") is not None:
                    raise NotImplementedError(
                        "%s: an activity_regularizer beside an activation that is a function; add "
                        "the penalty by add_loss in a layer of your own" % self._config["name"])
                self._after = Lambda(value, name=unique_name(name_of(value)))
                config[name] = "linear"
            else:
                config[name] = own.rule(name, value)
        return config

    def _passes_objects(self):
        return any(is_own(value) for value in self._config.values())

    def _make(self):
        own, text = Objects(), None
        if self._passes_objects():
            text = {"class_name": self.class_name, "config": plain(self._own_arguments(own))}
        try:
            with own, Resolving(live=True) as resolving:
                address = lib.cornu_layer_from_json(json.dumps(text or self.to_dict()))
        except CornuError:
            missing = [f["name"] for f in self.description["fields"]
                       if f.get("required") and f["name"] not in self._config]
            if not missing:
                raise
            raise TypeError("%s: missing a required argument: %r"
                            % (self.class_name, missing[0])) from None
        self._owned = Owned(address, lib.cornu_layer_free)
        by_address[self._owned.address] = self
        own.keep(address, new=True)
        resolving.objects.keep(address)

    def _rename(self, name):
        """Another name, of a layer that is not in use yet; whether it has it."""
        if self._calls or self.built or self._config is None:
            return False
        self._config["name"] = name
        self._make()
        return True

    @classmethod
    def _view(cls, address, owner):
        """The object for a layer of a model; `owner` keeps it alive."""
        if address in by_address:
            return by_address[address]
        kind = lib.type("CornuLayerClass").from_address(
            lib.type("CornuLayer").from_address(address).kind).class_name.decode("utf-8")
        known = globals().get(kind)
        if kind == "Traced":
            return cls._view_traced(address, owner)
        made = object.__new__(known if isinstance(known, type) and issubclass(known, BuiltIn)
                              else BuiltIn)
        made._config, made._calls, made._owned = None, 1, Owned(address, lambda _: None, owner)
        made._wrappers = {}
        made.class_name = kind
        by_address[address] = made
        return made

    @classmethod
    def _view_traced(cls, address, owner):
        """Of a class of some program's: an object of it, if this program has registered it."""
        record = json.loads(lib.take_text(lib.cornu_layer_to_json(address)))
        known = _class_of(record)
        if isinstance(known, type) and issubclass(known, Weighted):
            made = made_of_config(known, record["config"])
            made._adopt(address, owner)
            return made
        made = object.__new__(BuiltIn)
        made._config, made._calls, made._owned = None, 1, Owned(address, lambda _: None, owner)
        made._wrappers, made.class_name = {}, record["class_name"]
        by_address[address] = made
        return made

    def __reduce__(self):
        if self.built and self.weights:
            raise TypeError("%s: a layer with weights is copied and pickled with its model"
                            % self.name)
        return type(self).from_config, (self.get_config(),)

    def _layer_pointer(self):
        return self._owned.address

    def build(self, input_shape, *more):
        """Makes the weights, for operands of this shape, or of these; axis 0 is the batch. Several
        are in a list, or follow each other, as those of the query and value of attention."""
        shapes = list(input_shape.values()) if isinstance(input_shape, dict) else input_shape
        if not (shapes and isinstance(shapes[0], (list, tuple))):
            shapes = [shapes]
        shapes = [*shapes, *more]
        of_many = (lib.type("CornuShape") * len(shapes))()
        for made, shape in zip(of_many, shapes):
            set_shape(made, (None, *shape[1:]))
        lib.cornu_layer_build_many(self._layer_pointer(), ctypes.addressof(of_many), len(shapes))
        self._built_for = shapes

    @property
    def name(self):
        return self._layer().name.decode("utf-8")

    def get_config(self):
        """All arguments, as in Keras' files; extents are tuples, as those of its layers."""
        text = lib.take_text(lib.cornu_layer_to_json(self._layer_pointer()))
        return {name: _as_tuple(value) for name, value in json.loads(text)["config"].items()}

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
        """Calls the layer on symbolic tensors, on arrays, which computes at once, or, in a
        function, on recorded tensors: layer(x), layer([a, b]), layer(query, value). Other arguments
        of Keras' call are given by name: layer(x, initial_state=[h, c], mask=m)."""
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        if tracing() is not None:
            made = tracing().of_strings([args, kwargs], lambda: self(*args, **kwargs))
            if made is not NotImplemented:
                return made
            args, kwargs = tracing().symbols(list(args)), tracing().symbols(kwargs)
        own = self.description.get("call_arguments", "").split()
        self._configure({key: kwargs.pop(key) for key in own if key in kwargs})
        made = self._computed(args, kwargs)
        return made if self._after is None else self._after(made)

    def _computed(self, args, kwargs):
        if not isinstance(find_tensor([*args, *kwargs.values()]), Tensor):
            from ._tensors.calls import call_layer
            return call_layer(self, args, kwargs)
        check_tensors(self.name, [*args, *kwargs.values()])
        self._calls += 1
        return self._called(args, kwargs)

    def _configure(self, given):
        """Arguments of a call that are the layer's own here, such as use_causal_mask."""
        if all((self._config or {}).get(name, False) == value for name, value in given.items()):
            return
        if self._calls:
            for name, value in given.items():
                if self._config is None or self._config.get(name) != value:
                    raise ValueError("%s: %s is %r in this call and not in the first one"
                                     % (self.name, name, value))
            return
        shapes = self._built_for if self.built else None
        values = self.get_weights() if shapes else []
        self._config.update(given)
        self._make()
        if shapes:
            self.build(shapes)
            for weight, value in zip(self.weights, values):
                weight.write(value)

    def reset_states(self):
        """Sets the states that outlast batches, those of stateful layers, to zeros."""
        lib.cornu_layer_reset_states(self._layer_pointer())

    reset_state = reset_states

    @property
    def states(self):
        """Of a recurrent layer that is stateful: its states after the last batch, as arrays, which
        do for initial_state; None before."""
        if not hasattr(self, "stateful"):
            raise AttributeError("%s has no attribute 'states'" % type(self).__name__)
        given = lib.type("CornuLayer").from_address(self._layer_pointer()).states
        made = []
        for address in filter(None, given):
            kind = lib.cornu_variable_host_type(address)
            array = np.empty(shape_of(kind.shape), np.float32)
            lib.cornu_variable_read(address, Borrowed().array(array))
            made.append(array.reshape(-1, *array.shape[2:]).view(Array))     # of all shards
        return made or None

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
        from ._models.feeds import Feed, is_feed
        from ._tensors.calls import stored
        lent, config = Borrowed(), struct("CornuAdaptConfig", layer=self._layer_pointer())
        if is_feed(data):
            feed = Feed(self, data if steps is None else itertools.islice(data, steps))
            config.data = feed.address
        else:
            values = stored(getattr(data, "flat_values", data))     # of TensorFlow's ragged rows
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

    def _computed(self, args, kwargs):
        if len(args) == 1 and hasattr(args[0], "with_flat_values"):
            return self._of_ragged(args[0])
        return super()._computed(args, kwargs)

    def _of_ragged(self, rows):
        """Of TensorFlow's rows of different lengths: numbers in such rows, or a vector of each."""
        if self.output_mode == "int":
            return rows.with_flat_values(self(rows.flat_values))
        return self._vectors(rows.flat_values, rows.row_splits)

    def _vectors(self, values, splits):
        """What is counted in each row of ragged ones, which begin and end at the splits."""
        from ._tensorflow import in_graph
        made = in_graph(self._vectors, values, splits)
        if made is not NotImplemented:
            return made
        single = self.output_mode if self.output_mode == "tf_idf" else "count"
        each = self._like(output_mode=single)(np.asarray(values)[:, None])
        sums = np.add.reduceat(np.concatenate([each, each[:1] * 0]), np.asarray(splits)[:-1])
        sums[np.diff(splits) == 0] = 0
        return (np.minimum(sums, 1) if self.output_mode == "multi_hot" else sums).view(Array)

    def _like(self, **changed):
        """A layer with the same vocabulary."""
        return type(self).from_config({**self.get_config(), **changed, "name": None,
                                       "vocabulary": self.get_vocabulary(False)})

    def set_vocabulary(self, vocabulary, idf_weights=None):
        """In place of adapt, before the layer is called."""
        if self._calls or self._config is None:
            raise ValueError("%s: the vocabulary is set before the layer is called" % self.name)
        self._config["vocabulary"] = vocabulary
        if idf_weights is not None:
            self._config["idf_weights"] = idf_weights
        self._make()


class Cell:
    """What cells of RNN have: sizes, and results in Keras' form."""

    @property
    def state_size(self):
        return [self.units] * 2 if self.class_name == "LSTMCell" else self.units

    @property
    def output_size(self):
        return self.units

    def get_initial_state(self, batch_size=None):
        """Zeros."""
        from .ops import zeros
        count = 2 if self.class_name == "LSTMCell" else 1
        return [zeros((batch_size, self.units)) for _ in range(count)]

    def _computed(self, args, kwargs):
        made = super()._computed(args, kwargs)
        states = args[1] if len(args) > 1 else kwargs.get("states")
        return made[0], made[1:] if isinstance(states, (list, tuple)) else made[1]


class JoinsRows:
    """Concatenate: along axis 0 the rows of the batches follow each other."""

    def _computed(self, args, kwargs):
        if self.axis == 0:
            return operate("concatenate", *args, axis=0)
        return super()._computed(args, kwargs)


def _bases_of(entry):
    wraps = [Wraps] if layer_fields(entry) else []
    wraps += [Cell] if entry["class_name"] in ("LSTMCell", "GRUCell", "SimpleRNNCell") else []
    wraps += [JoinsRows] if entry["class_name"] == "Concatenate" else []
    return wraps + [base for base, key in ((Adapts, "adapts"), (HasVocabulary, "has_vocabulary"))
                    if entry.get(key)]


def InputLayer(shape=None, batch_size=None, dtype=None, name=None, batch_shape=None,
               input_shape=None):
    """The layer with which a Sequential model may begin: InputLayer(shape=(28, 28))."""
    return Input(input_shape if shape is None else shape, batch_size, dtype, name, batch_shape)


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

__all__ = ["Layer", "InputLayer", "InputSpec", "Input", "Weight"]
__all__ += _FUNCTIONS
__all__ += make_classes("layers", BuiltIn, globals(), _bases_of)


class RNN(globals()["RNN"]):
    """RNN(cell), where the cell may be a layer of the program's own; or a list of cells."""

    def __init__(self, cell, *args, **kwargs):
        if isinstance(cell, (list, tuple)):
            cell = globals()["StackedRNNCells"](cell)
        super().__init__(cell, *args, **kwargs)


__all__ += ["Lambda", "Wrapper"]
__all__ += add_registry("layers", Layer, globals()) + add_aliases("layers", globals())
__getattr__ = getter(__name__)
