"""Layers that are built by a program, losses of symbolic tensors, and the order of weights."""

import unittest

import cornu
import numpy as np
from cornu import layers, losses, ops


class Cell(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = units

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units), initializer="ones")

    def call(self, x, states):
        made = ops.matmul(x, self.kernel) + states[0]
        return made, [made]


class Added(layers.Layer):
    """Its call uses what it makes in another order."""

    def __init__(self, loss, **kwargs):
        super().__init__(**kwargs)
        self.second, self.first, self.loss = layers.Dense(3), layers.Dense(2), loss

    def call(self, y, x):
        made = self.second(self.first(x))
        self.add_loss(self.loss(y, x))
        return made


class Built(unittest.TestCase):
    def test_build_makes_weights(self):
        layer = layers.Embedding(5, 4)
        layer.build((None,))
        self.assertEqual(layer.weights[0].shape, (5, 4))
        cell = Cell(3)
        cell.build((None, 2))
        layers.RNN(cell)(cornu.Input((4, 2)))
        self.assertEqual(len(cell.weights), 1)      # not built again

    def test_cells_in_a_list(self):
        x = cornu.Input((2, 1))
        model = cornu.Model(x, layers.RNN([Cell(1), Cell(1)])(x))
        # The first cell sums 1, 2: 1, 3; the second sums these.
        self.assertEqual(float(model.predict(np.array([[[1.0], [2.0]]]), verbose=0)[0, 0]), 4.0)

    def test_losses_of_symbols_are_those_of_arrays(self):
        rng = np.random.default_rng(1)
        pred, true = rng.uniform(0.1, 0.9, (2, 5, 4)).astype("float32")
        pred /= pred.sum(axis=1, keepdims=True)
        for kind in (losses.MeanSquaredError, losses.MeanAbsoluteError, losses.Huber,
                     losses.MeanAbsolutePercentageError, losses.MeanSquaredLogarithmicError,
                     losses.LogCosh, losses.Poisson, losses.KLDivergence, losses.Hinge,
                     losses.SquaredHinge, losses.CategoricalHinge, losses.CosineSimilarity,
                     losses.CategoricalCrossentropy, losses.BinaryCrossentropy,
                     losses.BinaryFocalCrossentropy, losses.CategoricalFocalCrossentropy,
                     losses.Dice, losses.Tversky):
            y, x = cornu.Input((4,)), cornu.Input((4,))
            model = cornu.Model([y, x], Added(kind())(y, x))
            model.compile("sgd")
            got = model.evaluate([true, pred], verbose=0)
            np.testing.assert_allclose(got, float(kind()(true, pred)), rtol=2e-5,
                                       err_msg=kind.__name__)

    def test_weights_stay_as_they_were_read(self):
        x = np.eye(3, dtype="float32")
        for read in (lambda layer: layer.get_weights()[0], lambda layer: layer.kernel.numpy()):
            layer = layers.Dense(2, use_bias=False)
            layer.build((None, 3))
            before = read(layer)
            symbol = cornu.Input((3,))
            np.testing.assert_array_equal(cornu.Model(symbol, layer(symbol)).get_weights()[0],
                                          before)
            np.testing.assert_array_equal(layer(x), before)

    def test_weights_are_in_the_order_of_attributes(self):
        y, x = cornu.Input((4,)), cornu.Input((4,))
        model = cornu.Model([y, x], Added(losses.MeanSquaredError())(y, x))
        self.assertEqual([w.shape for w in model.weights], [(2, 3), (3,), (4, 2), (2,)])

    def test_sequential_of_own_layers_on_a_symbol(self):
        model = cornu.Sequential([layers.Lambda(lambda t: t + 1.0), layers.Dense(2)])
        self.assertEqual(model(cornu.Input((3,))).shape, (None, 2))
        self.assertEqual(model.pop().units, 2)
        self.assertEqual(len(model.layers), 1)

    def test_what_a_sequential_of_own_layers_is_asked_first(self):
        model = cornu.Sequential([layers.Lambda(lambda t: t + 1.0), layers.Dense(2)], name="first")
        self.assertEqual((model.name, model.weights, model.built), ("first", [], False))
        self.assertEqual(model(np.ones((1, 3), "float32")).shape, (1, 2))
        self.assertEqual(len(model.weights), 2)


if __name__ == "__main__":
    unittest.main()
