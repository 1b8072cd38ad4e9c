"""Keras' learning rate schedules, by the library's tables."""

import ctypes
import json

from .._binding.described import OwnCalled, make_classes
from .._tensors.functions import function
from .._binding.library import Owned, lib
from .._tensors.operators import operate
from .._tensors.values import Value, current
from .._surface.missing import getter
from .._surface.registry import add_registry


class LearningRateSchedule(OwnCalled):
    """The base of all schedules. Your own define __call__(step), with operations of cornu.ops on
    the step, an integer tensor."""

    _made = None

    def __call__(self, step):
        """The learning rate of a step."""
        if self.class_name is None:
            raise NotImplementedError("%s has no method __call__" % type(self).__name__)
        return _rate(self, operate("cast", step, "float32"))

    def _owned_schedule(self):
        if self._made is None:
            self._made = Owned(lib.cornu_schedule_from_json(json.dumps(self.to_dict())),
                               lib.cornu_schedule_free)
        return self._made

    def __getstate__(self):
        return {key: value for key, value in vars(self).items() if key != "_made"}


@function
def _rate(schedule, step):
    recording, owned = current(), schedule._owned_schedule()
    recording.kept.append(owned)
    made = lib.type("CornuSchedule").from_address(owned.address)
    return Value(_CALL(made.call)(owned.address, recording.value(step).pointer), recording)


_CALL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


__all__ = ["LearningRateSchedule"] + make_classes("schedules", LearningRateSchedule, globals())
__all__ += [name for name in add_registry("schedules", LearningRateSchedule, globals())
            if name != "get"]
del globals()["get"]        # Keras has none
__getattr__ = getter(__name__)
