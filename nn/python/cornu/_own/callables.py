"""What a program writes itself and the library calls while it records a step: losses, metrics and
schedules, functions or classes; and the step, train_step and test_step of a model.

The library's structs have pointers to functions, which are Python's by ctypes. An exception in one
fails the call of the library that it is in, and is raised in its place.
"""

import ctypes
import inspect
import json
import threading
import warnings
import weakref

import numpy as np

from .._binding.arrays import dtype_number, shape_of
from .._binding.described import snake_case
from .._tensors.calls import same_rank
from .._tensors.functions import Borrowed
from .._binding.library import lib, struct
from .metric_parts import BUILD, Part, build_parts, lent
from .._tensors.operators import operate
from .._tensors.values import Recording, Value
from ..saving import own_object, record_of

_POINTER, _STATUS = ctypes.c_void_p, lib.type("u32")
_POINTERS = ctypes.POINTER(_POINTER)
_FAILED = [name for name, _ in lib.statuses].index("ERR_ARGUMENT")
_LOSS = ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER, _POINTER)
_SCHEDULE = ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER)
_UPDATE = ctypes.CFUNCTYPE(_STATUS, _POINTER, ctypes.POINTER(lib.type("CornuMetricCall")),
                           _POINTERS, _POINTERS)
_RESULT = ctypes.CFUNCTYPE(ctypes.c_double, _POINTER, ctypes.POINTER(lib.type("CornuArray")))


# ---- Recordings into the library's graphs ----

class Owner:
    """Whose device it is: a model, by a weak reference, or nobody."""

    def __init__(self, counted=None):
        self.counted = counted


class Into(Recording):
    """A graph of the library's that is being recorded. `bound` has the values of variables that
    stand for states of a metric."""

    def __init__(self, graph, owner=None, call=None):
        device = Borrowed.__new__(Borrowed)
        device.address, device.counted = lib.cornu_graph_device(graph), owner and owner.counted
        super().__init__(device)
        self._graph, self._call, self.bound = graph, call, {}

    @property
    def pointer(self):
        return self._graph

    def use(self, device):
        if device.address != self.device:
            raise ValueError("a model or a variable on another device is used in the step of a "
                             "compiled model: compile both with one cornu.Device")

    def iteration(self):
        return self._call.iteration if self._call else None

    def call(self, training=False, draws=False):
        made = struct("CornuCall", graph=self.pointer, training=bool(training),
                      augments=training is None)
        if self._call:
            made.iteration, made.seed = self._call.iteration, self._call.seed
        return made

    @property
    def shards(self):
        return lib.cornu_graph_shards(self.pointer)


def into(tensor, owner):
    return Into(lib.cornu_tensor_graph(tensor), owner)


def guarded(kind, function, failed):
    """A function for the library: an exception is carried to the program."""
    def call(*arguments):
        try:
            return function(*arguments)
        except BaseException as error:      # KeyboardInterrupt, too
            lib.carry(error, _FAILED)
            return failed
    return kind(call)


def guarded_result(function):
    """Likewise a metric's result, which cannot fail."""
    def call(*arguments):
        try:
            return function(*arguments)
        except BaseException as error:
            lib.carry_late(error)
            return float("nan")
    return _RESULT(call)


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def name_of(function):
    return getattr(function, "__name__", None) or type(function).__name__


# ---- Losses ----

