"""Losses, metrics, schedules and rules of weights of the program's own in files: with their names,
without them, in C, and in Keras."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
import warnings
import zipfile

import numpy as np

import cornu

from test_keras import needs_hdf5

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(8, 2)).astype("float32")


def parts(keras):
    """Functions and classes by their names, for Keras and Cornu alike."""
    ops = keras.ops

    def distance(y_true, y_pred):
        return ops.mean(ops.abs(y_true - y_pred), axis=-1)

    class Scaled(keras.losses.Loss):
        def __init__(self, by=2.0, name="scaled", reduction="sum_over_batch_size"):
            super().__init__(name=name, reduction=reduction)
            self.by = by

        def call(self, y_true, y_pred):
            return self.by * ops.mean(ops.square(y_true - y_pred), axis=-1)

        def get_config(self):
            return {**super().get_config(), "by": self.by}

    class MeanSquaredError(keras.metrics.MeanSquaredError):
        """Of the name of one of the library's."""

        def update_state(self, y_true, y_pred, sample_weight=None):
            return super().update_state(y_true, y_pred * 2.0, sample_weight)

    class Decay(keras.optimizers.schedules.LearningRateSchedule):
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, step):
            return self.rate / (1.0 + ops.cast(step, "float32"))

        def get_config(self):
            return {"rate": self.rate}

    def halves(shape, dtype=None):
        return np.full(shape, 0.5, "float32")

    class Penalty(keras.regularizers.Regularizer):
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return self.by * ops.sum(ops.square(x))

        def get_config(self):
            return {"by": self.by}

    def bounded(w):
        return ops.clip(w, -0.5, 0.5)

    return {each.__name__: each for each in (distance, Scaled, MeanSquaredError, Decay, halves,
                                             Penalty, bounded)}


def model_of(keras, named, rules=True, own=True):
    """A compiled model that has been trained a little."""
    x = keras.Input((3,))
    given = {"kernel_initializer": named["halves"], "kernel_regularizer": named["Penalty"](0.25),
             "kernel_constraint": named["bounded"]} if rules else {}
    model = keras.Model(x, keras.layers.Dense(2, **given)(x))
    if not rules:
        model.set_weights([np.full((3, 2), 0.25), np.zeros(2)])
    rate = named["Decay"](0.1) if own else 0.1
    model.compile(keras.optimizers.SGD(rate, momentum=0.9),
                  named["Scaled"](3.0) if own else "mse",
                  metrics=[named["MeanSquaredError"](name="error"), named["distance"]] if own
                  else None)
    model.fit(X, Y, epochs=1, verbose=0)
    return model


def own_training(keras):
    """A model with a train_step, and an optimizer."""
    class Stepping(keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense = keras.layers.Dense(2)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with cornu.GradientTape() as tape:
                loss = 2.0 * self.compute_loss(y=y, y_pred=self(x, training=True))
            variables = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, variables), variables)
            return {"twice": loss}

    class Momentum(keras.optimizers.Optimizer):
        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            self.moments = [self.add_variable_from_reference(v, name="m") for v in variables]

        def update_step(self, gradient, variable, learning_rate):
            moment = self.moments[self._get_variable_index(variable)]
            self.assign(moment, 0.9 * moment + gradient)
            self.assign_sub(variable, learning_rate * moment)
    return Stepping, Momentum


