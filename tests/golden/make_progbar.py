"""The exact bytes of keras.utils.Progbar and ProgbarLogger under a scripted clock. Writes progbar/.

NAME.events  what happened, one event a line (grammar in README.md)
NAME.out     every byte written to standard output
"""

import io
import sys

import common
import keras
from keras.src.utils import progbar

OUT = common.folder("progbar")


class Clock:
    """Stands in for the module `time` inside keras.src.utils.progbar."""

    now = 0.0

    def time(self):
        return self.now


CLOCK = Clock()
progbar.time = CLOCK


class Session:
    """Runs events against Keras while writing them down."""

    def __init__(self, name, encoding="utf-8"):
        self.name, self.lines = name, []
        self.stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
        self.saved, sys.stdout = sys.stdout, self.stream

    def say(self, *words):
        self.lines.append(" ".join(str(w) for w in words))

    def time(self, now):
        CLOCK.now = float(now)
        self.say("time", repr(CLOCK.now))

    def close(self):
        sys.stdout.flush()
        sys.stdout = self.saved
        (OUT / f"{self.name}.events").write_text("\n".join(self.lines) + "\n")
        (OUT / f"{self.name}.out").write_bytes(self.stream.buffer.getvalue())


def pairs(values):
    return [f"{k}={float(v)!r}" for k, v in values.items()]


class Bar(Session):
    """A bare Progbar. `averaged`: the bar averages metrics over steps, else shows them as given."""

    def __init__(self, name, target, start=1000.0, width=20, verbose=1, interval=0.05,
                 unit="step", averaged=False, display="dynamic", encoding="utf-8"):
        super().__init__(name, encoding)
        for key, value in (("target", "unknown" if target is None else target),
                           ("width", width), ("verbose", verbose), ("interval", interval),
                           ("unit", unit), ("averaged", "yes" if averaged else "no"),
                           ("display", display), ("encoding", encoding)):
            self.say(key, value)
        self.time(start)
        kind = {} if averaged else {"stateless_metrics": set()}
        self.bar = progbar.Progbar(target, width=width, verbose=verbose, interval=interval,
                                   unit_name=unit, **kind)
        assert self.bar._dynamic_display        # always on where Python has `posix`
        self.bar._dynamic_display = display == "dynamic"
        self.say("begin")

    def _event(self, verb, finalize, current, values):
        self.bar.update(current, [(k, float(v)) for k, v in values.items()], finalize)
        self.say(verb, current, *pairs(values))

    def update(self, current, **values):        # ends the bar when current reaches target
        self._event("update", None, current, values)

    def running(self, current, **values):       # never ends the bar: ProgbarLogger in an epoch
        self._event("running", False, current, values)

    def finish(self, current, **values):        # ends the bar: ProgbarLogger at the epoch's end
        self._event("finish", True, current, values)


def losses(i):
    """Plausible, falling values."""
    return {"accuracy": 1.0 - 0.9 / (1 + 0.1 * i), "loss": 2.3 / (1 + 0.07 * i)}


