"""Layers and operations of Cornu in TensorFlow's graphs, as in a function given to tf.data's map.

A node of the graph calls Python with the arrays (tf.numpy_function). TensorFlow wants to know what
comes out before, so that the call is tried on zeros.
"""

import concurrent.futures

import numpy as np

from .._binding.nested import filled, mapped, placed
from .._tensors.operators import users_line

# TensorFlow calls from several threads of its own. One thread makes all calls, so that a model is
# used by one at a time, on one device, and none of them is within a graph.
_worker = concurrent.futures.ThreadPoolExecutor(1, "cornu_in_graphs")

# Pairs of extents that are tried where the graph has none: of a batch, and of images large enough
# to be cropped.
_UNKNOWN = ((32, 33), (512, 640))


def _array_like(tensor, unknown, example, counts):
    if counts and not tensor.shape.rank and tensor.dtype.is_integer:
        return np.array(unknown, tensor.dtype.as_numpy_dtype)
    shape = [unknown if extent is None else extent for extent in tensor.shape]
    if example is not None:
        return np.full(shape, example)
    return np.full(shape, b"") if tensor.dtype.name == "string" else \
        np.zeros(shape, tensor.dtype.as_numpy_dtype)


def _tried(computed, tensors, example):
    """The form of the result, and its arrays for two extents in the place of unknown ones, or for
    those of the graph. Where zeros do not do, integers of no axes may be such an extent, as that of
    the batch."""
    for tensor in tensors:
        if tensor.shape.rank is None:
            raise ValueError("the rank of a tensor of TensorFlow is not known: call its set_shape "
                             "before; in %s" % users_line())
    unknown = any(None in tuple(t.shape) for t in tensors)
    value, failure = example() if example else None, None
    values = value if isinstance(value, list) else [value] * len(tensors)
    for counts in (False, True):
        for pair in _UNKNOWN if unknown or counts else [_UNKNOWN[0][:1]]:
            try:
                made = [computed([_array_like(tensor, extent, like, counts)
                                  for tensor, like in zip(tensors, values)]) for extent in pair]
                return made[0][0], [arrays for _, arrays in made]
            except Exception as error:      # pylint: disable=broad-exception-caught
                failure = failure or error
    raise failure


def call_in_graph(tensorflow, call, given, wanted, example):
    """call(*arguments), in a graph; `wanted` tells its tensors among the arguments."""
    tensors = []
    places = placed(given, tensors, wanted)

    def compute(arrays):
        flat = []
        form = placed(call(*filled(places, arrays)), flat, lambda value: True)
        return form, [np.asarray(value) for value in flat]

    def computed(arrays):
        return _worker.submit(compute, arrays).result()

    form, tried = _tried(computed, tensors, example)
    results = tensorflow.numpy_function(lambda *arrays: computed(arrays)[1], tensors,
                                        [tensorflow.as_dtype(a.dtype) for a in tried[0]])
    # What is made of strings, such as their parts, has extents of any number.
    strings = any(tensor.dtype.name == "string" for tensor in tensors)
    for result, *each in zip(results, *tried):
        shapes = [a.shape for a in each]
        result.set_shape([None if strings or a != b else a
                          for a, b in zip(shapes[0], shapes[-1])])
    return filled(form, results)


def make_caller(tensorflow):
    """What is called with a function and its arguments: its result in a graph, NotImplemented where
    no argument is a tensor of one, nor does it draw while there is a graph."""
    eager, symbolic = type(tensorflow.zeros(())), tensorflow.is_symbolic_tensor

    def wanted(value):
        return isinstance(value, tensorflow.Tensor) and not isinstance(value, eager) and \
            symbolic(value)

    def caller(call, given, draws, example):
        found = []
        mapped(given, lambda value: found.append(value) if wanted(value) else None)
        if found or draws and tensorflow.inside_function():
            return call_in_graph(tensorflow, call, list(given), wanted, example)
        return NotImplemented
    return caller

