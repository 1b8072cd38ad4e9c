"""TensorFlow's functions on tensors of Cornu compute what they do on TensorFlow's."""

import importlib.util
import os
import unittest

import numpy as np

import cornu

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
RNG = np.random.default_rng(0)
IMAGES = RNG.random((2, 5, 6, 3)).astype("float32")
MATRICES = RNG.random((2, 4, 4)).astype("float32")
ROWS = RNG.random((3, 4)).astype("float32")
NUMBERS = np.array([1, 3, 2])
ONES = np.ones((2, 4), "float32")


def indices():
    return [
        (lambda x: tf.gather_nd(x, [[0, 1], [2, 3]]), ROWS),
        (lambda x: tf.gather_nd(x, [[2], [0]]), ROWS),
        (lambda x: tf.gather_nd(x, [[[0], [1]], [[3], [2]]], batch_dims=1), MATRICES),
        (lambda x: tf.boolean_mask(x, [True, False, True]), ROWS),
        (lambda x: tf.boolean_mask(x, [True, False, True, True], axis=1), ROWS),
        (lambda x: tf.scatter_nd([[0], [4]], x[:2], [5, 4]), ROWS),
        (lambda x: tf.tensor_scatter_nd_update(x, [[0], [2]], ONES), ROWS),
        (lambda x: tf.tensor_scatter_nd_add(x, [[0], [0]], ONES), ROWS),
        (lambda x: tf.tensor_scatter_nd_sub(x, [[1], [2]], ONES), ROWS),
        (lambda x: tf.slice(x, [0, 1], [2, -1]), ROWS),
        (lambda x: tf.strided_slice(x, [0, 1], [2, 4], [1, 2]), ROWS),
        (lambda x: tf.strided_slice(x, [1, 1], [2, 2], begin_mask=2, shrink_axis_mask=1), ROWS),
        (lambda x: tf.sequence_mask(x, 4, tf.float32), NUMBERS),
        (lambda x: tf.searchsorted(x, np.float32([0.1, 0.5])), np.sort(ROWS[0])),
        (lambda x: tf.math.confusion_matrix(x, np.array([1, 1, 2]), num_classes=4), NUMBERS)]


def numbers():
    return [
        (lambda x: tf.linalg.band_part(x, 1, 0), MATRICES),
        (lambda x: tf.linalg.band_part(x, 0, -1), MATRICES), (lambda x: tf.linalg.diag(x), ROWS),
        (lambda x: tf.linalg.diag_part(x), MATRICES), (lambda x: tf.linalg.trace(x), MATRICES),
        (lambda x: tf.linalg.set_diag(x, x[:, 0]), MATRICES),
        (lambda x: tf.linalg.set_diag(x, x[0, :3]), ROWS),
        (lambda x: tf.clip_by_global_norm([x, 2 * x], 1.0)[0][1], ROWS),
        (lambda x: tf.math.reduce_euclidean_norm(x, 1), ROWS),
        (lambda x: tf.math.count_nonzero(x - x[0], 0), ROWS),
        (lambda x: tf.math.squared_difference(x, 1.0), ROWS),
        (lambda x: tf.math.xlogy(x - x[0], x), ROWS),
        (lambda x: tf.saturate_cast(x * 1000 - 200, tf.uint8), ROWS),
        (lambda x: tf.ensure_shape(x, [None, 4]), ROWS),
        (lambda x: tf.nn.zero_fraction(x - x[0]), ROWS),
        (lambda x: tf.nn.weighted_cross_entropy_with_logits(x, 3 * x - 1, 2.0), ROWS),
        (lambda x: tf.nn.separable_conv2d(
            x, np.ones((3, 3, 3, 1), "float32"), np.ones((1, 1, 3, 2), "float32"), [1, 1, 1, 1],
            "SAME"), IMAGES),
        (lambda x: tf.nn.ctc_loss(
            np.array([[1, 2], [2, 0]]), x, np.array([2, 1]), np.array([5, 4]),
            logits_time_major=False, blank_index=0), RNG.random((2, 5, 4)).astype("float32")),
        (lambda x: tf.nn.ctc_loss(
            np.array([[1, 2], [2, 1]]), x, np.array([2, 2]), np.array([5, 5]), blank_index=3),
         RNG.random((5, 2, 4)).astype("float32"))]


def images():
    return [
        (lambda x: tf.image.rot90(x), IMAGES), (lambda x: tf.image.rot90(x, 2), IMAGES),
        (lambda x: tf.image.rot90(x, 3), IMAGES[0]),
        (lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 2), IMAGES),
        (lambda x: tf.image.pad_to_bounding_box(x, 1, 2, 8, 9), IMAGES),
        (lambda x: tf.image.central_crop(x, 0.5), IMAGES),
        (lambda x: tf.image.resize_with_crop_or_pad(x, 3, 9), IMAGES),
        (lambda x: tf.image.adjust_brightness(x, 0.2), IMAGES),
        (lambda x: tf.image.adjust_contrast(x, 1.7), IMAGES),
        (lambda x: tf.image.adjust_saturation(x, 1.7), IMAGES),
        (lambda x: tf.image.adjust_hue(x, 0.2), IMAGES),
        (lambda x: tf.image.per_image_standardization(x), IMAGES),
        (lambda x: tf.image.total_variation(x), IMAGES)]