def bars():
    for verbose in (1, 2, 0):
        s = Bar(f"five_verbose{verbose}", 5, verbose=verbose)
        for i in range(1, 6):
            s.time(1000.0 + 0.31 * i)
            s.running(i, **losses(i))
        s.time(1001.9)
        s.finish(5, **losses(5), val_accuracy=0.75, val_loss=0.8125)
        s.close()

    s = Bar("one_step", 1)
    s.time(1000.25)
    s.running(1, loss=0.5)
    s.time(1000.5)
    s.finish(1, loss=0.5)
    s.close()

    for step, name in ((0.004, "fast"), (0.0002, "us"), (0.1, "minutes"), (7.5, "hours")):
        s = Bar(f"steps_1875_{name}", 1875)
        for i in [1, 2, 3, 4, 9, 10, 11, 99, 100, 500, 999, 1000, 1395, 1400, 1800, 1874, 1875]:
            s.time(1000.0 + 1.7 + step * i)     # the first step is slow and left out
            s.running(i, **losses(i))
        s.time(1000.0 + 2.2 + step * 1875)
        s.finish(1875, **losses(1875))
        s.close()

    s = Bar("interval", 100)                    # updates closer than 0.05 s print nothing
    for i in range(1, 101):
        s.time(1000.0 + 0.0125 * i)
        s.running(i, loss=1.0 / i)
    s.time(1001.26)
    s.finish(100, loss=0.01)
    s.close()

    s = Bar("eta_edges", 4000)                  # 60 s and 3600 s exactly, and just past
    for i, now in ((1, 1.0), (2, 1.03), (4, 4.0), (1001, 21.0), (1002, 21.1), (2000, 1801.0),
                   (2001, 3601.0), (2002, 3606.0), (3000, 90000.0), (3999, 90001.0)):
        s.time(1000.0 + now)
        s.running(i, loss=0.25)
    s.close()

    s = Bar("per_step_edges", 8, interval=0.0)  # 1 s, 1 ms and rounding around them
    for i, now in ((1, 0.0), (1, 0.0009994), (1, 0.0009996), (1, 0.001), (1, 0.0014999),
                   (1, 0.0025), (1, 0.9994), (1, 0.9996), (1, 1.0), (1, 1.5), (1, 2.5)):
        s.time(1000.0 + now)
        s.running(i, loss=0.25)
    s.close()

    s = Bar("values", 40, interval=0.0)
    for i, v in enumerate((0.0, -0.0, 1e-3, 1.0000001e-3, 0.00099999, 9.99999e-4, -1e-3, -0.0011,
                           5e-5, 1e-10, -1e-7, 1e-38, 1e-320, 0.00005, 0.12345, 0.00125, 0.99995,
                           0.999949, 0.99999, 9.99995, 12345.678, 123456789.125, 1e15, 1e22, -42.0,
                           float("nan"), float("inf"), float("-inf"), 2.5)):
        s.time(1000.0 + 0.1 * (i + 1))
        s.running(i + 1, value=v)
    s.time(1010.0)
    s.finish(40, value=float("nan"))
    s.close()

    s = Bar("values_verbose2", 1, verbose=2)    # here the sign counts: -42 is in exponent form
    s.time(1000.0625)
    s.finish(1, a=-42.0, b=0.5, c=0.0, d=float("nan"), e=1e-3, f=float("inf"))
    s.close()

    s = Bar("shorter_line", 20)                 # the rest of a longer line is blanked
    for i, v in ((1, {"loss": 123456.0, "mean_absolute_error": 99999.0}),
                 (2, {"loss": 1.0, "mean_absolute_error": 9.0}), (3, {"loss": 0.0}),
                 (10, {"loss": 0.5}), (19, {"loss": 0.25})):
        s.time(1000.0 + 70.0 * i)
        s.running(i, **v)
    s.time(2400.0)
    s.finish(20, loss=0.125)
    s.close()

    s = Bar("no_values", 3)
    for i in (1, 2, 3):
        s.time(1000.0 + i)
        s.update(i)
    s.close()

    s = Bar("unknown_target", None)
    for i in (1, 2, 10, 12345678):
        s.time(1000.0 + 0.5 * i)
        s.running(i, loss=1.0 / i)
    s.close()
    s = Bar("zero_target", 0)
    s.time(1000.5)
    s.running(1, loss=0.5)
    s.close()

    s = Bar("averaged", 12, averaged=True)      # weighted by the steps since the last update
    for i, v in ((1, 4.0), (3, 1.0), (6, 2.0), (11, 0.5), (12, 9.0)):
        s.time(1000.0 + i)
        s.update(i, loss=v)
    s.close()

    s = Bar("static", 5, display="static")      # a newline before each line, no \b and \r
    for i in range(1, 6):
        s.time(1000.0 + i)
        s.running(i, **losses(i))
    s.finish(5, **losses(5))
    s.close()

    s = Bar("ascii", 5, encoding="ascii")
    for i in range(1, 6):
        s.time(1000.0 + i)
        s.update(i, **losses(i))
    s.close()

    for width in (1, 30, 7):
        s = Bar(f"width_{width}", 9, width=width, unit="sample")
        for i in range(0, 10):
            s.time(1000.0 + i)
            s.update(i, loss=0.5)
        s.close()

    for target in (9, 10, 99, 1000, 1001, 1000000):     # digits of the step number
        s = Bar(f"digits_{target}", target)
        s.time(1000.5)
        s.running(1, loss=0.5)
        s.time(1001.0)
        s.finish(target, loss=0.25)
        s.close()

    s = Bar("beyond_target", 4)
    for i in (4, 5):
        s.time(1000.0 + i)
        s.update(i, loss=0.5)
    s.close()


