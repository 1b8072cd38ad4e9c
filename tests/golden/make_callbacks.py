"""Keras' callbacks under scripted logs, and in small trainings. Writes callbacks/.

NAME.events, NAME.out, NAME.csv   scripted logs (README.md)
trace.txt                         hooks around a LearningRateScheduler, and the history's keys
ema.safetensors                   SwapEMAWeights: weights in evaluation, and at the end
"""

import io
import sys
import warnings

import common
import keras
import make_hooks
import numpy as np

C = keras.callbacks
NAN, INF = float("nan"), float("inf")


class Script:
    """Callbacks driven by hand, as by CallbackList: later ones see logs added by earlier ones."""

    def __init__(self, out, name, *callbacks, before=""):
        self.out, self.name, self.lines, self.callbacks = out, name, [], []
        self.csv = common.HERE / "log.csv"
        if before:
            self.csv.write_text(before, newline="")
            self.lines.append(f"before {before.strip()}")
        self.model, x, y = make_hooks.tiny_model()
        self.model.optimizer.learning_rate = 0.1
        self.model.train_on_batch(x, y)
        for kind, settings in callbacks:
            self.lines.append(f"callback {kind.__name__}")
            self.lines += [f"{k} {v}" for k, v in settings.items()]
            given = dict(settings)
            if kind is C.CSVLogger:
                given["filename"] = str(self.csv)
            if kind is C.LearningRateScheduler:
                factor = given.pop("factor")
                given["schedule"] = lambda epoch, rate: rate * factor if epoch else rate
            callback = kind(**given)
            callback.set_model(self.model)
            callback.set_params({"epochs": 100, "steps": 1, "verbose": 0})
            self.callbacks.append(callback)
        self.saved, self.stream = sys.stdout, io.StringIO()
        sys.stdout = self.stream
        self.model.stop_training = False

    def call(self, hook, *index, **logs):
        pairs = [f"{k}={float(v)!r}" for k, v in logs.items()]
        self.lines.append(" ".join([hook, *map(str, index), *pairs]))
        rate = float(self.model.optimizer.learning_rate)
        given = dict(sorted(logs.items()))
        for callback in self.callbacks:
            getattr(callback, "on_" + hook)(*index, given)
        added = [f"{k}={v!r}" for k, v in given.items() if k not in logs]
        if added:
            self.lines.append(" ".join(["adds", *added]))
        if float(self.model.optimizer.learning_rate) != rate:
            self.lines.append(f"rate {float(self.model.optimizer.learning_rate)!r}")
        stops, self.model.stop_training = self.model.stop_training, False
        if stops:
            self.lines.append("stops")
        return stops

    def epochs(self, *logs, first=0):
        """Each weight of the model is 1 after epoch 0, 2 after the next one, and so on."""
        self.call("train_begin")
        for e, values in enumerate(logs, first):
            self.call("epoch_begin", e)
            self.model.set_weights([np.full_like(w, e + 1) for w in self.model.get_weights()])
            if self.call("epoch_end", e, **values):
                break
        self.end()

    def end(self):
        self.call("train_end")
        weights = {float(w) for array in self.model.get_weights() for w in array.ravel()}
        if len(weights) == 1:
            self.lines.append(f"weights {weights.pop():g}")
        sys.stdout = self.saved
        (self.out / f"{self.name}.events").write_text("\n".join(self.lines) + "\n")
        (self.out / f"{self.name}.out").write_text(self.stream.getvalue())
        if self.csv.exists():
            (self.out / f"{self.name}.csv").write_bytes(self.csv.read_bytes())
            self.csv.unlink()


def of(name, *values, **constant):
    return [({name: v} if v is not None else {}) | constant for v in values]


