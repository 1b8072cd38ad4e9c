"""Tensors of graphs that are being recorded, and operations on arrays, which compute at once.

A Value is a tensor of a Recording: of a cornu.function, or of a GradientTape. An operation on
arrays is a recording of it alone, kept by its name, arguments and types, and run again.
"""

import collections
import ctypes
import json
import threading
import weakref

import numpy as np

from .._binding.arrays import (KERAS_NAMES, Array, Borrowed, borrowed, dtype_number, shape_of,
                               to_array)
from .._binding.described import described, plain
from .extents import extents_of
from .._binding.library import Owned, lib, struct
from .operators import Operators, operate, users_line
from .._tensorflow import in_graph, is_of_graph, shape_in_graph
from .strings import of_strings
from .traces import tracing

_MOST = lib.constants["CORNU_MAX_LAYER_TENSORS"]
_SUMMED = {"float32", "float64", "int64", "int32"}      # what the library sums over shards
_MOST_KEPT = 1024       # operations on arrays of one thread
_ENTRIES = {name: entry for entry, name in zip(described["operations"],
                                               described["names"]["operations"])}
_ENTRIES.update({entry["name"]: entry for entry in described["operations"]})


# ---- Recordings ----

class _State(threading.local):
    """What a thread records with."""

    def __init__(self):
        self.recordings, self.kept, self.counters = [], collections.OrderedDict(), {}
        self.lazy = weakref.WeakSet()       # recordings whose values may not be computed yet
        self._device = None
        self.training = None    # of the call, run by Python, that a layer is called in

    def compute_waiting(self):
        """Computes what is not yet, before a variable that it reads changes."""
        for recording in list(self.lazy):
            recording.compute_all()

    @property
    def device(self):
        if self._device is None:
            config = struct("CornuDeviceConfig", name="cpu")
            self._device = Owned(lib.cornu_device_open_from(ctypes.byref(config)),
                                 lib.cornu_device_close)
        return self._device


state = _State()


def current():
    """The recording that this thread makes, or None."""
    return state.recordings[-1] if state.recordings else None


class Again(BaseException):
    """The recording begins anew: on another device, or since variables have moved."""

    def __init__(self, device=None):
        self.device = device


class Value(Operators):
    """A tensor of a graph that is being recorded. Its shape and dtype are known, its elements once
    the graph runs."""

    _keras_mask = None      # Keras' name of the mask that a layer's result has

    def __init__(self, pointer, recording):
        self.pointer, self.recording, self._array = pointer, recording, None
        self.updates = recording.updates
        kind = lib.cornu_tensor_type(pointer)
        self.shape, self._dtype = shape_of(kind.shape), kind.dtype
        if recording.values is not None:
            recording.values.append(weakref.ref(self))

    @property
    def dtype(self):
        return KERAS_NAMES[self._dtype]

    @property
    def ndim(self):
        return len(self.shape)

    def __len__(self):
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __eq__(self, other):
        return operate("equal", self, other)

    def __ne__(self, other):
        return operate("not_equal", self, other)

    __hash__ = Operators.__hash__

    def __repr__(self):
        if self._array is not None or self.recording.values is not None:
            return repr(self.numpy())
        return "<cornu.Value shape=%s dtype=%s>" % (self.shape, self.dtype)

    def _needed(self, what):
        """The elements, where they can be known."""
        if self._array is None and self.recording.values is None:
            raise TypeError(
                "%s is needed of a recorded tensor, %r, whose elements are not known before the "
                "function runs. Use ops.where or ops.cond in place of if, ops.while_loop or "
                "ops.fori_loop in place of loops, and cornu.ops in place of functions of NumPy, "
                "TensorFlow or JAX; in %s" % (what, self, users_line()))
        if self._array is None:
            self.recording.compute(self)
        return self._array

    def numpy(self):
        return np.asarray(self._needed("an array"))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __bool__(self):
        return bool(self._needed("True or False"))

    def __int__(self):
        return int(self._needed("a number"))

    def __index__(self):
        return self._needed("a number").__index__()

    def __float__(self):
        return float(self._needed("a number"))

    def item(self):
        return self._needed("a number").item()

    def astype(self, dtype):
        return operate("cast", self, dtype)

    def reshape(self, *shape):
        return operate("reshape", self, shape[0] if isinstance(shape[0], (list, tuple)) else shape)


