"""Building, training, predicting and saving models."""

import gc
import io
import os
import tempfile
import threading
import unittest
from contextlib import redirect_stdout

import numpy as np

import cornu
from cornu import layers as L


def rings(rows=400):
    """Points of a square, labelled by how far from the centre they lie: 0, 1 or 2."""
    x = np.random.default_rng(1).uniform(-1, 1, (rows, 2)).astype(np.float32)
    distance = (x * x).sum(axis=1)
    return x, (distance > 0.3).astype(np.int64) + (distance > 0.8)


def small(**arguments):
    cornu.set_random_seed(3)
    model = cornu.Sequential([cornu.Input((2,)), L.Dense(16, "relu"), L.Dense(3, "softmax")])
    model.compile(cornu.optimizers.Adam(0.02), "sparse_categorical_crossentropy",
                  metrics=["accuracy"], **arguments)
    return model


class Training(unittest.TestCase):
    def test_fit_learns_and_evaluate_tells(self):
        x, y = rings()
        model = small()
        history = model.fit(x, y, epochs=30, validation_split=0.25, verbose=0)
        self.assertEqual(sorted(history.history),
                         ["accuracy", "loss", "val_accuracy", "val_loss"])
        self.assertEqual(history.epoch, list(range(30)))
        self.assertGreater(history.history["val_accuracy"][-1], 0.9)
        loss, accuracy = model.evaluate(x[300:], y[300:], verbose=0)
        self.assertAlmostEqual(accuracy, history.history["val_accuracy"][-1], 6)
        self.assertEqual(model.evaluate(x[300:], y[300:], verbose=0, return_dict=True),
                         {"loss": loss, "accuracy": accuracy})
        found = model.predict(x, verbose=0)
        self.assertEqual((found.shape, found.dtype), ((400, 3), np.float32))
        self.assertAlmostEqual((found[300:].argmax(1) == y[300:]).mean(), accuracy, 6)

    def test_the_same_seed_gives_the_same_bits(self):
        x, y = rings()
        one, two = small(), small()
        for model in (one, two):
            model.fit(x, y, epochs=2, verbose=0)
        for a, b in zip(one.get_weights(), two.get_weights()):
            np.testing.assert_array_equal(a, b)

    def test_a_step_is_that_of_arithmetic(self):
        """One step of SGD on the mean squared error of a linear layer."""
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((8, 3)), rng.standard_normal((8, 1))
        model = cornu.Sequential([cornu.Input((3,)), L.Dense(1)])
        model.compile(cornu.optimizers.SGD(0.1), "mse", metrics=["mae"])
        w, b = rng.standard_normal((3, 1)), rng.standard_normal(1)
        model.set_weights([w, b])
        off = x @ w + b - y
        loss, mae = model.train_on_batch(x, y)
        self.assertAlmostEqual(loss, (off ** 2).mean(), 5)
        self.assertAlmostEqual(mae, abs(off).mean(), 5)
        new_w, new_b = model.get_weights()
        np.testing.assert_allclose(new_w, w - 0.1 * 2 * x.T @ off / 8, atol=1e-6)
        np.testing.assert_allclose(new_b, b - 0.1 * 2 * off.mean(axis=0), atol=1e-6)

    def test_weights_of_samples_and_classes(self):
        x, y = rings(64)
        model = small()
        weight = np.where(y == 1, 2.0, 1.0)
        start = model.get_weights()
        by_sample = model.train_on_batch(x, y, sample_weight=weight)[0]
        model.set_weights(start)
        model.optimizer.learning_rate = 0.0
        by_class = model.train_on_batch(x, y, class_weight={1: 2.0})[0]
        self.assertAlmostEqual(by_sample, by_class, 5)
        self.assertNotAlmostEqual(by_sample, model.test_on_batch(x, y)[0], 3)

    def test_weights_of_some_outputs(self):
        """By name or None; the samples of the other outputs weigh 1."""
        x = cornu.Input((2,))
        model = cornu.Model(x, [L.Dense(1, name="left", kernel_initializer="ones")(x),
                                L.Dense(1, name="right", kernel_initializer="ones")(x)])
        model.compile("sgd", "mse")
        data, labels = np.array([[1.0, 0], [2, 0], [3, 0]]), np.zeros((3, 1))
        weight, ones = np.array([1.0, 0, 2]), np.ones(3)     # means 19 / 3 and 14 / 3
        for given, left, right in (({"left": weight}, 19, 14), ({"right": weight}, 14, 19),
                                   ([None, weight], 14, 19), ([weight, ones], 19, 14)):
            loss = model.evaluate(data, [labels, labels], sample_weight=given, verbose=0)
            np.testing.assert_allclose(loss, [11, left / 3, right / 3], rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "outputs are left, right, sample_weight has top"):
            model.evaluate(data, [labels, labels], sample_weight={"top": weight})

    def test_a_model_without_input_shape_is_built_by_data(self):
        x, y = rings(64)
        model = cornu.Sequential([L.Dense(3, "softmax")])
        self.assertFalse(model.built)
        model.compile("sgd", "sparse_categorical_crossentropy")
        model.fit(x, y, verbose=0)
        self.assertEqual(model.output_shape, (None, 3))

    def test_lists_are_arrays(self):
        model = small()
        history = model.fit([[0.0, 0.0], [1.0, 1.0]], [0, 2], verbose=0)
        self.assertEqual(len(history.history["loss"]), 1)

    def test_mistakes_are_told(self):
        x, y = rings(64)
        with self.assertRaisesRegex(ValueError, "compile"):
            cornu.Sequential([cornu.Input((2,)), L.Dense(3)]).fit(x, y)
        model = small()
        with self.assertRaisesRegex(ValueError, "rows"):
            model.fit(x, y[:5], verbose=0)
        with self.assertRaisesRegex(ValueError, "verbose"):
            model.fit(x, y, verbose=7)
        with self.assertRaises(ValueError):
            model.fit(np.ones((64, 5)), y, verbose=0)
        with self.assertRaises(ValueError):
            model.compile("adamant", "mse")
        self.assertEqual(model.predict(x, verbose=0).shape, (64, 3))

    def test_a_second_thread_gets_an_error(self):
        x, y = rings()
        model, started, failures = small(), threading.Event(), []

        class Start(cornu.callbacks.Callback):
            def on_epoch_begin(self, epoch, logs=None):
                started.set()

            def on_epoch_end(self, epoch, logs=None):
                self.model.stop_training = bool(failures)

        def train():
            model.fit(x, y, epochs=100000, verbose=0, callbacks=[Start()])

        thread = threading.Thread(target=train)
        thread.start()
        started.wait()
        try:
            model.predict(x, verbose=0)
        except cornu.errors.BusyError as error:
            failures.append(error)
        finally:
            failures = failures or [None]
        thread.join()
        self.assertIsInstance(failures[0], cornu.CornuError)


