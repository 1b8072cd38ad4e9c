"""Layers and models of the program's own, beside what Keras computes (tests/golden/own)."""

import json
import os
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers, ops

import own_programs

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "tests", "golden", "own", "own.json")) as _file:
    KERAS = json.load(_file)["programs"]


def listed(values):
    return values if isinstance(values, list) else [values]


class Programs(unittest.TestCase):
    def test_they_compute_what_keras_does(self):
        for name, wanted in KERAS.items():
            with self.subTest(name):
                found = own_programs.run(cornu, name)[2]
                self.assertEqual(found["shapes"], wanted["shapes"])
                np.testing.assert_allclose(found["losses"], wanted["losses"], rtol=2e-6)
                for a, b in zip(found["before"] + found["after"],
                                wanted["before"] + wanted["after"]):
                    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)

    def test_files_keep_what_was_traced(self):
        """Without the classes a file predicts the same bits, and trains."""
        for name in KERAS:
            model, x, _ = own_programs.run(cornu, name)
            wanted = listed(model.predict(x, verbose=0))
            for suffix in (".safetensors", ".keras"):
                with self.subTest(name + suffix), tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "own" + suffix)
                    try:
                        model.save(path)
                    except NotImplementedError as error:
                        self.skipTest(str(error))
                    loaded = cornu.load(path)
                    for a, b in zip(wanted, listed(loaded.predict(x, verbose=0))):
                        np.testing.assert_array_equal(a, b)
                    loaded.compile("sgd", "mse")
                    loaded.fit(x, wanted, epochs=1, verbose=0)

    def test_exports_are_read(self):
        for name in KERAS:
            model, x, _ = own_programs.run(cornu, name)
            wanted = listed(model.predict(x, verbose=0))
            for suffix in (".onnx", ".tflite"):
                with self.subTest(name + suffix), tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "own" + suffix)
                    if suffix == ".tflite" and None in model.input_shape[1:]:
                        self.assertRaises(NotImplementedError, model.export, path)
                        continue
                    model.export(path)
                    for a, b in zip(wanted, listed(cornu.load(path).predict(x, verbose=0))):
                        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_devices_train_them(self):
        for name in KERAS:
            model, x, y = own_programs.PROGRAMS[name](cornu)
            model.compile("sgd", "mse", device="tpu")
            model.fit(x, y, batch_size=8, verbose=0)    # of "centred" rows depend on each other