class Readable(Operators):
    """Variables, which recordings read."""

    def _read(self, recording):
        """The Value of it in a recording."""
        raise NotImplementedError

    def _native(self):
        """The address of the library's variable."""
        raise NotImplementedError


class Recording:
    """A graph under construction, and what must live as long.

    counter: a variable that counts its runs, for random numbers; see Counter
    lazy: values compute when they are needed, of a GradientTape
    tried: the devices, by address, on which it has been begun before
    of: the function or the step that is recorded, whose statements run in order: what is read is
        what was assigned before
    """

    model = None        # whose step it is
    rehearses = False   # it is dropped: optimizers do nothing

    def __init__(self, device, counter=None, lazy=False, tried=(), of=None):
        self._device, self._owned, self._tried, self._of = device, None, tried, of
        self.kept, self._constants, self.placed = [], {}, []
        self.counter, self._iteration = counter, None
        self.values = [] if lazy else None
        self.closed, self.restores, self.assigns = False, {}, False
        self.updates, self._before = 0, {}      # of variables so far; see updating
        self.used = set()   # arrays and variables, by id, that something has read
        self.bound = {}     # values of variables, by their id, that are none in this recording
        self.journal = [] if lazy else None     # operations on arrays, before it needs its device
        if lazy:
            state.lazy.add(self)

    def __enter__(self):
        state.recordings.append(self)
        return self

    def __exit__(self, *_):
        state.recordings.remove(self)

    @property
    def device(self):
        return self._device.address

    @property
    def pointer(self):
        if self._owned is None:
            self._owned = Owned(lib.cornu_graph_create(self.device), lib.cornu_graph_free,
                                self._device)
            lib.cornu_graph_set_whole_batch(self._owned.address)
            if self._of is not None:
                lib.cornu_graph_set_sequential(self._owned.address)
        return self._owned.address

    def need_order(self):
        """Fails where statements do not run in order."""
        if self._of is None:
            raise NotImplementedError("stateless calls, which need a cornu.function or train_step "
                                      "around them; in %s" % users_line())

    def use(self, device):
        """A model or a variable on a device (something with address and counted) is part of it: it
        begins anew there, if it is elsewhere."""
        journal, self.journal = self.journal, None
        if device.address == self.device:
            return
        if self.values is None and device.address not in self._tried:
            raise Again(device)
        if journal is not None and self._owned is not None:
            return self._move(device, journal)
        if self.values is None or self._owned is not None:
            raise ValueError("models and variables on different devices are used together: call "
                             "compile(device=…) of all with one cornu.Device; in %s"
                             % users_line())
        self._device = device

    def _move(self, device, journal):
        """Records what has been recorded of arrays again, on another device."""
        self._device, self._owned, known = device, None, self._constants
        self._constants = {}
        for key, (array, made) in known.items():
            made.pointer = self.constant(array).pointer
            self._constants[key] = array, made
        for name, values, named, made in journal:
            again = record(self, name, values, named)
            for old, new in zip(*[x if isinstance(x, list) else [x] for x in (made, again)]):
                old.pointer = new.pointer

    # ---- Tensors ----

    def input(self, array, dealt=False):
        """dealt: the shards of the device share its rows, if there are several."""
        lent = Borrowed().array(array)
        add = lib.cornu_graph_shard_input if dealt else lib.cornu_graph_input
        return Value(add(self.pointer, lent.type), self)

    def batch(self, arrays):
        """Inputs for the arrays of a function. Those with as many rows as the last one are the
        batch; what else is cut so is computed as right, but exchanged more."""
        several = lib.cornu_device_shards(self.device) > 1
        rows = next((a.shape[0] for a in reversed(arrays) if a.ndim), 0) if several else 0
        return [self.input(a, rows > 0 and a.ndim > 0 and a.shape[0] == rows) for a in arrays]

    def constant(self, array):
        """An array that does not change: the same Value for the same array."""
        known = self._constants.get(id(array))
        self.used.add(id(array))
        if known is not None:
            return known[1]
        converted = to_array(array)
        made = self.input(converted)
        lib.cornu_graph_feed(made.pointer, Borrowed().array(converted))
        self._constants[id(array)] = (array, made)
        return made

    def value(self, x):
        """A Value of what an operation or a model is given."""
        if isinstance(x, Value):
            if x.recording is self and not self.closed:
                return x
            if x._array is None and x.recording.values is None:
                raise ValueError("%r is of another recording, which has ended: functions get what "
                                 "they need as arguments, or by cornu.Variable; in %s"
                                 % (x, users_line()))
            return self.constant(x._needed("an array"))
        if isinstance(x, Readable):
            return x._read(self)
        return self.constant(x if hasattr(x, "__array__") else to_array(x))

    def read(self, variable, keep):
        """The value that a variable has, after the assignments so far."""
        self.journal = None
        self.kept.append(keep)
        return Value(lib.cornu_read_assigned(self.pointer, variable), self)

    def updating(self, variables):
        """Before these variables of the library are assigned others: gradients of what has been
        computed are with respect to what it has read."""
        for variable in variables:
            self._before.setdefault(variable, []).append(
                (self.updates, lib.cornu_read(self.pointer, variable)))
        self.updates += 1

    def read_before(self, variable, updates):
        """The tensor of a variable that what was computed after so many updates reads."""
        return next((tensor for at, tensor in self._before.get(variable, ()) if at >= updates),
                    None) or lib.cornu_read(self.pointer, variable)

    def iteration(self):
        """The tensor that counts runs; counted once in each."""
        self.journal = None
        if self._iteration is None:
            counted = self.counter.on(self._device)
            variable = counted.address
            self._iteration = lib.cornu_read(self.pointer, variable)
            self.kept.append(counted)
            if self.values is not None:
                return self._iteration
            following = record(self, "add", (Value(self._iteration, self), 1), {})
            lib.cornu_assign(variable, lib.cornu_op_convert(following.pointer,
                                                            dtype_number("int64")))
        return self._iteration

    def settled(self, pointer):
        """What a variable takes for a tensor: the same on all shards, of which the graph has
        one."""
        if not lib.cornu_tensor_varies(pointer):
            return pointer
        dtype = lib.cornu_tensor_type(pointer).dtype
        if KERAS_NAMES[dtype] in _SUMMED:
            return lib.cornu_op_all_reduce(pointer)
        wider = "float32" if "float" in KERAS_NAMES[dtype] else "int32"
        summed = lib.cornu_op_all_reduce(lib.cornu_op_convert(pointer, dtype_number(wider)))
        return lib.cornu_op_convert(summed, dtype)

    def call(self, training=False, draws=False):
        """training: None where the program does not say; draws: whether it may draw numbers, which
        differ from run to run, without training."""
        made = struct("CornuCall", graph=self.pointer, training=bool(training),
                      augments=training is None)
        if (training or draws) and self.counter is not None:
            made.iteration = self.iteration()
        return made

    # ---- Lazy ones ----

    def _missing(self):
        return [v for v in [value() for value in self.values] if v is not None and v._array is None]

    def compute(self, *values):
        """Computes some of its values, and does nothing else."""
        if self.assigns:
            return self.finish()
        saved = [(weight, weight.numpy()) for weight in self.restores.values()]
        Compiled(self, [], list(values)).fill()
        for weight, array in saved:
            lib.cornu_weight_write(weight._address, Borrowed().array(array))

    def compute_all(self):
        """Computes the values that are not yet: what they read is about to change."""
        missing = self._missing()
        if missing and not self.closed and self not in state.recordings:
            self.compute(*missing)

    def finish(self):
        """Runs it for good, with its assignments: its values are arrays from now on."""
        if self.closed:
            return
        self.closed, self.journal = True, None
        Compiled(self, [], self._missing()).fill()
        self.count()
        self.kept, self._constants, self.values = [], {}, []

    def count(self):
        """Of a lazy one, the run is counted at its end."""
        if self._iteration is not None:
            self.counter.add(self._device)
            self._iteration = None

    def is_current(self):
        """Whether it can be run again: what it reads is where it was."""
        return all(weight.variable == address for weight, address in self.placed) and \
            lib.cornu_graph_is_current(self.pointer)