class Functions(unittest.TestCase):
    """Graphs of files whose axis 0 is not a batch, or has rows that depend on each other; numbers
    are onnxruntime's (tests/golden/make_onnx_rows.py)."""

    folder = os.path.join(os.path.dirname(__file__), "..", "golden", "onnx_rows")

    def read(self, name):
        data = np.load(os.path.join(self.folder, name + ".npz"))
        x = [data[k] for k in sorted(data.files) if k[0] == "x"]
        return (cornu.load(os.path.join(self.folder, name + ".onnx")),
                x if len(x) > 1 else x[0], [data[k] for k in sorted(data.files) if k[0] == "p"])

    def expect(self, got, wanted):
        for a, b in zip(got if isinstance(got, list) else [got], wanted):
            self.assertEqual(a.shape, b.shape)
            np.testing.assert_allclose(a, b, 1e-4, 1e-5)

    def test_functions_run_once(self):
        for name in ("scalar", "scalars", "state", "one_row", "time_major", "fixed_time",
                     "one_number", "of_nodes", "two_things", "halves", "best", "twelve"):
            model, x, wanted = self.read("function_" + name)
            self.assertTrue(model.is_function, name)
            self.expect(model(x), wanted)
            self.expect(cornu.Predictor(model, threads=1)(x), wanted)

    def test_inputs_by_name(self):
        model, x, wanted = self.read("function_state")
        x = {"x": x[0], "state": x[1]}
        self.expect(model(x), wanted)
        self.expect(cornu.Predictor(model, threads=1)(x), wanted)

    def test_predict_says_why_not(self):
        model, x, _ = self.read("function_scalar")
        with self.assertRaisesRegex(NotImplementedError, r"predict: .*the input sr of g is \(\)"):
            model.predict(x)
        model.compile("sgd", "mse")
        with self.assertRaisesRegex(NotImplementedError, r"fit: .*the input sr of g is \(\)"):
            model.fit(x, x[0], verbose=0)

    def test_rows_that_meet_are_not_cut(self):
        for name in ("maximum", "softmax", "cumsum", "lstm"):
            model, x, wanted = self.read("meet_" + name)
            self.expect(model.predict(x, verbose=0), wanted)
            self.expect(cornu.Predictor(model, max_batch_size=8, threads=1).predict(x), wanted)
            with self.assertRaisesRegex(ValueError, "depend on each other"):
                model.predict(x, batch_size=8, verbose=0)

    def test_a_file_of_one_row(self):
        model, x, wanted = self.read("fixed_row")
        x = np.concatenate([x, 2 * x, x])
        got = model.predict(x, verbose=0)
        np.testing.assert_allclose(got, np.concatenate([wanted[0], 2 * wanted[0], wanted[0]]), 1e-5)
        np.testing.assert_array_equal(cornu.Predictor(model, threads=1).predict(x), got)

    def test_input_shapes(self):
        path = os.path.join(self.folder, "apart_height.onnx")
        model = cornu.load(path, input_shapes=[(None, 3, 48, 16)])
        self.assertEqual(model.input_shape, (None, 3, 48, 16))
        with self.assertRaisesRegex(ValueError, r"input_shapes\[0\] is \(None, 4, 48, 16\)"):
            cornu.load(path, input_shapes=[(None, 4, 48, 16)])