def early_stopping(out):
    def case(name, logs, **settings):
        Script(out, f"early_{name}", (C.EarlyStopping, {"verbose": 1} | settings)).epochs(*logs)

    falls = of("val_loss", 0.5, 0.4, 0.41, 0.39, 0.39, 0.4, 0.395, 0.38, loss=1.0)
    case("default", falls)
    case("patience", falls, patience=3)
    case("quiet", falls, verbose=0, restore_best_weights=True)
    case("restore", falls, patience=2, restore_best_weights=True)
    case("restore_unstopped", falls[:4], patience=9, restore_best_weights=True)
    case("min_delta", falls, min_delta=0.02, patience=2)
    case("max", of("val_loss", 0.5, 0.6, 0.55, 0.7, 0.7), mode="max", patience=2)
    case("accuracy", of("accuracy", 0.5, 0.6, 0.6, 0.60001, 0.5, loss=1.0), monitor="accuracy",
         patience=2)
    case("baseline", falls, baseline=0.395, patience=2)
    case("baseline_restore", falls, baseline=0.1, patience=3, restore_best_weights=True)
    case("late", falls, start_from_epoch=3, patience=2, restore_best_weights=True)
    case("rises", of("val_loss", 1.0, 2.0, 3.0, 0.5, loss=1.0))
    case("unvalidated", of("val_loss", 0.5, None, 0.6, None, 0.7, None, 0.4, loss=1.0), patience=2,
         restore_best_weights=True)
    case("nan", of("val_loss", 0.5, NAN, 0.4, NAN, 0.4), patience=2)
    case("nan_first", of("val_loss", NAN, 0.5, 0.4, 0.3), patience=2)
    # In f32 the second is not less than the first.
    case("rounding", of("val_loss", 0.25, 0.25 - 1e-9, 0.2499999), patience=1)


def plateau(out):
    def case(name, logs, **settings):
        Script(out, f"plateau_{name}",
               (C.ReduceLROnPlateau, {"verbose": 1} | settings)).epochs(*logs)

    flat = of("val_loss", *[0.5] * 8, loss=1.0)
    case("default", of("val_loss", *[0.5] * 13, loss=1.0))
    case("patience", flat, patience=2)
    case("patience_0", flat, patience=0, factor=0.5)
    case("cooldown", flat, patience=1, cooldown=2, factor=0.5)
    case("cooldown_improves", of("val_loss", 0.5, 0.5, 0.4, 0.4, 0.4, 0.3, 0.3, loss=1.0),
         patience=1, cooldown=1, factor=0.3)
    case("min_lr", flat, patience=1, min_lr=0.007)
    case("min_delta", of("val_loss", 0.5, 0.4999, 0.49985, 0.4998, 0.4, loss=1.0), patience=1)
    case("accuracy", of("val_accuracy", 0.5, 0.6, 0.6, 0.59, 0.7), monitor="val_accuracy",
         patience=1, factor=0.25)
    case("unvalidated", of("val_loss", 0.5, None, 0.5, None, 0.5, loss=1.0), patience=1)
    case("quiet", flat, patience=2, verbose=0)


