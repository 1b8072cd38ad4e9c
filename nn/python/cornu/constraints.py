"""Keras' constraints, by the library's tables. Where an argument is one, its name will do."""

from ._binding.described import OwnCalled, make_classes
from ._surface.missing import add_aliases, getter
from ._surface.registry import add_registry


class Constraint(OwnCalled):
    """The base of all constraints. Your own define __call__(w)."""


__all__ = ["Constraint"] + make_classes("constraints", Constraint, globals())
__all__ += add_registry("constraints", Constraint, globals())
__all__ += add_aliases("constraints", globals())
__getattr__ = getter(__name__)