class Predictors(unittest.TestCase):
    def test_many_threads_predict_the_bits_of_one(self):
        x, _ = rings(256)
        model = small()
        expected = model.predict(x, batch_size=64, verbose=0)
        predictor = cornu.Predictor(model, max_batch_size=64, threads=1)
        found, failures = {}, []

        def run(number):
            try:
                for _ in range(20):
                    found[number] = predictor.predict(x)
            except Exception as error:      # told below
                failures.append(error)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        del model
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(len(found), 8)
        for values in found.values():
            np.testing.assert_array_equal(values, expected)

    def test_inputs_by_name(self):
        a, b = cornu.Input((3,), name="a"), cornu.Input((3,), name="b")
        predictor = cornu.Predictor(cornu.Model([a, b], [a - b, a + b]))
        one, two = np.full((2, 3), 1.0), np.full((2, 3), 2.0)
        less, more = predictor.predict({"b": two, "a": one})
        self.assertEqual((less[0, 0], more[0, 0]), (-1.0, 3.0))
        with self.assertRaisesRegex(ValueError, "a, b"):
            predictor.predict({"a": one})
        with self.assertRaisesRegex(ValueError, "expected 2"):
            predictor.predict([one])


class Building(unittest.TestCase):
    def test_layers_that_branch(self):
        x = cornu.Input((8,))
        a = L.Dense(4, activation="relu", name="a")(x)
        y = L.Add()([a, 2.0 * a + -1.0]) / 3.0
        y = cornu.ops.concatenate([y, cornu.ops.exp(a)], axis=-1)
        model = cornu.Model(x, y)
        self.assertEqual(model.output_shape, (None, 8))
        data = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
        w, b = model.get_layer("a").get_weights()
        h = np.maximum(data @ w + b, 0)
        np.testing.assert_allclose(model.predict(data, verbose=0),
                                   np.concatenate([h - 1 / 3, np.exp(h)], 1), rtol=1e-5, atol=1e-5)

    def test_names_are_counted_as_in_keras(self):
        cornu.clear_session()
        self.assertEqual([L.Conv2DTranspose(1, 2).name for _ in range(2)],
                         ["conv2d_transpose", "conv2d_transpose_1"])
        self.assertEqual(cornu.Sequential().name, "sequential")
        self.assertEqual(L.Dense(1, name="mine").name, "mine")

    def test_several_inputs_and_outputs(self):
        a, b = cornu.Input((3,), name="a"), cornu.Input((4,), name="b")
        x = L.Concatenate()([L.Dense(4)(a), b])
        model = cornu.Model([a, b], [L.Dense(1, name="u")(x), L.Dense(2, name="v")(x)])
        model.compile("sgd", {"u": "mse", "v": cornu.losses.Huber(0.5)},
                      loss_weights={"u": 1.0, "v": 2.0}, metrics={"v": ["mae"]})
        rng = np.random.default_rng(0)
        xs = {"a": rng.standard_normal((10, 3)), "b": rng.standard_normal((10, 4))}
        ys = {"u": rng.standard_normal((10, 1)), "v": rng.standard_normal((10, 2))}
        named = model.fit(xs, ys, verbose=0).history
        self.assertEqual(sorted(named), ["loss", "u_loss", "v_loss", "v_mae"])
        self.assertAlmostEqual(named["loss"][0], named["u_loss"][0] + 2 * named["v_loss"][0], 5)
        u, v = model.predict([xs["a"], xs["b"]], verbose=0)
        self.assertEqual((u.shape, v.shape), ((10, 1), (10, 2)))
        with self.assertRaisesRegex(ValueError, "inputs are a, b"):
            model.predict({"a": xs["a"]}, verbose=0)

    def test_a_table_of_many_columns(self):
        """64 inputs, the most."""
        columns = [cornu.Input((1,)) for _ in range(64)]
        model = cornu.Model(columns, L.add(columns))
        x = [np.full((3, 1), i, np.float32) for i in range(64)]
        np.testing.assert_array_equal(model.predict(x, verbose=0), np.full((3, 1), 63 * 32))
        model.compile("sgd", "mse")
        self.assertEqual(model.evaluate(x, np.full((3, 1), 63 * 32), verbose=0), 0.0)
        with self.assertRaisesRegex(ValueError, "65 inputs, expected at most 64"):
            cornu.Model(columns + [cornu.Input((1,))], columns[0])

    def test_models_share_layers(self):
        x = cornu.Input((4,))
        h = L.Dense(3, name="hidden")(x)
        whole, part = cornu.Model(x, L.Dense(1)(h)), cornu.Model(x, h)
        data = np.ones((2, 4), np.float32)
        before = part.predict(data, verbose=0)
        whole.compile("sgd", "mse")
        whole.train_on_batch(data, np.ones((2, 1)))
        self.assertFalse(np.array_equal(part.predict(data, verbose=0), before))
        after = whole.predict(data, verbose=0)
        del part
        gc.collect()
        np.testing.assert_array_equal(whole.predict(data, verbose=0), after)
        whole.compile("adam", "mse")
        whole.train_on_batch(data, np.ones((2, 1)))
        y = whole.outputs[0]
        del whole, x, h
        gc.collect()
        self.assertEqual(y.shape, (None, 1))

    def test_a_model_is_a_layer(self):
        inner = cornu.Sequential([cornu.Input((4,)), L.Dense(3)], name="inner")
        x = cornu.Input((4,))
        outer = cornu.Model(x, L.Dense(2)(inner(x)))
        self.assertEqual(outer.weights[0].path, "inner/%s/kernel" % inner.layers[0].name)
        self.assertIs(outer.layers[1], inner)

    def test_states_are_further_results_and_operands(self):
        x = cornu.Input((5, 3))
        y, h, c = L.LSTM(2, return_state=True)(x)
        z = L.LSTM(2)(x, initial_state=[h, c])
        model = cornu.Model(x, [y, z])
        y, z = model.predict(np.ones((2, 5, 3)), verbose=0)
        self.assertEqual((y.shape, z.shape), ((2, 2), (2, 2)))
        q, v = cornu.Input((4, 6)), cornu.Input((7, 6))
        out, scores = L.MultiHeadAttention(2, 3)(q, value=v, return_attention_scores=True)
        self.assertEqual((out.shape, scores.shape), ((None, 4, 6), (None, 2, 4, 7)))

    def test_open_extents(self):
        x = cornu.Input((None, 3))
        model = cornu.Model(x, L.Conv1D(2, 3)(x))
        self.assertEqual(model.output_shape, (None, None, 2))
        for length in (5, 9):
            self.assertEqual(model.predict(np.ones((4, length, 3)), verbose=0).shape,
                             (4, length - 2, 2))

    def test_frozen_layers(self):
        model = small()
        model.layers[0].trainable = False
        model.compile("sgd", "sparse_categorical_crossentropy")
        before = model.get_weights()
        model.train_on_batch(*rings(32))
        after = model.get_weights()
        np.testing.assert_array_equal(before[0], after[0])
        self.assertFalse(np.array_equal(before[2], after[2]))
        self.assertEqual(len(model.layers[0].trainable_weights), 0)

    def test_layers_frozen_after_compile(self):
        """What is trainable is read by the first training step, as in Keras 3."""
        model = small()
        model.layers[0].trainable = False
        before = model.get_weights()
        model.train_on_batch(*rings(32))
        after = model.get_weights()
        np.testing.assert_array_equal(before[0], after[0])
        self.assertFalse(np.array_equal(before[2], after[2]))

    def test_what_a_second_compile_does_not_give(self):
        """Is what the first was given, as in Keras 3."""
        class Penalty(L.Layer):
            def call(self, x):
                self.add_loss(cornu.ops.sum(x))
                return x
        x = cornu.Input((1,))
        model = cornu.Model(x, Penalty()(x))
        ones, threes = np.ones((2, 1), "float32"), np.full((2, 1), 3.0, "float32")
        model.compile("adam", "mse", metrics=["mae"])
        model.compile("adam")
        self.assertEqual(model.evaluate(ones, threes, verbose=0), [6.0, 2.0])
        model.compile("adam", metrics=[])
        self.assertEqual(model.evaluate(ones, threes, verbose=0), 6.0)
        model.compile("adam", "mae")
        self.assertEqual(model.evaluate(ones, threes, verbose=0), 4.0)

    def test_trainable_weights_of_models(self):
        """Of a layer in a model in a model, too; numbers are those of Keras 3."""
        inner = cornu.Sequential([cornu.Input((3,)), L.Dense(2), L.BatchNormalization()])
        last = L.Dense(4)
        model = cornu.Sequential([cornu.Input((3,)), inner, last, L.Dense(2)])

        def counts():
            return [len(model.trainable_weights), len(model.non_trainable_weights),
                    len(inner.trainable_weights), len(last.trainable_weights)]
        self.assertEqual(counts(), [8, 2, 4, 2])
        last.trainable = False
        self.assertEqual(counts(), [6, 4, 4, 0])
        inner.layers[0].trainable = False
        self.assertEqual(counts(), [4, 6, 2, 0])
        inner.trainable = False
        self.assertEqual(counts(), [2, 8, 0, 0])
        model.trainable = True
        self.assertEqual(counts(), [8, 2, 4, 2])

    def test_the_names_of_several_metrics_of_a_class(self):
        class Own(cornu.metrics.Metric):
            pass

        class Area(cornu.metrics.AUC):
            pass
        cornu.utils.clear_session()
        kinds = [cornu.metrics.Recall, cornu.metrics.AUC, Own, Area, cornu.metrics.Mean]
        names = [kind().name for kind in kinds * 2]
        self.assertEqual(names, ["recall", "auc", "own", "area", "mean",
                                 "recall_1", "auc_1", "own_1", "area_1", "mean"])
        x, y = np.eye(4, 3, dtype="float32"), np.array([0, 1, 1, 0])
        model = cornu.Sequential([cornu.Input((3,)), cornu.layers.Dense(1, "sigmoid")])
        model.compile("sgd", "binary_crossentropy", metrics=[cornu.metrics.Recall(), "accuracy"])
        self.assertEqual(list(model.fit(x, y, verbose=0).history), ["accuracy", "loss", "recall_2"])

    def test_names_of_losses_and_metrics(self):
        for made, name in ((cornu.metrics.LogCoshError(), "logcosh"),
                           (cornu.metrics.MeanIoU(2), "mean_io_u"),
                           (cornu.metrics.AUC(name="area"), "area"),
                           (cornu.losses.MeanSquaredError(), "mean_squared_error")):
            self.assertEqual(made.name, name)

    def test_weights_of_the_same_shapes_alone(self):
        def network(classes, value):
            made = cornu.Sequential([cornu.Input((4,)), cornu.layers.Dense(3),
                                     cornu.layers.Dense(classes)])
            made.set_weights([np.full(w.shape, value) for w in made.weights])
            return made
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "five.keras")
            network(5, 1.0).save(path)
            two = network(2, 2.0)
            with self.assertRaisesRegex(ValueError, r"is \(3, 5\) in the file, expected \(3, 2\)"):
                two.load_weights(path)
            with self.assertWarnsRegex(UserWarning, r"kernel \(3, 2\), .*/bias \(2,\), which keep"):
                two.load_weights(path, skip_mismatch=True)
            self.assertEqual([w.flat[0] for w in two.get_weights()], [1, 1, 2, 2])

    def test_set_weights_sets_all_or_nothing(self):
        model = small()
        before = model.get_weights()
        with self.assertRaisesRegex(ValueError, r"kernel has the shape \(16, 3\)"):
            model.set_weights([np.zeros((2, 16)), np.zeros(16), np.zeros((3, 16)), np.zeros(3)])
        for a, b in zip(before, model.get_weights()):
            np.testing.assert_array_equal(a, b)

    def test_calls_on_arrays_compute(self):
        self.assertEqual(L.Dense(3)(np.ones((2, 2))).shape, (2, 3))
        np.testing.assert_allclose(cornu.ops.exp(np.ones(2)), np.e, rtol=1e-6)

    def test_summary(self):
        text = io.StringIO()
        with redirect_stdout(text):
            small().summary()
        self.assertIn("Total params: 99 (396.00 B)", text.getvalue())
        lines = []
        small().summary(print_fn=lines.append)
        self.assertIn("Dense", lines[0])

    def test_objects_live_as_long_as_they_are_needed(self):
        """In any order of collection."""
        def part():
            x = cornu.Input((4,))
            model = cornu.Model(x, L.Dense(3, name="kept")(x))
            model.compile("sgd", "mse")
            model.train_on_batch(np.ones((2, 4)), np.ones((2, 3)))
            return model.get_layer("kept"), model.outputs[0], model.weights[0], \
                model.predict(np.ones((1, 4)), verbose=0)

        for _ in range(5):
            layer, output, weight, expected = part()
            gc.collect()
            self.assertEqual(weight.numpy().shape, (4, 3))
            self.assertEqual(output.shape, (None, 3))
            again = cornu.Sequential([cornu.Input((4,)), layer])
            gc.collect()
            np.testing.assert_array_equal(again.predict(np.ones((1, 4)), verbose=0), expected)
            del layer, weight
            gc.collect()
            np.testing.assert_array_equal(again.predict(np.ones((1, 4)), verbose=0), expected)


