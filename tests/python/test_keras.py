"""Beside Keras: its files and what it computed from them (tests/golden/trained), and Keras itself
where it is installed."""

import glob
import os
import tempfile
import unittest

import numpy as np

import cornu
import cornu._models.files

import own_programs

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CASES = sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "trained", "*.keras")))


def each(arrays, letter):
    return [arrays["%s%d" % (letter, i)] for i in range(len(arrays.files))
            if "%s%d" % (letter, i) in arrays]


def scaled(keras):
    """A class of the program's own, with a weight, a layer and a list of layers."""
    class Scaled(keras.layers.Layer):
        def __init__(self, units=4, **kwargs):
            super().__init__(**kwargs)
            self.units, self.inner = units, keras.layers.Dense(units)
            self.blocks = [keras.layers.Dense(units, activation="relu"), keras.layers.Dense(units)]

        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1],), name="w")
            self.inner.build((None, shape[-1]))
            for block in self.blocks:
                block.build((None, self.units))
            self.built = True

        def call(self, x):
            x = self.inner(x * self.w)
            for block in self.blocks:
                x = block(x)
            return x

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    return keras.saving.register_keras_serializable("Tests")(Scaled)


def needs_hdf5(test):
    def run(self):
        try:
            test(self)
        except NotImplementedError as error:
            if "libhdf5" not in str(error):
                raise
            self.skipTest("libhdf5: make deps-test")
    return run


class Goldens(unittest.TestCase):
    @needs_hdf5
    def test_models_go_on_from_keras_files(self):
        """Predictions, the losses of three more steps, and the weights after them."""
        self.assertGreaterEqual(len(CASES), 5)
        for path in CASES:
            with self.subTest(os.path.basename(path)):
                arrays = np.load(path.replace(".keras", ".npz"))
                model = cornu.load(path)
                xs, ys = each(arrays, "x"), each(arrays, "y")
                found = model.predict(xs, verbose=0)
                for a, b in zip(found if isinstance(found, list) else [found], each(arrays, "p")):
                    np.testing.assert_allclose(a, b, atol=2e-5)
                losses = [np.ravel(model.train_on_batch(xs, ys))[0] for _ in arrays["losses"]]
                np.testing.assert_allclose(losses, arrays["losses"], rtol=1e-4)
                for a, b in zip(model.get_weights(), each(arrays, "w")):
                    np.testing.assert_allclose(a, b, atol=5e-5)


def build(k):
    """The same text with either package."""
    x = k.Input((10, 8))
    y = k.layers.Bidirectional(k.layers.LSTM(6, return_sequences=True))(x)
    y = k.layers.MultiHeadAttention(2, 4)(y, y)
    y = k.layers.GlobalAveragePooling1D()(k.layers.LayerNormalization()(y))
    a = k.layers.Dense(4, k.activations.relu, kernel_regularizer=k.regularizers.L2(1e-3),
                       kernel_initializer=k.initializers.HeNormal(seed=3))(y)
    b = k.layers.Dense(1, name="b")(a)
    a = k.layers.Dense(3, name="a")(k.ops.concatenate([a, 0.5 * y - 1.0], axis=-1))
    model = k.Model(x, [a, b])
    rate = k.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model.compile(k.optimizers.SGD(rate, momentum=0.9),
                  loss={"a": k.losses.SparseCategoricalCrossentropy(from_logits=True), "b": "mse"},
                  loss_weights={"a": 1.0, "b": 0.5},
                  metrics={"a": ["accuracy"], "b": [k.metrics.MeanAbsoluteError(name="mae")]})
    return model


