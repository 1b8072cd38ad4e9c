"""Keras' optimizers, by the library's tables; cornu.optimizers.schedules has the schedules."""

import ctypes
import json

import numpy as np

from .._binding.described import Described, make_classes, plain
from .._tensors.functions import Borrowed
from .._binding.library import Owned, lib
from .._tensors.operators import users_line
from .._tensors.values import Again, Compiled, Recording, Same, Value, current, kept, to_array
from .._tensors.stateless import StatelessOptimizer
from .._surface.missing import getter
from .._surface.registry import add_registry
from .._tensorflow import lent_variables
from ..errors import ArgumentError
from . import schedules
from .own import OfEach, OwnUpdates


class ByHand(StatelessOptimizer):
    """What optimizers do in functions, and under a tape."""

    _own = None          # the library's optimizer, of an object that no model is compiled with
    _built = ()          # its variables, and their addresses
    _packed_for = None   # the step for which it packed them again
    _iterations = None

    def _optimizer(self):
        """The library's optimizer."""
        if self._pointer():
            return self._pointer()
        self._own = Owned(lib.cornu_optimizer_from_json(json.dumps(self.to_dict())),
                          lib.cornu_optimizer_free)
        return self._own.address

    def _model_of(self):
        return self._model() if self._model else None

    def build(self, variables):
        """Makes its variables for these ones, in this order."""
        variables = list(variables)
        if not variables:
            raise ValueError("%s: there are no variables to train" % self.class_name)
        if self.class_name is None:
            return self.build_own(variables)
        for variable in variables:
            variable._make_native()
        addresses = [v._native() for v in variables]
        optimizer = self._optimizer()
        if all(hasattr(v, "_address") for v in variables):
            given = (ctypes.c_void_p * len(variables))(*[v._address for v in variables])
            lib.cornu_optimizer_build_weights(optimizer, given, len(variables))
        else:
            given = (ctypes.c_void_p * len(variables))(*addresses)
            lib.cornu_optimizer_build(optimizer, given, len(variables))
        for variable in variables:
            self._own.needs(variable._keeper().counted)
        self._built = list(zip(variables, addresses))

    built = property(lambda self: bool(self._trainable or self._order()))

    def _order(self):
        """The addresses of the variables that it trains, in its order."""
        if self._model_of() is not None:
            return [w._native() for w in self._trained()]
        return [address for _, address in self._built]

    def _trained(self):
        """The variables that it trains."""
        model = self._model_of()
        return model.trainable_weights if model is not None else \
            [variable for variable, _ in self._built]

    def apply(self, grads, trainable_variables=None):
        """Updates the variables, by default those of build, by gradients: in a function, in each
        run; under a tape, at once. Outside of functions also variables of TensorFlow."""
        if getattr(current(), "rehearses", False):
            return None
        variables = self._trained() if trainable_variables is None else trainable_variables
        with lent_variables(list(variables)) as variables:
            return self._apply(list(grads), variables)

    def _apply(self, grads, variables):
        if grads and all(g is None for g in grads):
            raise ValueError("%s.apply: no gradient is given for any variable; in %s"
                             % (type(self).__name__, users_line()))
        grads = [np.zeros(v.shape, np.float32) if g is None else g
                 for g, v in zip(grads, variables)] + grads[len(variables):]
        if self.class_name is None:
            return self.apply_own(grads, variables)
        if self.overridden("update_step"):
            return self.apply_each(grads, variables)
        if len(grads) != len(variables):
            raise ValueError("%s.apply: %d gradients are given for %d variables; in %s"
                             % (self.class_name, len(grads), len(variables), users_line()))
        recording = next((g.recording for g in grads
                          if isinstance(g, Value) and not g.recording.closed), current())
        if recording is not None and recording.values is None:
            return self._apply_in(recording, grads, variables)
        if recording is not None and self.built:
            self._apply_in(recording, grads, variables)
            recording.assigns = True
            return recording.finish()
        if recording is not None:       # building moves what the recording reads
            recording.finish()
        return self._apply_arrays([to_array(g) for g in grads], variables)

    def _apply_in(self, recording, grads, variables):
        if self._model_of() is None and recording.model is not None:
            recording.model.leave_to_others(variables)
        if not self.built:
            for variable in variables:
                variable._read(recording)
            self.build(variables)
            raise Again()
        for variable in variables:
            variable._make_native()
        place = {variable._native(): i for i, variable in enumerate(variables)}
        order = self._order()
        if self._model_of() is not None and set(place) < set(order):
            self._model_of().train_parts()
            raise Again()
        if sorted(place) != sorted(order):
            raise ValueError(
                "%s.apply: expected the %d variables that it was built for, %d others came (%s); "
                "an optimizer trains all of its variables in each step, use one for each set of "
                "them; in %s" % (self.class_name, len(order), len(variables),
                           ", ".join(v.path for v in variables[:3]), users_line()))
        tensors = [recording.value(grads[place[address]]).pointer for address in order]
        given = (ctypes.c_void_p * len(tensors))(*tensors)
        recording.updating(place)
        try:
            lib.cornu_optimizer_apply(self._optimizer(), recording.pointer, given)
        except ArgumentError:
            if recording.model is None or self._packed_for is recording.device_owner:
                raise
            self._packed_for = recording.device_owner   # another optimizer packed them since
            lib.cornu_optimizer_build(self._optimizer(), None, 0)
            raise Again() from None
        recording.kept.append(self._own or self._model_of()._owned)

    def _apply_arrays(self, arrays, variables):
        if not self.built:
            self.build(variables)
        key = (Same(self), "apply", *[v._native() for v in variables],
               *[a.shape for a in arrays])

        def make():
            variable = variables[0]
            recording = Recording(Borrowed(lib.cornu_variable_device(variable._native()),
                                           variable._keeper()))
            inputs = [recording.input(array) for array in arrays]
            self._apply_in(recording, inputs, variables)
            return Compiled(recording, inputs, [])
        kept(key, make).run(arrays)

    def apply_gradients(self, grads_and_vars):
        """apply of pairs of a gradient and a variable."""
        pairs = list(grads_and_vars)
        self.apply([g for g, _ in pairs], [v for _, v in pairs])

    def scale_loss(self, loss):
        """The loss of which gradients are taken, where it is scaled for float16."""
        recording = loss.recording
        return Value(lib.cornu_optimizer_scale_loss(self._optimizer(), loss.pointer), recording)

    @property
    def iterations(self):
        """The number of steps, an array; in a function a recorded tensor."""
        if self._count is not None:
            return self._count.value
        if self._each:
            return next(iter(self._each.values())).iterations
        variable = lib.cornu_optimizer_iteration(self._optimizer()) if self.built else None
        if not variable:
            return np.zeros((), "int64")
        if current() is not None:
            return current().read(variable, self._own or self._model_of()._owned)
        made = np.zeros((), "int64")
        lib.cornu_variable_read(variable, _lent(made))
        return made


