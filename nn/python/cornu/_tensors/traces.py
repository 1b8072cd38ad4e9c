"""A trace: the call of a layer of the program's own, run once on symbolic tensors.

What it calls becomes a graph of the library (nn/model/traced/traced.h). Weights that it reads are
inputs of the graph; arrays are constants; losses that are added and weights that are assigned are
results.
"""

import threading

import numpy as np

from .._binding.nested import mapped
from .operators import users_line


class _State(threading.local):
    def __init__(self):
        self.traces = []


_state = _State()


def tracing():
    """The trace that this thread makes, or None."""
    return _state.traces[-1] if _state.traces else None


def in_trace_of(layer):
    """Whether this thread is in a call of the layer."""
    return any(trace.layer is layer for trace in _state.traces)


def has_strings(value):
    """Whether there are symbolic strings in lists and dictionaries."""
    from .symbols import Tensor
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(has_strings(v) for v in value)
    return isinstance(value, Tensor) and value.dtype == "string"


def mark(tensor, number):
    """An operand that is not used: by its extent the library tells apart calls with tensors of the
    same types and other arguments."""
    from .symbols import operation
    zeros = np.zeros(number, np.float32)
    return operation("constant", tensor, zeros) if tracing() is None else tracing().tensor(zeros)


class Trace:
    """What a call has made so far. `reader` gives the symbol that reads a weight; training is what
    the call is told, None if it does not ask."""

    def __init__(self, layer, reader, training=None):
        self.layer, self._reader, self.training = layer, reader, training
        self.calls = []             # what was called, to compare traces
        self.losses, self.assigned, self.made = [], {}, []
        self.measured = []          # metrics with the tensors that they are updated with
        self.called = set()         # weights, by address, of the layers that were called
        self._names, self._places, self._kept, self._constants = {}, {}, [], {}
        self.anchor = None          # a tensor of the graph, for operations without one
        self.outside, self.brought = [], []     # what was made of strings, and the numbers in it;
        self.place = 0                          # the first of these among the operands
        self._brought, self._replayed = {}, None

    def measure(self, metric, given):
        """Updates a metric in each step, by the model that the call is a part of."""
        self.measured.append((metric, [self.tensor(x) for x in given if x is not None]))

    # ---- Strings ----

    def of_strings(self, given, call):
        """What call() makes of these arguments if there are strings among them, with which graphs
        do not compute; else NotImplemented. It is made outside, before the layer, and the numbers
        that come of it are operands of the layer."""
        if not has_strings(given):
            return NotImplemented
        if self._replayed is None:
            _state.traces.pop()
            try:
                made = call()
            finally:
                _state.traces.append(self)
            self.outside.append(made)
        else:
            made = next(self._replayed, None)
        if made is None:
            raise ValueError("%s: its call makes other things of strings than before, expected the "
                             "same in each; in %s" % (self.layer.name, users_line()))
        return mapped(made, self._bring)

    def _bring(self, tensor):
        """The operand of the layer that a tensor made outside is; strings stay there."""
        if tensor.dtype == "string":
            return tensor
        if id(tensor) not in self._brought:
            self.brought.append(tensor)
            self._brought[id(tensor)] = self.begin(self.layer.placeholder(tensor))
        return self._brought[id(tensor)]

    def replay(self, other, operands):
        """What another trace of the call made outside is what this one takes, as these operands."""
        self._replayed = iter(other.outside)
        self._brought = dict(zip(map(id, other.brought), operands))

    def __enter__(self):
        _state.traces.append(self)
        return self

    def __exit__(self, *_):
        _state.traces.remove(self)

    def unique_name(self, label):
        """Names are counted within the graph, so that the same calls have the same names."""
        count = self._names[label] = self._names.get(label, -1) + 1
        return "%s.%d" % (label, count)

    def _place(self, tensor):
        self._kept.append(tensor)
        return self._places.setdefault(tensor.pointer, len(self._places))

    def begin(self, tensor):
        """An operand of the call, or a weight."""
        if self.anchor is None:
            self.anchor = tensor
        self._place(tensor)
        return tensor

    def note(self, what, tensors, results):
        """A call of a layer or an operation, as text with its tensors numbered."""
        self.calls.append((what, [self._place(tensor) for tensor in tensors]))
        for tensor in results if isinstance(results, list) else [results]:
            self._place(tensor)

    def ends(self, tensors):
        return [self._place(tensor) for tensor in tensors]

    def read(self, weight):
        """The symbol of a weight, or what it was assigned in this call."""
        weight = self._weight(weight)
        if weight._address in self.assigned:
            return weight.converted(self.assigned[weight._address][1])
        symbol = self._reader(weight)
        self.calls.append((weight.path, [self._place(symbol)]))
        if self.anchor is None:
            self.anchor = symbol
        return weight.converted(symbol)

    def _weight(self, variable):
        """The weight that a cornu.Variable is."""
        weight = getattr(variable, "of_layer", variable)
        if weight is None:
            raise ValueError("%s: %r is read in call; make it an attribute of the layer, before; "
                             "in %s" % (self.layer.name, variable, users_line()))
        return weight

    def assign(self, weight, value):
        """Sets the value that a weight has after the step; layers that are called from here on
        read it."""
        weight = self._weight(weight)
        if weight._owner is not self.layer and weight._address in self.called:
            raise ValueError("%s assigns %s after a call of its layer; expected that before, once "
                             "in a call; in %s" % (self.layer.name, weight.path, users_line()))
        self.assigned[weight._address] = weight, self.tensor(value)

    def tensor(self, value):
        """A symbol of the graph of what a call is given: a tensor, a weight or an array."""
        from .symbols import Tensor
        from .values import Readable, to_array
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Readable):
            return self.read(value)
        array = to_array(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self._constant(array)
        return self._constants[key]

    def _constant(self, array):
        from .symbols import operation
        if self.anchor is None:
            raise ValueError("%s: nothing before this array depends on the call's tensors; in %s"
                             % (self.layer.name, users_line()))
        return operation("constant", self.anchor, np.asarray(array))

    def symbols(self, value):
        """Arguments of a layer's call with symbols for the arrays and weights in them."""
        from .symbols import Tensor
        from .values import Readable
        if isinstance(value, dict):
            return {key: self.symbols(v) for key, v in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self.symbols(v) for v in value])
        if isinstance(value, (list, tuple)):
            return [self.symbols(v) for v in value]
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Readable) or hasattr(value, "__array__"):
            return self.tensor(value)
        return value