def loops():
    def branches(x):
        return [(x[0, 0] > 2, lambda: x), (x[0, 0] > 0, lambda: x * 5)]
    return [
        (lambda x: tf.cond(tf.reduce_sum(x) > 2.0, lambda: x * 2, lambda: x * 3), ROWS),
        (lambda x: tf.case(branches(x), default=lambda: x * 7), ROWS),
        (lambda x: tf.case(branches(x)), ROWS),
        (lambda x: tf.switch_case(tf.cast(x[0], tf.int32),
                                  [lambda: x, lambda: x * 4, lambda: x * 9]), NUMBERS * 1.0),
        (lambda x: tf.switch_case(tf.cast(x[1], tf.int32),
                                  {0: lambda: x, 1: lambda: x * 4}), NUMBERS * 1.0),
        (lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), [0, x])[1],
         ROWS),
        (lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 50, lambda y: [y * 2], [x],
                                 maximum_iterations=9)[0], ROWS),
        (lambda x: tf.map_fn(lambda row: row * row[0], x), ROWS),
        (lambda x: tf.vectorized_map(lambda each: each * each[0], x), ROWS),
        (lambda x: tf.scan(lambda before, row: before * 2 + row, x), ROWS),
        (lambda x: tf.scan(lambda a, row: a * 2 + row, x, initializer=ONES[0], reverse=True),
         ROWS),
        (lambda x: tf.foldl(lambda before, row: before * 2 + row, x), ROWS),
        (lambda x: tf.foldr(lambda before, row: before * 2 + row, x), ROWS)]


@unittest.skipUnless(importlib.util.find_spec("tensorflow"),
                     "TensorFlow: CORNU_PYTHON=an interpreter with tensorflow")
class Functions(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        global tf
        import tensorflow as tf

    def check(self, cases):
        for i, (function, array) in enumerate(cases):
            array = array if array.dtype.kind == "i" else array.astype("float32")
            with self.subTest(i):
                wanted = function(tf.constant(array)).numpy()
                made = np.asarray(cornu.function(function)(array))
                self.assertEqual(made.dtype, wanted.dtype)
                np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=2e-5)

    def test_indices(self):
        self.check(indices())

    def test_numbers(self):
        self.check(numbers())

    def test_images(self):
        self.check(images())

    def test_loops(self):
        self.check(loops())

    def test_draws_of_images(self):
        @cornu.function
        def drawn(x):
            return (tf.image.random_flip_left_right(x), tf.image.random_flip_up_down(x),
                    tf.image.random_brightness(x, 0.5), tf.image.random_contrast(x, 0.5, 1.5),
                    tf.image.random_saturation(x, 0.5, 1.5), tf.image.random_hue(x, 0.2))
        many = np.tile(IMAGES[:1], (32, 1, 1, 1))
        first, second = drawn(many), drawn(many)
        for made, again in zip(first, second):
            self.assertEqual(made.shape, many.shape)
            self.assertGreater(np.abs(np.asarray(made) - again).max(), 0)
        for made, axis in ((first[0], 2), (first[1], 1)):
            same = np.abs(made - many).max((1, 2, 3)) == 0
            other = np.abs(made - np.flip(many, axis)).max((1, 2, 3)) == 0
            self.assertTrue((same | other).all() and same.any() and other.any())

    def test_sparse_tensors_of_tensorflow(self):
        given = tf.sparse.from_dense([[1, 0], [0, 2]])
        made = cornu.ops.cast(given, dtype=tf.int64)
        self.assertIsInstance(made, tf.SparseTensor)
        self.assertEqual(made.dtype, tf.int64)
        np.testing.assert_array_equal(tf.sparse.to_dense(made), [[1, 0], [0, 2]])

    def test_what_is_not_known(self):
        with self.assertRaisesRegex(NotImplementedError, "the number of rows is not known"):
            cornu.function(lambda x: tf.boolean_mask(x, x[:, 0] > 0.5))(ROWS)
        with self.assertRaisesRegex(NotImplementedError, "without maxlen"):
            cornu.function(tf.sequence_mask)(NUMBERS)
        with self.assertRaisesRegex(ValueError, r"the shape is \(3, 4\), expected \(3, 5\)"):
            cornu.function(lambda x: tf.ensure_shape(x, [3, 5]))(ROWS)


if __name__ == "__main__":
    unittest.main()
