"""Keras' initializers, by the library's tables. Where an argument is one, its name will do."""

from ._described import OwnCalled, make_classes
from ._surface.missing import add_aliases, getter
from ._surface.registry import add_registry


class Initializer(OwnCalled):
    """The base of all initializers. Your own define __call__(shape, dtype=None)."""


__all__ = ["Initializer"] + make_classes("initializers", Initializer, globals())
__all__ += add_registry("initializers", Initializer, globals())
__all__ += add_aliases("initializers", globals())
__getattr__ = getter(__name__)
