"""What is registered with TensorFlow, and replaced in it."""

import functools
import inspect
import sys

import numpy as np

from .._binding.imports import when_imported
from .._binding.nested import mapped
from .._tensors.counterparts import connect_functions
from .._tensors.either import Either
from .._tensors.functions import Function, GradientTape
from .._tensors.symbols import Tensor, find_tensor
from .._tensors.traces import tracing
from .._tensors.values import Readable, Value, current, state
from . import draws
from .complex import is_complex
from .functions import FUNCTIONS
from .images import REPLACED
from .loops import LOOPS


def known_array(x):
    """The elements of a value or a variable as an array; None if a model or a function that is
    being recorded computes with them later."""
    if isinstance(x, Value):
        lazy = x.recording.values is not None and x.recording not in state.recordings
        return x.numpy() if x._array is not None or lazy else None
    if isinstance(x, Readable) and tracing() is None and current() is None:
        return x.numpy()
    return None


def _find(tensorflow, path):
    """The function of a dotted name; None in a TensorFlow without it."""
    return functools.reduce(lambda at, name: getattr(at, name, None), path.split("."), tensorflow)


def connect(tensorflow):
    """Whether it is connected now; once for each process."""
    if hasattr(tensorflow.GradientTape, "cornu_tape"):
        return False
    eager = type(tensorflow.zeros(()))
    _leave_as_it_is()

    def is_ours(value):
        return isinstance(value, (Tensor, Value, Readable))

    _make_dispatcher(tensorflow, eager)().register()
    tensorflow.GradientTape = _make_tape(tensorflow, eager, is_ours)
    tensorflow.function = _make_function(tensorflow)
    for module, functions in ((tensorflow, LOOPS), (tensorflow.image, REPLACED)):
        for name, made in functions.items():
            setattr(module, name, _chosen(getattr(module, name), made))
    _replace_saving(tensorflow)
    for name, draw in draws.DRAWS.items():
        real = _find(tensorflow.random, name)
        if real is not None:
            setattr(tensorflow.random, name, _drawing(real, draw))
    _make_data_sets(tensorflow.data.Dataset)
    connect_functions(tensorflow.experimental.numpy)
    when_imported("tensorflow.experimental.numpy", connect_functions)   # another module than that
    return True


def _leave_as_it_is():
    """AutoGraph rewrites the Python that functions of graphs call; not that of this package."""
    try:
        from tensorflow.python.autograph.core import config
        own = config.DoNotConvert(__name__.split(".", maxsplit=1)[0])
        config.CONVERSION_RULES = (own, *config.CONVERSION_RULES)
    except (ImportError, AttributeError):
        pass        # of a version that has no such rules, and rewrites it


# ---- Functions ----

def _make_dispatcher(tensorflow, eager):
    known = {inspect.unwrap(function): (inspect.signature(function), made)
             for function, made in ((_find(tensorflow, path), made)
                                    for path, made in FUNCTIONS.items()) if function is not None}

    def plain(value):
        """Arguments without TensorFlow's classes: its tensors as arrays, its dtypes by name."""
        if isinstance(value, eager):
            return value.numpy()
        return value.name if isinstance(value, tensorflow.DType) else value

    class Dispatcher(tensorflow.__internal__.dispatch.GlobalOpDispatcher):
        """Computes a function of TensorFlow that is given a tensor of Cornu."""

        def handle(self, op, args, kwargs):
            given = [*args, *kwargs.values()]
            if find_tensor(given) is None and not is_complex(given):
                return self.NOT_SUPPORTED
            signature, made = known.get(inspect.unwrap(op), (None, None))
            if made is None:
                return self.NOT_SUPPORTED
            given = dict(signature.bind(*args, **kwargs).arguments)
            for unused in ("name", "bad_indices_policy"):
                given.pop(unused, None)
            return made(**mapped(given, plain))
    return Dispatcher


def _chosen(real, made):
    """A function of either package, by what it is given."""
    @functools.wraps(real)
    def call(*args, **kwargs):
        ours = find_tensor([*args, *kwargs.values()]) is not None
        return (made if ours else real)(*args, **kwargs)
    return call


def _replace_saving(tensorflow):
    """tf.saved_model.save takes models of Cornu, too: see Model.export. TensorFlow makes the module
    anew from its own one when it is first used."""
    real = tensorflow.saved_model.save

    @functools.wraps(real)
    def save(obj, export_dir, *args, **kwargs):
        if hasattr(type(obj), "to_keras"):
            return obj.export(export_dir, format="tf_saved_model", verbose=False)
        return real(obj, export_dir, *args, **kwargs)
    tensorflow.saved_model.save = save
    module = sys.modules.get(real.__module__)
    if getattr(module, "save", None) is real:
        module.save = save


