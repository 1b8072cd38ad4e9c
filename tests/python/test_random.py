"""cornu.random: distributions, seeds, and draws of models."""

import unittest

import numpy as np

import cornu
from cornu import ops, random

MANY = 40000


class Distributions(unittest.TestCase):
    def setUp(self):
        cornu.set_random_seed(1)

    def test_moments(self):
        for array, mean, deviation in (
                (random.normal((MANY,), 2.0, 3.0), 2.0, 3.0),
                (random.uniform((MANY,), -1.0, 3.0), 1.0, 4 / 12 ** 0.5),
                (random.truncated_normal((MANY,)), 0.0, 0.8796),
                (random.randint((MANY,), 2, 6), 3.5, 1.25 ** 0.5),
                (random.binomial((MANY,), 5, 0.3), 1.5, 1.05 ** 0.5)):
            self.assertAlmostEqual(np.mean(array), mean, delta=5 * deviation / MANY ** 0.5)
            self.assertAlmostEqual(np.std(array), deviation, delta=0.02 * deviation)

    def test_ranges(self):
        self.assertLessEqual(np.abs(random.truncated_normal((MANY,))).max(), 2.0)
        whole = random.randint((MANY,), -2, 3)
        self.assertEqual(whole.dtype, np.int32)
        self.assertEqual(sorted(set(whole.tolist())), [-2, -1, 0, 1, 2])
        uniform = random.uniform((MANY,))
        self.assertTrue(0.0 <= uniform.min() and uniform.max() < 1.0)

    def test_classes(self):
        shares = np.array([[0.1, 0.6, 0.3], [0.0, 0.5, 0.5]])
        with np.errstate(divide="ignore"):
            drawn = random.categorical(np.log(shares).astype(np.float32), MANY)
        for row, wanted in zip(np.asarray(drawn), shares):
            np.testing.assert_allclose(np.bincount(row, minlength=3) / MANY, wanted, atol=0.015)

    def test_of_arrays(self):
        self.assertEqual(sorted(random.shuffle(np.arange(10)).tolist()), list(range(10)))
        kept = random.dropout(np.ones((MANY,), np.float32), 0.25)
        self.assertEqual(set(np.round(kept, 4).tolist()), {0.0, np.float32(1.3333).item()})
        self.assertAlmostEqual(np.mean(kept), 1.0, delta=0.03)


class Seeds(unittest.TestCase):
    def test_a_number_gives_the_same(self):
        np.testing.assert_array_equal(random.normal((3,), seed=4), random.normal((3,), seed=4))
        self.assertFalse(np.array_equal(random.normal((3,), seed=4), random.normal((3,), seed=5)))

    def test_others_go_on(self):
        one, same = random.SeedGenerator(7), random.SeedGenerator(7)
        first = random.normal((3,), seed=one)
        np.testing.assert_array_equal(first, random.normal((3,), seed=same))
        self.assertFalse(np.array_equal(first, random.normal((3,), seed=one)))
        self.assertFalse(np.array_equal(random.normal((3,)), random.normal((3,))))

    def test_of_the_program(self):
        made = []
        for _ in range(2):
            cornu.set_random_seed(3)
            made.append([random.uniform((3,)), random.normal((2,), seed=random.SeedGenerator())])
        for a, b in zip(*made):
            np.testing.assert_array_equal(a, b)

    def test_of_functions(self):
        @cornu.function
        def draw():
            return random.normal((3,)), random.normal((3,))
        a, b = draw()
        c, _ = draw()
        self.assertFalse(np.array_equal(a, b) or np.array_equal(a, c))


class Initializers(unittest.TestCase):
    def test_they_are_called(self):
        draw = cornu.initializers.RandomNormal(stddev=2.0, seed=3)
        made = draw((50, 40))
        self.assertLess(abs(made.std() - 2), 0.1)
        np.testing.assert_array_equal(made, draw(shape=(50, 40)))
        np.testing.assert_array_equal(cornu.initializers.Constant(3)((2,), dtype="int32"), [3, 3])
        one, other = cornu.initializers.GlorotUniform(), cornu.initializers.GlorotUniform()
        self.assertFalse(np.allclose(one((3, 4)), other((3, 4))))
        np.testing.assert_array_equal(one((3, 4)), one((3, 4)))
        self.assertEqual(float(one((1, 1))), one((1, 1))[0, 0])

    def test_variables_have_their_values(self):
        draw = cornu.initializers.RandomNormal(seed=3)
        np.testing.assert_array_equal(cornu.Variable(draw, shape=(5,)).numpy(), draw((5,)))


class Sampling(cornu.layers.Layer):
    """That of Keras' variational autoencoder."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = random.SeedGenerator(1337)

    def call(self, inputs):
        mean, log_variance = inputs
        noise = random.normal((ops.shape(mean)[0], ops.shape(mean)[1]), seed=self.seed_generator)
        return mean + ops.exp(0.5 * log_variance) * noise


def noisy(**device):
    """Trains a model that draws; its losses, and what it predicts."""
    cornu.clear_session()
    cornu.set_random_seed(3)
    x = cornu.Input((4,))
    batch = ops.shape(x)[0]
    y = cornu.layers.Dense(3)(x + random.normal((batch, 4)))
    y = Sampling()([random.dropout(y, 0.3), y]) + random.uniform((batch, 3), seed=5)
    model = cornu.Model(x, y)
    model.compile("sgd", "mse", device=cornu.Device("cpu", **device))
    history = model.fit(np.ones((20, 4), np.float32), np.ones((20, 3), np.float32), epochs=3,
                        batch_size=8, verbose=0, shuffle=False).history["loss"]
    return history, model.predict(np.ones((20, 4), np.float32), batch_size=8, verbose=0)


class Models(unittest.TestCase):
    def test_the_same_for_threads_and_shards(self):
        losses, predicted = noisy(threads=1)
        again = noisy(threads=2)
        self.assertEqual(losses, again[0])
        np.testing.assert_array_equal(predicted, again[1])
        sharded = noisy(shards=2)
        np.testing.assert_allclose(losses, sharded[0], rtol=1e-6)
        np.testing.assert_allclose(predicted, sharded[1], rtol=1e-5, atol=1e-6)

    def test_rows_and_steps_differ(self):
        """In inference, too, and of the batches of one call."""
        x = cornu.Input((1,))
        noise = random.normal((ops.shape(x)[0], 1))
        model = cornu.Model(x, x + noise)
        drawn = model.predict(np.zeros((10, 1), np.float32), batch_size=4, verbose=0).ravel()
        self.assertEqual(len(set(drawn.tolist())), 10)
        bias = cornu.layers.Dense(1, kernel_initializer="zeros")
        model = cornu.Model(x, bias(x) + noise)
        model.compile(cornu.optimizers.SGD(0.0), "mse")
        zeros = np.zeros((8, 1), np.float32)
        losses = [model.train_on_batch(zeros, zeros) for _ in range(3)]
        self.assertEqual(len({float(np.ravel(loss)[0]) for loss in losses}), 3)

    def test_of_a_layer_without_extents(self):
        class Shared(cornu.layers.Layer):
            def call(self, x):
                return x + random.normal((4,), seed=2)
        x = cornu.Input((4,))
        rows = cornu.Model(x, Shared()(x)).predict(np.zeros((3, 4), np.float32), verbose=0)
        np.testing.assert_array_equal(rows[0], rows[2])
        self.assertGreater(np.ptp(rows[0]), 0)


if __name__ == "__main__":
    unittest.main()
