"""Keras' regularizers, by the library's tables. Their names serve as well, where an argument is one."""

from ._described import Described, make_classes


class Regularizer(Described):
    """The base of all regularizers."""


__all__ = ["Regularizer"] + make_classes("regularizers", Regularizer, globals())
