"""Keras' optimizers, by the library's tables; cornu.optimizers.schedules has the schedules."""

import ctypes

from .._described import Described, make_classes, plain
from .._library import lib
from . import schedules


class Optimizer(Described):
    """The base of all optimizers."""

    _model = None        # a weak reference to the model that is compiled with it
    description = {"fields": []}

    @classmethod
    def _of(cls, name):
        """The optimizer of a compiled model, made by a name or a file."""
        made = object.__new__(cls)
        made._config = {}
        made.class_name = made.class_name or name
        return made

    def __getstate__(self):
        return {key: value for key, value in vars(self).items() if key != "_model"}

    def _pointer(self):
        model = self._model() if self._model else None
        return lib.cornu_model_optimizer(model.pointer) if model else None

    @property
    def learning_rate(self):
        """The rate of the next step, once compiled; before, the argument. It can be set, unless
        there is a schedule."""
        if not self._pointer():
            return self._config.get("learning_rate", self._usual("learning_rate"))
        rate = ctypes.c_double()
        lib.cornu_optimizer_learning_rate(self._pointer(), ctypes.addressof(rate))
        return rate.value

    @learning_rate.setter
    def learning_rate(self, value):
        if self._pointer():
            lib.cornu_optimizer_set_learning_rate(self._pointer(), float(value))
        self._config["learning_rate"] = plain(value)

    def _usual(self, name):
        return next((f.get("default") for f in self.description["fields"] if f["name"] == name),
                    None)


class LossScaleOptimizer(Optimizer):
    """Keras' LossScaleOptimizer: scales the loss, so that gradients do not underflow in float16."""

    class_name = "LossScaleOptimizer"
    field_names = ("inner_optimizer", "initial_scale", "dynamic_growth_steps", "name")
    description = {"fields": [{"name": name} for name in field_names]}


__all__ = ["Optimizer", "LossScaleOptimizer", "schedules"]
__all__ += make_classes("optimizers", Optimizer, globals())
