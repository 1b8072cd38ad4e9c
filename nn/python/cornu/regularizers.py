"""Keras' regularizers, by the library's tables. Where an argument is one, its name will do."""

from ._described import Described, make_classes


class Regularizer(Described):
    """The base of all regularizers."""


__all__ = ["Regularizer"] + make_classes("regularizers", Regularizer, globals())
