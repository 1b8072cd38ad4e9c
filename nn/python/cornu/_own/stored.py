"""Layers whose call stores tensors in attributes, self.scores = softmax(x), for the program to read.

Where such a layer, or one around it, is called on arrays, Python runs its call on them, so that the
attribute is what was computed, as in Keras. In a trace it is a symbolic tensor.
"""

from .._tensors.symbols import Tensor, find_tensor
from .._tensors.traces import tracing


def _stores(layer):
    if hasattr(type(layer), "inputs"):      # a model
        return layer._body._stores if layer._body is not None else any(map(_stores, layer.layers))
    return getattr(layer, "_stores", False)


def stores_tensors(layer, before, trace):
    """Whether a call that was traced set an attribute to a tensor, or has a layer that does. What
    adds losses or assigns weights is left to the library."""
    if trace.losses or trace.assigned:
        return False
    return any(_stores(each) for _, each in layer._sublayers()) or any(
        before.get(name) is not value and isinstance(find_tensor([value]), Tensor)
        for name, value in layer._stored().items())


def note_change(layer, name, old, value):
    """After an attribute was set: whether calls from now on compute with other numbers, as of
    layer.downstream = True. See changed.py."""
    if isinstance(value, (bool, int, float, str)) and value != old and name[0] != "_" and \
            layer.class_name is None and not hasattr(type(layer), name) and \
            vars(layer).get("_signatures") and not layer._building and tracing() is None:
        layer._changes += 1
        layer._wrappers.clear()
