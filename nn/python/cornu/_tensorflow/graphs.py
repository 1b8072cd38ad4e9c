"""Layers and operations of Cornu in TensorFlow's graphs, as in a function given to tf.data's map.

A node of the graph calls Python with the arrays (tf.numpy_function). TensorFlow wants to know what
comes out before, so that the call is tried on zeros.
"""

import threading

import numpy as np

from .._nested import filled, mapped, placed

_lock = threading.Lock()    # tf.data calls from several threads; a model is used by one at a time
_UNKNOWN = (32, 33)         # extents that are tried where the graph has none


def _array_like(tensor, unknown):
    shape = [unknown if extent is None else extent for extent in tensor.shape]
    return np.full(shape, b"") if tensor.dtype.name == "string" else \
        np.zeros(shape, tensor.dtype.as_numpy_dtype)


def call_in_graph(tensorflow, call, given, wanted):
    """call(*arguments), in a graph; `wanted` tells its tensors among the arguments."""
    tensors = []
    places = placed(given, tensors, wanted)

    def computed(arrays):
        flat = []
        with _lock:
            made = call(*filled(places, arrays))
        form = placed(made, flat, lambda value: True)
        return form, [np.asarray(value) for value in flat]

    tried = [computed([_array_like(tensor, extent) for tensor in tensors])
             for extent in (_UNKNOWN if any(None in t.shape for t in tensors) else _UNKNOWN[:1])]
    form, first = tried[0]
    results = tensorflow.numpy_function(lambda *arrays: computed(arrays)[1], tensors,
                                        [tensorflow.as_dtype(a.dtype) for a in first])
    for result, *each in zip(results, *[arrays for _, arrays in tried]):
        shapes = [a.shape for a in each]
        result.set_shape([a if a == b else None for a, b in zip(shapes[0], shapes[-1])])
    return filled(form, results)


def make_caller(tensorflow):
    """What is called with a function and its arguments: its result in a graph, NotImplemented where
    no argument is a tensor of one."""
    eager, symbolic = type(tensorflow.zeros(())), tensorflow.is_symbolic_tensor

    def wanted(value):
        return isinstance(value, tensorflow.Tensor) and not isinstance(value, eager) and \
            symbolic(value)

    def caller(call, *given):
        found = []
        mapped(given, lambda value: found.append(value) if wanted(value) else None)
        return call_in_graph(tensorflow, call, list(given), wanted) if found else NotImplemented
    return caller
