"""Keras' losses, by the library's tables. Their names serve as well, where an argument is one."""

from ._described import Described, make_classes


class Loss(Described):
    """The base of all losses."""


__all__ = ["Loss"] + make_classes("losses", Loss, globals())
