"""Calls of layers with Keras' arguments, and models cut out of others."""

import gc
import os
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers as L, ops

from test_keras import needs_hdf5


def trained(folder):
    """A model, and the same one from a file, compiled."""
    model = cornu.Sequential([cornu.Input((4,)), L.Dense(3, "relu", name="first"),
                              L.Dense(2, name="second")])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 4)), np.ones((8, 2)), verbose=0)
    path = os.path.join(folder, "model.keras")
    model.save(path)
    return model, cornu.load(path)


class Calls(unittest.TestCase):
    def values(self, inputs, outputs, data):
        return cornu.Model(inputs, outputs).predict(data, verbose=0)

    def test_operands_by_name(self):
        rng = np.random.default_rng(0)
        x, v = cornu.Input((4, 6)), cornu.Input((5, 6))
        mask = cornu.Input((4, 5))
        layer = L.MultiHeadAttention(2, 3)
        a = layer(x, v)
        b = layer(query=x, value=v)
        c = layer(x, key=v, value=v)
        d = layer(x, v, attention_mask=mask)
        given = np.ones((2, 4, 5))
        given[:, :, 3:] = 0
        data = [rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 5, 6))]
        one, two, three, masked = self.values([x, v, mask], [a, b, c, d], data + [given])
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)
        # Two of five positions are as if they were not there.
        short = cornu.Input((3, 6))
        np.testing.assert_allclose(self.values([x, short], layer(x, short),
                                               [data[0], data[1][:, :3]]), masked, atol=1e-6)

    def test_the_first_input_by_name(self):
        x = cornu.Input((4, 6))
        self.assertEqual(L.Dense(3)(inputs=x).shape, (None, 4, 3))
        self.assertEqual(L.LSTM(3)(sequence=x).shape, (None, 3))
        self.assertEqual(L.Attention()(inputs=[x, x]).shape, (None, 4, 6))

    def test_training_is_taken_and_has_no_effect(self):
        """As in Keras 3, where predict and fit set the argument."""
        x = cornu.Input((6,))
        data = np.ones((3, 6), np.float32)
        found = self.values(x, L.Dropout(0.5)(x, training=True), data)
        np.testing.assert_array_equal(found, data)
        inner = cornu.Sequential([cornu.Input((6,)), L.Rescaling(2.0)])
        np.testing.assert_array_equal(self.values(x, inner(x, training=False), data), 2 * data)

    def test_masks_of_arrays(self):
        """A layer's result has its mask, which the next layer obeys, as symbolic tensors do."""
        class Halves(L.Layer):
            def call(self, x):
                return cornu.ops.split(x, 2, axis=1)

            def compute_mask(self, x, mask=None):
                return None if mask is None else cornu.ops.split(mask, 2, axis=1)
        words = np.array([[1, 2, 3, 0], [4, 0, 0, 0]])
        embedding, lstm = L.Embedding(10, 4, mask_zero=True), L.LSTM(3)
        x = embedding(words)
        np.testing.assert_array_equal(x._keras_mask, words != 0)
        given = cornu.Input((4,), dtype="int32")
        symbolic = embedding(given)
        masked = self.values(given, [lstm(symbolic), symbolic._keras_mask], words)
        np.testing.assert_array_equal(masked[1], words != 0)
        self.assertGreater(np.abs(lstm(np.asarray(x)) - masked[0]).max(), 1e-4)
        recorded = cornu.function(lambda words: lstm(embedding(words)))
        for found in (lstm(x), recorded(words)):
            np.testing.assert_allclose(found, masked[0], atol=1e-6)
        for i, half in enumerate(Halves()(x)):
            np.testing.assert_array_equal(half._keras_mask, words[:, 2 * i:2 * i + 2] != 0)
        self.assertIsNone(cornu.ops.relu(x)._keras_mask)
        self.assertIsNone(L.Dense(3)(np.ones((2, 4)))._keras_mask)

    def test_layers_of_a_sequential_model_before_it_has_a_shape(self):
        class Own(L.Layer):
            def call(self, x):
                return 2 * x
        layers = [L.Dense(3), Own(), L.Dense(2)]
        for start in (0, 1):        # the first ones are the library's at once, or wait
            model = cornu.Sequential(layers[start:])
            self.assertEqual(model.layers, layers[start:])
            self.assertIs(model.pop(), layers[2])
            self.assertEqual(model.layers, layers[start:2])
            layers = [L.Dense(3), Own(), L.Dense(2)]
        model = cornu.Sequential(layers)
        self.assertEqual(model(np.ones((2, 4))).shape, (2, 2))
        self.assertEqual(model.layers, layers)

    def test_a_layer_that_needs_the_number_of_rows(self):
        class Steps(L.Layer):
            def __init__(self):
                super().__init__()
                self.dense = L.Dense(3)

            def call(self, x):
                state = cornu.ops.zeros((x.shape[0], 3))
                for t in range(x.shape[1]):
                    state = self.dense(state) + self.dense(x[:, t, :3])
                return state
        layer = Steps()
        self.assertEqual(layer(np.ones((2, 4, 3))).shape, (2, 3))
        self.assertEqual(layer(np.ones((5, 4, 3))).shape, (5, 3))
        given = cornu.Input(batch_shape=(2, 4, 3))
        np.testing.assert_allclose(self.values(given, layer(given), np.ones((2, 4, 3))),
                                   layer(np.ones((2, 4, 3))), atol=1e-6)

    def test_a_call_of_elements_runs_as_it_is(self):
        class Painter(cornu.Model):
            def __init__(self):
                super().__init__()
                self.dense = L.Dense(4)

            def call(self, inputs):
                image = self.dense(inputs["z"]) * inputs.get("by", 1) + 0.5
                return np.clip(image * 255, 0, 255).astype(np.uint8)

            def train_step(self, data):
                with cornu.GradientTape() as tape:
                    loss = ops.mean(ops.square(self.dense(data)))
                weights = self.dense.trainable_weights
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
                return {"loss": loss}
        model, z = Painter(), np.random.default_rng(0).random((4, 3), "float32")
        model.compile("sgd")
        for _ in range(2):
            made = model({"z": z, "by": 2})
            self.assertEqual((made.dtype, made.shape), (np.dtype("uint8"), (4, 4)))
            kernel, bias = [w.numpy() for w in model.dense.weights]
            wanted = np.clip(((z @ kernel + bias) * 2 + 0.5) * 255, 0, 255)
            self.assertLessEqual(np.abs(made - wanted.astype("uint8").astype(float)).max(), 1)
            model.fit(z, verbose=0)

        class Wrong(L.Layer):
            def call(self, x):
                return x + len(3)
        with self.assertRaisesRegex(TypeError, "'int' has no len"):
            Wrong()(z)

    def test_a_trailing_axis_of_1_in_symbolic_calls(self):
        """May be missing, or be there, as in calls on arrays."""
        image, row = cornu.Input((4, 4, 1)), cornu.Input((3,))
        model = cornu.Model([image, row], [L.Flatten()(image), row])
        given = cornu.Input((4, 4)), cornu.Input((3, 1))
        self.assertEqual([t.shape for t in model(list(given))], [(None, 16), (None, 3)])
        with self.assertRaisesRegex(ValueError, "expected \\(None, 4, 4, 1\\)"):
            model([cornu.Input((4, 4, 2)), row])

        class Trains(cornu.Model):
            def __init__(self):
                super().__init__()
                self.inner = cornu.Sequential([cornu.Input((4, 4, 1)), L.Conv2D(2, 3)])

            def call(self, x):
                return self.inner(x)
        self.assertEqual(Trains()(np.ones((2, 4, 4))).shape, (2, 2, 2, 2))

    def test_build_of_a_model_of_inputs(self):
        """Keras ignores what it is given."""
        given = cornu.Input((4,))
        model = cornu.Model(given, L.Dense(3)(given))
        for shape in ((None, 4), (None, 7), np.ones((2, 4))):
            model.build(shape)
        self.assertEqual(model.predict(np.ones((2, 4)), verbose=0).shape, (2, 3))

    def test_masks(self):
        """The LSTM stops at the mask's end."""
        x, short = cornu.Input((4, 2)), cornu.Input((2, 2))
        layer = L.LSTM(3)
        data = np.random.default_rng(0).standard_normal((2, 4, 2))
        mask = cornu.Input((4,))
        given = np.array([[1, 1, 0, 0]] * 2)
        found = self.values([x, mask], layer(x, mask=mask > 0), [data, given])
        np.testing.assert_allclose(found, self.values(short, layer(short), data[:, :2]), atol=1e-6)

    def test_unknown_arguments_are_refused(self):
        x = cornu.Input((6,))
        with self.assertRaisesRegex(NotImplementedError, '"units", which is not available'):
            L.Dense(3)(x, units=5)
        with self.assertRaisesRegex(TypeError, "called on ndarray"):
            L.Dense(3)(x, mask=np.ones(3))

    def test_functions_of_layers(self):
        x, y = cornu.Input((2, 3)), cornu.Input((2, 3))
        a, b = np.arange(6.0).reshape(1, 2, 3), np.ones((1, 2, 3))
        found = self.values([x, y], [L.dot([x, y], 2), L.concatenate([x, y], 1)], [a, b])
        np.testing.assert_array_equal(found[0], a @ b.transpose(0, 2, 1))
        np.testing.assert_array_equal(found[1], np.concatenate([a, b], 1))

    def test_a_value_per_row(self):
        """Keras' Input(())."""
        x = cornu.Input(())
        self.assertEqual(x.shape, (None,))
        np.testing.assert_array_equal(self.values(x, x * 2.0, np.arange(3)), [0, 2, 4])
        model = cornu.Sequential([cornu.Input(()), L.Rescaling(2.0)])
        self.assertEqual(model.input_shape, (None,))
        np.testing.assert_array_equal(model.predict(np.arange(3), verbose=0), [0, 2, 4])

    def test_names_of_classes(self):
        """What Keras resolves: optimizers in any case, others by class and by function."""
        for optimizer in ("RMSprop", "rmsprop", "RMSPROP", "AdamW", "SGD", "ScheduleFreeAdamW"):
            model = cornu.Sequential([cornu.Input((4,)), L.Dense(
                2, kernel_initializer="HeNormal", kernel_regularizer="L2",
                kernel_constraint="MaxNorm")])
            model.compile(optimizer, "MeanSquaredError", metrics=["MeanAbsoluteError", "MSE"])
            self.assertEqual(len(model.train_on_batch(np.ones((2, 4)), np.ones((2, 2)))), 3)


