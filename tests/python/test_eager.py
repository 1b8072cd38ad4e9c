"""Operations, layers, models, losses and metrics on arrays, which compute at once."""

import inspect
import json
import threading
import unittest

import numpy as np

import cornu
from cornu import layers as L, ops

from test_ops import DATA, KERAS


def arrays(value):
    """The arguments of a case of tests/golden/operations with its arrays."""
    if isinstance(value, dict):
        return DATA[value["input"]]
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return [arrays(v) for v in value]
    return value


class Operations(unittest.TestCase):
    def check(self, case, found):
        found = found if isinstance(found, list) else [found]
        self.assertEqual(len(found), len(case["results"]))
        for a, values, shape in zip(found, case["results"], case["shapes"]):
            self.assertIsInstance(a, np.ndarray)
            self.assertEqual(list(a.shape), shape)
            np.testing.assert_allclose(np.float32(a), np.array(values, np.float32).reshape(shape),
                                       rtol=2e-5, atol=2e-6)

    def test_what_keras_computes(self):
        for case in KERAS["cases"]:
            with self.subTest(case["function"]):
                args = [arrays(value) for value in case["args"]]
                self.check(case, getattr(ops, case["function"])(*args))
                if case["names"]:
                    self.check(case, getattr(ops, case["function"])(**dict(zip(case["names"],
                                                                                args))))

    def test_axis_0_is_an_axis(self):
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        for found, expected in (
                (ops.sum(x), x.sum()), (ops.mean(x, axis=0), x.mean(0)),
                (ops.max(x, axis=0, keepdims=True), x.max(0, keepdims=True)),
                (ops.concatenate([x, x]), np.concatenate([x, x])),
                (ops.stack([x, x]), np.stack([x, x])), (ops.reshape(x, (3, 4)), x.reshape(3, 4)),
                (ops.transpose(x), x.T), (ops.expand_dims(x, 0), x[None]),
                (ops.matmul(x, x.T), x @ x.T), (ops.flip(x, axis=0), x[::-1]),
                (ops.argmax(x, axis=0), x.argmax(0)), (ops.split(x, 2)[1], x[2:])):
            np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_dtypes_are_those_of_keras_on_jax(self):
        """keras.ops on JAX: 64-bit numbers become 32-bit ones; Python's take the array's dtype."""
        f16, i32 = np.ones(2, np.float16), np.ones(2, np.int32)
        u8, flags = np.ones(2, np.uint8), np.ones(2, bool)
        for found, dtype in (
                (ops.add(np.ones(2), 1), "float32"), (ops.add(np.ones(2, np.int64), 1), "int32"),
                (ops.add([1, 2], 1), "int32"), (ops.add([1, 2], 1.0), "float32"),
                (ops.add(f16, 1.5), "float16"), (ops.add(i32, 2), "int32"),
                (ops.add(u8, 2), "uint8"), (ops.add(u8, 2.5), "float32"),
                (ops.add(flags, 1), "int32"), (ops.divide(i32, 2), "float32"),
                (ops.multiply(2, i32), "int32"), (ops.add(f16, np.float64(1)), "float32"),
                (ops.equal(i32, 1), "bool"), (ops.sqrt(4), "float32"),
                (ops.convert_to_tensor([1.5]), "float32"), (ops.convert_to_tensor(3), "int32"),
                (ops.convert_to_tensor([True]), "bool"),
                (ops.convert_to_tensor(np.arange(3), dtype="float16"), "float16")):
            self.assertEqual(found.dtype, dtype)

    def test_results_are_arrays(self):
        y = ops.add(np.arange(3), 1.5)
        self.assertEqual(repr(y), "array([1.5, 2.5, 3.5], dtype=float32)")
        self.assertEqual(float(ops.sum(y)), 7.5)
        self.assertEqual(y[1], 2.5)
        self.assertTrue((y > 1).all() and bool(ops.all(y > 1)))
        np.testing.assert_array_equal(y.numpy() * 2, [3, 5, 7])
        self.assertTrue(ops.is_tensor(y) and not ops.is_tensor([1]))
        self.assertEqual(ops.shape(y), (3,))
        self.assertIs(type(ops.convert_to_numpy(y)), np.ndarray)

    def test_elements_are_arrays_as_those_of_tensors(self):
        x = ops.argmax(np.array([[1, 5], [7, 2]]), -1)
        self.assertEqual(["a", "b"][x[0]] + "%d {:.1f}".format(x[1]) % x[0], "b1 0.0")
        self.assertEqual({1: "one"}[x[0].numpy()], "one")       # TensorFlow's numpy of a number
        self.assertEqual({1: "one"}[x[0]], "one")
        self.assertEqual(set(np.unique(x)), {0, 1})
        self.assertEqual([each.numpy() + 1 for each in x], [2, 1])
        self.assertEqual(float(ops.sum(x[0]) + x[1]), 1.0)
        with self.assertRaisesRegex(TypeError, "unhashable type: an array with axes"):
            hash(x)
        with self.assertRaisesRegex(TypeError, "iteration over an array without axes"):
            iter(x[0])

    def test_numbers_that_differ_are_not_compiled_again(self):
        x = np.ones(3, np.float32)
        for i in range(3):
            np.testing.assert_allclose(ops.multiply(x, i + 0.5), x * (i + 0.5))
        from cornu._tensors.values import state
        self.assertEqual(len([key for key in state.kept if key[0] == "multiply" and
                              (3,) in key and () in key]), 1)

    def test_the_oldest_are_dropped(self):
        from cornu._tensors import values
        usual, values._MOST_KEPT = values._MOST_KEPT, 8
        try:
            for n in range(20):
                ops.square(np.ones(n + 1, np.float32))
            self.assertLessEqual(len(values.state.kept), 8)
        finally:
            values._MOST_KEPT = usual

    def test_threads(self):
        found = []

        def work(i):
            for k in range(20):
                found.append(float(ops.sum(np.full(5, i + k, np.float32))) == 5 * (i + k))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(found, [True] * 60)

    def test_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "matmul: .*2, 3.*2, 3|extents|shape"):
            ops.matmul(np.ones((2, 3)), np.ones((2, 3)))
        with self.assertRaisesRegex(TypeError, "array of numbers, <U1 came .*test_eager.py, line"):
            ops.add(np.array(["a"]), 1)
        with self.assertRaisesRegex(TypeError, "softmax: got an unexpected"):
            ops.softmax(np.ones(3), axes=1)