class Counter:
    """A variable for each device that counts runs, from 0."""

    def __init__(self):
        self._made = {}

    def on(self, device):
        """The variable on a device, something with address and counted. It goes with what the
        device is of, which it would keep otherwise; recordings keep the variable."""
        address = device.address
        if address not in self._made:
            config = struct("CornuVariableConfig", device=address, name="iteration")
            config.type.dtype = dtype_number("int64")
            self._made[address] = Owned(lib.cornu_variable_create_from(ctypes.byref(config)),
                                        lib.cornu_variable_free)
            if device.counted is not None:
                weakref.finalize(device.counted, self._made.pop, address, None).atexit = False
        return self._made[address]

    def add(self, device):
        number, variable = np.zeros((), np.int64), self.on(device).address
        lib.cornu_variable_read(variable, Borrowed().array(number))
        number += 1
        lib.cornu_variable_write(variable, Borrowed().array(number))

    def reset(self):
        for made in self._made.values():
            lib.cornu_variable_write(made.address, Borrowed().array(np.zeros((), np.int64)))


class Same:
    """An object in a key: the same one, which lives as long."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return id(self.value)

    def __eq__(self, other):
        return isinstance(other, Same) and self.value is other.value


class Compiled:
    """A recording with what it is fed and what is fetched, to be run."""

    def __init__(self, recording, inputs, outputs):
        self.recording, self._values = recording, outputs
        self._feeds, self._made = [], []
        for value in inputs:
            shards = (1,) if lib.cornu_tensor_varies(value.pointer) else ()
            lent = Borrowed().array(np.empty(shards + value.shape, value.dtype))
            self._feeds.append((value.pointer, lent))
        fetched, lents = [], []
        for value in outputs:
            pointer, dtype = value.pointer, value.dtype
            if dtype == "bfloat16":
                pointer, dtype = lib.cornu_op_convert(pointer, dtype_number("float32")), "float32"
            fetched.append(pointer)
            self._made.append((value.shape, np.dtype(dtype)))
            # What depends on states of a shard, as of a stateful layer, has an axis of shards.
            shards = (1,) if lib.cornu_tensor_varies(pointer) else ()
            lents.append(Borrowed().array(np.empty(shards + value.shape, dtype)))
        self._count = len(fetched)
        self._fetched = (ctypes.c_void_p * max(self._count, 1))(*fetched)
        self._lents = (lib.type("CornuArray") * max(self._count, 1))(*lents)
        self._views = [self._lents[i] for i in range(self._count)]
        self._place = ctypes.addressof(self._lents)
        self._graph = recording.pointer

    def run(self, arrays):
        """The values, as arrays, of these ones."""
        for (pointer, lent), array in zip(self._feeds, arrays):
            array = borrowed(array, lent)
            lib.cornu_graph_feed(pointer, lent)
        made = []
        for view, (shape, dtype) in zip(self._views, self._made):
            array = np.empty(shape, dtype)
            view.data = array.__array_interface__["data"][0]
            made.append(array.view(Array))
        lib.cornu_run(self._graph, self._fetched, self._count, self._place)
        return made

    def fill(self):
        for value, array in zip(self._values, self.run([])):
            value._array = array


# ---- Operations on values ----

class _Form:
    """Arguments of a call in Keras' form for files, in which Values are numbered."""

    def __init__(self, recording):
        self.recording, self.tensors = recording, []

    def _tensor(self, value):
        self.tensors.append(value.pointer)
        return {"class_name": "__keras_tensor__", "config": len(self.tensors) - 1}

    def __call__(self, value, operand=True):
        if isinstance(value, (Value, Readable)):
            if not operand and isinstance(value, Value) and not value.shape and \
                    value.recording.values is not None:
                return value.item()     # known under a tape
            if not operand:
                raise TypeError("%r is given where a number is expected; in %s"
                                % (value, users_line()))
            return self._tensor(self.recording.value(value))
        if operand and hasattr(value, "__array__"):
            return self._tensor(self.recording.constant(value))
        if isinstance(value, (list, tuple)):
            return [self(v, operand) for v in value]
        return plain(value)


