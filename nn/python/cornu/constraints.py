"""Keras' constraints, by the library's tables. Their names serve as well, where an argument is one."""

from ._described import Described, make_classes


class Constraint(Described):
    """The base of all constraints."""


__all__ = ["Constraint"] + make_classes("constraints", Constraint, globals())