def _drawing(real, draw):
    """A function of tf.random: in what is recorded or traced the draws are the library's, which
    differ from run to run; TensorFlow's would be a constant."""
    signature = inspect.signature(real)

    @functools.wraps(real)
    def call(*args, **kwargs):
        recording = current()
        if tracing() is None and (recording is None or recording.values is not None) and \
                find_tensor([*args, *kwargs.values()]) is None:
            return real(*args, **kwargs)
        given = dict(signature.bind(*args, **kwargs).arguments)
        given.pop("name", None)
        return draw(**given)
    return call


# ---- Tapes ----

def _make_tape(tensorflow, eager, is_ours):
    real = tensorflow.GradientTape

    class Tape(real):
        """tf.GradientTape of tensors and variables of either package. A target of ours may depend
        on TensorFlow's variables by results of TensorFlow that ours were computed of."""

        cornu_tape = GradientTape

        def __init__(self, persistent=False, watch_accessed_variables=True):
            super().__init__(persistent, watch_accessed_variables)
            self._cornu = GradientTape(persistent)

        def __enter__(self):
            self._cornu.__enter__()
            return super().__enter__()

        def __exit__(self, *error):
            super().__exit__(*error)
            self._cornu.__exit__(*error)

        def watch(self, tensor):
            flat = []
            mapped(tensor, flat.append)
            for each in flat:
                self._cornu.watch(each)
                if not is_ours(each) and not isinstance(each, np.ndarray):
                    super().watch(each)

        def gradient(self, target, sources, output_gradients=None, **options):
            flat = []
            mapped(target, flat.append)
            if not any(is_ours(each) for each in flat):
                return super().gradient(target, sources, output_gradients, **options)
            made, flat, between = [], [], self._cornu.taken(eager)
            mapped(sources, flat.append)
            theirs = [x for x in flat if isinstance(x, (eager, tensorflow.Variable))]
            between = [x for x in between if not any(x is each for each in theirs)]
            direct = self._cornu.gradient(target, sources, output_gradients)
            if not between or not theirs:
                return direct
            inner = self._cornu.gradient(target, between, output_gradients)
            mapped(direct, made.append)
            return self._joined(sources, flat, made, theirs, zip(between, inner))

        def _joined(self, sources, flat, made, theirs, inner):
            """The gradients, of which those of TensorFlow's sources get what comes by its results
            in between."""
            known = [(x, tensorflow.convert_to_tensor(g.numpy())) for x, g in inner
                     if g is not None]
            through = super().gradient([x for x, _ in known], theirs, [g for _, g in known])
            found = {id(x): g for x, g in zip(theirs, through) if g is not None}
            taken = {id(x) for x in self._cornu.taken((eager, tensorflow.Variable))}
            for i, source in enumerate(flat):
                if id(source) in found:
                    given = made[i].numpy() if id(source) in taken else 0
                    made[i] = found[id(source)] + given
            given = iter(made)
            return mapped(sources, lambda _: next(given))
    Tape.__name__ = Tape.__qualname__ = real.__name__
    return Tape


# ---- tf.data ----

def _make_data_sets(kind):
    """Functions of tf.data that join data sets make one of ours, where one of these is ours."""
    from ..utils.batches import Dataset
    for name in ("zip", "sample_from_datasets", "choose_from_datasets"):
        own, real = getattr(Dataset, name, None), getattr(kind, name, None)
        if own is not None and real is not None:
            setattr(kind, name, staticmethod(_joining(real, own, Dataset)))


def _joining(real, own, kind):
    @functools.wraps(real)
    def call(*args, **kwargs):
        given = []
        mapped([*args, *kwargs.values()], given.append)
        return (own if any(isinstance(each, kind) for each in given) else real)(*args, **kwargs)
    return call


# ---- tf.function ----

def _make_function(tensorflow):
    real = tensorflow.function

    @functools.wraps(real)
    def function(func=None, **options):
        if func is None:
            return lambda given: function(given, **options)
        if (getattr(func, "__module__", None) or "").partition(".")[0] in ("keras", "tensorflow"):
            return real(func, **options)    # as Keras wants it in export
        return Either(func, real(func, **options), Function(func),
                      lambda given: tensorflow.inside_function())
    return function