def _lent(array):
    from .._binding.arrays import Borrowed as Lent
    return Lent().array(array)


class Optimizer(ByHand, OwnUpdates, Described):
    """The base of all optimizers. Your own define update_step(gradient, variable, learning_rate),
    which assigns the variable, and build(variables), which calls super().build and adds variables;
    or apply(grads, trainable_variables)."""

    _model = None        # a weak reference to the model that is compiled with it
    description = {"fields": []}

    def __init__(self, *args, **kwargs):
        if self.class_name is None:
            self._begin_own(*args, **kwargs)
        else:
            super().__init__(*args, **kwargs)

    @property
    def is_own(self):
        """Of a class of the program's, or of the library's with methods of the program's."""
        return self.class_name is None or \
            bool(self.overridden("update_step", "apply", "apply_gradients"))

    @classmethod
    def _of(cls, name):
        """The optimizer of a compiled model, made by a name or a file."""
        made = object.__new__(cls)
        made._config = {}
        made.class_name = made.class_name or name
        return made

    def __getstate__(self):
        return {key: value for key, value in vars(self).items()
                if key not in ("_model", "_own", "_built", "_listed") and
                not key.startswith("_function_of_")}

    def _pointer(self):
        model = self._model_of()
        if model is not None:
            return lib.cornu_model_optimizer(model.pointer)
        return self._own.address if self._own else None

    @property
    def learning_rate(self):
        """The rate of the next step, once compiled; before, the argument. It can be set, unless
        there is a schedule."""
        if self._rate is not None:
            return float(self._rate.numpy())
        if not self._pointer():
            return self._config.get("learning_rate", self._usual("learning_rate"))
        rate = ctypes.c_double()
        lib.cornu_optimizer_learning_rate(self._pointer(), ctypes.addressof(rate))
        return rate.value

    @learning_rate.setter
    def learning_rate(self, value):
        if self._rate is not None:
            self._rate.assign(float(value))
        for each in (self._each or {}).values():
            each.learning_rate = value
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
__all__ += make_classes("optimizers", Optimizer, globals(), lambda entry: (OfEach,))
__all__ += add_registry("optimizers", Optimizer, globals())

from . import legacy    # noqa: E402, which has the classes above

__all__ += [legacy.__name__.rpartition(".")[2]]
__getattr__ = getter(__name__)
