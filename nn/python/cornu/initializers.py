"""Keras' initializers, by the library's tables. Where an argument is one, its name will do."""

from ._described import OwnCalled, make_classes


class Initializer(OwnCalled):
    """The base of all initializers. Your own define __call__(shape, dtype=None)."""


__all__ = ["Initializer"] + make_classes("initializers", Initializer, globals())
