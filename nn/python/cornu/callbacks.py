"""Keras' callbacks: the library's own, and those written in Python as subclasses of Callback."""

import ctypes
import inspect
import signal
import sys
import threading

from ._binding.arrays import Borrowed
from ._binding.library import lib, struct
from ._models import notebook
from ._surface.missing import getter as _getter

_STATUS = lib.type("u32")
_LOGS = ctypes.POINTER(lib.type("CornuLogs"))
_HOOK = ctypes.CFUNCTYPE(_STATUS, ctypes.c_void_p, ctypes.c_void_p, _LOGS)
_INDEX_HOOK = ctypes.CFUNCTYPE(_STATUS, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, _LOGS)
_ASKED = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
STOPPED = [name for name, _ in lib.statuses].index("ERR_INTERRUPTED")
_HOOKS = {"%s_%s" % (what, when): what.startswith("epoch") or what.endswith("batch")
          for what in ("epoch", "train", "train_batch", "test", "test_batch", "predict",
                       "predict_batch")
          for when in ("begin", "end")}


class Callback:
    """The base of callbacks in Python: override what is needed. `self.model` is the model,
    `self.params` has "verbose", "epochs" and "steps"; logs are dictionaries of floats."""

    model = None
    params = {}

    def set_model(self, model):
        self.model = model

    def set_params(self, params):
        self.params = params

    def on_epoch_begin(self, epoch, logs=None):
        pass

    def on_epoch_end(self, epoch, logs=None):
        pass

    def on_train_begin(self, logs=None):
        pass

    def on_train_end(self, logs=None):
        pass

    def on_batch_begin(self, batch, logs=None):
        pass

    def on_batch_end(self, batch, logs=None):
        pass

    def on_train_batch_begin(self, batch, logs=None):
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self.on_batch_end(batch, logs)

    def on_test_begin(self, logs=None):
        pass

    def on_test_end(self, logs=None):
        pass

    def on_test_batch_begin(self, batch, logs=None):
        pass

    def on_test_batch_end(self, batch, logs=None):
        pass

    def on_predict_begin(self, logs=None):
        pass

    def on_predict_end(self, logs=None):
        pass

    def on_predict_batch_begin(self, batch, logs=None):
        pass

    def on_predict_batch_end(self, batch, logs=None):
        pass

    def _overrides(self, name):
        def has(method):
            return getattr(type(self), method) is not getattr(Callback, method) or \
                method in vars(self)
        return has("on_" + name) or (name.startswith("train_batch") and has(
            "on_" + name[len("train_"):]))


class History(Callback):
    """What fit returns: `history`, lists of values by name, and `epoch`, the epochs' indices. As a
    callback it is filled while fit runs."""

    def __init__(self, address=None, model=None):
        self.model, self.params = model, {}
        if address is None:
            self.history, self.epoch = {}, []
            return
        epochs = lib.cornu_history_epochs(address)
        self.epoch = [lib.cornu_history_epoch(address, i) for i in range(epochs)]
        keys = [lib.cornu_history_key(address, k)
                for k in range(lib.cornu_history_key_count(address))]
        # Validation has no entry for the epochs that it left out.
        self.history = {key: [lib.cornu_history_get(address, key, i) for i in range(epochs)
                              if lib.cornu_history_has(address, key, i)] for key in keys}
        lib.cornu_history_free(address)

    def _repr_html_(self):
        return notebook.history_as_html(self.history)

    def on_train_begin(self, logs=None):
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