class Keras(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            import keras
        except ImportError:
            raise unittest.SkipTest("Keras: CORNU_PYTHON=an interpreter with keras") from None
        cls.keras = keras

    def data(self):
        rng = np.random.default_rng(0)
        return rng.standard_normal((64, 10, 8)).astype(np.float32), \
            {"a": rng.integers(0, 3, 64), "b": rng.standard_normal((64, 1)).astype(np.float32)}

    def test_the_same_program_trains_the_same(self):
        self.keras.utils.clear_session()
        cornu.clear_session()
        theirs, ours = build(self.keras), build(cornu)
        self.assertEqual([w.path for w in ours.weights], [w.path for w in theirs.weights])
        ours.set_weights(theirs.get_weights())
        x, y = self.data()
        for a, b in zip(ours.predict(x, verbose=0), theirs.predict(x, verbose=0)):
            np.testing.assert_allclose(a, b, atol=1e-5)
        a = ours.fit(x, y, epochs=2, shuffle=False, verbose=0).history
        b = theirs.fit(x, y, epochs=2, shuffle=False, verbose=0).history
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-4, err_msg=name)

    def test_from_keras_and_back(self):
        theirs = build(self.keras)
        x, y = self.data()
        theirs.fit(x, y, verbose=0)
        ours = cornu.from_keras(theirs)
        back = ours.to_keras()
        for a, b, c in zip(ours.predict(x, verbose=0), theirs.predict(x, verbose=0),
                           back.predict(x, verbose=0)):
            np.testing.assert_allclose(a, b, atol=1e-5)
            np.testing.assert_allclose(c, b, atol=1e-5)

    def test_without_hdf5_weights_go_as_arrays(self):
        theirs = build(self.keras)
        x, _ = self.data()
        ours = cornu._models.files._from_keras_by_arrays(theirs)
        back = cornu._models.files._to_keras_by_arrays(ours)
        for a, b, c in zip(ours.predict(x, verbose=0), theirs.predict(x, verbose=0),
                           back.predict(x, verbose=0)):
            np.testing.assert_allclose(a, b, atol=1e-5)
            np.testing.assert_allclose(c, b, atol=1e-5)

    def test_keras_loads_what_python_saves(self):
        model = cornu.Sequential([cornu.Input((12, 12, 3)),
                                  cornu.layers.Conv2D(4, 3, activation="relu"),
                                  cornu.layers.BatchNormalization(), cornu.layers.MaxPooling2D(),
                                  cornu.layers.Flatten(), cornu.layers.Dense(5, "softmax")])
        x = np.random.default_rng(1).standard_normal((6, 12, 12, 3)).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            try:
                model.save(path)
            except NotImplementedError:
                self.skipTest("libhdf5: make deps-test")
            found = self.keras.models.load_model(path).predict(x, verbose=0)
        np.testing.assert_allclose(model.predict(x, verbose=0), found, atol=1e-5)

    @needs_hdf5
    def test_whole_models_of_h5(self):
        """Keras reads what is written, with the weights of models in it and of compile's arguments
        the optimizer; so do we, and training goes on as that of the saved model."""
        L = cornu.layers
        given = cornu.Input((6, 4))
        inner = cornu.Sequential([cornu.Input((6, 5)), L.Conv1D(3, 2), L.BatchNormalization()])
        x = L.BatchNormalization()(L.LSTM(5, return_sequences=True)(given))
        model = cornu.Model(given, L.Dense(1)(L.GlobalAveragePooling1D()(inner(x))))
        model.compile("adam", "mse", metrics=["mae"])
        x, y = np.random.default_rng(0).normal(size=(8, 6, 4)).astype("float32"), np.ones((8, 1))
        model.fit(x, y, verbose=0)
        wanted = model.predict(x, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.h5")
            model.save(path)
            found = self.keras.models.load_model(path)
            again = cornu.models.load_model(path)
        np.testing.assert_allclose(found.predict(x, verbose=0), wanted, atol=1e-6)
        self.assertEqual(found.optimizer.name, "adam")
        np.testing.assert_array_equal(again.predict(x, verbose=0), wanted)
        losses = [each.fit(x, y, verbose=0, batch_size=8).history for each in (model, again)]
        self.assertEqual(*losses)

    @needs_hdf5
    def test_own_classes_go_to_keras(self):
        scaled(self.keras)
        x, data = cornu.Input((3,)), np.random.default_rng(2).normal(size=(4, 3)).astype("float32")
        model = cornu.Model(x, scaled(cornu)(5)(x))
        wanted = model.predict(data, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "own.keras")
            model.save(path)
            found = self.keras.models.load_model(path)
            np.testing.assert_allclose(found.predict(data, verbose=0), wanted, atol=1e-6)
            self.assertEqual(type(found.layers[1]).__name__, "Scaled")

    @needs_hdf5
    def test_shared_layers_are_one_in_files(self):
        def make(k):
            x, dense = k.Input((4, 3)), k.layers.Dense(2)
            first = k.layers.Flatten()(dense(k.layers.Cropping1D((0, 3))(x)))
            return k.Model(x, k.layers.Add()([k.layers.TimeDistributed(dense)(x),
                                              k.layers.RepeatVector(4)(first)]))
        data = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
        for one, other in ((cornu, self.keras), (self.keras, cornu)):
            model = make(one)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "shared.keras")
                model.save(path)
                found = other.models.load_model(path)
            self.assertEqual(found.count_params(), 8)
            np.testing.assert_allclose(found.predict(data, verbose=0),
                                       model.predict(data, verbose=0), atol=1e-6)

    @needs_hdf5
    def test_cells_of_own_classes_go_to_keras(self):
        for name in ("both_ways", "open_cell"):
            model, x, _ = own_programs.run(cornu, name)
            own_programs.Leaky(self.keras)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "own.keras")
                model.save(path)
                found = self.keras.models.load_model(path)
            np.testing.assert_allclose(found.predict(x, verbose=0), model.predict(x, verbose=0),
                                       atol=1e-6)


if __name__ == "__main__":
    unittest.main()