class Loss:
    """A loss, or a metric's function, as the library calls it."""

    def __init__(self, function, name, owner, cast=True, ranks=True, reduction="CORNU_MEAN"):
        self._function, self.name, self._owner = function, name, owner
        self._cast, self._ranks, self._summed = cast, ranks, reduction == "CORNU_SUM"
        self.recorded = None        # called with the operands of each recording
        self._bridge = guarded(_LOSS, self._call, None)
        self.struct = struct("CornuLoss", name=name, call=address_of(self._bridge),
                             valid_rows=True, reduction=lib.constants[reduction])

    def _call(self, _, y_true, y_pred):
        recording = into(y_pred, self._owner)
        with recording:
            true, pred = Value(y_true, recording), Value(y_pred, recording)
            made = self.values(recording.value, true, pred)
            each_row = has_rows(made, pred)
            if not each_row and recording.shards > 1:
                raise NotImplementedError("%s: returned %s, on %d shards of several processes; "
                                          "expected a value for each row"
                                          % (self.name, made.shape or "a scalar",
                                             recording.shards))
            if not each_row:
                made = self.spread(made, pred.shape[0])
        if self.recorded is not None:
            self.recorded(true, pred, each_row)
        return made.pointer

    def values(self, value, true, pred):
        """What it gives, f32. value: makes a tensor of what the function returns."""
        if self._cast:
            true = operate("cast", true, "float32")
        if self._ranks:
            true, pred = same_rank(true, pred)
        made = self._function(true, pred)
        if made is None:
            raise TypeError("%s: returned None, expected a value for each row" % self.name)
        return operate("cast", value(made), "float32")

    def spread(self, made, rows):
        """Of values without rows, as after a mean over axis 0, for each row what makes the mean, or
        the sum, over rows theirs."""
        made = operate("sum", made) / rows if self._summed else operate("mean", made)
        return operate("broadcast_to", made, (rows,))


def has_rows(made, y_pred):
    """Whether there is a row for each row of y_pred."""
    return bool(made.ndim) and made.shape[0] == y_pred.shape[0]


_REDUCTIONS = {"sum_over_batch_size": "CORNU_MEAN", "mean": "CORNU_MEAN", "auto": "CORNU_MEAN",
               "sum": "CORNU_SUM", "mean_with_sample_weight": "CORNU_MEAN_WITH_SAMPLE_WEIGHT"}


# ---- Metrics ----

class _States:
    """The states of a metric of the program's own: its variables, and those of the metrics of the
    library within it."""

    def __init__(self, metric):
        self.metric, self.variables = metric, metric.variables
        self.parts = [Part(part) for part in metric.library_parts()]
        metric.reset_state()
        # The library's states begin with zeros.
        self.first = [np.array(v.numpy()) for v in self.variables]

    def describe(self, made):
        """Sets the types of the states."""
        most = lib.constants["CORNU_MAX_STATES"]
        count = len(self.variables) + sum(part.count for part in self.parts)
        if not 1 <= count <= most:
            raise ValueError("%s: a metric has %d states, expected 1 to %d: variables, made by "
                             "add_weight, and metrics of the library" % (self.metric.name, count,
                                                                         most))
        made.state_count = count
        for i, variable in enumerate(self.variables):
            made.states[i].dtype = dtype_number(variable.dtype)
            made.states[i].shape.rank = variable.ndim
            for k, extent in enumerate(variable.shape):
                made.states[i].shape.extent[k] = extent
        at = len(self.variables)
        for part in self.parts:
            made.states[at:at + part.count] = part.struct.states[:part.count]
            at += part.count

    def bind(self, recording, old):
        """Variables and parts have the values of these tensors."""
        for i, (variable, begin) in enumerate(zip(self.variables, self.first)):
            value = Value(old[i], recording)
            recording.bound[id(variable)] = value + begin if begin.any() else value
        at = len(self.variables)
        for part in self.parts:
            part.tensors = old[at:at + part.count]
            at += part.count

    def take(self, recording, new):
        """Sets the tensors that they have now."""
        for i, (variable, begin) in enumerate(zip(self.variables, self.first)):
            value = recording.bound[id(variable)]
            new[i] = recording.settled((value - begin if begin.any() else value).pointer)
        tensors = [pointer for part in self.parts for pointer in part.tensors]
        for i, pointer in enumerate(tensors, len(self.variables)):
            new[i] = pointer

    def set(self, arrays):
        """Variables and parts have the values of these arrays."""
        for i, (variable, begin) in enumerate(zip(self.variables, self.first)):
            array = np.empty(variable.shape, variable.dtype)
            ctypes.memmove(array.ctypes.data, arrays[i].data, array.nbytes)
            variable.assign(array + begin)
        at = len(self.variables)
        for part in self.parts:
            part.arrays = ctypes.pointer(arrays[at])
            at += part.count


