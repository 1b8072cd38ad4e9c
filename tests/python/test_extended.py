"""Classes that override what layers, models, losses, metrics and optimizers of the library compute
(own_extended.py): beside what Keras makes of them (tests/golden/own), and in files, with their
classes and without."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers, ops

import own_extended

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "tests", "golden", "own", "extended.json")) as _file:
    KERAS = json.load(_file)["programs"]
with open(os.path.join(ROOT, "tests", "golden", "own", "parts.json")) as _file:
    PARTS = json.load(_file)["programs"]


def saved(model, folder):
    """The paths of the model in both formats, as far as the libraries are there."""
    for suffix in (".safetensors", ".keras"):
        path = os.path.join(folder, "own" + suffix)
        try:
            model.save(path)
        except NotImplementedError:     # libhdf5
            continue
        yield path


def gated(layers):
    class Gated(layers.BatchNormalization):
        """Weights between the library's, and an argument."""

        def __init__(self, by=1.0, **kwargs):
            super().__init__(**kwargs)
            self.by = by

        def build(self, input_shape):
            super().build(input_shape)
            self.gate = self.add_weight(shape=(input_shape[-1],), name="gate")

        def call(self, inputs, training=None):
            return super().call(inputs, training=training) * self.gate * self.by

        def get_config(self):
            return {**super().get_config(), "by": self.by}
    return Gated


Gated = gated(layers)


class Programs(unittest.TestCase):
    def test_they_compute_what_keras_does(self):
        for name, wanted in KERAS.items():
            with self.subTest(name):
                found = own_extended.run(cornu, name)[2]
                self.assertEqual(found["shapes"], wanted["shapes"])
                np.testing.assert_allclose(found["losses"], wanted["losses"], rtol=2e-6)
                for a, b in zip(found["before"] + found["after"],
                                wanted["before"] + wanted["after"]):
                    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)

    def test_files_predict_and_train_without_the_classes(self):
        for name in KERAS:
            model, x, _ = own_extended.run(cornu, name)
            wanted = model.predict(x, verbose=0)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                for path in saved(model, folder):
                    loaded = cornu.load(path, compile=False)
                    np.testing.assert_array_equal(loaded.predict(x, verbose=0), wanted)
                    loaded.compile("sgd", "mse")
                    loaded.fit(x, wanted, epochs=1, verbose=0)

    def test_c_predicts_the_same_bits(self):
        compiler, library = shutil.which("cc"), os.environ.get("CORNU_LIBRARY", "")
        if not compiler or not os.path.isfile(library):
            self.skipTest("a C compiler, and CORNU_LIBRARY")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "predict")
            subprocess.run([compiler, "-std=c11", "-O1", "-o", program,
                            os.path.join(ROOT, "tests", "python", "predict.c"), library,
                            "-Wl,-rpath," + os.path.dirname(library)], check=True,
                           stderr=subprocess.PIPE)
            for name in ("dense_build", "dense_read", "attention", "recurrent_cell"):
                model, x, _ = own_extended.run(cornu, name)
                wanted = model.predict(x, verbose=0)
                for path in saved(model, folder):
                    made = subprocess.run([program, path, str(len(x))], check=True,
                                          input=x.tobytes(), stdout=subprocess.PIPE).stdout
                    self.assertEqual(made, wanted.tobytes(), path)