class Layers(unittest.TestCase):
    def test_a_layer_is_built_by_its_call(self):
        x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
        layer = L.Dense(3, "relu")
        y = layer(x)
        self.assertTrue(layer.built)
        kernel, bias = layer.get_weights()
        np.testing.assert_allclose(y, np.maximum(x @ kernel + bias, 0), rtol=1e-5)
        np.testing.assert_array_equal(layer(x[:2]), y[:2])
        np.testing.assert_array_equal(layer(x.tolist()), y)
        layer.set_weights([kernel * 2, bias])
        np.testing.assert_allclose(layer(x), np.maximum(2 * x @ kernel + bias, 0), rtol=1e-5)

    def test_a_layer_is_that_of_a_model(self):
        layer = L.Dense(3, name="shared")
        x = np.ones((2, 4), np.float32)
        before = layer(x)
        given = cornu.Input((4,))
        model = cornu.Model(given, layer(given))
        np.testing.assert_array_equal(model.predict(x, verbose=0), before)
        self.assertEqual(layer.input.shape, (None, 4))
        model.compile("sgd", "mse")
        model.fit(x, np.ones((2, 3)), verbose=0)
        np.testing.assert_array_equal(layer(x), model.predict(x, verbose=0))
        self.assertFalse(np.array_equal(layer(x), before))

    def test_several_operands_states_masks(self):
        x = np.random.default_rng(0).standard_normal((2, 4, 6)).astype(np.float32)
        lstm = L.LSTM(3, return_state=True)
        y, h, c = lstm(x)
        np.testing.assert_array_equal(y, h)
        again, _, _ = lstm(x, initial_state=[h, c])
        self.assertFalse(np.array_equal(again, y))
        short = L.LSTM(3, name="short")
        mask = np.arange(4)[None] < np.array([[2], [4]])
        np.testing.assert_allclose(short(x, mask=mask)[0], short(x[:1, :2])[0], atol=1e-6)
        np.testing.assert_array_equal(L.Add()([x, x]), x + x)
        self.assertEqual(L.MultiHeadAttention(2, 3)(x, x[:, :2]).shape, (2, 4, 6))
        self.assertEqual(L.Embedding(10, 4)(np.array([[1, 2], [3, 4]])).shape, (2, 2, 4))
        self.assertEqual(L.StringLookup(vocabulary=["a", "b"])(np.array(["b", "z"])).tolist(),
                         [2, 0])

    def test_training(self):
        x = np.ones((4, 100), np.float32)
        layer = L.Dropout(0.5)
        np.testing.assert_array_equal(layer(x), x)
        np.testing.assert_array_equal(layer(x, training=False), x)
        one, two = layer(x, training=True), layer(x, training=True)
        self.assertEqual(set(np.unique(one)), {0, 2})
        self.assertFalse(np.array_equal(one, two))
        norm = L.BatchNormalization(momentum=0.5)
        norm(x * 3, training=True)
        np.testing.assert_allclose(norm.non_trainable_weights[0].numpy(), np.full(100, 1.5))

    def test_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "called on a scalar"):
            L.Dense(3)(np.float32(1))
        layer = L.Dense(3, name="narrow")
        layer(np.ones((2, 4)))
        with self.assertRaisesRegex(ValueError, "narrow.*4"):
            layer(np.ones((2, 5)))


