"""Keras' constraints, by the library's tables. Where an argument is one, its name will do."""

from ._described import OwnCalled, make_classes


class Constraint(OwnCalled):
    """The base of all constraints. Your own define __call__(w)."""


__all__ = ["Constraint"] + make_classes("constraints", Constraint, globals())
