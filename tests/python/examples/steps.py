"""What the trainings of a program show in their first steps, by public names of Keras:

- the logs of each batch of fit, which are the running means of the loss and metrics, and what
  train_on_batch returns
- of hand-written steps the loss whose gradients are taken, and the numbers that a function returns
  which tf.function or jax.jit has compiled

A step ends with a batch of fit or of train_on_batch, with a call of a compiled function that
updates weights by an optimizer, or with such an update outside of one.
"""

import contextlib
import functools
import inspect
import sys

import numpy as np


class Enough(BaseException):
    """The steps are done."""


class Record:
    """report: the numbers of each name, one for each step.

    first_use(layer): called with each model, and layer outside of one, when it is called on data,
    or its weights are read; whether it has set weights, after which the call is made again.
    """

    def __init__(self, package, steps, trainings, first_use):
        self.report, self._steps, self._trainings = {}, steps, trainings
        self._package, self._first_use = package, first_use
        self._ended, self._count, self._depth, self._inside, self._held = 0, 0, 0, 0, []
        self._updates, self._trains = False, False
        self._watch_calls()
        self._watch_trainings()
        self._watch_optimizers()
        if "tensorflow" in sys.modules:
            self._watch_tensorflow(sys.modules["tensorflow"])
        if "jax" in sys.modules:
            self._watch_jax(sys.modules["jax"])

    # ---- Numbers ----

    def note(self, name, value, summed=False):
        found = _number(value, summed)
        if found is not None and len(self.report.setdefault(name, [])) < self._steps:
            self.report[name].append(found)

    def _note_all(self, name, values):
        for i, value in enumerate(self._leaves(values)):
            self.note("%s %d" % (name, i), value)

    def _leaves(self, values):
        return self._package.tree.flatten(values)

    def _note_held(self):
        """Losses whose gradients were taken, which are known once these have been used."""
        held, self._held = self._held, []
        for value in held:
            self.note("loss of a tape", value, summed=True)     # as its gradients are

    def step(self):
        """After each; raises Enough after the last."""
        self._note_held()
        self._count += 1
        if self._count >= self._steps:
            self._count, self._ended = 0, self._ended + 1
            if self._ended >= self._trainings:
                raise Enough
            return True
        return False

    def finish(self):
        try:
            self._note_held()
        except Exception:       # pylint: disable=broad-exception-caught
            pass

    # ---- Calls of models and layers ----

    def _watch_calls(self):
        for kind in {base for each in (self._package.Model, self._package.layers.Dense)
                     for base in each.__mro__ if "__call__" in vars(base)}:
            kind.__call__ = self._watched_call(kind.__call__)

    def _watched_call(self, real):
        @functools.wraps(real)
        def call(layer, *args, **kwargs):
            if self._depth or self._is_symbolic((args, kwargs)):
                return real(layer, *args, **kwargs)
            self._depth += 1
            try:
                made = real(layer, *args, **kwargs)
                if hasattr(layer, "weights") and self._first_use(layer) and self._is_known(made):
                    made = real(layer, *args, **kwargs)
                return made
            finally:
                self._depth -= 1
        return call

    def _is_symbolic(self, values):
        return any(isinstance(each, self._package.KerasTensor) for each in self._leaves(values))

    def _is_known(self, made):
        return any(isinstance(each, np.ndarray) for each in self._leaves(made))

    # ---- Trainings ----

    def _watch_trainings(self):
        def kind_with(name):
            return next(base for base in self._package.Model.__mro__ if name in vars(base))
        record = self

        class Watch(self._package.callbacks.Callback):
            def on_train_begin(self, logs=None):
                record._first_use(self.model)

            def on_train_batch_end(self, batch, logs=None):
                for name, value in dict(logs or {}).items():
                    record.note("fit %d: %s" % (record._ended + 1, name), value)
                if record.step():
                    self.model.stop_training = True

        fit = kind_with("fit").fit

        @functools.wraps(fit)
        def watched_fit(model, *args, **kwargs):
            given = inspect.signature(fit).bind(model, *args, **kwargs)
            given.arguments.update(shuffle=False, verbose=0)
            given.arguments["callbacks"] = [*_listed(given.arguments.get("callbacks")), Watch()]
            with self._training():
                return fit(*given.args, **given.kwargs)
        kind_with("fit").fit = watched_fit
        kind = kind_with("train_on_batch")
        kind.train_on_batch = self._watched_batch(kind.train_on_batch)
        for name in ("evaluate", "predict", "test_on_batch", "predict_on_batch", "get_weights",
                     "save", "save_weights"):
            kind = kind_with(name)
            setattr(kind, name, self._watched_use(getattr(kind, name)))

    def _watched_batch(self, real):
        @functools.wraps(real)
        def train_on_batch(model, x, *args, **kwargs):
            if not model.built:
                model(x)
            self._first_use(model)
            with self._training():
                made = real(model, x, *args, **kwargs)
            self._note_all("train_on_batch", made)
            self.step()
            return made
        return train_on_batch

    def _watched_use(self, real):
        @functools.wraps(real)
        def use(model, *args, **kwargs):
            if _calls_from_package(sys._getframe(1)):
                return real(model, *args, **kwargs)
            if model.built:
                self._first_use(model)
            made = real(model, *args, **kwargs)
            return real(model, *args, **kwargs) if self._first_use(model) else made
        return use

    @contextlib.contextmanager
    def _training(self):
        """While the package runs a step, of which fit and train_on_batch tell."""
        before, self._trains = self._trains, True
        try:
            yield
        finally:
            self._trains = before

    # ---- Hand-written steps ----

    def _watch_optimizers(self):
        for kind in self._package.optimizers.SGD.__mro__:
            for name in {"apply", "stateless_apply"} & set(vars(kind)):
                setattr(kind, name, self._watched_update(getattr(kind, name)))

    def _watched_update(self, real):
        @functools.wraps(real)
        def update(*args, **kwargs):
            made = real(*args, **kwargs)
            self._updates = True
            if not self._inside and not self._trains:
                self.step()
            return made
        return update

    def call_compiled(self, function, name, args, kwargs):
        outer, before = self._inside, self._updates
        self._inside, self._updates = outer + 1, False
        try:
            made = function.made(*args, **kwargs)
        finally:
            function.updates |= self._updates
            self._inside, self._updates = outer, before or self._updates
        if not outer:
            self._note_all("function " + name, made)
            if function.updates:
                self.step()
        return made

    def _watch_compiler(self, module, name):
        real = getattr(module, name)

        @functools.wraps(real)
        def compiler(function=None, *args, **options):
            if function is None:
                return functools.partial(compiler, **options)
            made = real(function, *args, **options)
            return made if _calls_from_package(sys._getframe(1)) else \
                _Compiled(self, made, getattr(function, "__name__", "function"))
        vars(compiler).update({key: value for key, value in vars(real).items()
                               if key != "__wrapped__"})
        setattr(module, name, compiler)

    def _watch_tensorflow(self, tf):
        self._watch_compiler(tf, "function")
        real = tf.GradientTape.gradient
        record = self

        @functools.wraps(real)
        def gradient(tape, target, *args, **kwargs):
            made = real(tape, target, *args, **kwargs)
            if not record._inside and not record._trains:
                record._held += record._leaves(target)[:1]
            return made
        tf.GradientTape.gradient = gradient

    def _watch_jax(self, jax):
        self._watch_compiler(jax, "jit")
        real = jax.value_and_grad

        @functools.wraps(real)
        def value_and_grad(*args, **options):
            return self._noting_value(real(*args, **options))
        vars(value_and_grad).update({key: value for key, value in vars(real).items()
                                     if key != "__wrapped__"})
        jax.value_and_grad = value_and_grad

    def _noting_value(self, function):
        def call(*args, **kwargs):
            made = function(*args, **kwargs)
            if not self._inside and not self._trains:
                self._note_all("value_and_grad", made[0])
            return made
        return call


class _Compiled:
    """A compiled function, and whether it updates weights."""

    def __init__(self, record, made, name):
        self._record, self.made, self._name, self.updates = record, made, name, False
        functools.update_wrapper(self, made, updated=())

    def __call__(self, *args, **kwargs):
        return self._record.call_compiled(self, self._name, args, kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name):
        return getattr(self.made, name)


def _calls_from_package(frame):
    """Whether it is not the program that calls."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in (
        "keras", "cornu", "tensorflow", "jax", "functools")


def _listed(callbacks):
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else \
        list(getattr(callbacks, "callbacks", [callbacks]))


def _number(value, summed=False):
    """A scalar that is known, or the sum of an array, as a float; else None."""
    try:
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        array = array.sum() if summed else array
        return float(array.reshape(())) if array.size == 1 and array.dtype.kind in "fiub" else None
    except Exception:       # pylint: disable=broad-exception-caught
        return None         # what is traced
