"""Functions that are recorded once and run: cornu.function, gradients, GradientTape, Variable."""

import ctypes
import functools
import threading
import types

import numpy as np

from .._binding import arrays
from .._binding.arrays import NARROWER, Array, dtype_number, to_array
from .._binding.described import Described, unique_name
from .._binding.library import Owned, lib, struct
from .._binding.nested import Place, filled, mapped
from .operators import operate, users_line
from .traces import tracing
from .values import (Compiled, Counter, Readable, Recording, Same, Value, current, record,
                      recorded, state)

_MOST_RECORDINGS = 64
_STATIC = (int, float, bool, str, type(None), bytes)


# ---- Variables ----

class Variable(Readable):
    """A value that functions read and assign: cornu.Variable(0.0), or of a shape with an
    initializer, cornu.Variable("zeros", shape=(3,)). Its memory is on the device of the first
    recording that uses it. As an attribute of a layer it is a weight of the layer."""

    of_layer = None         # the weight

    def __init__(self, initializer, shape=None, dtype=None, trainable=True, name=None):
        if callable(initializer) or isinstance(initializer, (str, Described)):
            if shape is None:
                raise ValueError("Variable: an initializer needs a shape")
            initializer = _drawn(initializer, tuple(shape), dtype)
        elif shape is not None:
            initializer = np.broadcast_to(to_array(initializer), tuple(shape))
        self._host = np.array(to_array(initializer, dtype))
        self.trainable, self.name = trainable, name or unique_name("variable")
        self.shape, self.dtype = self._host.shape, self._host.dtype.name
        self._owned, self.pending = None, None

    path = property(lambda self: self.of_layer.path if self.of_layer else self.name)
    ndim = property(lambda self: len(self.shape))

    def belong_to(self, layer):
        """Makes it a weight of a layer, the first one that has it as an attribute."""
        if self.of_layer is None:
            self.of_layer = layer.add_weight(self.shape, lambda shape, dtype: self.numpy(),
                                             self.dtype, self.trainable, name=self.name)

    def _native(self):
        return self.of_layer._native() if self.of_layer else self._owned.address

    def _keeper(self):
        return self.of_layer._keeper() if self.of_layer else self._owned

    def _make_native(self):
        self._on(Recording(state.device))

    def _on(self, recording):
        """The address of the library's variable, on the recording's device."""
        if self._owned is None:
            config = struct("CornuVariableConfig", device=recording.device, name=self.name)
            lent = _lent(self._host)
            config.type = lent.type
            self._owned = Owned(lib.cornu_variable_create_from(ctypes.byref(config)),
                                lib.cornu_variable_free, recording._device)
            lib.cornu_variable_write(self._owned.address, lent)
            self._device = recording._device
        return self._owned.address

    def _read(self, recording):
        if id(self) in recording.bound:
            return recording.bound[id(self)]
        if self.of_layer is not None:
            return self.of_layer._read(recording)
        if self._owned is not None:
            recording.use(self._device)
        recording.used.add(id(self))
        return recording.read(self._on(recording), self._owned)

    def numpy(self):
        if self.pending is not None:
            self.pending.finish()
            self.pending = None
        if self.of_layer is not None:
            return self.of_layer.numpy()
        if self._owned is None:
            return self._host.copy()
        made = np.empty(self.shape, self.dtype)
        lib.cornu_variable_read(self._owned.address, _lent(made))
        return made

    @property
    def value(self):
        """Its value: in a layer's call a symbolic tensor, in a function a recorded one, else an
        array."""
        recording = current()
        if tracing() is not None:
            return tracing().read(self)
        return self.numpy().view(Array) if recording is None else self._read(recording)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __float__(self):
        return float(self.numpy())

    def __int__(self):
        return int(self.numpy())

    def __bool__(self):
        if current() is not None:
            return bool(self.value)
        return bool(self.numpy())

    def assign(self, value):
        """Sets the value; in a function, at the end of each run."""
        if self.of_layer is not None:
            self.of_layer.assign(value)
            return self
        recording = value.recording if isinstance(value, Value) else current()
        if recording is None or recording.closed:
            array = to_array(value, self.dtype)
            if array.shape != self.shape:
                array = np.broadcast_to(array, self.shape)
            state.compute_waiting()
            if self.pending is not None:
                self.numpy()
            self._host = np.array(array)
            if self._owned is not None:
                lib.cornu_variable_write(self._owned.address, _lent(self._host))
            return self
        value = recording.value(value if isinstance(value, (Value, Readable))
                                else to_array(value, self.dtype))
        if value.shape != self.shape:
            raise ValueError("%s has the shape %s, a value of %s is assigned; in %s"
                             % (self.name, self.shape, value.shape, users_line()))
        if id(self) in recording.bound:
            recording.bound[id(self)] = operate("cast", value, self.dtype)
            return self
        self._read(recording)
        assign_in(recording, self._owned.address, value, self.dtype, self)
        return self

    def assign_add(self, value):
        return self.assign(self.value + value)

    def assign_sub(self, value):
        return self.assign(self.value - value)

    def __repr__(self):
        return "<cornu.Variable %s shape=%s dtype=%s>" % (self.name, self.shape, self.dtype)


