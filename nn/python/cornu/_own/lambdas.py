"""Lambda, and the base of wrappers of the program's own."""

import inspect

from .._binding.described import plain
from .traced import Layer


class Lambda(Layer):
    """A layer that is a function of tensors: Lambda(lambda x: x ** 2)."""

    def __init__(self, function, output_shape=None, mask=None, arguments=None, **kwargs):
        super().__init__(**kwargs)
        self.function, self.arguments, self._mask = function, arguments or {}, mask
        self.supports_masking = mask is not None

    def _training_matters(self):
        return "training" in inspect.signature(self.function).parameters

    def call(self, inputs, mask=None, training=None):
        given = dict(self.arguments)
        for name, value in (("mask", mask), ("training", training)):
            if name in inspect.signature(self.function).parameters:
                given[name] = value
        return self.function(inputs, **given)

    def compute_mask(self, inputs, mask=None):
        return self._mask(inputs, mask) if callable(self._mask) else self._mask

    def _makes_mask(self):
        return self._mask is not None

    def get_config(self):
        raise NotImplementedError("%s: a Lambda's function is in no config" % self.name)


class Wrapper(Layer):
    """The base of a layer that wraps another one, its attribute `layer`: a subclass has `call`."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape=None):
        if not self.layer.built:
            self.layer.build(input_shape)

    def get_config(self):
        return {**super().get_config(), "layer": plain(self.layer)}

    @classmethod
    def from_config(cls, config):
        from ..saving import deserialize_keras_object
        given = config["layer"]
        layer = deserialize_keras_object(given) if isinstance(given, dict) else given
        return cls(**{**config, "layer": layer})
