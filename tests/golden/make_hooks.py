"""The order and arguments of callback hooks in Keras. Writes hooks/ and checkpoint/.

hooks/NAME.txt        one hook a line: CALLBACK HOOK [INDEX] [log keys in their order, by commas]
hooks/history.json    History of a two-epoch fit: {"epoch", "history", "params"}
checkpoint/NAME.events, NAME.out    ModelCheckpoint driven by scripted logs (README.md)
"""

import io
import json
import sys

import common
import keras

L = keras.layers


class Recorder(keras.callbacks.Callback):
    """Records every hook; `stop` is the (hook, index) at which it stops training."""

    def __init__(self, name, lines, stop=None):
        super().__init__()
        self.name, self.lines, self.stop = name, lines, stop

    def set_params(self, params):
        super().set_params(params)
        text = " ".join(f"{k}={params[k]}" for k in sorted(params))
        self.lines.append(f"{self.name} set_params {text}")

    def set_model(self, model):
        super().set_model(model)
        self.lines.append(f"{self.name} set_model")

    def record(self, hook, index, logs):
        words = [self.name, hook] + ([] if index is None else [str(index)])
        self.lines.append(" ".join(words + ([",".join(logs)] if logs else [])))
        if self.stop == (hook, index):
            self.model.stop_training = True


def _plain(hook):
    return lambda self, logs=None: self.record(hook, None, logs)


def _indexed(hook):
    return lambda self, index, logs=None: self.record(hook, index, logs)


for _name in ("train", "test", "predict"):
    for _part in ("begin", "end"):
        setattr(Recorder, f"on_{_name}_{_part}", _plain(f"on_{_name}_{_part}"))
        _batch = f"on_{_name}_batch_{_part}"
        setattr(Recorder, _batch, _indexed(_batch))
for _part in ("begin", "end"):
    setattr(Recorder, f"on_epoch_{_part}", _indexed(f"on_epoch_{_part}"))


def tiny_model(metrics=("accuracy",), **keywords):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((3,)), L.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=list(metrics), **keywords)
    x = common.hashed_uniform("x", 30).reshape(10, 3)
    return model, x, (x.sum(1) > 0).astype("int32")


def hooks():
    out = common.folder("hooks")

    def fit(name, stop=None, validation=True, compiled=(), two=False, **keywords):
        model, x, y = tiny_model(**dict(compiled))
        lines = []
        callbacks = [Recorder("a", lines, stop)] + ([Recorder("b", lines)] if two else [])
        data = {"validation_data": (x[:6], y[:6])} if validation else {}
        keywords = {"epochs": 2, "batch_size": 4, "verbose": 0} | data | keywords
        history = model.fit(x, y, callbacks=callbacks, **keywords)
        lines.append(f"result epochs {len(history.epoch)}")
        (out / f"{name}.txt").write_text("\n".join(lines) + "\n")
        return history

    history = fit("fit")
    text = {k: getattr(history, k) for k in ("epoch", "history", "params")}
    (out / "history.json").write_text(json.dumps(text, indent=1, sort_keys=True) + "\n")
    fit("fit_two_callbacks", two=True)
    fit("fit_no_validation", validation=False)
    fit("fit_no_metrics", compiled={"metrics": ()})
    metrics = ["sparse_categorical_crossentropy", "accuracy"]
    fit("fit_more_metrics", compiled={"metrics": metrics}, epochs=1)
    fit("fit_one_batch", epochs=1, batch_size=32)
    fit("fit_initial_epoch", initial_epoch=1, epochs=3)
    fit("fit_no_epochs", epochs=0)
    fit("fit_validation_freq", validation_freq=2, epochs=4)
    fit("fit_validation_split", validation=False, validation_split=0.25)
    fit("fit_validation_batch", validation_batch_size=3, epochs=1)
    fit("fit_steps", steps_per_epoch=2, validation_steps=1, epochs=1)
    fit("fit_steps_per_execution_2", compiled={"steps_per_execution": 2}, epochs=1)
    fit("fit_steps_per_execution_9", compiled={"steps_per_execution": 9}, two=True)
    fit("fit_steps_in_executions", compiled={"steps_per_execution": 2}, batch_size=2,
        steps_per_epoch=4, validation_steps=3)
    fit("stop_in_execution_end", ("on_train_batch_end", 1), compiled={"steps_per_execution": 2})
    fit("stop_in_batch_begin", ("on_train_batch_begin", 1))
    fit("stop_in_batch_end", ("on_train_batch_end", 1), two=True)
    fit("stop_in_epoch_begin", ("on_epoch_begin", 0))
    fit("stop_in_epoch_end", ("on_epoch_end", 0))
    fit("stop_in_validation", ("on_test_batch_end", 0))
    fit("stop_in_train_begin", ("on_train_begin", None))

    for name, call in (("evaluate", lambda m, x, y, c: m.evaluate(x, y, 4, 0, callbacks=c)),
                       ("predict", lambda m, x, y, c: m.predict(x, 4, 0, callbacks=c))):
        for steps, suffix in ((1, ""), (2, "_steps_per_execution_2")):
            model, x, y = tiny_model(steps_per_execution=steps)
            lines = []
            call(model, x, y, [Recorder("a", lines)])
            (out / f"{name}{suffix}.txt").write_text("\n".join(lines) + "\n")