class Files(unittest.TestCase):
    def setUp(self):
        self.named = parts(cornu)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def saved(self, model, suffix=".keras"):
        path = os.path.join(self.folder.name, "own" + suffix)
        try:
            model.save(path)
        except NotImplementedError as error:
            if "hdf5" not in str(error):
                raise
            self.skipTest(str(error))
        return path

    def loaded(self, path, **given):
        """The model, and what was warned of."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            return cornu.load_model(path, **given), " ".join(str(w.message) for w in caught)

    def test_with_their_names_training_goes_on(self):
        model = model_of(cornu, self.named)
        path = self.saved(model)
        loaded, told = self.loaded(path, custom_objects=self.named)
        self.assertTrue(loaded.compiled and not told, told)
        self.assertEqual(loaded.get_compile_config()["loss"]["config"]["by"], 3.0)
        histories = [m.fit(X, Y, epochs=2, verbose=0).history for m in (model, loaded)]
        self.assertEqual(*histories)
        self.assertEqual(set(histories[0]), {"loss", "error", "distance"})
        np.testing.assert_array_equal(model.get_weights()[0], loaded.get_weights()[0])
        self.assertEqual(abs(loaded.get_weights()[0]).max(), 0.5)      # bounded

    def test_records_of_a_script(self):
        """Keras writes null for the module __main__."""
        text = model_of(cornu, self.named).to_json()
        text, count = re.subn(r'"module": ?"%s"' % __name__, '"module": null', text)
        self.assertGreater(count, 0)
        made = cornu.models.model_from_json(text, custom_objects=self.named)
        kernel = made.get_weights()[0]
        np.testing.assert_array_equal(kernel, np.full((3, 2), 0.5))
        self.assertAlmostEqual(float(made.losses[0]), 0.25 * np.sum(kernel ** 2), places=6)

    def test_registered_names(self):
        register = cornu.saving.register_keras_serializable("own_files")
        named = {name: register(each) for name, each in self.named.items()}
        self.addCleanup(lambda: [cornu.saving.get_custom_objects().pop("own_files>" + name)
                                 for name in named])
        model = model_of(cornu, named)
        loaded, told = self.loaded(self.saved(model))
        self.assertTrue(loaded.compiled and not told, told)
        self.assertEqual(loaded.evaluate(X, Y, verbose=0), model.evaluate(X, Y, verbose=0))

    def test_without_their_names(self):
        model = model_of(cornu, self.named, rules=False)
        loaded, told = self.loaded(self.saved(model))
        self.assertFalse(loaded.compiled)
        self.assertRegex(told, "is not compiled, without the schedule 'Decay'.*custom_objects")
        np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))
        self.assertEqual(self.loaded(self.saved(model), compile=False)[1], "")

    def test_losses_and_functions_without_their_names(self):
        """What they compute is in the file: programs that do not have them train on, and save it
        again."""
        def apart(y_true, y_pred):
            """Of the whole batch, and of labels without the last axis."""
            return cornu.ops.mean(cornu.ops.mean(cornu.ops.abs(y_true - y_pred), axis=0) ** 2)

        def half(y_true, y_pred):
            return 0.5 * cornu.ops.square(y_true - y_pred)
        cases = ((self.named["Scaled"](3.0), Y), (self.named["Scaled"](3.0, reduction="sum"), Y),
                 (apart, Y), (half, (Y[:, 0] > 0).astype("int32")))
        for loss, y in cases:
            x = cornu.Input((3,))
            model = cornu.Model(x, cornu.layers.Dense(1 if y.ndim == 1 else 2)(x))
            model.compile("adam", loss, metrics=[self.named["distance"]])
            model.fit(X[:7], y[:7], batch_size=4, verbose=0)
            path = self.saved(model)
            loaded, told = self.loaded(path)
            self.assertTrue(loaded.compiled and not told, told)
            again = self.loaded(self.saved(loaded))[0]
            named = self.loaded(path, custom_objects={**self.named, "apart": apart,
                                                      "half": half})[0]
            first, *others = [m.fit(X[:7], y[:7], batch_size=4, shuffle=False, verbose=0).history
                              for m in (named, loaded, again)]
            self.assertEqual(set(first), {"loss", "distance"})
            self.assertEqual(others, [first, first])

    def test_a_loss_that_cannot_be_traced_is_named(self):
        factor = cornu.Variable(2.0, trainable=False)

        def moving(y_true, y_pred):
            return factor * cornu.ops.square(y_true - y_pred)
        x = cornu.Input((3,))
        model = cornu.Model(x, cornu.layers.Dense(2)(x))
        model.compile("sgd", moving)
        model.fit(X, Y, verbose=0)
        loaded, told = self.loaded(self.saved(model))
        self.assertFalse(loaded.compiled)
        self.assertRegex(told, "without the loss 'moving'")

    def test_steps_and_optimizers(self):
        """A model that a train_step or an optimizer of the program's own trains goes on, with the
        variables of the optimizer."""
        stepping, momentum = own_training(cornu)
        plain = cornu.Sequential([cornu.Input((3,)), cornu.layers.Dense(2)])
        for model, optimizer in ((stepping(), "adam"), (stepping(), momentum(0.05)),
                                 (plain, momentum(0.05))):
            model.compile(optimizer, "mse")
            model.fit(X, Y, epochs=2, verbose=0)
            path, named = self.saved(model), {"Stepping": stepping, "Momentum": momentum}
            loaded, told = self.loaded(path, custom_objects=named)
            self.assertTrue(loaded.compiled and not told, told)
            first, second = [m.fit(X, Y, epochs=2, verbose=0).history for m in (model, loaded)]
            self.assertEqual(first, second)
            self.assertEqual("twice" in first, model is not plain)
            self.assertEqual(loaded.get_compile_config()["loss"], "mse")
            other, _ = self.loaded(path)
            self.assertFalse(other.compiled)
            np.testing.assert_array_equal(self.loaded(path, compile=False)[0].predict(
                X, verbose=0), other.predict(X, verbose=0))

    def test_keras_reads_them(self):
        try:
            import keras
        except ImportError:
            self.skipTest("Keras: CORNU_PYTHON=an interpreter with keras")
        stepping, momentum = own_training(cornu)
        model = stepping()
        model.compile(momentum(0.05), "mse")
        model.fit(X, Y, verbose=0)
        theirs = dict(zip(("Stepping", "Momentum"), own_training(keras)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")         # of the optimizer's variables
            read = keras.models.load_model(self.saved(model), custom_objects=theirs)
        self.assertEqual(float(read.optimizer.learning_rate), np.float32(0.05))
        np.testing.assert_allclose(read.predict(X, verbose=0), model.predict(X, verbose=0),
                                   rtol=1e-5)

    def test_rules_without_their_names(self):
        model = model_of(cornu, self.named, own=False)
        for suffix in (".keras", ".safetensors"):
            loaded, told = self.loaded(self.saved(model, suffix), compile=False)
            self.assertRegex(told, "draws no new weights, without the initializer 'halves'")
            self.assertRegex(told, "cannot be trained, without the regularizer 'Penalty'")
            np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))
            loaded.compile("sgd", "mse")
            with self.assertRaisesRegex(NotImplementedError, 'regularizer "Penalty" is of the '
                                        "program that saved the model"):
                loaded.fit(X, Y, verbose=0)
            again, _ = self.loaded(self.saved(loaded, suffix), custom_objects=self.named,
                                   compile=False)       # the names are kept
            again.compile("sgd", "mse")
            again.fit(X, Y, verbose=0)

    def test_copies_need_no_names(self):
        model = model_of(cornu, self.named, own=False)
        copy = cornu.models.clone_model(model)
        self.assertEqual(copy.get_weights()[0].tolist(), [[0.5, 0.5]] * 3)
        copy.compile("sgd", "mse")
        copy.fit(X, Y, verbose=0)
        config = model.layers[1].get_config()["kernel_regularizer"]
        self.assertEqual((config["class_name"], config["config"]), ("Penalty", {"by": 0.25}))

    def test_what_has_no_name(self):
        x = cornu.Input((3,))
        model = cornu.Model(x, cornu.layers.Dense(
            2, kernel_regularizer=lambda w: cornu.ops.sum(w))(x))
        with self.assertRaisesRegex(NotImplementedError, "kernel_regularizer is a function without "
                                    "a name for files"):
            model.to_json()

    def test_c_opens_them(self):
        compiler, library = shutil.which("cc"), os.environ.get("CORNU_LIBRARY", "")
        if not compiler or not os.path.isfile(library):
            self.skipTest("a C compiler, and CORNU_LIBRARY")
        program = os.path.join(self.folder.name, "predict")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "predict.c")
        subprocess.run([compiler, "-std=c11", "-O1", "-o", program, source, library,
                        "-Wl,-rpath," + os.path.dirname(library)], check=True,
                       stderr=subprocess.PIPE)
        model = model_of(cornu, self.named)
        for suffix in (".safetensors", ".keras"):
            made = subprocess.run([program, self.saved(model, suffix), str(len(X))], check=True,
                                  input=X.tobytes(), stdout=subprocess.PIPE).stdout
            self.assertEqual(made, model.predict(X, verbose=0).tobytes())

    def test_keras_and_back(self):
        try:
            import keras
        except ImportError:
            self.skipTest("Keras: CORNU_PYTHON=an interpreter with keras")
        theirs, named = model_of(keras, parts(keras)), parts(keras)
        ours = model_of(cornu, self.named)
        read = keras.models.load_model(self.saved(ours), custom_objects=named)
        np.testing.assert_allclose(read.evaluate(X, Y, verbose=0), ours.evaluate(X, Y, verbose=0),
                                   rtol=1e-5)
        path = os.path.join(self.folder.name, "theirs.keras")
        theirs.save(path)
        read, told = self.loaded(path, custom_objects=self.named)
        self.assertEqual(told, "")
        np.testing.assert_allclose(read.evaluate(X, Y, verbose=0),
                                   theirs.evaluate(X, Y, verbose=0), rtol=1e-5)
        np.testing.assert_allclose(read.fit(X, Y, verbose=0).history["loss"],
                                   theirs.fit(X, Y, verbose=0).history["loss"], rtol=1e-5)


class Stored(cornu.layers.Dense):
    """With a file and an array of its own in .keras files."""

    def __init__(self, units, words="", **kwargs):
        super().__init__(units, **kwargs)
        self.words, self.table = words, None

    def save_assets(self, inner_path):
        with open(os.path.join(inner_path, "words.txt"), "w", encoding="utf-8") as file:
            file.write(self.words)

    def load_assets(self, inner_path):
        with open(os.path.join(inner_path, "words.txt"), encoding="utf-8") as file:
            self.words = file.read()

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["table"] = self.table

    def load_own_variables(self, store):
        self.table = store.pop("table")
        super().load_own_variables(store)

    def get_config(self):
        return {"units": self.units, "name": self.name}


class BuiltBy(cornu.layers.Layer):
    """Whose build takes more than a shape."""

    def build(self, input_shape, scale):
        self.shape, self.scale = input_shape, scale
        self.w = self.add_weight(shape=(input_shape[-1],), initializer="ones")

    def get_build_config(self):
        return {"input_shape": self.shape, "scale": self.scale}

    def build_from_config(self, config):
        self.build(config["input_shape"], config["scale"])

    def call(self, x):
        return x * self.w * self.scale


class CompiledBy(cornu.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.stored = Stored(1, "of a part")
        self.stored.table = np.arange(2.0)

    def call(self, x):
        return self.stored(x)

    def compile(self, rate, loss_fn):
        super().compile(cornu.optimizers.SGD(rate), loss_fn)
        self.rate, self.loss_fn = rate, loss_fn

    def get_compile_config(self):
        return {"rate": self.rate, "loss_fn": self.loss_fn}

    def compile_from_config(self, config):
        self.compile(config["rate"], cornu.saving.deserialize_keras_object(config["loss_fn"]))


def scaled_error(y_true, y_pred):
    return cornu.ops.mean(cornu.ops.square(y_true - y_pred)) / 7


class Beside(unittest.TestCase):
    """What classes of the program's own put into .keras files beside weights and configs."""

    names = {"Stored": Stored, "BuiltBy": BuiltBy, "CompiledBy": CompiledBy,
             "scaled_error": scaled_error}

    def again(self, model):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            with zipfile.ZipFile(path) as file:
                names = file.namelist()
            return cornu.models.load_model(path, custom_objects=self.names), names

    @needs_hdf5
    def test_files_arrays_and_what_build_takes(self):
        built = BuiltBy()
        built.build((None, 4), 3.0)
        first, second = Stored(4, "a"), Stored(2, "b")
        first.table, second.table = np.ones(3), np.arange(6.0).reshape(2, 3)
        model = cornu.Sequential([cornu.Input((4,)), built, first, second])
        made, names = self.again(model)
        self.assertIn("assets/layers/stored_1/words.txt", names)     # Keras' places
        self.assertEqual([layer.words for layer in made.layers[1:]], ["a", "b"])
        for a, b in zip(made.layers[1:], model.layers[1:]):
            np.testing.assert_array_equal(a.table, b.table)
        self.assertEqual((made.layers[0].scale, tuple(made.layers[0].shape)), (3.0, (None, 4)))
        x = np.ones((2, 4))
        np.testing.assert_array_equal(made.predict(x, verbose=0), model.predict(x, verbose=0))

    @needs_hdf5
    def test_what_compile_is_called_with(self):
        model, x = CompiledBy(), np.ones((8, 4))
        model.compile(0.25, scaled_error)
        model.fit(x, np.ones((8, 1)), verbose=0)
        made, names = self.again(model)
        self.assertIn("assets/stored/words.txt", names)
        self.assertEqual((made.rate, made.loss_fn), (0.25, scaled_error))
        self.assertEqual(made.stored.words, "of a part")
        a, b = [m.fit(x, np.ones((8, 1)), verbose=0).history["loss"] for m in (made, model)]
        np.testing.assert_allclose(a, b, rtol=1e-6)

    @needs_hdf5
    def test_other_models_have_no_more_members(self):
        model = cornu.Sequential([cornu.Input((4,)), cornu.layers.Dense(2)])
        self.assertEqual(len(self.again(model)[1]), 3)


if __name__ == "__main__":
    unittest.main()
