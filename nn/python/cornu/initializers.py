"""Keras' initializers, by the library's tables. Where an argument is one, its name will do."""

import random

from ._binding.described import OwnCalled, make_classes
from ._surface.missing import add_aliases, getter
from ._surface.registry import add_registry


class Initializer(OwnCalled):
    """The base of all initializers. Your own define __call__(shape, dtype=None)."""

    _drawn_seed = None      # of calls, where none is given

    def __call__(self, shape, dtype=None):
        """An array of this shape with the values of a weight: the same ones in each call."""
        from ._tensors.values import Array
        from .layers import Layer
        if self.class_name is None:
            raise NotImplementedError("%s has no method __call__" % type(self).__name__)
        made = self
        if "seed" in self.field_names and self._config.get("seed") is None:
            if self._drawn_seed is None:
                self._drawn_seed = random.randint(1, 10 ** 9)
            made = type(self)(**{**self._config, "seed": self._drawn_seed})
        weight = Layer(name="drawn").add_weight(shape, initializer=made)
        return weight.numpy().astype(dtype or "float32", copy=False).reshape(shape).view(Array)


__all__ = ["Initializer"] + make_classes("initializers", Initializer, globals())
__all__ += add_registry("initializers", Initializer, globals())
__all__ += add_aliases("initializers", globals())
__getattr__ = getter(__name__)
