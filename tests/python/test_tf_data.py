"""Layers, models and operations in the map of a tf.data.Dataset."""

import importlib.util
import os
import unittest

import numpy as np

import cornu as keras
from cornu import layers, ops

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def data(*shape):
    return np.random.default_rng(0).random(shape).astype("float32")


@unittest.skipUnless(importlib.util.find_spec("tensorflow"), "TensorFlow: CORNU_PYTHON=an interpreter with tensorflow")
class GraphNodes(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        global tf
        import tensorflow as tf

    def mapped(self, function, *arrays):
        return tf.data.Dataset.from_tensor_slices(arrays).map(
            function, num_parallel_calls=tf.data.AUTOTUNE)

    def test_a_layer_and_a_model_of_an_image(self):
        images = np.random.default_rng(0).integers(0, 255, (5, 20, 24, 3)).astype("uint8")
        change = keras.Sequential([layers.Rescaling(1 / 255), layers.Resizing(10, 12)])
        crop = layers.CenterCrop(8, 6)
        made = self.mapped(lambda x: crop(change(x)), images)
        self.assertEqual(tuple(made.element_spec.shape), (8, 6, 3))
        self.assertEqual(made.element_spec.dtype, tf.float32)
        whole = layers.Resizing(10, 12)(images / np.float32(255))
        np.testing.assert_allclose(np.stack(list(made.as_numpy_iterator())), whole[:, 1:9, 3:9],
                                   atol=1e-6)

    def test_a_model_without_weights_beside_one_that_trains(self):
        """Both have been called before, on the device of this thread."""
        change = keras.Sequential([layers.Rescaling(1 / 255), layers.Resizing(20, 20)])
        images = np.random.default_rng(0).integers(0, 255, (64, 24, 24, 3)).astype("uint8")
        model = keras.Sequential([keras.Input((20, 20, 3)), layers.Conv2D(32, 3),
                                  layers.Conv2D(32, 3), layers.GlobalAveragePooling2D(),
                                  layers.Dense(2)])
        whole = change(images)
        model(whole)
        model.compile("sgd", "mse")
        batches = tf.data.Dataset.from_tensor_slices((images, np.ones((64, 2), "float32"))).batch(
            4).map(lambda x, y: (change(x), y), num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)
        model.fit(batches, epochs=2, verbose=0)
        np.testing.assert_allclose(change(images), whole)
        self.assertAlmostEqual(model.evaluate(batches, verbose=0),
                               model.evaluate(whole, np.ones((64, 2)), verbose=0), places=5)

    def test_unknown_extents_stay_unknown(self):
        made = tf.data.Dataset.from_generator(
            lambda: iter([data(20, 24, 3), data(9, 300, 3)]),
            output_signature=tf.TensorSpec((None, None, 3)))
        flip = layers.RandomFlip(seed=1)
        shapes = made.map(flip)
        self.assertEqual(tuple(shapes.element_spec.shape), (None, None, 3))
        self.assertEqual([x.shape for x in shapes.as_numpy_iterator()], [(20, 24, 3), (9, 300, 3)])
        crop = made.map(layers.CenterCrop(8, 8)).batch(2)       # larger than the first trial
        self.assertEqual(tuple(crop.element_spec.shape), (None, 8, 8, 3))
        wide = tf.data.Dataset.from_generator(
            lambda: iter([data(9, 3)]), output_signature=tf.TensorSpec(None))
        with self.assertRaisesRegex(ValueError, "rank of a tensor of TensorFlow is not known"):
            wide.map(flip)

    def test_operations(self):
        x = data(6, 20, 16)

        def change(x):
            height, width = ops.shape(x)
            halves = ops.split(ops.transpose(x), 2)
            return ops.reshape(halves[0] + halves[1], (width // 2, height)), ops.max(x) > 0.5
        made = self.mapped(change, x)
        self.assertEqual(tuple(made.element_spec[0].shape), (8, 20))
        sums, above = zip(*made.as_numpy_iterator())
        turned = x.transpose(0, 2, 1)
        np.testing.assert_allclose(np.stack(sums), turned[:, :8] + turned[:, 8:], atol=1e-6)
        self.assertEqual(list(above), list(x.max((1, 2)) > 0.5))

    def test_images_as_networks_expect_them(self):
        images = np.random.default_rng(0).integers(0, 255, (3, 4, 5, 3)).astype("uint8")
        for network in (keras.applications.vgg19, keras.applications.mobilenet_v2):
            made = self.mapped(network.preprocess_input, images)
            self.assertEqual(made.element_spec.dtype, tf.float32)
            np.testing.assert_allclose(np.stack(list(made.as_numpy_iterator())),
                                       network.preprocess_input(images), rtol=1e-6)

    def test_draws_differ_between_elements(self):
        def noisy(x):
            flips = keras.random.uniform(()) < 0.5
            return ops.cond(flips, lambda: -x, lambda: x), keras.random.normal((2,))
        signs, noise = zip(*self.mapped(noisy, np.ones(40, "float32")).as_numpy_iterator())
        self.assertTrue(5 < sum(sign > 0 for sign in signs) < 35)
        self.assertEqual(len({tuple(each) for each in noise}), 40)

    def test_strings(self):
        texts = np.array(["a b", "b c c d", "d"])
        vectorize = layers.TextVectorization(max_tokens=10)
        vectorize.adapt(texts)
        made = tf.data.Dataset.from_tensor_slices(texts).batch(3).map(vectorize)
        self.assertEqual(tuple(made.element_spec.shape), (None, None))
        found = next(made.as_numpy_iterator())
        np.testing.assert_array_equal(found, vectorize(texts))

    def test_a_model_of_the_programs_own(self):
        """Whose call is functions of TensorFlow, given to map as it is."""
        class Augment(keras.Model):
            def __init__(self):
                super().__init__()
                self.scale = layers.Rescaling(2.0)

            def call(self, x):
                return tf.clip_by_value(self.scale(x), 0, 1)
        x = np.abs(data(6, 4, 4, 3))
        for batched in (False, True):
            made = tf.data.Dataset.from_tensor_slices(x)
            made = made.batch(3).map(Augment()) if batched else made.map(Augment()).batch(3)
            np.testing.assert_allclose(np.concatenate(list(made.as_numpy_iterator())),
                                       np.clip(2.0 * x, 0, 1), rtol=1e-6)

    def test_fit(self):
        x, y = data(8, 6, 6, 1), np.arange(8) % 2
        change = keras.Sequential([layers.Rescaling(2.0), layers.RandomFlip()])
        batches = self.mapped(lambda x, y: (change(x), y), x, y).batch(4).prefetch(2)
        model = keras.Sequential([layers.Conv2D(2, 3), layers.GlobalAveragePooling2D(),
                                  layers.Dense(2)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        losses = model.fit(batches, epochs=3, verbose=0).history["loss"]
        self.assertTrue(np.all(np.isfinite(losses)) and len(losses) == 3)


if __name__ == "__main__":
    unittest.main()