def _metric(metric, owner):
    states = _States(metric)
    takes_weight = "sample_weight" in inspect.signature(metric.update_state).parameters

    def build(_, y_true, y_pred):
        build_parts(metric, states.parts, [shape_of(y_true), shape_of(y_pred)])
        states.describe(made)
        return 0

    def update(_, call, old, new):
        call = call.contents
        recording = into(call.y_pred, owner)
        if recording.shards > 1:
            raise NotImplementedError("%s: a metric of the program's own on %d shards of several "
                                      "processes" % (metric.name, recording.shards))
        with recording, lent(states.parts):
            states.bind(recording, old)
            given = [Value(call.y_true, recording), Value(call.y_pred, recording)]
            weight = {"sample_weight": Value(call.weight, recording)} \
                if call.weight and takes_weight else {}
            metric.update_state(*given, **weight)
            states.take(recording, new)
        return 0

    def result(_, arrays):
        with lent(states.parts):
            states.set(arrays)
            return float(np.mean(np.asarray(metric.result())))

    bridges = [guarded(_UPDATE, update, _FAILED), guarded_result(result)]
    made = struct("CornuMetric", name=metric.name, valid_rows=True, update=address_of(bridges[0]),
                  result=address_of(bridges[1]))
    if any(part.struct.build for part in states.parts):
        bridges.append(guarded(BUILD, build, _FAILED))
        made.build = address_of(bridges[2])
    else:
        states.describe(made)
    return made, bridges


# ---- Schedules ----

def _schedule(schedule, owner=None):
    takes = len(inspect.signature(schedule).parameters) > 0

    def call(_, iteration):
        recording = into(iteration, owner)
        with recording:
            step = operate("cast", Value(iteration, recording), "int32")
            made = recording.value(schedule(step) if takes else schedule())
            made = operate("cast", made, "float32")
            if made.ndim:
                raise ValueError("%s: returned %r, expected a scalar" % (name_of(schedule), made))
            return made.pointer
    bridge = guarded(_SCHEDULE, call, None)
    return struct("CornuSchedule", name=name_of(schedule), call=address_of(bridge)), bridge


# ---- Rules of weights ----

_INITIALIZER = ctypes.CFUNCTYPE(_STATUS, _POINTER, lib.type("CornuShape"), ctypes.c_uint64,
                                ctypes.c_int64, ctypes.POINTER(ctypes.c_float))
_RULE = ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER)


def _initializer(initializer, _=None):
    takes_dtype = "dtype" in inspect.signature(initializer).parameters
    drawn = {}      # asked again, it has the same values

    def call(_, shape, seed, generator, to):
        extents = shape_of(shape)
        if (extents, generator) not in drawn:
            made = initializer(extents, dtype="float32") if takes_dtype else initializer(extents)
            made = np.asarray(made, np.float32)
            if made.shape != extents:
                raise ValueError("%s: returned the shape %s, expected %s"
                                 % (name_of(initializer), made.shape, extents))
            drawn[extents, generator] = np.ascontiguousarray(made)
        made = drawn[extents, generator]
        ctypes.memmove(to, made.ctypes.data, made.nbytes)
        return 0
    bridge = guarded(_INITIALIZER, call, _FAILED)
    return struct("CornuInitializer", call=address_of(bridge)), bridge


def _rule(kind, constant, scalar):
    def make(rule, owner=None):
        def call(_, x):
            recording = into(x, owner)
            with recording:
                x = Value(x, recording)
                made = operate("cast", recording.value(rule(x)), x.dtype)
                if made.shape != (() if scalar else x.shape):
                    raise ValueError("%s: returned the shape %s, expected %s"
                                     % (name_of(rule), made.shape, () if scalar else x.shape))
                return made.pointer
        bridge = guarded(_RULE, call, None)
        return struct(kind, kind=lib.constants[constant], call=address_of(bridge)), bridge
    return make