class Wrapped(unittest.TestCase):
    def test_wrappers_have_the_layers_that_they_are_given(self):
        dense, x = layers.Dense(2), np.ones((1, 3, 8), "float32")
        apart = layers.TimeDistributed(dense)
        made = apart(x)
        np.testing.assert_array_equal(np.asarray(made)[:, 0], np.asarray(dense(x[:, 0])))
        self.assertIs(apart.layer, dense)
        self.assertEqual(dense.kernel.path, "%s/%s/kernel" % (apart.name, dense.name))
        model = cornu.Sequential([cornu.Input((8,)), layers.Dense(3), layers.Dense(2)])
        both = layers.TimeDistributed(model)
        np.testing.assert_allclose(np.asarray(both(x))[:, 1], np.asarray(model(x[:, 1])), rtol=1e-6)
        self.assertIs(both.layer, model)

    def test_layers_of_one_name(self):
        """Which get numbers, by which graphs and files tell them apart."""
        class Pair(cornu.layers.Layer):
            def __init__(self):
                super().__init__(name="pair")
                self.a = cornu.layers.Dense(2, name="same", kernel_initializer="ones")
                self.b = cornu.layers.Dense(2, name="same", kernel_initializer="zeros")

            def call(self, x, which="a"):
                return self.a(x) if which == "a" else self.b(x)

        x = cornu.Input((2,))
        for one_graph in (False, True):
            pair = Pair()
            if one_graph:
                pair.call = lambda x, pair=pair: pair.a(x) + pair.b(x)
            y = pair(x) if one_graph else pair(pair(x), which="b")
            model = cornu.Model(x, y)
            self.assertEqual([w.path.split("/")[-2:] for w in model.weights],
                             [["same", "kernel"], ["same", "bias"],
                              ["same_1", "kernel"], ["same_1", "bias"]])
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "pair.weights.h5")
                model.save_weights(path)
                values = model.get_weights()
                model.set_weights([v + 1 for v in values])
                model.load_weights(path)
            for found, value in zip(model.get_weights(), values):
                np.testing.assert_array_equal(found, value)

    def test_files_keep_what_is_shared(self):
        """A layer that a wrapper has and the model calls is one in a file and in a clone, too."""
        x, dense = cornu.Input((4, 3)), layers.Dense(2)
        model = cornu.Model(x, layers.TimeDistributed(dense)(x) +
                            ops.expand_dims(dense(x[:, 0]), 1))
        data = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
        copies = [cornu.models.clone_model(model)]
        copies[0].set_weights(model.get_weights())
        for suffix in (".safetensors", ".keras"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "shared" + suffix)
                try:
                    model.save(path)
                except NotImplementedError:     # libhdf5
                    continue
                copies.append(cornu.load(path))
        for copy in copies:
            self.assertEqual(copy.count_params(), 8)
            np.testing.assert_array_equal(copy.predict(data, verbose=0),
                                          model.predict(data, verbose=0))

    def test_files_give_the_cells(self):
        """With the class registered, as objects of it, whose weights are those of the model."""
        model, x, _ = own_programs.run(cornu, "both_ways")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "own.safetensors")
            model.save(path)
            loaded = cornu.load(path)
        for ways in (loaded.layers[1], model.layers[1]):
            cell = ways.backward_layer.cell
            self.assertEqual(type(cell).__name__, "LeakyCell")
            np.testing.assert_array_equal(cell.kernel.numpy(), model.get_weights()[4])
            self.assertIs(cell, ways.backward_layer.cell)

    def test_sequential_models_wait_for_them(self):
        model = cornu.Sequential([layers.TimeDistributed(layers.Lambda(lambda x: x + 0.0)),
                                  layers.RNN(Adding(3))])
        self.assertEqual(model.predict(np.ones((2, 4, 3), "float32"), verbose=0).tolist(),
                         [[4.0, 4.0, 4.0]] * 2)
        self.assertEqual(model.output_shape, (None, 3))

    def test_a_call_before_the_first_says_so(self):
        with self.assertRaisesRegex(ValueError, "is traced by a call; call it first"):
            layers.RNN(Adding(3))._layer_pointer()
        self.assertEqual(layers.RNN(Adding(3), name="r").name, "r")
        self.assertEqual(layers.RNN(Adding(3)).weights, [])

    def test_wrappers_of_ones_own(self):
        class Twice(layers.Wrapper):
            def call(self, x):
                return self.layer(self.layer(x))
        made = Twice(layers.Dense(2, kernel_initializer="ones"))(np.ones((1, 2), "float32"))
        self.assertEqual(np.asarray(made).tolist(), [[4.0, 4.0]])


class Adding(layers.Layer):
    """A cell that adds what it gets."""

    def __init__(self, units):
        super().__init__()
        self.state_size = units

    def call(self, x, states):
        return states[0] + x, [states[0] + x]


class Scale(layers.Layer):
    def __init__(self, by=2.0, **kwargs):
        super().__init__(**kwargs)
        self.by = by
        self.inner = layers.Dense(3)

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones", name="w")

    def call(self, x):
        return self.inner(x * self.w * self.by)


def model_of(layer, *shape):
    x = cornu.Input(shape)
    return cornu.Model(x, layer(x))


X = own_programs.numbers((6, 4), 20)