class CallbackList:
    """Callbacks as one, for loops by hand: each hook calls that of all, with the same logs."""

    def __init__(self, callbacks=None, add_history=False, add_progbar=False, model=None, **params):
        self.callbacks = [] if callbacks is None else \
            list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                raise TypeError("CallbackList: %r works in fit alone" % (callback,))
        if add_progbar:
            raise NotImplementedError("CallbackList: add_progbar; fit draws the bar")
        if add_history and not any(isinstance(c, History) for c in self.callbacks):
            self.callbacks.append(History())
        if model is not None:
            self.set_model(model)
        self.set_params(params)

    def append(self, callback):
        self.callbacks.append(callback)

    def set_params(self, params):
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model):
        for callback in self.callbacks:
            callback.set_model(model)

    def __getattr__(self, name):
        if name[:3] != "on_":
            raise AttributeError(name)
        hooks = [getattr(callback, name) for callback in self.callbacks]

        def call(*arguments, logs=None):
            logs = {} if logs is None else logs
            if len(arguments) == (1 if _HOOKS.get(name[3:], "batch" in name) else 0):
                arguments += (logs,)
            for hook in hooks:
                hook(*arguments)
        return call


class LambdaCallback(Callback):
    """A callback of functions, each with the arguments of its hook."""

    def __init__(self, on_epoch_begin=None, on_epoch_end=None, on_train_begin=None,
                 on_train_end=None, on_train_batch_begin=None, on_train_batch_end=None, **others):
        given = dict(locals(), **others)
        for name in ("self", "others", "__class__"):
            given.pop(name, None)
        for name, function in given.items():
            if name[3:] not in _HOOKS:
                raise TypeError("LambdaCallback has no argument %r" % name)
            if function is not None:
                setattr(self, name, function)