def _operands(name):
    """Of an operation's arguments: which are operands, by place and by name, the place of the one
    that takes all that follow by place, or None, and which are lists of operands."""
    if name not in _OPERANDS:
        arguments = _ENTRIES[name]["arguments"] if name in _ENTRIES else []
        flags = [bool(a.get("operand")) and (a["name"] != "key" or len(arguments) > 2)
                 for a in arguments]        # the key of get_item is none
        _OPERANDS[name] = (flags, {a["name"]: f for a, f in zip(arguments, flags)},
                           next((i for i, a in enumerate(arguments) if a.get("many")), None),
                           {a["name"] for a in arguments
                            if a["name"] in _LISTS or name == "stack" or name in _PAIRS})
    return _OPERANDS[name]


_OPERANDS = {}
_LISTS = {"xs", "condlist", "choicelist"}               # of operands
_PAIRS = {"fft", "fft2", "ifft2", "irfft"}              # of a complex x


def _is_operand(name, i):
    flags, _, many, _ = _operands(name)
    if many is not None and i >= many:
        return flags[many]
    return i < len(flags) and flags[i] if flags else True


def stacked(name, values):
    """Arguments in which a list of tensors, where one tensor is expected, is one."""
    flags, words, _, lists = _operands(name)
    return [operate("stack", list(value))
            if flag and word not in lists and isinstance(value, (list, tuple)) and
            any(isinstance(each, Operators) for each in value) else value
            for value, flag, word in zip(values, flags, words)] + list(values[len(flags):])