class Models(unittest.TestCase):
    def test_call_is_predict(self):
        x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
        model = cornu.Sequential([L.Dense(3, "tanh"), L.Dropout(0.5), L.Dense(2)])
        y = model(x)
        np.testing.assert_array_equal(y, model.predict(x, verbose=0))
        np.testing.assert_array_equal(model(x, training=False), y)
        self.assertFalse(np.array_equal(model(x, training=True), y))
        model.compile("sgd", "mse")
        model.fit(x, np.ones((5, 2)), verbose=0)
        np.testing.assert_array_equal(model(x), model.predict(x, verbose=0))
        self.assertFalse(np.array_equal(model(x), y))

    def test_several_inputs_and_outputs(self):
        a, b = cornu.Input((3,), name="a"), cornu.Input((3,), name="b")
        model = cornu.Model([a, b], [a + b, a * b])
        x, y = np.full((2, 3), 2, np.float32), np.full((2, 3), 5, np.float32)
        for inputs in ([x, y], {"a": x, "b": y}):
            total, product = model(inputs)
            self.assertEqual((total[0, 0], product[0, 0]), (7, 10))

    def test_images_are_scaled(self):
        model = cornu.Sequential([cornu.Input((2, 2), scale=1 / 255), L.Flatten()])
        np.testing.assert_allclose(model(np.full((1, 2, 2), 255, np.uint8)), np.ones((1, 4)))


class Losses(unittest.TestCase):
    """Numbers of Keras 3.11 on JAX."""

    Y = np.array([[0.0, 1.0], [0.0, 0.0]], np.float32)
    P = np.array([[0.6, 0.4], [0.4, 0.6]], np.float32)

    def test_objects_reduce_and_functions_do_not(self):
        y, p = self.Y, self.P
        self.assertAlmostEqual(float(cornu.losses.MeanSquaredError()(y, p)), 0.31, 6)
        self.assertAlmostEqual(float(cornu.losses.MeanSquaredError()(
            y, p, sample_weight=[0.7, 0.3])), 0.165, 6)
        self.assertAlmostEqual(float(cornu.losses.MeanSquaredError(reduction="sum")(y, p)), 0.62,
                               6)
        np.testing.assert_allclose(cornu.losses.mean_squared_error(y, p), [0.36, 0.26], rtol=1e-5)
        np.testing.assert_allclose(cornu.losses.mae(y, p), [0.6, 0.5], rtol=1e-5)
        np.testing.assert_allclose(cornu.losses.binary_crossentropy(y, p),
                                   [0.91629076, 0.71355814], rtol=1e-5)
        np.testing.assert_allclose(
            cornu.losses.categorical_crossentropy([[0, 1]], [[2.0, 1.0]], from_logits=True),
            [1.3132617], rtol=1e-5)
        np.testing.assert_allclose(
            cornu.losses.sparse_categorical_crossentropy(np.array([1]), np.array([[0.3, 0.7]])),
            [0.35667497], rtol=1e-5)

    def test_one_label_for_all(self):
        p = np.random.default_rng(0).normal(size=(2, 3, 4, 1)).astype("float32")
        hinge = cornu.losses.Hinge()
        for label in (1.0, -1.0):
            wanted = np.maximum(1 - label * p, 0).mean()
            self.assertAlmostEqual(float(hinge(label, p)), wanted, places=6)
            self.assertAlmostEqual(float(cornu.function(lambda p: hinge(label, p))(p)), wanted,
                                   places=6)

    def test_one_label_for_all_rows_of_a_metric(self):
        p = np.array([[0.2], [0.8], [0.6], [0.9]], np.float32)
        metric = cornu.metrics.BinaryAccuracy()
        metric.update_state(1.0, p)
        self.assertEqual(float(metric.result()), 0.75)
        cornu.function(lambda p: metric.update_state(0.0, p))(p)
        self.assertEqual(float(metric.result()), 0.5)

    def test_own_losses_take_tensors_of_other_shapes_in_lists(self):
        class OfFeatures(cornu.losses.Loss):
            def call(self, y_true, y_pred):
                return sum(cornu.ops.mean(cornu.ops.abs(a - b)) for a, b in zip(y_true, y_pred))
        rng = np.random.default_rng(0)
        a, b = [[rng.normal(size=shape).astype("float32") for shape in ((2, 4, 3), (2, 2, 5))]
                for _ in range(2)]
        wanted = sum(np.abs(x - y).mean() for x, y in zip(a, b))
        self.assertAlmostEqual(float(OfFeatures()(a, b)), wanted, places=5)
        self.assertAlmostEqual(float(cornu.function(lambda a, b: OfFeatures()(a, b))(a, b)), wanted,
                               places=5)

    def test_as_an_argument_of_compile(self):
        model = cornu.Sequential([L.Dense(1)])
        model.compile("sgd", cornu.losses.mean_squared_error)
        self.assertGreater(model.train_on_batch(np.ones((2, 3)), np.ones((2, 1))), 0)

    def test_wrong_shapes(self):
        with self.assertRaisesRegex(ValueError, r"mean_squared_error: y_true is \(3, 2\)"):
            cornu.losses.MeanSquaredError()(np.ones((3, 2)), np.ones((4, 2)))