def _binds(function, *arguments):
    """Whether the function can be called so; yes where it does not say."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


class LearningRateScheduler(Callback):
    """Sets the learning rate at the start of each epoch: schedule(epoch, learning_rate), or, as
    Keras still has it, schedule(epoch)."""

    def __init__(self, schedule, verbose=0):
        self.schedule, self.verbose = schedule, verbose
        self._takes_rate = _binds(schedule, 0, 0.0)

    def on_epoch_begin(self, epoch, logs=None):
        given = (epoch, self.model.optimizer.learning_rate) if self._takes_rate else (epoch,)
        rate = float(self.schedule(*given))
        self.model.optimizer.learning_rate = rate
        if self.verbose:
            print("\nEpoch %d: LearningRateScheduler setting learning rate to %s."
                  % (epoch + 1, rate))


# ---- The library's own ----

# Arguments that Keras has in place of a field, and what a value of it is in the field.
_KERAS_NAMES = {"no_graph": ("write_graph", lambda value: not value),
                "keep_checkpoint": ("delete_checkpoint", lambda value: not value)}
_FLAGS = {"baseline": "has_baseline", "initial_value_threshold": "has_initial_value"}
_MODES = {"auto": "CORNU_MODE_AUTO", "min": "CORNU_MODE_MIN", "max": "CORNU_MODE_MAX"}
_WORDS = {"epoch": 0, "batch": 1}
# Fields that count the items of another one.
_COUNTS = {"names": "classes"}
# Fields of which Keras' argument may be a pair, whose second number is another field.
_PAIRS = {"profile_batch": "profile_until"}
# Numbers whose 0 in a config is the default, which is another one.
_ZEROS = {("ReduceLROnPlateau", name) for name in ("factor", "patience", "min_delta")}


class _Native:
    """A callback of the library. fit makes it anew each time."""

    def __init__(self, *args, **kwargs):
        given = inspect.signature(type(self)).bind(*args, **kwargs).arguments
        self._given = {k: v for k, v in given.items() if v is not None}
        self._config()

    def _config(self):
        config = struct(self._struct)
        config._texts, self._lent = [], Borrowed()
        for field in self._fields:
            name, convert = _KERAS_NAMES.get(field, (field, lambda value: value))
            if name not in self._given:
                continue
            value = convert(self._given[name])
            if field == "mode":
                if value not in _MODES:
                    raise ValueError("mode is %r, expected auto, min or max" % (value,))
                value = lib.constants[_MODES[value]]
            elif field.endswith("_freq") and isinstance(value, str):
                if value not in _WORDS:
                    raise ValueError("%s is %r, expected a number, epoch or batch" % (name, value))
                value = _WORDS[value]
            elif (type(self).__name__, field) in _ZEROS and value == 0:
                value = lib.constants["CORNU_ZERO"]
            elif isinstance(getattr(config, field), lib.type("CornuArray")):
                value = self._lent.array(value)
            elif field in _COUNTS:
                setattr(config, _COUNTS[field], len(value))
                value = self._lent.array(list(value)).data
            elif field in _PAIRS and not isinstance(value, int):
                value, last = map(int, value.split(",") if isinstance(value, str) else value)
                setattr(config, _PAIRS[field], last)
            elif hasattr(value, "__fspath__"):
                value = value.__fspath__()
            if isinstance(value, str):
                value = value.encode("utf-8")
                config._texts.append(value)
            setattr(config, field, value)
            if field in _FLAGS:
                setattr(config, _FLAGS[field], True)
        return config

    def make(self):
        """The address of the callback, which fit takes."""
        config = self._config()
        return getattr(lib, self._function)(ctypes.byref(config))


class _Page:
    """Of a callback that writes a page: a notebook shows the page as it is now."""

    def _repr_html_(self):
        try:
            with open(self._given["filename"], encoding="utf-8") as file:
                return notebook.page_as_html(file.read(), "training report")
        except FileNotFoundError:
            return None


_SHOWN = {"Report": (_Page,)}


def _make_class(class_name, function, config):
    fields = [name for name, *_ in lib._layouts[config]["fields"]
              if name not in {*_FLAGS.values(), *_COUNTS.values(), *_PAIRS.values()}]
    names = [_KERAS_NAMES.get(field, (field,))[0] for field in fields]
    required = {"filename", "filepath", "backup_dir"}
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                    default=inspect.Parameter.empty if n in required else None)
                  for n in names]
    return type(class_name, (*_SHOWN.get(class_name, ()), _Native), {
        "__doc__": "The callback %s (%s). None is the default." % (class_name, ", ".join(names)),
        "__module__": __name__, "_function": function, "_struct": config, "_fields": fields,
        "__signature__": inspect.Signature(parameters)})


for _row in lib.callbacks:
    globals()[_row[0]] = _make_class(*_row)

__all__ = ["Callback", "CallbackList", "History", "LambdaCallback", "LearningRateScheduler"]
__all__ += [_row[0] for _row in lib.callbacks]
__getattr__ = _getter(__name__)


# ---- A call of fit, evaluate or predict ----

def _dictionary(logs):
    if not logs:
        return {}
    logs = logs.contents
    if not logs.count:
        return {}
    rows = (lib.type("CornuLog") * logs.count).from_address(logs.logs)
    return {row.name.decode("utf-8"): row.value for row in rows}


class Run:
    """The callbacks of one call, as the library takes them, and what ends it early.

    An exception in a callback, or of `feeds`, ends the call and is raised after it. So does Ctrl-C:
    Python's handlers of signals run between bytecodes, of which the library has none, so that each
    batch passes through here. Without a lock: fit calls the hooks on the thread that called it.
    """

    def __init__(self, model, callbacks, verbose, feeds=()):
        self._feeds = feeds
        self.error, self._model, self._kept, self._previous = None, model, [], None
        self._verbose = verbose
        if callbacks is None:
            callbacks = []
        if not isinstance(callbacks, (list, tuple)):
            callbacks = [callbacks]
        for callback in callbacks:
            if not isinstance(callback, (Callback, _Native)):
                raise TypeError("%r is not a callback of this package" % (callback,))
        if len(callbacks) >= lib.constants["CORNU_MAX_CALLBACKS"]:
            raise ValueError("%d callbacks are given, expected at most %d"
                             % (len(callbacks), lib.constants["CORNU_MAX_CALLBACKS"] - 1))
        self._callbacks = callbacks

    def fill(self, to):
        """Sets the array of callbacks of a config."""
        to[0] = self._guard()
        for i, callback in enumerate(self._callbacks, 1):
            to[i] = callback.make() if isinstance(callback, _Native) else self._python(callback)

    def _guard(self):
        """A callback that ends the call after the batch in which a signal came, also while another
        one holds it up. A loss that is not finite ends nothing, as in Keras: TerminateOnNaN does.
        """
        made = struct("CornuCallback", takes_nan=True)
        function = _INDEX_HOOK(lambda *_: STOPPED if self.error else 0)
        for what in ("train", "test", "predict"):
            setattr(made, what + "_batch_end", ctypes.cast(function, ctypes.c_void_p).value)
        reset = self._model.reset_own_metrics
        for name in ("epoch_begin", "test_begin") if self._model._own_step is not None else ():
            bridge = self._hook(lambda *_: reset(), _HOOKS[name], made, None)
            self._kept.append(bridge)
            setattr(made, name, ctypes.cast(bridge, ctypes.c_void_p).value)
        interrupted = _ASKED(lambda _: self.error is not None)
        made.interrupted = ctypes.cast(interrupted, ctypes.c_void_p).value
        self._kept += [made, function, interrupted]
        return ctypes.addressof(made)

    def _python(self, callback):
        callback.set_model(self._model)
        hooks = {name: getattr(callback, "on_" + name) for name in _HOOKS
                 if callback._overrides(name)}
        return self._bridge(hooks, callback)

    def _bridge(self, hooks, callback):
        """A callback of the library that calls functions of Python."""
        made = struct("CornuCallback")
        begins = {"train_begin", "test_begin", "predict_begin"}
        for name in begins | set(hooks):
            function = self._hook(hooks.get(name), _HOOKS[name], made,
                                  callback if name in begins else None, name == "epoch_end")
            self._kept.append(function)
            setattr(made, name, ctypes.cast(function, ctypes.c_void_p).value)
        if any(name.endswith("batch_end") for name in hooks):
            wants = lib.cornu_always_wants_logs
            made.wants_batch_logs = ctypes.cast(wants, ctypes.c_void_p).value
        self._kept.append(made)
        return ctypes.addressof(made)

    def _add_logs(self, made, before, logs):
        """What a callback has put into the logs of an epoch is for those after it, and for the
        history."""
        changed = {name: float(value) for name, value in logs.items()
                   if name not in before or before[name] is not value}
        if len(changed) > len(made.added):
            raise ValueError("a callback changes %d logs, expected at most %d (%s)"
                             % (len(changed), len(made.added), ", ".join(changed)))
        names = [name.encode("utf-8") for name in changed]
        for i, added in enumerate(made.added):
            added.name = names[i] if i < len(names) else None
            added.value = list(changed.values())[i] if i < len(names) else 0.0
        self._kept.append(names)

    def _hook(self, method, indexed, made, begun, is_epoch_end=False):
        def call(*arguments):
            before = dict(arguments[-1]) if indexed else None
            try:
                if begun is not None:
                    begun.set_params({"verbose": made.params.verbose,
                                      "epochs": made.params.epochs, "steps": made.params.steps})
                if method is not None:
                    method(*arguments)
                if before is not None and arguments[-1] != before and is_epoch_end:
                    self._add_logs(made, before, arguments[-1])
            except BaseException as error:      # KeyboardInterrupt and SystemExit, too
                self.error = self.error or error
            return STOPPED if self.error else 0

        if indexed:
            return _INDEX_HOOK(lambda _self, _model, index, logs: call(index, _dictionary(logs)))
        return _HOOK(lambda _self, _model, logs: call(_dictionary(logs)))

    def _on_signal(self, number, frame):
        try:
            self._previous(number, frame)
        except BaseException as error:
            self.error = self.error or error

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if callable(previous):
                self._previous = previous
                signal.signal(signal.SIGINT, self._on_signal)
        if self._verbose:
            sys.stdout.flush()
        return self

    def __exit__(self, kind, value, traceback):
        if self._verbose:
            _flush(None)
        if self._previous:
            signal.signal(signal.SIGINT, self._previous)
        for feed in self._feeds:
            self.error = self.error or feed.error
        if self.error:
            raise self.error.with_traceback(self.error.__traceback__) from None


_flush = ctypes.CDLL(None).fflush
_flush.argtypes = [ctypes.c_void_p]