class Files(unittest.TestCase):
    def test_saved_models_predict_the_same(self):
        x, y = rings(64)
        model = small()
        model.fit(x, y, verbose=0)
        expected = model.predict(x, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            model.save(path)
            loaded = cornu.load(path)
            np.testing.assert_array_equal(loaded.predict(x, verbose=0), expected)
            self.assertEqual([w.path for w in loaded.weights], [w.path for w in model.weights])
            loaded.compile("sgd", "sparse_categorical_crossentropy")
            loaded.fit(x, y, verbose=0)
            other = small()
            weights = os.path.join(folder, "weights.npz")
            model.save_weights(weights)
            renamed = dict(zip([w.path for w in model.weights], model.get_weights()))
            np.testing.assert_array_equal(np.load(weights)[model.weights[0].path],
                                          renamed[model.weights[0].path])
            other.set_weights(model.get_weights())
            np.testing.assert_array_equal(other.predict(x, verbose=0), expected)
            onnx = os.path.join(folder, "model.onnx")
            model.export(onnx)
            np.testing.assert_allclose(cornu.load(onnx).predict(x, verbose=0), expected, atol=1e-6)

    def test_architecture(self):
        model = small()
        again = cornu.model_from_json(model.to_json())
        self.assertEqual(again.to_json(), model.to_json())
        clone = cornu.clone_model(model)
        self.assertEqual(clone.count_params(), model.count_params())


class Devices(unittest.TestCase):
    def test_a_tpu(self):
        x, y = rings(64)
        model = small(device="tpu")
        self.assertIn("tpu", cornu.Device("tpu", shards=2).description)
        history = model.fit(x, y, batch_size=32, epochs=2, verbose=0)
        self.assertLess(history.history["loss"][1], history.history["loss"][0])
        with self.assertRaisesRegex(cornu.CornuError, "nothing"):
            small(device="nothing")

    def test_mnist(self):
        (x, y), (x_test, y_test) = cornu.datasets.mnist.load_data("synthetic", limit=300)
        self.assertEqual((x.shape, x.dtype, y.shape, y.dtype),
                         ((300, 28, 28), np.uint8, (300,), np.uint8))
        model = cornu.Sequential([cornu.Input((28, 28), scale=1 / 255), L.Flatten(),
                                  L.Dense(10, "softmax")])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(x, y, epochs=30, verbose=0)
        self.assertGreater(model.evaluate(x, y, verbose=0)[1], 0.8)



class Bytes(unittest.TestCase):
    """.tflite files of 8 bits: tests/golden/make_lite.py, make_lite_read.py."""

    folder = os.path.join(os.path.dirname(__file__), "..", "golden")

    def files(self, name):
        path = os.path.join(self.folder, name)
        return path + ".tflite", np.load(path + ".npz")

    def test_a_file_of_bytes_is_a_model(self):
        path, arrays = self.files("lite_read/int8")
        got = cornu.load(path).predict(arrays["x0"][0].astype(np.int8), verbose=0)
        np.testing.assert_array_equal(got, arrays["p0"][0])

    def test_or_computes_in_integers(self):
        path, arrays = self.files("lite/bytes")
        model = cornu.Int8Model(path)
        y = model.predict(np.zeros((3,) + arrays["x0"].shape[1:], np.float32))
        self.assertEqual(y.shape, (3,) + arrays["p0"].shape[1:])
        self.assertTrue(np.isfinite(y).all() and (y[0] == y[2]).all())
        with self.assertRaisesRegex(ValueError, "expected 1 with a row"):
            model.predict(1.0)
        with self.assertRaisesRegex(cornu.CornuError, "tensor x is i16, expected i8"):
            cornu.Int8Model(self.files("lite_read/int16")[0])


if __name__ == "__main__":
    unittest.main()
