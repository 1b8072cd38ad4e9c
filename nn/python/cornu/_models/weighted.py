"""Weights, and what layers and models have in common."""

import ctypes
import json
import numbers
import weakref

import numpy as np

from .._binding.arrays import Borrowed, shape_of
from .._binding.described import snake_case
from .._tensors.functions import function
from .._binding.library import Owned, lib
from .._tensors.operators import operate
from .._tensors.stateless import StatelessLayer
from .._tensors.symbols import Form, Tensor, made_by, operands, results
from .._tensors.traces import tracing
from .._tensors.values import Readable, Value, current, state


# The objects of Python for layers of the library, by address, while they live.
by_address = weakref.WeakValueDictionary()


class Weight(Readable):
    """A variable of a layer: its path, shape and value, a NumPy array. Functions read it and assign
    it. The library keeps float32; of another dtype it is converted where it is read."""

    pending = None

    def __init__(self, address, owner, dtype="float32"):
        self._weight = lib.type("CornuWeight").from_address(address)
        self._address, self._owner, self.dtype = address, owner, dtype

    def converted(self, value):
        """What the library reads, as a value of this dtype."""
        return value if self.dtype == "float32" else operate("cast", value, self.dtype)

    @property
    def path(self):
        return self._weight.path.decode("utf-8")

    @property
    def name(self):
        return self.path.rpartition("/")[2]

    @property
    def regularizer_at(self):
        """The library's regularizer, whose kind is 0 where there is none."""
        at = self._address + type(self._weight).regularizer.offset
        return lib.type("CornuRegularizer").from_address(at)

    @property
    def shape(self):
        return shape_of(self._weight.type.shape)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def trainable(self):
        return bool(lib.cornu_layer_trains(self._owner._layer_pointer(), self._address))

    def _make_native(self, recording=state):
        """Of a layer that no model has called: puts it on a device."""
        if not self._weight.variable:
            device = recording.device
            lib.cornu_layer_move(self._owner._layer_pointer(), getattr(device, "address", device))

    def _native(self):
        if not self._weight.variable:
            raise ValueError("%s is on no device: call its model on arrays first, or compile it"
                             % self.path)
        return self._weight.variable

    def _keeper(self):
        """What frees it."""
        return getattr(self._owner, "_traced", None) or self._owner._owned

    def _read(self, recording):
        from .._tensors.functions import Borrowed as Device
        self._make_native(recording)
        address = self._native()
        recording.use(Device(lib.cornu_variable_device(address), self._keeper()))
        recording.placed.append((self._weight, address))
        return self.converted(recording.read(address, self._keeper()))

    def numpy(self):
        from .._tensors.functions import finish_pending
        finish_pending()
        values = np.empty(self.shape, np.float32)
        lib.cornu_weight_read(self._address, Borrowed().array(values))
        if not self._weight.variable and not self._weight.host:     # what has been seen stays:
            lib.cornu_weight_write(self._address, Borrowed().array(values))     # a model draws anew
        return values.astype(self.dtype, copy=False)

    @property
    def value(self):
        """Its value: in a layer's call a symbolic tensor, in a function a recorded one, else an
        array."""
        if tracing() is not None:
            return tracing().read(self)
        return self.numpy() if current() is None else self._read(current())

    def assign(self, value):
        """Sets the value, of the same shape; in a function, at the end of each run, and in a
        layer's call at the end of each step."""
        if tracing() is not None:
            return tracing().assign(self, value)
        recording = value.recording if isinstance(value, Value) else current()
        if recording is not None and not recording.closed:
            from .._tensors.functions import assign_in
            self._read(recording)
            return assign_in(recording, self._native(), recording.value(value), "float32", self)
        self.write(value)

    def write(self, value):
        """Sets the value at once, wherever that is."""
        state.compute_waiting()
        lib.cornu_weight_write(self._address, Borrowed().array(np.asarray(value, np.float32)))

    def assign_add(self, value):
        self.assign(self + value)

    def assign_sub(self, value):
        self.assign(self - value)

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        return "<cornu Weight %s shape=%s>" % (self.path, self.shape)


