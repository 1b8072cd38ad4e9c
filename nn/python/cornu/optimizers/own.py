"""Optimizers of the program's own: subclasses of Optimizer, or of one of the library's, with an
update_step or an apply.

What they do to variables is recorded with the step. The update_step of a class of the library's is
an optimizer of the library for that variable alone.
"""

from .._tensors.functions import Variable
from .._tensors.operators import operate, users_line
from .._tensors.values import Again, current


class OwnUpdates:
    """The part of an optimizer whose update_step is the program's."""

    _variables, _trainable, _places, _count, _rate, _each = (), (), {}, None, None, None

    def _begin_own(self, learning_rate=0.001, weight_decay=None, clipnorm=None, clipvalue=None,
                   global_clipnorm=None, name=None, **kwargs):
        unknown = {key for key, value in kwargs.items() if value not in (None, False) and key not in
                   ("ema_momentum",)}
        if unknown:
            raise NotImplementedError("%s: %s of an optimizer of the program's own"
                                      % (type(self).__name__, ", ".join(sorted(unknown))))
        self._config = {"learning_rate": learning_rate, "weight_decay": weight_decay,
                        "clipnorm": clipnorm, "clipvalue": clipvalue,
                        "global_clipnorm": global_clipnorm}
        if name is not None:
            self._config["name"] = name

    # ---- Variables ----

    def add_variable(self, shape, initializer="zeros", dtype=None, name=None):
        """A variable of the optimizer, in build."""
        made = Variable(initializer, shape=shape, dtype=dtype or "float32", trainable=False,
                        name=name)
        self._variables = [*self._variables, made]
        return made

    def add_variable_from_reference(self, reference_variable, name=None, initializer="zeros"):
        """A variable like another one, zeros at first."""
        return self.add_variable(tuple(reference_variable.shape), initializer,
                                 reference_variable.dtype, name)

    def add_optimizer_variables(self, trainable_variables, name, initializer="zeros"):
        """Such a variable for each of them; of several names a list for each."""
        if isinstance(name, (list, tuple)):
            return tuple(self.add_optimizer_variables(trainable_variables, each, initializer)
                         for each in name)
        return [self.add_variable_from_reference(v, name, initializer)
                for v in trainable_variables]

    def _get_variable_index(self, variable):
        return self._places[variable._native()]

    def build_own(self, variables):
        """Optimizer.build: what the variables are numbered by, and what there always is."""
        for variable in variables:
            variable._make_native()
        self._trainable = list(variables)
        self._places = {v._native(): i for i, v in enumerate(variables)}
        if self._count is None:
            self._count = Variable(0, dtype="int32", trainable=False, name="iteration")
            rate = self._config["learning_rate"]
            self._rate = Variable(0.0 if callable(rate) else rate, trainable=False,
                                  name="learning_rate")

    @property
    def own_variables(self):
        """Those that it has made, for files."""
        return [self._count, self._rate, *self._variables] if self._trainable else []

    # ---- Steps ----

    def assign(self, variable, value):
        variable.assign(value)

    def assign_add(self, variable, value):
        variable.assign(variable + value)

    def assign_sub(self, variable, value):
        variable.assign(variable - value)

    def _rate_of_step(self):
        rate = self._config["learning_rate"]
        return rate(self._count.value) if callable(rate) else self._rate.value

    def _clipped(self, grads):
        config = self._config
        if config["clipvalue"] is not None:
            grads = [operate("clip", g, -config["clipvalue"], config["clipvalue"]) for g in grads]
        if config["clipnorm"] is not None:
            grads = [g * _factor(_square(g), config["clipnorm"]) for g in grads]
        if config["global_clipnorm"] is not None:
            total = sum(_square(g) for g in grads)
            grads = [g * _factor(total, config["global_clipnorm"]) for g in grads]
        return grads

    def apply_own(self, grads, variables):
        """A step, in a recording."""
        recording = current()
        if recording is None:
            raise NotImplementedError(
                "%s.apply on arrays: an optimizer of the program's own is applied in a "
                "cornu.function, or in train_step; in %s" % (type(self).__name__, users_line()))
        if not self._trainable:
            self.build(variables)
            if not self._trainable:     # by a build that does without super()
                self.build_own(variables)
            raise Again()       # with what it made outside of the recording
        places = [self._get_variable_index(v) for v in variables]
        if sorted(places) != list(range(len(self._trainable))):
            raise ValueError("%s.apply: expected the %d variables that it was built for, %d came; "
                             "in %s" % (type(self).__name__, len(self._trainable), len(variables),
                                        users_line()))
        grads = self._clipped([recording.value(g) for g in grads])
        rate = self._rate_of_step()
        if self._config["weight_decay"]:
            for variable in variables:
                variable.assign(variable - variable * self._config["weight_decay"] * rate)
        for gradient, variable in zip(grads, variables):
            self.update_step(gradient, variable, rate)
        self._count.assign(self._count + 1)

    def update_step(self, gradient, variable, learning_rate):
        """Override it: assigns the variable."""
        raise NotImplementedError("%s has no method update_step" % type(self).__name__)


def _square(x):
    return operate("sum", operate("square", x)) if x.ndim else x * x


def _factor(square, most):
    norm = operate("sqrt", square)
    return most / operate("maximum", norm, most)


class OfEach:
    """The update_step of an optimizer of the library, which a subclass overrides: for each variable
    one of the library's, of the same arguments."""

    _each = None

    def update_step(self, gradient, variable, learning_rate):
        """Assigns the variable and those of the optimizer."""
        place = variable._native()
        self._each[place]._apply_in(current(), [gradient], [variable])

    def apply_each(self, grads, variables):
        """A step of update_step, in a recording."""
        if self._each is None:
            kind = next(base for base in type(self).__mro__ if "description" in vars(base))
            self._each = {}
            for variable in variables:
                variable._make_native()
                self._each[variable._native()] = kind.from_config(self._config)
        if {v._native() for v in variables} != set(self._each):
            raise ValueError("%s.apply: expected the %d variables that it was built for, %d came; "
                             "in %s" % (type(self).__name__, len(self._each), len(variables),
                                        users_line()))
        recording = current()
        for gradient, variable in zip(grads, variables):
            self.update_step(recording.value(gradient), variable, self._given_rate())

    def _given_rate(self):
        rate = self._config.get("learning_rate", self._usual("learning_rate"))
        return rate if isinstance(rate, float) else None
