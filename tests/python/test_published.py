"""What Keras' published examples do, and programs like them, beside what other tests have."""

import os
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers as L, ops


def rows(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@cornu.saving.register_keras_serializable("published")
class Streams(L.Layer):
    """Of two layers the one that a call names."""

    def build(self, shape):
        self.fast, self.slow = L.Dense(3, name="fast"), L.Dense(3, name="slow")
        self.built = True

    def call(self, x, stream="fast", scale=1.0):
        return getattr(self, stream)(x) * scale


class Tokens(L.Layer):
    """Of all steps of a batch of 6 rows: a shape that says so, and draws of a tensor's shape."""

    def build(self, shape):
        self.dense = L.Dense(4)
        self.dense.build((None, shape[-1]))
        self.built = True

    def call(self, x, training=False):
        flat = ops.reshape(x, [6 * x.shape[1], x.shape[2]])
        scores = self.dense(flat)
        if training:
            scores += cornu.random.uniform(scores.shape, 0.0, 1e-9)
        scores += ops.zeros(scores.shape)
        return ops.reshape(scores, [-1, x.shape[1], 4])


class Tables(unittest.TestCase):
    """Columns, words and lengths."""

    def test_a_shape_of_the_rows_of_every_batch(self):
        x = cornu.Input((5, 3))
        model = cornu.Model(x, Tokens()(x))
        model.compile("sgd", "mse")
        data = rows(6, 5, 3)
        model.fit(data, rows(6, 5, 4), batch_size=6, verbose=0)
        kernel, bias = model.get_weights()
        np.testing.assert_allclose(model.predict(data, verbose=0), data @ kernel + bias, atol=1e-5)

    def test_embedding_of_given_weights(self):
        table = rows(7, 3)
        layer = L.Embedding(7, 3, weights=[table], trainable=False)
        np.testing.assert_array_equal(layer(np.array([6, 0])), table[[6, 0]])

    def test_attention_is_built_of_the_shapes_of_its_operands(self):
        layer = L.MultiHeadAttention(2, 4)
        layer.build((None, 5, 8), (None, 3, 8))
        self.assertEqual(layer(rows(2, 5, 8), rows(2, 3, 8)).shape, (2, 5, 8))

    def test_a_sequential_may_begin_with_strings(self):
        words = L.TextVectorization(output_mode="multi_hot")
        words.adapt(["red green", "blue"])
        model = cornu.Sequential([words, L.Dense(2)])
        given = np.array(["red blue", "green"])
        made = model.predict(given, verbose=0)
        kernel, bias = model.get_weights()
        np.testing.assert_allclose(made, words(given) @ kernel + bias, atol=1e-6)
        np.testing.assert_array_equal(ops.convert_to_tensor(list(given)), given)

    def test_columns_may_lack_their_axis(self):
        inputs = {"count": cornu.Input((1,), dtype="int32", name="count"),
                  "word": cornu.Input((1,), dtype="string", name="word")}
        crossed = L.HashedCrossing(5)([L.IntegerLookup(vocabulary=[7, 9])(inputs["count"]),
                                       L.StringLookup(vocabulary=["a", "b"])(inputs["word"])])
        model = cornu.Model(inputs, L.CategoryEncoding(5, "one_hot")(crossed))
        given = {"count": np.array([9, 7, 1]), "word": np.array(["b", "a", "c"])}
        made = model.predict(given, verbose=0)
        wanted = L.HashedCrossing(5)([np.array([2, 1, 0]), np.array([2, 1, 0])])
        np.testing.assert_array_equal(made.argmax(-1), wanted)
        column = {name: values[:, None] for name, values in given.items()}
        np.testing.assert_array_equal(model.predict(column, verbose=0), made)


class Layers(unittest.TestCase):
    def test_arguments_that_are_no_tensors_differ_between_calls(self):
        x, layer, data = cornu.Input((4,)), Streams(), rows(5, 4)
        model = cornu.Model(x, [layer(x), layer(x, stream="slow"),
                                layer(x, stream="slow", scale=3.0), layer(x)])
        a, b, c, d = model.get_weights()
        wanted = [data @ a + b, data @ c + d, 3 * (data @ c + d), data @ a + b]
        for found, one in zip(model.predict(data, verbose=0), wanted):
            np.testing.assert_allclose(found, one, atol=1e-5)
        np.testing.assert_allclose(layer(data, stream="slow"), wanted[1], atol=1e-5)
        model.compile("sgd", "mse")
        model.fit(data, [np.ones((5, 3))] * 4, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "streams.safetensors")
            model.save(path)
            for found, one in zip(cornu.load(path).predict(data, verbose=0),
                                  model.predict(data, verbose=0)):
                np.testing.assert_array_equal(found, one)

    def test_they_differ_within_another_layer_too(self):
        class Outer(L.Layer):
            def __init__(self):
                super().__init__()
                self.streams = Streams()

            def call(self, x):
                return self.streams(x) + 2 * self.streams(x, stream="slow")
        x, data = cornu.Input((4,)), rows(5, 4)
        model = cornu.Model(x, Outer()(x))
        a, b, c, d = model.get_weights()
        np.testing.assert_allclose(model.predict(data, verbose=0),
                                   data @ a + b + 2 * (data @ c + d), atol=1e-5)

    def test_a_config_that_is_none(self):
        class Pooled(L.Layer):
            def call(self, x):
                return ops.max(x, axis=-1, keepdims=True)

            def get_config(self):
                super().get_config()        # and no return
        x = cornu.Input((4,))
        data = rows(5, 4)
        np.testing.assert_array_equal(cornu.Model(x, Pooled()(x)).predict(data, verbose=0),
                                      data.max(-1, keepdims=True))

    def test_rows_of_batches_one_after_another(self):
        class Twice(L.Layer):
            def __init__(self):
                super().__init__()
                self.join = L.Concatenate(axis=0)

            def call(self, x):
                return self.join([x, 2 * x])
        data = rows(5, 4)
        np.testing.assert_array_equal(Twice()(data), np.concatenate([data, 2 * data]))
        self.assertEqual(L.Concatenate()([data, data]).shape, (5, 8))

    def test_rows_that_become_one(self):
        """A batch that must be a multiple of five."""
        x = cornu.Input((5, 4))
        each = cornu.Sequential([cornu.Input((4,)), L.Dense(2)])
        made = ops.reshape(each(ops.reshape(x, (-1, 4))), (-1, 5, 2))
        data, model = rows(3, 5, 4), cornu.Model(x, made)
        w, b = model.get_weights()
        np.testing.assert_allclose(model.predict(data, verbose=0), data @ w + b, atol=1e-5)

    def test_very_many_places(self):
        x, places = cornu.Input((30, 3)), np.random.default_rng(0).integers(0, 30, 5000)
        data = rows(2, 30, 3)
        np.testing.assert_array_equal(
            cornu.Model(x, ops.take(x, places, axis=1)).predict(data, verbose=0), data[:, places])

    def test_strings_of_arrays(self):
        words = L.StringLookup(vocabulary=["a", "b"], invert=True)
        np.testing.assert_array_equal(words(np.array([[1, 2], [0, 1]])),
                                      [["a", "b"], ["[UNK]", "a"]])

    def test_whole_numbers_are_such(self):
        layer = L.StringLookup(vocabulary=["a", "b"])
        self.assertEqual(layer(np.array([["b"]])).dtype, "int32")
        self.assertEqual(L.IntegerLookup(vocabulary=[3, 4])(np.array([[3]])).dtype, "int32")
        x = cornu.Input((4,))
        model = cornu.Model(x, [ops.argmax(x, axis=-1), L.Dense(2)(x)])
        places, others = model.predict(rows(3, 4), verbose=0)
        self.assertEqual((places.dtype.name, others.dtype.name), ("int32", "float32"))
        np.testing.assert_array_equal(places, rows(3, 4).argmax(-1))


class Models(unittest.TestCase):
    def test_a_subclass_takes_images_of_other_sizes(self):
        class Net(cornu.Model):
            def __init__(self):
                super().__init__()
                self.conv = L.Conv2D(2, 3, padding="same")

            def call(self, x):
                return self.conv(x)

            def build(self, shape):
                self.built = True
        model = Net()
        small, large = rows(2, 4, 4, 3), rows(1, 7, 6, 3)
        self.assertEqual(model(small).shape, (2, 4, 4, 2))
        found = model(large)
        kernel, bias = model.get_weights()
        wide = np.pad(large, ((0, 0), (1, 1), (1, 1), (0, 0)))
        wanted = bias + sum(wide[:, i:i + 7, j:j + 6] @ kernel[i, j]
                            for i in range(3) for j in range(3))
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        np.testing.assert_array_equal(model(small), model(small))

    def test_schedules_are_called(self):
        schedules = cornu.optimizers.schedules
        decay = schedules.ExponentialDecay(0.1, 10, 0.5)
        np.testing.assert_allclose([decay(step) for step in (0, 5, 30)],
                                   [0.1, 0.1 * 0.5 ** 0.5, 0.0125], rtol=1e-6)

        class Warm(schedules.LearningRateSchedule):
            def __call__(self, step):
                return ops.where(step < 2, 0.0, decay(step))
        model = cornu.Sequential([cornu.Input((1,)), L.Dense(1, use_bias=False)])
        model.compile(cornu.optimizers.SGD(Warm()), "mse")
        model.set_weights([np.ones((1, 1))])
        seen = []
        for _ in range(4):
            model.train_on_batch(np.ones((1, 1)), np.zeros((1, 1)))
            seen.append(float(model.get_weights()[0][0, 0]))
        self.assertEqual(seen[:2], [1, 1])
        third = 1 - 2 * 0.1 * 0.5 ** 0.2
        np.testing.assert_allclose(seen[2:], [third, third * (1 - 2 * 0.1 * 0.5 ** 0.3)],
                                   rtol=1e-5)


class Images(unittest.TestCase):
    images = np.random.default_rng(0).integers(0, 255, (4, 12, 10, 3)).astype("uint8")

    def test_one_image(self):
        resized = L.Resizing(6, 5)
        np.testing.assert_array_equal(resized(self.images[1]), resized(self.images)[1])
        one = ops.image.resize(self.images[1].astype("float32"), (6, 5))
        np.testing.assert_allclose(one, resized(self.images)[1], atol=1e-4)
        scaled = cornu.Sequential([L.Rescaling(1 / 255), L.Resizing(6, 5)])
        self.assertEqual(scaled(self.images[0]).shape, (6, 5, 3))
        self.assertEqual(scaled(self.images).shape, (4, 6, 5, 3))

    def test_layers_of_images_alone_augment(self):
        """As of Keras' layers, whose argument training is true by default."""
        flips = cornu.Sequential([L.Rescaling(1 / 255), L.RandomFlip("horizontal")])
        seen = {flips(self.images).tobytes() for _ in range(8)}
        self.assertGreater(len(seen), 1)
        np.testing.assert_allclose(flips(self.images, training=False), self.images / 255,
                                   atol=1e-6)
        self.assertEqual(L.RandomCrop(8, 7)(self.images).shape, (4, 8, 7, 3))

    def test_patches_with_strides_of_tensorflow(self):
        x = self.images.astype("float32")
        np.testing.assert_array_equal(
            ops.image.extract_patches(images=x, size=(4, 5), strides=[1, 4, 5, 1],
                                      dilation_rate=1, padding="VALID"),
            ops.image.extract_patches(x, (4, 5)))


if __name__ == "__main__":
    unittest.main()