class Script(keras.callbacks.Callback):
    """Moves the clock at every hook and writes the hook down. It stands before ProgbarLogger, so
    what it sees and sets is what the bar sees."""

    def __init__(self, session):
        super().__init__()
        self.session = session

    def set_params(self, params):
        super().set_params(params)
        steps = "unknown" if params["steps"] is None else params["steps"]
        self.session.say("params", f"verbose={params['verbose']}",
                         f"epochs={params['epochs']}", f"steps={steps}")

    def hook(self, seconds, name, index=None, logs=None):
        self.session.time(CLOCK.now + seconds)
        words = [name] + ([] if index is None else [index])
        logs = {} if name.startswith("predict") else (logs or {})
        self.session.say(*words, *pairs(logs))


for _name in ("train", "test", "predict"):
    def _begin(self, logs=None, name=_name):
        self.hook(0.25, f"{name}_begin")

    def _end(self, logs=None, name=_name):
        self.hook(0.125, f"{name}_end", None, logs)

    def _batch(self, batch, logs=None, name=_name):
        self.hook(0.75 if batch == 0 else 0.0625, f"{name}_batch_end", batch, logs)

    for _hook, _function in (("begin", _begin), ("end", _end), ("batch_end", _batch)):
        setattr(Script, f"on_{_name}_{_hook}", _function)
Script.on_epoch_begin = lambda self, epoch, logs=None: self.hook(0.5, "epoch_begin", epoch)
Script.on_epoch_end = lambda self, e, logs=None: self.hook(0.0625, "epoch_end", e, logs)


def tiny_model():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    x = common.hashed_uniform("x", 30).reshape(10, 3)
    return model, x, (x.sum(1) > 0).astype("int32")


def fits():
    for verbose in (1, 2):
        for epochs in (1, 2):
            s = Session(f"fit_{epochs}_verbose{verbose}")
            s.time(1000.0)
            model, x, y = tiny_model()
            model.fit(x, y, batch_size=4, epochs=epochs, verbose=verbose,
                      validation_data=(x, y), callbacks=[Script(s)])
            s.close()
        s = Session(f"evaluate_verbose{verbose}")
        s.time(1000.0)
        model, x, y = tiny_model()
        model.evaluate(x, y, batch_size=4, verbose=verbose, callbacks=[Script(s)])
        s.close()
        s = Session(f"predict_verbose{verbose}")
        s.time(1000.0)
        model.predict(x, batch_size=4, verbose=verbose, callbacks=[Script(s)])
        s.close()

    s = Session("fit_unknown_steps")            # a generator: the length is known at its end
    s.time(1000.0)
    model, x, y = tiny_model()
    batches = ((x[i : i + 4], y[i : i + 4]) for i in (0, 4))
    model.fit(batches, epochs=1, verbose=1, callbacks=[Script(s)])
    s.close()


if __name__ == "__main__":
    bars()
    fits()
