"""Keras' learning rate schedules, by the library's tables."""

from .._described import OwnCalled, make_classes


class LearningRateSchedule(OwnCalled):
    """The base of all schedules. Your own define __call__(step), with operations of cornu.ops on
    the step, an integer tensor."""


__all__ = ["LearningRateSchedule"] + make_classes("schedules", LearningRateSchedule, globals())
