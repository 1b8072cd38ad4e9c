"""Keras' constraints, by the library's tables. Where an argument is one, its name will do."""

from ._described import Described, make_classes


class Constraint(Described):
    """The base of all constraints."""


__all__ = ["Constraint"] + make_classes("constraints", Constraint, globals())