class Parts(unittest.TestCase):
    def test_losses_metrics_and_optimizers_are_keras(self):
        found = own_extended.parts(cornu)
        self.assertEqual(set(found), set(PARTS))
        for name, wanted in PARTS.items():
            self.assertEqual(set(found[name]), set(wanted))
            for key, values in wanted.items():
                np.testing.assert_allclose(found[name][key], values, rtol=2e-6, err_msg=key)

    def test_metrics_on_arrays(self):
        class Sparse(cornu.metrics.MeanIoU):
            def update_state(self, y_true, y_pred, sample_weight=None):
                return super().update_state(y_true, ops.argmax(y_pred, axis=-1), sample_weight)

            def result(self):
                return super().result() * 2.0
        metric = Sparse(2)
        metric.update_state(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]], "float32"))
        self.assertAlmostEqual(float(metric.result()), 2.0, 6)
        metric.reset_state()
        self.assertEqual(float(metric.result()), 0.0)

    def test_optimizers(self):
        """A rate that is set, variables, and updates of a wrong number of weights."""
        optimizer = own_extended.optimizers(cornu)[0]
        x = cornu.Input((2,))
        model = cornu.Model(x, layers.Dense(1, use_bias=False, kernel_initializer="zeros")(x))
        model.compile(optimizer, "mse")
        one = np.array([[1.0, 0.0]], "float32"), np.ones((1, 1), "float32")
        model.fit(*one, verbose=0)      # moment 0.05 x 2
        self.assertAlmostEqual(float(model.get_weights()[0][0, 0]), 0.1, 6)
        optimizer.learning_rate = 0.0
        model.fit(*one, verbose=0)      # the moment alone
        self.assertAlmostEqual(float(model.get_weights()[0][0, 0]), 0.19, 6)
        self.assertEqual([v.name for v in optimizer.variables],
                         ["iteration", "learning_rate", "moment"])
        self.assertEqual(int(optimizer.iterations), 2)
        with self.assertRaisesRegex(NotImplementedError, "is applied in a cornu.function"):
            optimizer.apply([np.zeros((2, 1), "float32")], model.trainable_variables)
        with self.assertRaisesRegex(NotImplementedError, "use_ema of an optimizer"):
            type(optimizer)(use_ema=True)
        decay = cornu.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
        self.assertAlmostEqual(float(decay(4)), 0.025, 6)

    def test_too_many_states_are_counted(self):
        class Many(cornu.metrics.Metric):
            def __init__(self):
                super().__init__()
                self.all = [self.add_weight() for _ in range(9)]

            def update_state(self, y_true, y_pred, sample_weight=None):
                pass
        with self.assertRaisesRegex(ValueError, "has 9 states, expected 1 to 8"):
            own_extended.fitted(cornu, "mse", metrics=[Many()])


class Losses(unittest.TestCase):
    """model.losses, of a kernel of 0.5 (3, 2): l2 of 0.1 is 0.1 x 6 x 0.25 = 0.15."""

    def model(self, kind=cornu.Model):
        x = cornu.Input((3,))
        dense = layers.Dense(2, kernel_regularizer=cornu.regularizers.L2(0.1),
                             bias_regularizer=cornu.regularizers.L1(0.2),
                             activity_regularizer=cornu.regularizers.L1(0.01))
        model = kind(x, dense(x))
        model.set_weights([np.full((3, 2), 0.5), np.full(2, -1.0)])
        return model

    def test_scalars_of_regularizers(self):
        model = self.model()
        for each in (model, model.layers[1]):
            self.assertEqual(len(each.losses), 2)
            np.testing.assert_allclose(each.losses, [0.15, 0.4], rtol=1e-6)
        model(np.ones((4, 3), "float32"))       # of each row |0.5| twice
        np.testing.assert_allclose(model.losses, [0.01, 0.15, 0.4], rtol=1e-6)
        model.layers[1].trainable = False
        self.assertEqual(model.layers[1].losses, [])

    def test_in_own_steps(self):
        class Own(cornu.Model):
            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    y_pred = self(x, training=True)
                    loss = ops.mean(ops.square(y_pred - y)) + sum(self.losses)
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply(gradients, self.trainable_variables)
                return {"loss": loss, "count": len(self.losses)}

        class Computed(cornu.Model):
            def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
                self(x, training=training)      # again, which adds no second penalty of weights
                return super().compute_loss(x, y, y_pred, sample_weight, training)
        x, y = np.ones((4, 3), "float32"), np.ones((4, 2), "float32")
        made = []
        for kind in (cornu.Model, Own, Computed):
            model = self.model(kind)
            model.compile(cornu.optimizers.SGD(0.1), "mse")
            made.append(model.fit(x, y, epochs=1, verbose=0).history)
        # predictions are 0.5: 0.25 of errors, 0.01 of the activity, 0.55 of weights
        self.assertAlmostEqual(made[0]["loss"][0], 0.81, 6)
        self.assertAlmostEqual(made[1]["loss"][0], 0.81, 6)
        self.assertEqual(made[1]["count"], [3.0])
        self.assertAlmostEqual(made[2]["loss"][0], 0.82, 6)