_regularizer = _rule("CornuRegularizer", "CORNU_OWN_REGULARIZER", True)
_constraint = _rule("CornuConstraint", "CORNU_OWN_CONSTRAINT", False)


# ---- Functions of strings ----

_TEXT = ctypes.CFUNCTYPE(_STATUS, _POINTER, ctypes.c_char_p, _POINTER)


def _text_function(function, _=None):
    """Of an array of one string: an array of one, or of its tokens, also a ragged one."""
    def call(_, string, out):
        made = function(np.array([string], object))
        made = made.to_list() if hasattr(made, "to_list") else np.asarray(made).tolist()
        while len(made) == 1 and isinstance(made[0], list):
            made = made[0]
        for each in made:
            lib.cornu_text_add(out, each)
        return 0
    bridge = guarded(_TEXT, call, _FAILED)
    return struct("CornuTextFunction", name=name_of(function), call=address_of(bridge)), bridge


_RULES = {"initializer": _initializer, "regularizer": _regularizer, "constraint": _constraint,
          "standardize": _text_function, "split": _text_function}


# ---- The arguments of compile and of optimizers ----

def is_own(value):
    """Whether it is a function, or an object of a class, of the program's own."""
    is_function = callable(value) and not isinstance(value, type) and \
        not hasattr(value, "_cornu_name") and not hasattr(value, "class_name") and \
        not hasattr(value, "_layer_pointer")
    return is_function or getattr(value, "is_own", False)


def _record_at(made):
    """The struct that has the record of an object of the library's: itself, or a metric's."""
    return made if isinstance(made, ctypes.Structure) else \
        lib.type("CornuMetric").from_address(made)


class Objects:
    """Objects of the program's own among arguments that become JSON: __own__ i is number i, for
    calls of the library within `with`. What they need lives as long as this."""

    def __init__(self, owner=None):
        self.owner, self._made, self._kept, self._lent = owner, [], [], 0

    def _add(self, made, kept, of=None):
        text = None if of is None else record_of(of)
        if text is not None:
            text = text.encode("utf-8")
            _record_at(made).record = text
            kept, _live[text] = (kept, text), of
        self._made.append(ctypes.addressof(made) if isinstance(made, ctypes.Structure) else made)
        self._kept.append((made, kept))
        return {"class_name": "__own__", "config": len(self._made) - 1}

    def loss(self, loss):
        """A function of (y_true, y_pred), or a loss that defines `call` or `__call__`."""
        if getattr(loss, "reduces", False):
            made = Loss(loss, loss.name, self.owner, cast=False, ranks=False)
        elif getattr(loss, "is_own", False):
            made = Loss(loss.call, loss.name, self.owner, ranks=False, reduction=_reduction(loss))
        else:
            made = Loss(loss, name_of(loss), self.owner)
        return self._add_loss(made.struct, made, loss)

    def _add_loss(self, at, made, of):
        """A loss, or a metric of one at an address, of which files have what it computes, too."""
        added = self._add(at, made, of)
        record = record_of(of)
        if record is not None:
            from .traced_loss import TracedLoss
            made.recorded = TracedLoss(made, json.loads(record), of, _record_at(at))
        return added

    def metric(self, metric):
        """A function of (y_true, y_pred), or a metric that defines `update_state`."""
        if getattr(metric, "is_own", False):
            return self._add(*_metric(metric, self.owner), metric)
        name = snake_case(name_of(metric))
        made = Loss(metric, name, self.owner, cast=False, ranks=False)
        address = lib.cornu_loss_metric(name, ctypes.addressof(made.struct))
        return self._add_loss(address, made, metric)

    def schedule(self, schedule):
        return self._add(*_schedule(schedule, self.owner), schedule)

    def rule(self, field, rule):
        """Of a layer's argument of that name, which ends in initializer, …"""
        kind = field.rpartition("_")[2]
        if kind not in _RULES:
            raise TypeError("%s is %r, expected a name or an object of this package"
                            % (field, rule))
        return self._add(*_RULES[kind](rule, self.owner), rule)

    def layer(self, layer):
        """One that a layer wraps, which references it."""
        self._lent += 1
        return self._add(layer._layer_pointer(), None)

    def regularizer(self, rule):
        return self.rule("regularizer", rule)

    def constraint(self, rule):
        return self.rule("constraint", rule)

    def keep(self, address, new=False):
        """They live as long as the layer, which may outlive its objects in Python, but not the
        next layer at its address."""
        if new:
            _functions_of.pop(address, None)
        if len(self._made) > self._lent:
            _functions_of.setdefault(address, []).append(self)

    def walk(self, value, own):
        """A structure of names and objects with those of the program's own numbered."""
        if isinstance(value, dict):
            return {key: self.walk(v, own) for key, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.walk(v, own) for v in value]
        return own(value) if is_own(value) else value

    def __enter__(self):
        self._array = (ctypes.c_void_p * max(len(self._made), 1))(*self._made)
        lib.cornu_own_objects(ctypes.addressof(self._array), len(self._made))
        return self

    def __exit__(self, *_):
        lib.cornu_own_objects(None, 0)

    def __bool__(self):
        return bool(self._made)


