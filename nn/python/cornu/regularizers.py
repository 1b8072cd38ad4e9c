"""Keras' regularizers, by the library's tables. Where an argument is one, its name will do."""

from ._binding.described import OwnCalled, make_classes
from ._surface.missing import add_aliases, getter
from ._surface.registry import add_registry


class Regularizer(OwnCalled):
    """The base of all regularizers. Your own define __call__(x)."""


__all__ = ["Regularizer"] + make_classes("regularizers", Regularizer, globals())
__all__ += add_registry("regularizers", Regularizer, globals())
__all__ += add_aliases("regularizers", globals())
__getattr__ = getter(__name__)
