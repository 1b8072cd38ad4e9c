"""Keras' learning rate schedules, by the library's tables."""

from .._described import OwnCalled, make_classes
from .._surface.missing import getter
from .._surface.registry import add_registry


class LearningRateSchedule(OwnCalled):
    """The base of all schedules. Your own define __call__(step), with operations of cornu.ops on
    the step, an integer tensor."""


__all__ = ["LearningRateSchedule"] + make_classes("schedules", LearningRateSchedule, globals())
__all__ += [name for name in add_registry("schedules", LearningRateSchedule, globals())
            if name != "get"]
del globals()["get"]        # Keras has none
__getattr__ = getter(__name__)