class Classes(unittest.TestCase):
    def model(self):
        x = cornu.Input((3,))
        model = cornu.Model(x, layers.Dense(2)(Gated(2.0, epsilon=0.1)(x)))
        model.set_weights([np.full(w.shape, 0.5 + i) for i, w in enumerate(model.weights)])
        return model, np.arange(6, dtype="float32").reshape(2, 3)

    def test_weights_are_in_keras_order(self):
        model, _ = self.model()
        self.assertEqual([w.name for w in model.weights],
                         ["gamma", "beta", "gate", "moving_mean", "moving_variance", "kernel",
                          "bias"])
        layer = model.layers[1]
        self.assertEqual([w.name for w in layer.trainable_weights], ["gamma", "beta", "gate"])
        self.assertIsInstance(layer, layers.BatchNormalization)
        self.assertEqual((layer.epsilon, layer.momentum), (0.1, 0.99))
        layer.trainable = False
        self.assertEqual(layer.trainable_weights, [])

    def test_closed_form(self):
        """gamma 0.5, beta 1.5, gate 2.5, mean 3.5, variance 4.5."""
        model, x = self.model()
        normal = (x - 3.5) / np.sqrt(4.5 + 0.1) * 0.5 + 1.5
        wanted = (normal * 2.5 * 2.0) @ np.full((3, 2), 5.5) + 6.5
        np.testing.assert_allclose(model.predict(x, verbose=0), wanted, rtol=1e-5)

    def test_files_give_objects_of_the_class(self):
        model, x = self.model()
        with tempfile.TemporaryDirectory() as folder:
            for path in saved(model, folder):
                loaded = cornu.load_model(path, custom_objects={"Gated": Gated})
                layer = loaded.layers[1]
                self.assertIs(type(layer), Gated)
                self.assertEqual((layer.by, layer.epsilon), (2.0, 0.1))
                for a, b in zip(layer.weights, model.layers[1].weights):
                    np.testing.assert_array_equal(a.numpy(), b.numpy())
                np.testing.assert_array_equal(loaded.predict(x, verbose=0),
                                              model.predict(x, verbose=0))

    def test_keras_reads_what_is_saved(self):
        try:
            import keras
        except ImportError:
            self.skipTest("Keras: CORNU_PYTHON=an interpreter with keras")
        model, x = self.model()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "own.keras")
            try:
                model.save(path)
            except NotImplementedError as error:
                self.skipTest(str(error))
            theirs = keras.models.load_model(path, custom_objects={"Gated": gated(keras.layers)})
        np.testing.assert_allclose(theirs.predict(x, verbose=0), model.predict(x, verbose=0),
                                   rtol=1e-5)

    def test_subclasses_that_override_nothing_are_the_librarys(self):
        class Three(layers.Conv2D):
            def __init__(self, filters, **kwargs):
                super().__init__(filters, 3, padding="same", **kwargs)
        layer = Three(2)
        self.assertFalse(layer._is_traced)
        self.assertEqual(np.shape(layer(np.ones((1, 4, 4, 1), "float32"))), (1, 4, 4, 2))

    def test_calls_on_arrays_and_masks(self):
        class Twice(layers.Embedding):
            def call(self, inputs):
                return super().call(inputs) * 2.0
        layer = Twice(4, 2, mask_zero=True, embeddings_initializer="ones")
        self.assertEqual(np.asarray(layer(np.array([[1, 0]]))).tolist(), [[[2.0, 2.0]] * 2])
        seen = layers.GlobalAveragePooling1D()(ops.cast(layer(cornu.Input((2,), dtype="int32")),
                                                        "float32"))
        self.assertEqual(seen.shape, (None, 2))

    def test_cells_have_keras_form(self):
        x = np.ones((2, 4), "float32")
        cell = layers.LSTMCell(3)
        made, states = cell(x, cell.get_initial_state(batch_size=2))
        self.assertEqual((np.shape(made), len(states), cell.state_size), ((2, 3), 2, [3, 3]))
        np.testing.assert_array_equal(made, states[0])
        made, state = layers.GRUCell(3)(x, np.zeros((2, 3), "float32"))
        np.testing.assert_array_equal(made, state)

    def test_pairs_are_tuples(self):
        layer = layers.Conv2D(4, 3, strides=2)
        self.assertEqual((layer.kernel_size, layer.strides), ((3, 3), (2, 2)))

    def test_arguments_of_a_call_keep_the_weights(self):
        layer, x = layers.MultiHeadAttention(2, 3), cornu.Input((4, 6))
        layer.build([(None, 4, 6), (None, 4, 6)])
        before = layer.get_weights()
        layer(x, x, use_causal_mask=True)
        for a, b in zip(layer.get_weights(), before):
            np.testing.assert_array_equal(a, b)


if __name__ == "__main__":
    unittest.main()