class Weighted(StatelessLayer):
    """What layers and models have in common: `pointer`, the library's layer, and its weights."""

    def _layer(self):
        return lib.type("CornuLayer").from_address(self._layer_pointer())

    @property
    def weights(self):
        """All variables, in Keras' order."""
        return [Weight(address, self) for address in self._addresses()]

    def _addresses(self):
        layer = self._layer()
        return (ctypes.c_void_p * layer.weight_count).from_address(layer.weights) \
            if layer.weight_count else []

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

    def save_own_variables(self, store):
        """Puts its weights into a dictionary, by their numbers. A class may have one of its own,
        whose arrays are in .keras files, too."""
        for i, weight in enumerate(self.weights):
            store[str(i)] = weight.numpy()

    def load_own_variables(self, store):
        """Sets its weights as save_own_variables has put them."""
        for i, weight in enumerate(self.weights):
            weight.assign(store[str(i)])

    def save_assets(self, inner_path):
        """Of a class of its own: writes files into a folder, which .keras files have."""

    def load_assets(self, inner_path):
        """Of a class of its own: reads the files that save_assets has written."""

    @property
    def built(self):
        return bool(self._layer().built)

    @built.setter
    def built(self, value):
        """Programs set it at the end of their build; the library knows it by itself."""

    @property
    def trainable(self):
        """Read by the first training step after compile."""
        return not self._layer().frozen

    @trainable.setter
    def trainable(self, value):
        lib.cornu_layer_set_trainable(self._layer_pointer(), bool(value))

    # ---- Calls ----

    _is_traced = False  # a layer of the library's
    _waits = False      # which wraps layers of the program's own
    _losses = ()        # what layers added in the last call

    @property
    def losses(self):
        """Scalars: what layers added in the last call, in sum, and the penalty of each regularizer
        of a trainable weight; in a function or a step recorded tensors."""
        added = [loss for loss in self._losses
                 if current() is getattr(loss, "recording", None)]
        return added + self._weight_losses()

    def _weight_losses(self):
        if tracing() is not None:
            return []
        given = [w._address for w in self.trainable_weights if w.regularizer_at.kind]
        return self._penalties(given) if given else []

    @function
    def _penalties(self, addresses):
        made, recording = [], current()
        of = {weight._address: weight for weight in self.weights}
        for address in addresses:
            regularizer = ctypes.addressof(of[address].regularizer_at)
            value = of[address]._read(recording)
            made.append(Value(lib.cornu_regularizer_call(regularizer, value.pointer), recording))
        return made

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
        made = made_by(self, form.tensors, results(made))
        if self._makes_mask() or any(tensor._masked for tensor in form.tensors):
            for tensor in made if isinstance(made, list) else [made]:
                tensor._masked = True
        if tracing() is not None:
            tracing().note("%d %s" % (pointer, call), form.tensors, made)
            tracing().called.update(self._addresses())
        return made

    def _makes_mask(self):
        """Whether results may have a mask though operands have none; a mask that there is not is
        one of which all steps are valid."""
        return False

    def _adopt(self, address, owner):
        """Makes this new object the one of a layer of the library."""
        self._forget(self._owned)
        self._owned, self._calls = Owned(address, lambda _: None, owner), 1
        by_address[address] = self

    def _forget(self, owned):
        """Before it becomes the object of another layer: another one may get the address."""
        if owned is not None and by_address.get(owned.address) is self:
            del by_address[owned.address]

    def _rename(self, name):
        return False

    def _has_layer(self):
        """Whether the library has the layer already."""
        return True

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
        return made_by(self, [], results(self._first_call()))


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


# ---- Attributes ----

def attributes(value, path=""):
    """(path, layer) for each layer among the attributes of an object, as Keras' files name them:
    "dense", and in a list "blocks/dense_1"; "" is the one that an object extends, itself."""
    for name, member in vars(value).items():
        if name in ("_wrappers", "_of_extents", "_elsewhere", "_arguments", "_viewed",
                    "_measuring", "_now"):
            # of single calls, of data, of other devices, of __init__, of files, of a step, as it is
            # since a change
            continue
        if name == "_base":
            yield "", member
        elif isinstance(member, Weighted):
            yield path + name, member
        elif isinstance(member, (list, tuple, dict)):
            yield from members(member, path + name, {})


def members(container, path, counts, around=()):
    if any(container is outer for outer in around):
        return      # a list that contains itself
    for member in container.values() if isinstance(container, dict) else container:
        if isinstance(member, Weighted):
            label = snake_case(type(member).__name__)
            count = counts[label] = counts.get(label, -1) + 1
            yield "%s/%s" % (path, label if count == 0 else "%s_%d" % (label, count)), member
        elif isinstance(member, (list, tuple, dict)):
            yield from members(member, path, counts, (*around, container))