class States(unittest.TestCase):
    """tests/python/examples/guides/working_with_rnns compares predict with Keras."""

    def test_calls_go_on_as_predict_does(self):
        x = np.random.default_rng(1).normal(size=(2, 3, 5)).astype("float32")
        lstm, outer = cornu.layers.LSTM(4, stateful=True), cornu.Input(batch_shape=(2, 3, 5))
        model = cornu.Model(outer, lstm(outer))
        one, two, three = [model.predict(x, verbose=0) for _ in range(3)]
        self.assertGreater(abs(one - two).max(), 1e-3)
        lstm.reset_state()
        np.testing.assert_array_equal(model.predict(x, verbose=0), one)
        np.testing.assert_array_equal(model(x), two)
        np.testing.assert_array_equal(model.predict(x, verbose=0), three)


    def test_they_are_given_to_another_layer(self):
        x = np.random.default_rng(1).normal(size=(3, 2, 4, 5)).astype("float32")
        lstm = L.LSTM(3, stateful=True)
        self.assertIsNone(lstm.states)
        lstm(x[0])
        lstm(x[1])
        states = lstm.states
        other = L.LSTM(3, return_state=True)
        other.build((None, None, 5))
        other.set_weights(lstm.get_weights())
        _, h, c = other(np.concatenate(x[:2], 1))
        np.testing.assert_allclose(states, [h, c], atol=1e-6)
        np.testing.assert_allclose(other(x[2], initial_state=states)[0], lstm(x[2]), atol=1e-6)
        with self.assertRaises(AttributeError):
            L.Dense(3).states       # pylint: disable=expression-not-assigned