def others(out):
    rate = C.LearningRateScheduler
    four = of("loss", 0.5, 0.25, 0.125, 0.0625, accuracy=0.5)
    Script(out, "scheduler", (rate, {"factor": 0.5, "verbose": 1})).epochs(*four)
    Script(out, "scheduler_small", (rate, {"factor": 0.001, "verbose": 1})).epochs(*four)
    Script(out, "scheduler_quiet", (rate, {"factor": 2.0, "verbose": 0})).epochs(*four)

    csv, validated = C.CSVLogger, [{"loss": 0.5, "accuracy": 1.0, "val_loss": 0.1, "val_accuracy":
                                   1 / 3}, {"loss": 1e-5, "accuracy": 0.0}, {"loss": NAN,
                                   "accuracy": INF, "val_loss": 1e16, "val_accuracy": 123456.0}]
    Script(out, "csv", (csv, {})).epochs(*validated)
    Script(out, "csv_unvalidated", (csv, {})).epochs(*four, first=7)
    Script(out, "csv_late_validation", (csv, {})).epochs(*validated[1:])
    Script(out, "csv_semicolon", (csv, {"separator": ";"})).epochs({"a;b": 1.0, 'c"d': 2.0})
    Script(out, "csv_point", (csv, {"separator": "."})).epochs({"loss": 0.5})
    Script(out, "csv_replace", (csv, {}), before="epoch,x\r\n").epochs(*four)
    Script(out, "csv_append", (csv, {"append": True}), before="epoch,x\r\n").epochs(*four, first=4)
    Script(out, "csv_append_new", (csv, {"append": True})).epochs(*four)
    Script(out, "csv_before_rate", (csv, {}), (rate, {"factor": 0.5})).epochs(*four)
    Script(out, "csv_behind_rate", (rate, {"factor": 0.5}), (csv, {})).epochs(*four)

    losses = {"nan": (0.5, NAN, NAN), "inf": (0.5, 0.25, INF), "none": (1e38, -5.0)}
    for name, values in losses.items():
        s = Script(out, f"terminate_{name}", (C.TerminateOnNaN, {}))
        for batch, value in enumerate(values):
            s.call("train_batch_end", batch, accuracy=0.5, loss=value)
        s.end()


def trace(out):
    """Recorder a before the callback and b after it, as in make_hooks.py."""
    model, x, y = make_hooks.tiny_model()
    lines = []
    a, b = (make_hooks.Recorder(name, lines) for name in "ab")
    scheduler = C.LearningRateScheduler(lambda epoch, rate: rate)
    history = model.fit(x, y, 4, 2, 0, [a, scheduler, b], validation_data=(x[:6], y[:6]))
    lines.append("history " + ",".join(sorted(history.history)))
    (out / "trace.txt").write_text("\n".join(lines) + "\n")


def ema(out):
    """Three epochs of three steps: the averages are evaluated; records the weights then."""
    arrays, cases = {}, {}
    x = common.hashed_uniform("x", 30).reshape(10, 3)
    y = (x.sum(1) > 0).astype("int32")
    for name, settings, callback in (
        ("none", {}, None), ("plain", {}, {}), ("on_epoch", {}, {"swap_on_epoch": True}),
        ("overwrite", {"ema_overwrite_frequency": 4}, {}),
        ("overwrite_on_epoch", {"ema_overwrite_frequency": 4}, {"swap_on_epoch": True}),
    ):
        model, _, _ = make_hooks.tiny_model()
        optimizer = keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.6, **settings)
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        start = [common.hashed_uniform(f"start{i}", w.size).reshape(w.shape)
                 for i, w in enumerate(model.get_weights())]
        model.set_weights(start)
        seen = []
        look = C.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(model.get_weights()))
        callbacks = [look] if callback is None else [C.SwapEMAWeights(**callback), look]
        history = model.fit(x, y, 4, 3, 0, callbacks, validation_data=(x[:6], y[:6]),
                            shuffle=False).history
        arrays |= {f"{name}/loss": np.array(history["loss"]),
                   f"{name}/val_loss": np.array(history["val_loss"])}
        arrays |= {f"{name}/start_{i}": w for i, w in enumerate(start)}
        arrays |= {f"{name}/after_{i}": w for i, w in enumerate(model.get_weights())}
        arrays |= {f"{name}/seen_{e}_{i}": w for e, ws in enumerate(seen) for i, w in enumerate(ws)}
        cases[name] = settings | ({"callback": callback} if callback is not None else {})
    common.write_arrays(out / "ema.safetensors", arrays | {"x": x, "y": y}, cases)


if __name__ == "__main__":
    warnings.simplefilter("ignore")   # a monitored log that an epoch lacks
    folder = common.folder("callbacks")
    early_stopping(folder)
    plateau(folder)
    others(folder)
    trace(folder)
    ema(folder)
