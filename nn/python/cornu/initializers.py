"""Keras' initializers, by the library's tables. Where an argument is one, its name will do."""

from ._described import Described, make_classes


class Initializer(Described):
    """The base of all initializers."""


__all__ = ["Initializer"] + make_classes("initializers", Initializer, globals())