class Metrics(unittest.TestCase):
    def test_by_hand(self):
        metric = cornu.metrics.MeanSquaredError()
        self.assertEqual(metric.result(), 0)
        metric.update_state([[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]])
        self.assertAlmostEqual(float(metric.result()), 0.25, 6)
        metric.reset_state()
        metric.update_state([[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]],
                            sample_weight=[1.0, 0.0])
        self.assertAlmostEqual(float(metric.result()), 0.5, 6)
        accuracy = cornu.metrics.SparseCategoricalAccuracy()
        self.assertEqual(float(accuracy(np.array([1, 0]), np.array([[0.2, 0.8], [0.4, 0.6]]))), 0.5)
        f1 = cornu.metrics.F1Score(threshold=0.5)
        f1.update_state(np.eye(3)[[0, 1, 2]], np.eye(3)[[0, 1, 1]])
        np.testing.assert_allclose(f1.result(), [1, 2 / 3, 0], atol=1e-6)

    def test_mean_and_sum(self):
        mean = cornu.metrics.Mean()
        mean.update_state([1, 3, 5, 7])
        self.assertEqual(float(mean.result()), 4)
        mean.reset_state()
        mean.update_state([1, 3, 5, 7], sample_weight=[1, 1, 0, 0])
        self.assertEqual(float(mean.result()), 2)
        self.assertEqual(float(cornu.metrics.Sum()([1, 3])), 4)


def images(*shape):
    return np.random.default_rng(2).uniform(0, 1, shape).astype("float32")