class Scripted:
    """ModelCheckpoint under scripted epochs; it prints the names of files instead of saving."""

    def __init__(self, out, name, path, metrics=("accuracy",), **keywords):
        self.out, self.name = out, name
        settings = {"verbose": 1} | keywords
        self.lines = [f"filepath {path}"] + [f"{k} {v}" for k, v in settings.items()]
        self.saved, self.stream = sys.stdout, io.StringIO()
        self.model, x, y = tiny_model(metrics)
        self.model.train_on_batch(x, y)
        self.model.save = self.model.save_weights = self.save
        self.checkpoint = keras.callbacks.ModelCheckpoint(path, **settings)
        self.checkpoint.set_model(self.model)
        sys.stdout = self.stream

    def save(self, path, overwrite):
        assert overwrite
        self.lines.append(f"saves {path}")

    def epoch(self, index, batches=0, **logs):
        self.lines.append(f"epoch_begin {index}")
        self.checkpoint.on_epoch_begin(index)
        pairs = " ".join(f"{k}={float(v)!r}" for k, v in logs.items())
        for b in range(batches):
            self.lines.append(f"train_batch_end {b} {pairs}")
            self.checkpoint.on_train_batch_end(b, logs)
        self.lines.append(f"epoch_end {index} {pairs}")
        self.checkpoint.on_epoch_end(index, logs)

    def close(self):
        sys.stdout = self.saved
        (self.out / f"{self.name}.events").write_text("\n".join(self.lines) + "\n")
        (self.out / f"{self.name}.out").write_text(self.stream.getvalue())


def checkpoints():
    out = common.folder("checkpoint")
    losses = (0.5, 0.25, 0.25, 0.3, 0.2499999, float("nan"), 0.1, -1.0, 123456.789)

    s = Scripted(out, "every_epoch", "model.keras")
    for e in range(3):
        s.epoch(e, loss=losses[e], val_loss=losses[e])
    s.close()
    s = Scripted(out, "best", "best.keras", save_best_only=True)
    for e, v in enumerate(losses):
        s.epoch(e, loss=1.0, val_loss=v)
    s.close()
    s = Scripted(out, "best_accuracy", "best.keras", monitor="val_accuracy", save_best_only=True)
    for e, v in enumerate((0.9, 0.9, 0.91, 0.90999, 1.0, 1.0)):
        s.epoch(e, val_accuracy=v, val_loss=1.0)
    s.close()
    s = Scripted(out, "best_mode_max", "best.keras", monitor="loss", mode="max",
                 save_best_only=True)
    for e, v in enumerate((0.5, 0.75, 0.25)):
        s.epoch(e, loss=v)
    s.close()
    s = Scripted(out, "best_threshold", "best.keras", save_best_only=True,
                 initial_value_threshold=0.3)
    for e, v in enumerate(losses[:5]):
        s.epoch(e, val_loss=v)
    s.close()
    s = Scripted(out, "formatted", "at/{epoch:02d}-{val_loss:.2f}.keras", save_best_only=True)
    rounded = losses[:3] + (0.105, 0.095)
    for e, v in enumerate(rounded):
        s.epoch(e + 8, val_loss=v)
    s.close()
    s = Scripted(out, "weights_only", "last.weights.h5", save_weights_only=True)
    s.epoch(0, val_loss=0.5)
    s.close()
    s = Scripted(out, "quiet", "best.keras", save_best_only=True, verbose=0)
    for e, v in enumerate(losses[:4]):
        s.epoch(e, val_loss=v)
    s.close()
    s = Scripted(out, "every_4_batches", "{epoch}-{batch}.keras", save_freq=4)
    for e in range(2):
        s.epoch(e, batches=6, loss=0.5)
    s.close()


if __name__ == "__main__":
    hooks()
    checkpoints()
    for left_over in (common.HERE / "at",):
        if left_over.exists():
            left_over.rmdir()
