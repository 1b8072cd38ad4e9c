"""Keras' losses, by the library's tables. Where an argument is one, its name will do."""

from ._described import Described, make_classes


class Loss(Described):
    """The base of all losses."""

    name = property(Described._name)


__all__ = ["Loss"] + make_classes("losses", Loss, globals())
