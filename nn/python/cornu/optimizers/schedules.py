"""Keras' learning rate schedules, by the library's tables."""

from .._described import Described, make_classes


class LearningRateSchedule(Described):
    """The base of all schedules."""


__all__ = ["LearningRateSchedule"] + make_classes("schedules", LearningRateSchedule, globals())