class Images(unittest.TestCase):
    def test_one_image_is_a_batch_of_one(self):
        x = images(20, 24, 3)
        for layer in (L.Rescaling(2.0), L.Resizing(10, 12), L.CenterCrop(8, 6), L.RandomFlip(),
                      L.Resizing(8, 8, pad_to_aspect_ratio=True), L.CenterCrop(40, 30),
                      L.Equalization()):
            with self.subTest(layer.name):
                told = {"training": False} if layer.class_name == "RandomFlip" else {}
                np.testing.assert_array_equal(layer(x, **told), layer(x[None], **told)[0])
        self.assertEqual(L.RandomCrop(8, 6)(x, training=True).shape, (8, 6, 3))
        change = cornu.Sequential([L.Resizing(10, 12), L.Rescaling(2.0)])
        np.testing.assert_allclose(change(x), 2 * L.Resizing(10, 12)(x), atol=1e-6)

    def test_operations_take_one_image(self):
        x, shift = images(8, 10, 3), np.float32([1, 0, 2, 0, 1, 1, 0, 0])
        for operation, args, named in (
                ("resize", ((4, 5),), {"interpolation": "bicubic"}),
                ("affine_transform", (shift,), {}), ("rgb_to_hsv", (), {}),
                ("extract_patches", ((2, 2),), {}), ("gaussian_blur", (), {}),
                ("crop_images", (1, 2), {"target_height": 4, "target_width": 5}),
                ("pad_images", (1, 2), {"target_height": 12, "target_width": 15})):
            with self.subTest(operation):
                call = getattr(ops.image, operation)
                np.testing.assert_array_equal(call(x, *args, **named),
                                              call(x[None], *args, **named)[0])
        patches, first = ops.image.extract_patches(x, (2, 2)), ops.image.extract_patches(
            x.transpose(2, 0, 1), (2, 2), data_format="channels_first")
        np.testing.assert_array_equal(first.transpose(1, 2, 0), patches)
        with self.assertRaisesRegex(NotImplementedError, r"\(B, H, W, C\) or \(H, W, C\)"):
            ops.image.resize(x[0], (4, 5))

    def test_resized_whole_numbers_are_such(self):
        """Rounded, within the dtype's range; the numbers are those of Keras 3.15."""
        x = (np.arange(48).reshape(4, 4, 3) * 37 % 256).astype("uint8")
        for how, total, largest in (("nearest", 6892, 237), ("bicubic", 6311, 219),
                                    ("lanczos3", 6361, 253)):
            made = ops.image.resize(x, (3, 6), interpolation=how)
            self.assertEqual((made.dtype, made.sum(dtype=int), made.max()),
                             (np.uint8, total, largest))
        symbol = ops.image.resize(cornu.Input((4, 4, 3), dtype="uint8"), (3, 6))
        self.assertEqual(symbol.dtype, "uint8")

    def test_layers_of_images_augment_unless_told_not_to(self):
        x = images(6, 8, 8, 3)
        brighter = L.RandomBrightness((0.5, 0.6), value_range=(0, 1))
        self.assertTrue(np.all(brighter(x) >= x) and np.mean(brighter(x) - x) > 0.1)
        np.testing.assert_allclose(brighter(x, training=False), x)
        # Keras' default of their own: beside them nothing else trains.
        model = cornu.Sequential([cornu.Input((8, 8, 3)), L.RandomBrightness(
            (0.5, 0.6), value_range=(0, 9)), L.Dropout(0.5), L.Lambda(lambda x: 1.0 * x)])
        self.assertTrue(np.all(model(x) > x + 0.3))
        np.testing.assert_allclose(model(x, training=False), x)
        np.testing.assert_allclose(model.predict(x, verbose=0), x)


class LayersWithoutBatch(unittest.TestCase):
    def test_a_result_need_not_have_the_batch(self):
        class Total(L.Layer):
            def call(self, x):
                return ops.sum(x, axis=0), ops.mean(x)
        for x in (images(5, 3), images(2, 3)):
            total, mean = Total()(x)
            np.testing.assert_allclose(total, x.sum(0), atol=1e-6)
            np.testing.assert_allclose(mean, x.mean(), atol=1e-6)

    def test_an_activation_is_changed(self):
        x = images(4, 3)
        inputs = cornu.Input((3,))
        model = cornu.Model(inputs, L.Dense(5, activation="softmax", name="top")(inputs))
        kernel, bias = model.get_weights()
        np.testing.assert_allclose(np.sum(model(x), axis=-1), np.ones(4), atol=1e-6)
        model.layers[-1].activation = None
        np.testing.assert_allclose(model(x), x @ kernel + bias, atol=1e-6)
        np.testing.assert_allclose(model.predict(x, verbose=0), x @ kernel + bias, atol=1e-6)
        model.get_layer("top").activation = cornu.activations.relu
        self.assertEqual(model.get_layer("top").activation.__name__, "relu")
        np.testing.assert_allclose(model(x), np.maximum(x @ kernel + bias, 0), atol=1e-6)
        again = cornu.Model.from_config(model.get_config())
        self.assertEqual(again.get_layer("top").get_config()["activation"], "relu")
        with self.assertRaisesRegex(NotImplementedError, "by its name"):
            model.get_layer("top").activation = lambda x: x
        with self.assertRaisesRegex(NotImplementedError, "cannot be changed"):
            L.Flatten().activation = "relu"


class Documentation(unittest.TestCase):
    def test_signatures(self):
        self.assertEqual(str(inspect.signature(ops.clip)), "(x, x_min, x_max, *, name=None)")
        self.assertTrue(json.dumps(sorted(ops.__all__)))


if __name__ == "__main__":
    unittest.main()