def record(recording, name, values, named):
    """keras.ops.NAME in a recording: a Value, or a list of those of several results."""
    form, values = _Form(recording), stacked(name, values)
    by_name = _operands(name)[1]
    given = {key: form(value, by_name.get(key, False)) for key, value in named.items()
             if key != "name"}
    given["args"] = [form(value, _is_operand(name, i)) for i, value in enumerate(values)]
    count, out = ctypes.c_int(), (ctypes.c_void_p * _MOST)()
    tensors = (ctypes.c_void_p * max(len(form.tensors), 1))(*form.tensors)
    call = recording.call(name in _DRAWS)
    lib.cornu_operation_record(ctypes.addressof(call), name, json.dumps(given), tensors,
                               len(form.tensors), ctypes.addressof(out), ctypes.addressof(count))
    made = [Value(out[i], recording) for i in range(count.value)]
    several = name in _ENTRIES and _ENTRIES[name].get("several")
    made = made if several or len(made) > 1 else made[0]
    if recording.journal is not None:
        recording.journal.append((name, values, named, made))
    return made


_DRAWS = {name for name, entry in _ENTRIES.items() if entry["module"] == "random"}


# ---- Operations on arrays ----

# A number beside an array of these has its dtype, and is fed: it may differ from call to call.
_WITH_NUMBERS = {"add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum",
                 "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def _with_number(a, b):
    kind = a.dtype.kind
    if kind == "f" or kind == "i" and type(b) is int:
        return np.array(b, a.dtype)
    return b


class _Slot:
    """The place of an array among the arguments."""

    def __init__(self, i):
        self.i = i


def _walk(value, operand, listed, key, arrays):
    """Adds an argument to the key of a call, and its arrays to the list; what remains."""
    kind = type(value)
    if kind is int or kind is float or kind is bool or kind is str or value is None:
        key.append(kind)
        key.append(value)
        return value
    if isinstance(value, (Value, Readable)):
        value, kind = value.numpy(), np.ndarray
    if operand and (kind is np.ndarray or kind is Array or isinstance(value, np.generic) or
                    hasattr(value, "__array__")):
        array = to_array(value)
        arrays.append(array)
        key.append(array.dtype)
        key.append(array.shape)
        return _Slot(len(arrays) - 1)
    if kind is list or kind is tuple:
        if operand and not listed:
            return _walk(to_array(value), True, False, key, arrays)
        key.append("[")
        made = [_walk(v, operand, False, key, arrays) for v in value]
        key.append("]")
        return made
    key.append(repr(value) if not hasattr(value, "tolist") else repr(np.asarray(value).tolist()))
    return value


def _filled(value, inputs):
    if isinstance(value, _Slot):
        return inputs[value.i]
    if type(value) is list:
        return [_filled(v, inputs) for v in value]
    return value


def eager(name, values, named):
    """keras.ops.NAME of arrays and numbers, computed."""
    made = in_graph(lambda *values: eager(name, values[:-1], values[-1]), *values, named)
    if made is NotImplemented:
        made = of_strings(name, values, named, eager, _ENTRIES.get(name, {}).get("moves"))
    if made is not NotImplemented:
        return made
    key, arrays = [name], []
    flags, by_name, many, lists = _operands(name)
    if len(values) == 2 and not named and name in _WITH_NUMBERS:
        a, b = values
        if isinstance(a, np.ndarray) and type(b) in (int, float):
            values = a, _with_number(to_array(a), b)
        elif isinstance(b, np.ndarray) and type(a) in (int, float):
            values = _with_number(to_array(b), a), b
    words = list(by_name)
    args = [_walk(value, _is_operand(name, i), i < len(words) and words[i] in lists, key, arrays)
            for i, value in enumerate(values)]
    kwargs = {}
    for word, value in named.items():
        if word != "name":
            key.append(word)
            kwargs[word] = _walk(value, by_name.get(word, False), word in lists, key, arrays)
    made = kept(tuple(key), lambda: _compile(name, args, kwargs, arrays)).run(arrays)
    return made if name in _ENTRIES and _ENTRIES[name].get("several") else made[0]


def _compile(name, args, kwargs, arrays):
    recording = Recording(state.device, counter())
    inputs = [recording.input(array) for array in arrays]
    made = record(recording, name, _filled(args, inputs),
                  {word: _filled(value, inputs) for word, value in kwargs.items()})
    return Compiled(recording, inputs, made if isinstance(made, list) else [made])


def counter():
    """What counts the draws of this thread's operations on arrays."""
    return state.counters.setdefault("eager", Counter())


def kept(key, make):
    """What was made for a key by this thread; the oldest ones are dropped."""
    found = state.kept.get(key)
    if found is not None and found.recording.is_current():
        return found
    made = state.kept[key] = make()
    while len(state.kept) > _MOST_KEPT:
        state.kept.popitem(last=False)
    return made


def recorded(device, make):
    """make(device, tried) on this device, or on another one that a recording turns out to need."""
    tried = set()
    while True:
        try:
            return make(device, frozenset(tried))
        except Again as again:
            if again.device is not None:
                tried.add(device.address)
                device = again.device


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    """An array, or a recorded or symbolic tensor, of that dtype; by default floats are float32 and
    integers int32."""
    if sparse or ragged:
        raise NotImplementedError("convert_to_tensor: sparse and ragged tensors")
    if isinstance(x, Readable) and (tracing() or current()):
        x = tracing().read(x) if tracing() else x._read(current())
    if isinstance(x, Value) or is_of_graph(x) or \
            not isinstance(x, Readable) and hasattr(x, "_symbol"):
        return x if dtype is None else operate("cast", x, dtype)
    if isinstance(x, (list, tuple)) and any(isinstance(v, (Value, Operators)) for v in x):
        return operate("stack", list(x))
    if dtype in (None, "string") and np.asarray(x).dtype.kind in "SUO":
        return np.asarray(x).view(Array)
    return to_array(x, dtype).view(Array)


def convert_to_numpy(x):
    """The elements as a NumPy array."""
    if hasattr(x, "_symbol"):
        raise TypeError("%r has no elements before a model computes them; in %s"
                        % (x, users_line()))
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


def shape(x):
    """The extents as a tuple; those of a symbolic tensor that differ between batches are extents of
    it, which operations take in the place of numbers."""
    if hasattr(x, "_symbol"):
        return extents_of(x)
    known = tuple(x.shape) if hasattr(x, "shape") else np.shape(x)
    return shape_in_graph(x, known) if None in known else known


def is_tensor(x):
    """Whether x is what operations return: an array of theirs, a recorded or a symbolic tensor."""
    return isinstance(x, (Value, Array)) or hasattr(x, "_symbol")
