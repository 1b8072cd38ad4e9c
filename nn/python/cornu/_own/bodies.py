"""Models of the program's own: subclasses of Model with a method call.

Such a model is a functional one of a single traced layer, its body, once the shapes of its data are
known: by a call, by fit, or by build.
"""

import inspect
import itertools

import numpy as np

from .._binding.arrays import Array, to_array
from .._binding.described import snake_case, unique_name
from .._binding.nested import mapped
from .._models.feeds import parts_of
from .._tensors.functions import rehearse
from .._tensors.symbols import Tensor, input_tensor
from .forms import flat, type_of
from .traced import Layer, attributes
from .._tensors.traces import Trace
from .._tensors.values import Value
from .._models.weighted import Weighted


class Body(Layer):
    """The layer that has the weights and the call of a model."""

    def __init__(self, model, name=None, **kwargs):
        super().__init__(name=name or unique_name(snake_case(type(model).__name__)), **kwargs)
        self.__dict__["_of"] = [model]      # in a list: the model is not an attribute of the body
        self.call = model.call
        if "build" in overridden(type(model)):
            self.build = model.build
        self.supports_masking = getattr(model, "supports_masking", False)

    def _class(self):
        return type(self._of[0])

    def _stored(self):
        return dict(vars(self._of[0]))

    def _sublayers(self):
        seen = {id(self)}
        return [(path, layer) for path, layer in attributes(self._of[0])
                if id(layer) not in seen and not seen.add(id(layer))]

    def forget_calls(self):
        """Its calls are traced again: what they computed with, beside their operands, changed."""
        self._signatures.clear()
        self._wrappers.clear()

    def _trace(self, args, kwargs, types):
        form = super()._trace(args, kwargs, types)
        for _, layer in self._sublayers():
            self._hold(layer)
        return form

    def _hold(self, model):
        """Makes an attribute a part of the body that its call does not use, as the teacher of a
        student, which a step calls: by a graph that is never run."""
        if not hasattr(type(model), "inputs") or model._owned is None or not model.built:
            return
        known = {weight._address for weight in Weighted.weights.fget(self)}
        if known.issuperset(weight._address for weight in model.weights):
            return
        trace, outputs = Trace(self, self._reader), []
        with trace:
            inputs = self._placeholders(trace, [(type_of(t), False) for t in model.inputs])
            flat(model(inputs[0] if len(inputs) == 1 else inputs), outputs)
            self._add(trace, inputs, outputs, training_only=True, inference_only=True)

    def get_config(self):
        if "get_config" in overridden(self._class()):
            return self._of[0].get_config()
        return {**super().get_config(), **(self._of[0]._arguments or {})}


class Part(Layer):
    """A model as a layer, which has a name of its own."""

    def __init__(self, model):
        super().__init__(name=unique_name(model.name + "_part"))
        self.model = model

    def call(self, inputs):
        return self.model(inputs)


def part_of(layer):
    """The model by which an attribute is a part of one that does not call it: itself, or that of a
    call that a step has made; None for what has neither."""
    if hasattr(type(layer), "inputs") and layer._owned is not None and layer.built:
        return layer
    calls = (getattr(layer, "_body", None) or layer)._wrappers if layer.weights else {}
    return next(iter(calls.values()), None)


def overridden(kind):
    """The methods that a subclass of Model has of its own."""
    from .._models.models import Model
    return {name for base in kind.__mro__[:kind.__mro__.index(Model)] for name in vars(base)}


def first_batches(data):
    """The parts of the first batch of an iterator; other inputs, whose extents may differ:
    TensorFlow's specification of all, or those of the second batch; and an iterator of all."""
    spec = getattr(data, "element_spec", None)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        batches = [data[i] for i in range(min(len(data), 2))]
    else:
        batches = list(itertools.islice(data, 1 if spec is not None else 2))
        if hasattr(data, "__next__"):
            data = itertools.chain(batches, data)
    if not batches:
        raise ValueError("the iterator has no batch")
    return parts_of(batches[0]), parts_of(spec or batches[-1])[0], data


class Called(BaseException):
    """Ends a step that is run to know what it calls its model with: arrays of such types."""

    def __init__(self, inputs):
        super().__init__()
        self.inputs = mapped(inputs, lambda x: np.zeros(x.shape, x.dtype)
                             if isinstance(x, Value) else np.asarray(x))


def called_with(model, parts):
    """What the train_step of a model calls the model with, of a batch; None if it does not, or
    fails before."""
    def array(value):
        value = np.asarray(value)
        return value if value.dtype.kind in "SUO" else to_array(value).view(Array)
    parts, arrays = mapped(tuple(parts), array), []
    mapped(parts, arrays.append)
    data = parts[0] if len(parts) == 1 else parts
    model._is_asked = True
    try:
        if any(each.dtype.kind in "SUO" for each in arrays):
            model.train_step(data)      # recordings have no strings
        else:
            rehearse(model.train_step, data)        # which changes no weight
    except Called as called:
        return called.inputs
    except Exception:       # pylint: disable=broad-exception-caught
        pass                # the call on the data says what is wrong
    finally:
        model._is_asked = False
    return None


def inputs_like(data, other=None):
    """Symbolic inputs for arrays, in the same lists and dictionaries; whole numbers stay such.
    Extents are open where those of other arrays in the same form, if there are some, differ."""
    if isinstance(data, dict):
        of = other if isinstance(other, dict) else {}
        return {key: _input(value, of.get(key), key) for key, value in data.items()}
    if isinstance(data, (list, tuple)) and any(hasattr(v, "shape") for v in data):
        of = other if isinstance(other, (list, tuple)) and len(other) == len(data) else data
        return [_input(value, like) for value, like in zip(data, of)]
    return _input(data, other)


def _input(array, other=None, name=None):
    array, of = np.asarray(array), getattr(other, "shape", None)
    shape = array.shape[1:]
    if isinstance(of, (tuple, list)) or getattr(of, "rank", None) is not None:
        if len(of) == array.ndim:
            shape = [a if a == b else None for a, b in zip(shape, list(of)[1:])]
    if array.dtype.kind in "SUO":
        return input_tensor(shape, dtype="string", name=name)
    return input_tensor(shape, name=name,
                        dtype=None if array.dtype.kind == "f" else array.dtype.name)


def inputs_of(shape):
    """Symbolic inputs of these shapes, whose axis 0 is the batch."""
    if isinstance(shape, dict):
        return {key: inputs_of(value) for key, value in shape.items()}
    if isinstance(shape, list) and shape and isinstance(shape[0], (list, tuple)):
        return [inputs_of(value) for value in shape]
    return input_tensor(tuple(shape)[1:])


def inputs_as(model):
    """Symbolic inputs as those of a model."""
    made = [input_tensor(t.shape[1:], dtype=t.dtype) for t in model.inputs]
    return made[0] if len(made) == 1 else made


def outputs_of(made):
    """What Model takes as outputs of what a call returned: one, a list or a dictionary."""
    if isinstance(made, Tensor):
        return made
    if isinstance(made, dict):
        if all(isinstance(value, Tensor) for value in made.values()):
            return made
        made = {key: made[key] for key in sorted(made)}     # as form_of has it
    tensors = []
    flat(made, tensors)
    return tensors


def has_call(kind):
    """Whether a subclass has a call of its own, which takes the inputs first."""
    return "call" in overridden(kind) and len(inspect.signature(kind.call).parameters) > 1