class Cuts(unittest.TestCase):
    """Models from the inputs of another to a layer of it."""

    def test_of_layers_that_were_called(self):
        x, y = cornu.Input((4,)), cornu.Input((4,))
        layer = L.Dense(3)
        with self.assertRaisesRegex(AttributeError, "has not been called"):
            layer.output
        first = layer(x)
        layer(y)
        self.assertEqual(first.shape, layer.output.shape)
        both = L.Add(name="both")
        both([x, y])
        self.assertEqual([t.shape for t in both.input], [(None, 4)] * 2)
        cut = cornu.Model(layer.input, layer.output)
        data = np.ones((2, 4), np.float32)
        np.testing.assert_allclose(cut.predict(data, verbose=0),
                                   data @ layer.get_weights()[0], rtol=1e-5)
        lstm = L.LSTM(2, return_state=True)
        lstm(cornu.Input((3, 2)))
        self.assertEqual(len(lstm.output), 3)

    def expect_cut(self, model, name, whole):
        data = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
        kernel, bias = whole.get_layer("first").get_weights()
        cut = cornu.Model(model.inputs, model.get_layer(name).output)
        np.testing.assert_allclose(cut.predict(data, verbose=0),
                                   np.maximum(data @ kernel + bias, 0), rtol=1e-4, atol=1e-6)

    @needs_hdf5
    def test_of_loaded_models(self):
        """A compiled model's symbols in new ones, which share its device, and train."""
        with tempfile.TemporaryDirectory() as folder:
            whole, loaded = trained(folder)
            self.expect_cut(loaded, "first", whole)
            self.expect_cut(whole, "first", whole)
            head = cornu.Model(loaded.inputs, L.Dense(1)(loaded.get_layer("first").output))
            head.compile("sgd", "mse")
            before = loaded.get_weights()[0]
            head.fit(np.ones((8, 4)), np.full((8, 1), 3.0), verbose=0)
            self.assertFalse(np.array_equal(before, loaded.get_weights()[0]))
            x = cornu.Input((4,))
            around = cornu.Model(x, loaded(x) * 2.0)
            np.testing.assert_allclose(around.predict(np.ones((1, 4)), verbose=0),
                                       2 * loaded.predict(np.ones((1, 4)), verbose=0), rtol=1e-6)

    @needs_hdf5
    def test_of_models_in_loaded_models(self):
        base = cornu.Sequential([cornu.Input((4,)), L.Dense(3, "relu", name="first"), L.Dense(2)],
                                name="base")
        x = cornu.Input((4,))
        whole = cornu.Model(x, L.Dense(1)(base(x)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            whole.save(path)
            inner = cornu.load(path).get_layer("base")
        self.assertIsInstance(inner, cornu.Model)
        self.assertEqual([layer.name for layer in inner.layers][-2:], [layer.name for layer in
                                                                       base.layers][-2:])
        self.expect_cut(inner, "first", base)
        self.assertEqual(inner.count_params(), base.count_params())

    def test_of_imported_models(self):
        model = cornu.Sequential([cornu.Input((4,)), L.Dense(3, "relu", name="first"),
                                  L.Dense(2, name="second")])
        with tempfile.TemporaryDirectory() as folder:
            for suffix, name in ((".onnx", None), (".tflite", None)):
                path = os.path.join(folder, "model" + suffix)
                model.export(path)
                imported = cornu.load(path)
                data = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
                hidden = np.maximum(data @ model.get_weights()[0], 0)
                found = [cornu.Model(imported.inputs, layer.output).predict(data, verbose=0)
                         for layer in imported.layers[1:]]
                self.assertTrue(any(np.allclose(f, hidden, atol=1e-5) for f in found
                                    if f.shape == hidden.shape), suffix)


class Strings(unittest.TestCase):
    def test_batches_of_other_widths(self):
        """NumPy's <U3 beside <U9, and other numbers of words."""
        x = cornu.Input((None,), dtype="string")
        y = L.GlobalAveragePooling1D()(L.Embedding(4, 3)(L.StringLookup(vocabulary=["a", "b"])(x)))
        model = cornu.Model(x, L.Dense(1)(y))
        model.compile("sgd", "mse")
        words = [np.array([["a", "b"]]), np.array([["a", "a long one"]]), np.array([["b", "abc"]])]

        def batches():
            for batch in words:
                yield batch, np.ones((1, 1))

        history = model.fit(batches(), verbose=0)
        self.assertEqual(len(history.history["loss"]), 1)
        self.assertTrue(np.isfinite(model.train_on_batch(np.array([["a", "b", "abc"]]),
                                                         np.ones((1, 1)))))

    def test_models_that_begin_with_strings_in_models(self):
        for first in ([], [cornu.Input((2,), dtype="string")]):
            inner = cornu.Sequential(first + [L.StringLookup(vocabulary=["a", "b"]),
                                              L.Embedding(3, 2, name="words")])
            x = cornu.Input((2,), dtype="string")
            model = cornu.Model(x, inner(x))
            table = model.get_weights()[0]
            found = model.predict(np.array([["a", "no"], ["b", "a"]]), verbose=0)
            np.testing.assert_array_equal(found, table[[[1, 0], [2, 1]]])

    @unittest.skipUnless(os.path.isdir("/proc/self/task"), "counts the threads of Linux")
    def test_devices_of_dropped_models_are_closed(self):
        def use():
            model = cornu.Sequential([cornu.Input((2,)), L.Dense(1), L.Dropout(0.5)])
            model.compile("sgd", "mse", device=cornu.Device("cpu", threads=3))
            x = np.ones((4, 2), "float32")
            model.fit(x, x[:, :1], verbose=0)
            model(x, training=True)
            with cornu.GradientTape() as tape:
                y = model(x, training=True)
            tape.gradient(y, model.trainable_variables)

        use()
        gc.collect()
        before = len(os.listdir("/proc/self/task"))
        for _ in range(3):
            use()
        gc.collect()
        self.assertLessEqual(len(os.listdir("/proc/self/task")), before)


class Named(unittest.TestCase):
    """Inputs by their names."""

    def model(self):
        s = cornu.Input((1,), dtype="string", name="s")
        n = cornu.Input((1,), name="n")
        encoded = cornu.layers.StringLookup(vocabulary=["a", "b"], output_mode="binary")(s)
        return cornu.Model({"s": s, "n": n}, cornu.layers.Concatenate()([encoded, n]))

    def test_strings_without_their_trailing_axis(self):
        data = {"s": np.array(["b", "c"]), "n": np.array([3, 4], np.float32)}
        np.testing.assert_array_equal(self.model().predict(data, verbose=0),
                                      [[0, 0, 1, 3], [1, 0, 0, 4]])

    def test_others_are_ignored_with_a_warning(self):
        data = {"s": np.array(["b"]), "n": np.ones(1, np.float32), "weight": np.ones(1)}
        with self.assertWarnsRegex(UserWarning, "no inputs are weight, which are ignored"):
            made = self.model().predict(data, verbose=0)
        np.testing.assert_array_equal(made, [[0, 0, 1, 1]])
        with self.assertRaisesRegex(ValueError, "the inputs are n, s, s are given"):
            self.model().predict({"s": np.array(["b"])}, verbose=0)


class Types(unittest.TestCase):
    def test_whole_numbers_stay_such(self):
        x = cornu.Input((3,))
        model = cornu.Model(x, [cornu.ops.argmax(x, axis=-1), cornu.ops.any(x > 0, axis=-1), x])
        data = np.array([[0, 2, 1], [-1, -2, -3]], np.float32)
        for made in (model.predict(data, verbose=0), model(data), model.predict_on_batch(data)):
            self.assertEqual([m.dtype.name for m in made], ["int32", "bool", "float32"])
            self.assertEqual([m.tolist() for m in made[:2]], [[1, 0], [True, False]])
        lookup = cornu.layers.StringLookup(vocabulary=["a"])
        self.assertEqual(lookup(np.array(["a", "b"])).dtype.name, "int32")
        self.assertEqual(cornu.layers.Discretization([0.0])(np.array([1.0])).dtype.name, "int32")


if __name__ == "__main__":
    unittest.main()