class Borrowed:
    """The device of what has another owner."""

    def __init__(self, address, owned):
        self.address, self.counted = address, owned.counted


def _lent(array):
    return arrays.Borrowed().array(array)


def _drawn(initializer, shape, dtype):
    """An initializer's values: of one of Keras', those of the weight of a layer."""
    if isinstance(initializer, str):
        from .. import initializers
        initializer = initializers.get(initializer)
    return initializer(shape, dtype=dtype)


def assign_in(recording, variable, value, dtype, owner):
    """Records the assignment of a Value to a library's variable."""
    pointer = value.pointer
    if value.dtype != dtype:
        pointer = lib.cornu_op_convert(pointer, dtype_number(dtype))
    recording.updating([variable])
    lib.cornu_assign(variable, recording.settled(pointer))
    recording.kept.append(owner)
    if recording.values is not None:
        recording.assigns = True
        owner.pending = recording


# ---- Functions ----

class Deferred:
    """What is known after a run: the result of a metric in a function."""

    def __init__(self, compute):
        self.compute = compute


def _flat(value, key, arrays):
    """The value with places for arrays, which are listed; adds to the key what makes another
    recording."""
    kind = type(value)
    if kind in _STATIC:
        key.append(kind)
        key.append(value)
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        if kind not in (np.ndarray, Array):
            value = np.asarray(value)
        dtype = value.dtype
        if dtype in NARROWER:
            value, dtype = to_array(value), NARROWER[dtype]
        arrays.append(value)
        key.append(dtype)
        key.append(value.shape)
        return Place(len(arrays) - 1)
    if isinstance(value, (list, tuple)):
        key.append(kind)
        key.append(len(value))
        made = [_flat(v, key, arrays) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else kind(made)
    if isinstance(value, dict):
        key.append(kind)
        key.append(tuple(value))
        return {word: _flat(v, key, arrays) for word, v in value.items()}
    if hasattr(value, "__array__") and not isinstance(value, Readable):
        return _flat(np.asarray(value), key, arrays)
    key.append(Same(value))
    return value


class _Recorded:
    """A function recorded for some types."""

    def __init__(self, function, args, kwargs, arrays):
        recorded(state.device, lambda device, tried: self._record(device, tried, function, args,
                                                                  kwargs, arrays))

    def _record(self, device, tried, function, args, kwargs, arrays):
        self.recording = Recording(device, function.counter, tried=tried, of=function)
        with self.recording:
            inputs = self.recording.batch(arrays)
            made = function.python(*filled(args, inputs), **filled(kwargs, inputs))
            self.outputs = []
            self.result = mapped(made, self._output)
        self.compiled = Compiled(self.recording, inputs, self.outputs)
        self.plain = isinstance(made, Value)

    def _output(self, value):
        if isinstance(value, Readable):
            value = value._read(self.recording)
        if not isinstance(value, Value):
            return value
        self.outputs.append(self.recording.value(value))
        return Place(len(self.outputs) - 1)

    def run(self, arrays):
        made = self.compiled.run(arrays)
        if self.plain:
            return made[0]
        return mapped(self.result, lambda value: made[value.i] if isinstance(value, Place)
                    else value.compute() if isinstance(value, Deferred) else value)


class Function:
    """A Python function over tensors and variables that is recorded when it is called with arrays
    of new types, and afterwards run by the library alone. Arrays, also in lists and dictionaries,
    are its operands; numbers, strings and other objects are constants of a recording."""

    def __init__(self, python):
        functools.update_wrapper(self, python)
        self.python, self._recorded, self.counter = python, {}, Counter()
        self._lock = threading.RLock()

    def __get__(self, instance, owner=None):
        """Of a method, each object has a function of its own, which ends with it."""
        if instance is None:
            return self
        name = "_function_of_" + self.python.__name__
        known = vars(instance).get(name)
        if known is None or known.of is not self:
            known = vars(instance)[name] = Function(types.MethodType(self.python, instance))
            known.of = self
        return known

    def __call__(self, *args, **kwargs):
        if current() is not None:
            return self.python(*args, **kwargs)
        key, arrays = [], []
        flat = [_flat(value, key, arrays) for value in args]
        named = {}
        for word, value in kwargs.items():
            key.append(word)
            named[word] = _flat(value, key, arrays)
        key = tuple(key)
        with self._lock:
            recorded = self._recorded.get(key)
            if recorded is None or not recorded.recording.is_current():
                recorded = self._make(key, flat, named, arrays)
            return recorded.run(arrays)

    def _make(self, key, args, kwargs, arrays):
        self._recorded.pop(key, None)
        while len(self._recorded) >= _MOST_RECORDINGS:
            del self._recorded[next(iter(self._recorded))]
        made = self._recorded[key] = _Recorded(self, args, kwargs, arrays)
        return made


def function(python=None, **options):
    """@cornu.function: the Python function is called once for each types of its arrays, to record
    it, and run from then on without Python. Control flow on numbers, shapes and other static values
    is Python's; on elements of tensors, that of ops. What tf.function takes beside the function is
    ignored."""
    if python is None:
        return lambda given: function(given, **options)
    return python if isinstance(python, Function) else Function(python)


def rehearse(python, *args):
    """Records a function of arrays and drops the recording: the layers that it calls are built by
    it, as far as it comes."""
    arrays = []
    flat = [_flat(value, [], arrays) for value in args]

    def record_once(device, tried):
        recording = Recording(device, Counter(), tried=tried)
        recording.rehearses = True
        with recording:
            python(*filled(flat, recording.batch(arrays)))
    try:
        recorded(state.device, record_once)
    except Exception:       # pylint: disable=broad-exception-caught
        pass                # the recording that counts says it, if it is wrong


# ---- Gradients ----

def gradients(loss, variables, updates=None):
    """The gradients of a loss, which is summed unless it is a scalar, with respect to variables,
    weights or recorded tensors: a list of values, zeros where it does not depend on them. Variables
    that were updated since then are those that the loss has read: after so many `updates`, by
    default the ones before it."""
    _check_loss(loss)
    recording = loss.recording
    if recording.closed:
        raise ValueError("gradients: the values under the tape have been computed, so that there "
                         "are no gradients any more; in %s" % users_line())
    recording.journal = None
    updates = loss.updates if updates is None else updates
    if loss.ndim:
        loss = record(recording, "sum", (loss,), {})
    if loss.dtype == "float16" or loss.dtype == "bfloat16":
        loss = record(recording, "cast", (loss, "float32"), {})
    given = [_source(recording, variable, updates) for variable in variables]
    if not given:
        return []
    x, out = (ctypes.c_void_p * len(given))(*given), (ctypes.c_void_p * len(given))()
    lib.cornu_gradients(loss.pointer, x, len(given), ctypes.addressof(out))
    return [Value(pointer, recording) for pointer in out]


def _check_loss(loss):
    if isinstance(loss, Value):
        return
    module = type(loss).__module__.partition(".")[0]
    of_others = module in ("tensorflow", "jax", "jaxlib", "torch")
    raise TypeError("gradients: the loss is %s, expected a tensor recorded by a cornu.function or "
                    "under a GradientTape%s; in %s" % (
                        type(loss).__name__, ": operations of %s are not recorded, cornu.ops has "
                        "them by Keras' names (reduce_mean is ops.mean)" % module
                        if of_others else "", users_line()))


def _source(recording, variable, updates):
    if isinstance(variable, Value):
        return recording.value(variable).pointer
    if isinstance(variable, Readable):
        variable._read(recording)
        return recording.read_before(variable._native(), updates)
    return recording.constant(variable).pointer


class GradientTape:
    """TensorFlow's: with cornu.GradientTape() as tape: loss = …; tape.gradient(loss, variables). In
    a cornu.function it is recorded with it; outside, what is computed under the tape is computed
    when it is needed, or by the optimizer's apply."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._lazy = None

    def __enter__(self):
        if current() is None:
            finish_pending()
            self._lazy = Recording(state.device, state.counters.setdefault("tape", Counter()),
                                   lazy=True)
            self._lazy.__enter__()
        return self

    def __exit__(self, *_):
        if self._lazy is not None:
            self._lazy.__exit__()
            state.pending = self._lazy

    def watch(self, tensor):
        """Variables need none; of arrays, operations and operators under the tape are recorded,
        functions of NumPy on them are not."""
        mapped(tensor, self._watch)

    def _watch(self, tensor):
        if self._lazy is not None and isinstance(tensor, np.ndarray):
            before = set(self._lazy.used)
            self._lazy.constant(tensor)
            self._lazy.used = before

    def taken(self, kind):
        """What has been computed with under the tape that is of this class of another package."""
        known = self._lazy._constants.values() if self._lazy is not None else ()
        return [array for array, _ in known if isinstance(array, kind)]

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        """The gradients of the target, or of the sum of several, in the structure of the sources.
        Of what nothing has used since the tape began it is None, or with "zero" zeros."""
        kind = getattr(unconnected_gradients, "value", unconnected_gradients) or "none"
        if kind not in ("none", "zero"):
            raise ValueError("unconnected_gradients is %r, expected \"none\" or \"zero\"; in %s"
                             % (unconnected_gradients, users_line()))
        targets, weights, flat = [], [], []
        mapped(target, targets.append)
        mapped(output_gradients, weights.append)
        mapped(sources, flat.append)
        total = _total(targets, weights if output_gradients is not None else [None] * len(targets))
        unused = [kind == "none" and not _is_used(total.recording, x) for x in flat]
        before = set(total.recording.used)
        made = iter(gradients(total, flat, max(each.updates for each in targets)))
        total.recording.used = before
        given = iter([None if none else each for none, each in zip(unused, made)])
        return mapped(sources, lambda _: next(given))


    def jacobian(self, target, sources, unconnected_gradients="none"):
        """The gradients of each element of the target, with its axes in front."""
        flat = operate("reshape", target, (-1,))
        rows = [self.gradient(flat[i], sources, None, unconnected_gradients)
                for i in range(flat.shape[0])]
        return _stacked(rows, 0, lambda made: operate("reshape", made,
                                                      target.shape + made.shape[1:]))

    def batch_jacobian(self, target, source, unconnected_gradients="none"):
        """Of a target (B, …) and a source (B, …) whose rows do not depend on others: (B, …, …)."""
        flat = operate("reshape", target, (target.shape[0], -1))
        rows = [self.gradient(flat[:, i], source, None, unconnected_gradients)
                for i in range(flat.shape[1])]
        return _stacked(rows, 1, lambda made: operate("reshape", made,
                                                      target.shape + made.shape[2:]))


def _stacked(rows, axis, shaped):
    """The same structure of all of them, along a new axis."""
    found = []
    for row in rows:
        found.append([])
        mapped(row, found[-1].append)
    columns = iter([None if column[0] is None else shaped(operate("stack", list(column), axis))
                    for column in zip(*found)])
    return mapped(rows[0], lambda _: next(columns))


def _total(targets, weights):
    """The sum of the targets, each by its weight."""
    total = None
    for target, weight in zip(targets, weights):
        _check_loss(target)
        if weight is not None:
            target = record(target.recording, "multiply", (target, weight), {})
        if target.ndim:
            target = record(target.recording, "sum", (target,), {})
        total = target if total is None else record(total.recording, "add", (total, target), {})
    return total


def _is_used(recording, x):
    """Whether something in the recording reads it."""
    if isinstance(x, np.ndarray) or isinstance(x, Variable) and x.of_layer is None:
        return id(x) in recording.used or id(x) in recording.bound
    return True         # a weight, which the library reads with its layer


def finish_pending():
    """Performs the assignments of the last tape's values, if it has any."""
    pending = getattr(state, "pending", None)
    if pending is not None and (pending.assigns or pending.restores):
        pending.finish()
    elif pending is not None:
        pending.count()
    state.pending = None
