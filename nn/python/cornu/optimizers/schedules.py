"""Keras' learning rate schedules, by the library's tables."""

from .._described import Described, make_classes


class LearningRateSchedule(Described):
    """The base of all schedules. Your own define __call__(step), with operations of cornu.ops on
    the step, an integer tensor."""

    def __init__(self, *args, **kwargs):
        if not self.is_own:
            super().__init__(*args, **kwargs)

    @property
    def is_own(self):
        return self.class_name is None

    def get_config(self):
        if self.is_own:
            raise NotImplementedError("%s has no get_config" % type(self).__name__)
        return super().get_config()


__all__ = ["LearningRateSchedule"] + make_classes("schedules", LearningRateSchedule, globals())