_functions_of = {}      # Objects, by the address of the layer with these arguments
_live = weakref.WeakValueDictionary()   # those that files can name, by what they have there


# ---- What files name ----

class Resolving:
    """Within it the library gets from the program what JSON names and it lacks itself, and what
    that needs is kept. live: also what this program has made of the same JSON, for copies."""

    def __init__(self, live=False):
        self._live, self.objects, self.missing = live, Objects(Owner()), []

    def resolve(self, kind, text):
        record = json.loads(text)
        traced = record.pop("traced", None) if isinstance(record, dict) else None
        found = own_object(record)
        if found is None and self._live:
            found = _live.get(json.dumps(record, sort_keys=True).encode("utf-8"))
        if found is None and traced:
            return None         # the library has what it computes
        if found is None:
            name = record["config"] if record["class_name"] == "function" else \
                record.get("registered_name") or record["class_name"]
            self.missing.append((kind, name))
            return None
        objects = self.objects
        add = {"loss": objects.loss, "metric": objects.metric, "schedule": objects.schedule}
        made = add[kind](found) if kind in add else objects.rule(kind, found)
        return objects._made[made["config"]]

    def __enter__(self):
        _resolving.append(self)
        return self

    def __exit__(self, *_):
        _resolving.remove(self)

    def keep_with(self, model, layers):
        """What it has given to the library lives as long as the model and the layers."""
        if self.objects:
            self.objects.owner.counted = model._owned.counted
            model._owned.counted.resolved = self.objects
            for layer in layers:
                self.objects.keep(layer._layer_pointer())
        for kind, name in dict.fromkeys(self.missing):
            warnings.warn("%s: %s the %s %r of the program that saved it, which is not known here: "
                          "give it in custom_objects, or register it by "
                          "register_keras_serializable"
                          % (model.name, _WITHOUT.get(kind, "is not compiled, without"), kind,
                             name), stacklevel=4)


_WITHOUT = {"initializer": "draws no new weights, without",
            "regularizer": "cannot be trained, without", "constraint": "cannot be trained, without"}


class _Stack(threading.local):
    def __init__(self):
        self.items = []

    def append(self, item):
        self.items.append(item)

    def remove(self, item):
        self.items.remove(item)


_resolving = _Stack()
_RESOLVE = ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p, ctypes.c_char_p)


def _resolve(_, kind, text):
    if not _resolving.items:
        return None
    return _resolving.items[-1].resolve(kind.decode("utf-8"), text.decode("utf-8"))


_resolver = guarded(_RESOLVE, _resolve, None)
lib.cornu_set_resolver(address_of(_resolver), None)


def _reduction(loss):
    given = loss.reduction
    if given is None or given == "none":
        raise ValueError("%s: a loss of compile without reduction; expected one of %s"
                         % (loss.name, ", ".join(sorted(_REDUCTIONS))))
    return _REDUCTIONS[given]
