"""Keras' initializers, by the library's tables. Their names serve as well, where an argument is one."""

from ._described import Described, make_classes


class Initializer(Described):
    """The base of all initializers."""


__all__ = ["Initializer"] + make_classes("initializers", Initializer, globals())
