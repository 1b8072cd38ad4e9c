"""JAX' style: values of variables as arguments and results, and gradients as functions.

In a graph whose statements run in order variables are given values, what is computed reads them,
and the variables get back what they had. So nothing changes outside, as in Keras' StatelessScope.
"""

import numpy as np

from .._binding.arrays import KERAS_NAMES, Borrowed, shape_of
from .functions import assign_in, function, gradients
from .._binding.library import lib
from .._binding.nested import mapped
from .operators import users_line
from .values import Readable, Value, current


class NativeVariable(Readable):
    """A variable of an optimizer of the library."""

    trainable, pending = False, None

    def __init__(self, address, keeper, name):
        self._address_of, self._owned, self.name = address, keeper, name
        kind = lib.cornu_variable_type(address)
        self.shape, self.dtype = shape_of(kind.shape), KERAS_NAMES[kind.dtype]

    path = property(lambda self: self.name)
    ndim = property(lambda self: len(self.shape))

    def _native(self):
        return self._address_of

    def _keeper(self):
        return self._owned

    def _read(self, recording):
        from .functions import Borrowed as Device
        recording.use(Device(lib.cornu_variable_device(self._address_of), self._owned))
        return recording.read(self._address_of, self._owned)

    def numpy(self):
        made = np.empty(self.shape, self.dtype)
        lib.cornu_variable_read(self._address_of, Borrowed().array(made))
        return made

    value = property(lambda self: self.numpy() if current() is None else self._read(current()))

    def assign(self, value):
        recording = value.recording if isinstance(value, Value) else current()
        if recording is not None and not recording.closed:
            return assign_in(recording, self._address_of, recording.value(value), self.dtype, self)
        value = np.ascontiguousarray(np.broadcast_to(np.asarray(value, self.dtype), self.shape))
        lib.cornu_variable_write(self._address_of, Borrowed().array(value))

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        return "<cornu variable %s shape=%s dtype=%s>" % (self.name, self.shape, self.dtype)


def lent(what, variables, values, act):
    """What act() returns while variables have these values, and the values that they have then."""
    variables, values = list(variables), list(values)
    if len(values) != len(variables):
        raise ValueError("%s: %d values are given for %d variables; in %s"
                         % (what, len(values), len(variables), users_line()))
    recording = current()
    recording.need_order()
    values = [recording.value(value) for value in values]
    before = [recording.value(variable) for variable in variables]
    for variable, value in zip(variables, values):
        variable.assign(value)
    made = act()
    after = [recording.value(variable) for variable in variables]
    for variable, value in zip(variables, before):
        variable.assign(value)
    return made, after


# ---- Layers, metrics and optimizers ----

class StatelessLayer:
    """The part of layers and models."""

    @function
    def stateless_call(self, trainable_variables, non_trainable_variables, *args,
                       return_losses=False, **kwargs):
        """The outputs of a call with these values of the variables, the values that the
        non-trainable ones have after it, and, with return_losses, what layers add to the loss."""
        if not self.built:
            raise ValueError("%s: stateless_call before it is built: call it on data, or build it; "
                             "in %s" % (self.name, users_line()))
        given = [*trainable_variables, *non_trainable_variables]
        made, after = lent(self.name + ".stateless_call",
                           [*self.trainable_variables, *self.non_trainable_variables], given,
                           lambda: (self(*args, **kwargs), self.losses if return_losses else []))
        after = after[len(trainable_variables):]
        return (made[0], after, made[1]) if return_losses else (made[0], after)


class StatelessMetric:
    """The part of metrics. A metric of the library's keeps its states by itself: it has no
    variables here, and these methods change its own."""

    @function
    def stateless_update_state(self, metric_variables, *args, **kwargs):
        """The values of the variables after a batch."""
        return lent(self.name + ".stateless_update_state", self.variables, metric_variables,
                    lambda: self.update_state(*args, **kwargs))[1]

    @function
    def stateless_result(self, metric_variables):
        """The result of these values."""
        return lent(self.name + ".stateless_result", self.variables, metric_variables,
                    self.result)[0]

    def stateless_reset_state(self):
        """The values with which it begins."""
        if not self.variables:
            self.reset_state()
        return [np.zeros(v.shape, v.dtype) for v in self.variables]


class StatelessOptimizer:
    """The part of optimizers."""

    _listed = ()

    @property
    def variables(self):
        """Its variables, in Keras' order: the iteration, the learning rate, the slots."""
        if self.class_name is None:
            return [v for v in (self._count, self._rate) if v is not None] + list(self._variables)
        optimizer = self._optimizer()
        addresses = [lib.cornu_optimizer_variable(optimizer, i)
                     for i in range(lib.cornu_optimizer_variable_count(optimizer))]
        if [v._native() for v in self._listed] != addresses:
            keeper = self._own or self._model_of()._owned
            self._listed = [NativeVariable(address, keeper, lib.cornu_variable_name(address))
                            for address in addresses]
        return list(self._listed)

    @function
    def stateless_apply(self, optimizer_variables, grads, trainable_variables):
        """The values of the trained variables and its own after a step."""
        if not self.built:
            raise ValueError("%s: stateless_apply before build(variables); in %s"
                             % (self.class_name, users_line()))
        trained = self._trained()
        own = self.variables
        values = [*trainable_variables, *optimizer_variables]
        _, after = lent(self.class_name + ".stateless_apply", [*trained, *own], values,
                        lambda: self._apply_in(current(), list(grads), trained))
        return after[:len(trained)], after[len(trained):]


# ---- Gradients of functions ----

def value_and_grad(fun, argnums=0, has_aux=False):
    """jax.value_and_grad: a function that returns what `fun` returns, a scalar or, with has_aux, a
    scalar and anything else, and the gradients with respect to the argument of this number, or
    those of several, in its structure."""
    places = list(argnums) if isinstance(argnums, (list, tuple)) else [argnums]

    def both(*args, **kwargs):
        recording, args, leaves = current(), list(args), []

        def leaf(value):
            if value is None:
                return None
            leaves.append(recording.value(value))
            return leaves[-1]
        for place in places:
            args[place] = mapped(args[place], leaf)
        made = fun(*args, **kwargs)
        if has_aux and not (isinstance(made, (list, tuple)) and len(made) == 2):
            raise TypeError("value_and_grad: expected a loss and something else, %s came; in %s"
                            % (type(made).__name__, users_line()))
        found = iter(gradients(made[0] if has_aux else made, leaves))
        grads = [mapped(args[place], lambda value: None if value is None else next(found))
                 for place in places]
        return made, tuple(grads) if isinstance(argnums, (list, tuple)) else grads[0]
    return function(both)


def grad(fun, argnums=0, has_aux=False):
    """jax.grad: the gradients alone, or with has_aux also what `fun` returns beside the loss."""
    both = value_and_grad(fun, argnums, has_aux)

    def call(*args, **kwargs):
        made, grads = both(*args, **kwargs)
        return (grads, made[1]) if has_aux else grads
    return function(call)
