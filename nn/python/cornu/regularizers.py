"""Keras' regularizers, by the library's tables. Where an argument is one, its name will do."""

from ._described import OwnCalled, make_classes


class Regularizer(OwnCalled):
    """The base of all regularizers. Your own define __call__(x)."""


__all__ = ["Regularizer"] + make_classes("regularizers", Regularizer, globals())