class Endpoint(layers.Layer):
    """Of logits: adds a loss and updates metrics where it is given targets, and predicts."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.loss = cornu.losses.BinaryCrossentropy(from_logits=True)
        self.accuracy = cornu.metrics.BinaryAccuracy(name="accuracy")
        self.mean = cornu.metrics.Mean(name="logit")

    def call(self, logits, targets=None, weights=None):
        if targets is not None:
            self.add_loss(self.loss(targets, logits, weights))
            self.accuracy.update_state(targets, logits, weights)
            self.mean.update_state(logits)
        return ops.sigmoid(logits)


class Metrics(unittest.TestCase):
    """That layers update in their calls. The numbers are those of Keras 3.15 on TensorFlow."""

    def setUp(self):
        rng = np.random.default_rng(0)
        self.data = {"x": rng.normal(size=(20, 5)).astype("float32"),
                     "targets": rng.integers(0, 2, (20, 1)).astype("float32"),
                     "weights": rng.random((20, 1)).astype("float32")}
        self.kernel = rng.normal(size=(5, 1))

    def check(self, model, dense):
        if dense.built:
            dense.set_weights([self.kernel, np.zeros(1)])
        model.compile(cornu.optimizers.SGD(0.1))
        if not dense.built:
            model(self.data)
            dense.set_weights([self.kernel, np.zeros(1)])
        history = model.fit(self.data, epochs=3, batch_size=8, shuffle=False, verbose=0).history
        self.assertEqual(sorted(history), ["accuracy", "logit", "loss"])
        np.testing.assert_allclose(history["accuracy"], [0.557513] * 3, atol=2e-6)
        np.testing.assert_allclose(history["logit"], [0.068404, 0.093493, 0.117671], atol=2e-6)
        np.testing.assert_allclose(history["loss"], [0.352008, 0.345127, 0.338571], atol=2e-6)
        found = model.evaluate(self.data, verbose=0, return_dict=True)
        for name, value in (("accuracy", 0.557513), ("logit", 0.132339), ("loss", 0.333287)):
            self.assertAlmostEqual(found[name], value, 5)
        self.assertEqual([m.name for m in model.metrics][-2:], ["accuracy", "logit"])

    def test_of_a_layer_of_a_model(self):
        x, targets, weights = [cornu.Input((n,), name=name) for name, n in
                               (("x", 5), ("targets", 1), ("weights", 1))]
        dense = layers.Dense(1)
        logits = dense(x)
        end = Endpoint(name="end")
        model = cornu.Model([x, targets, weights], end(logits, targets, weights))
        self.check(model, dense)
        inference = cornu.Model(x, Endpoint()(logits))
        np.testing.assert_array_equal(inference.predict(self.data["x"], verbose=0),
                                      model.predict(self.data, verbose=0))

    def test_of_layers_in_an_own_model(self):
        class Regression(cornu.Model):
            def __init__(self):
                super().__init__()
                self.dense, self.end = layers.Dense(1), Endpoint()

            def call(self, given):
                return self.end(self.dense(given["x"]), given["targets"], given["weights"])
        model = Regression()
        self.check(model, model.dense)
        self.assertEqual(len(model.weights), 2)


class Layers(unittest.TestCase):
    def test_config_is_what_init_was_given(self):
        layer = Scale(3.0, name="s")
        self.assertEqual(layer.get_config(), {"name": "s", "trainable": True, "by": 3.0})
        again = Scale.from_config(layer.get_config())
        self.assertEqual((again.by, again.name), (3.0, "s"))

    def test_weights_are_tracked(self):
        layer = Scale(name="tracked")
        model = model_of(layer, 4)
        self.assertEqual([w.path for w in layer.weights],
                         ["tracked/w"] + [w.path for w in layer.inner.weights])
        self.assertEqual(layer.count_params(), 4 + 15)
        layer.trainable = False
        self.assertEqual(model.trainable_weights, [])
        layer.trainable = True
        self.assertEqual(len(model.trainable_weights), 3)

    def test_shared_layers_share(self):
        layer, x, y = Scale(), cornu.Input((4,)), cornu.Input((4,))
        model = cornu.Model([x, y], layer(x) - layer(y))
        self.assertEqual(len(model.weights), 3)
        np.testing.assert_array_equal(model.predict([X, X], verbose=0), 0)

    def test_arrays_compute_at_once(self):
        layer = Scale()
        made = np.asarray(layer(X))
        kernel, bias = layer.inner.get_weights()
        np.testing.assert_allclose(made, 2 * X @ kernel + bias, rtol=1e-5)

    def test_a_call_of_some_rows_alone(self):
        class Sampler(layers.Layer):
            def __init__(self, rows):
                super().__init__()
                self.rows = rows

            def call(self, inputs, training=False):
                noise = cornu.random.uniform((self.rows, 3))
                return inputs[0] + noise * inputs[1] * (2.0 if training else 1.0)
        sampler, ones = Sampler(4), np.ones((4, 3), "float32")
        for made, most in ((sampler([ones, ones]), 2), (sampler([ones, ones], training=True), 3),
                           (cornu.function(lambda a, b: sampler([a, b]))(ones, ones), 2)):
            self.assertEqual(made.shape, (4, 3))
            self.assertTrue((made > 1).all() and (made < most).all())
            self.assertEqual(bool((made > 2).any()), most == 3)
        with self.assertRaisesRegex(cornu.errors.ShapeError, "cannot be broadcast together"):
            Sampler(4)([ones[:3], ones[:3]])

        class Count(layers.Layer):
            def build(self, shape):
                self.scale = self.add_weight((shape[-1],), "ones")

            def call(self, x):
                return ops.cumsum(x * self.scale, axis=1) + float(x.shape[1])
        count, growing = Count(), np.ones((2, 30, 3), "float32")
        for steps in range(1, 30):      # of more lengths than there are graphs of a layer
            made = count(growing[:, :steps])
            np.testing.assert_array_equal(made[0, :, 0], np.arange(1, steps + 1) + steps)

    def test_sequential_takes_other_extents_after_its_first_call(self):
        row = cornu.Sequential([layers.Dense(5, "relu"), layers.Dense(3)])
        long, short = cornu.Input((7, 4)), cornu.Input((2, 4))
        model = cornu.Model([long, short], [row(long), row(short)])
        x = np.random.default_rng(0).random((2, 7, 4)).astype("float32")
        for made in (model.predict([x, x[:, 5:]], verbose=0), [row(x), row(x[:, 5:])]):
            self.assertEqual(made[1].shape, (2, 2, 3))
            np.testing.assert_allclose(made[0][:, 5:], made[1], rtol=1e-6)
        flat = cornu.Sequential([layers.Flatten(), layers.Dense(3)])
        flat(long)
        with self.assertRaisesRegex(cornu.errors.ShapeError, "dense.*: matmul: .*8 and 28"):
            flat(short)

    def test_sequential_takes_them(self):
        for model in (cornu.Sequential([Scale(), layers.Dense(1)]),
                      cornu.Sequential([cornu.Input((4,)), Scale(), layers.Dense(1)])):
            model.compile("sgd", "mse")
            model.fit(X, X[:, :1], verbose=0)
            self.assertEqual(len(model.weights), 5)

    def test_training_is_two_graphs(self):
        class Noisy(layers.Layer):
            def call(self, x, training=False):
                return x + 1.0 if training else x

        model = model_of(Noisy(), 4)
        model.compile("sgd", "mse")
        np.testing.assert_array_equal(model.predict(X, verbose=0), X)
        self.assertAlmostEqual(model.train_on_batch(X, X), 1.0, places=6)
        self.assertAlmostEqual(model.evaluate(X, X, verbose=0), 0.0, places=6)

    def test_training_is_handed_on(self):
        """As an outer call has it, or fixed, in training and not; also of a file's layer."""
        class Noisy(layers.Layer):
            def call(self, x, training=False):
                return x + 1.0 if training else x

        class Outer(layers.Layer):
            def __init__(self, fixed, **kwargs):
                super().__init__(**kwargs)
                self.inner, self.fixed = Noisy(), fixed

            def call(self, x, training=None):
                given = training if self.fixed is None else self.fixed
                return self.inner(x, training=given)

        x = cornu.Input((4,))
        for layer, in_training, otherwise in (
                (lambda x: Outer(None)(x), 1.0, 0.0), (lambda x: Outer(False)(x), 0.0, 0.0),
                (lambda x: Outer(True)(x), 1.0, 1.0),
                # In a functional model it is that of the model, as in Keras.
                (lambda x: Noisy()(x, training=True), 1.0, 0.0),
                (lambda x: Outer(None)(x, training=False), 1.0, 0.0)):
            model = cornu.Model(x, layer(x))
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "own.safetensors")
                model.save(path)
                loaded = cornu.load(path)
            for each in (model, loaded):
                each.compile("sgd", "mse")
                self.assertAlmostEqual(each.train_on_batch(X, X), in_training, places=6)
                self.assertAlmostEqual(each.evaluate(X, X, verbose=0), otherwise, places=6)

    def test_weights_are_in_the_order_of_attributes(self):
        """Not of the calls; in files, too."""
        class Turned(layers.Layer):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.z, self.a = layers.Dense(3), [layers.Dense(2), layers.Dense(5)]

            def call(self, x):
                return self.z(self.a[0](self.a[1](x)))
        model = model_of(Turned(), 4)
        wanted = [(2, 3), (3,), (5, 2), (2,), (4, 5), (5,)]
        self.assertEqual([w.shape for w in model.weights], wanted)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "own.safetensors")
            model.save(path)
            loaded = cornu.load(path)
        self.assertEqual([w.shape for w in loaded.weights], wanted)
        np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))

    def test_exceptions_name_the_line(self):
        class AsBool(layers.Layer):
            def call(self, x):
                return x if ops.sum(x) > 0 else -x      # a tensor as a bool

        class WeightInCall(layers.Layer):
            def call(self, x):
                return x * self.add_weight(shape=(4,), name="late")

        class LayerInCall(layers.Layer):
            def call(self, x):
                return layers.Dense(2)(x)

        class Fails(layers.Layer):
            def call(self, x):
                raise KeyError("mine")

        class Nothing(layers.Layer):
            def call(self, x):
                pass

        for kind, error, part in (
                (AsBool, TypeError, "a tensor as a bool"),
                (WeightInCall, ValueError, "add it in __init__ or build"),
                (LayerInCall, ValueError, "is made in call"),
                (Fails, KeyError, "mine"), (Nothing, ValueError, "call returns None")):
            with self.subTest(kind.__name__), self.assertRaisesRegex(error, part):
                model_of(kind(), 4)

    def test_a_cycle_is_refused(self):
        a, b = Scale(), Scale()
        a.other, b.other = b, a
        with self.assertRaisesRegex(ValueError, "of which it is a part itself"):
            model_of(a, 4)



class Within(unittest.TestCase):
    def test_a_layer_that_waits_for_the_shape_within_a_sequential(self):
        """After layers of the library, in a Sequential in another one, by fit and by a call."""
        class Twice(cornu.layers.Layer):
            def call(self, x):
                return x * 2.0
        layers, x = cornu.layers, np.random.default_rng(0).random((4, 3)).astype("float32")
        inner = cornu.Sequential([layers.Rescaling(0.5), layers.ReLU(), Twice()])
        model = cornu.Sequential([cornu.Sequential([inner]), layers.Flatten()])
        np.testing.assert_allclose(model(x), x, rtol=1e-6)
        np.testing.assert_allclose(inner(x), x, rtol=1e-6)
        known = cornu.Sequential([cornu.Input((3,)), cornu.Sequential([
            layers.Rescaling(0.5), Twice(), layers.Dense(1, use_bias=False)])])
        self.assertEqual(known.output_shape, (None, 1))
        known.compile("sgd", "mse")
        known.set_weights([np.ones((3, 1))])
        np.testing.assert_allclose(known.predict(x, verbose=0), x.sum(1, keepdims=True), rtol=1e-5)
        known.fit(x, np.ones((4, 1)), verbose=0)


if __name__ == "__main__":
    unittest.main()
