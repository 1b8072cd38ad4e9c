"""Layers whose calls store tensors in attributes, and layers whose attributes change."""

import unittest

import numpy as np

import cornu
from cornu import layers as L
from cornu import ops

X = (np.arange(24, dtype="float32").reshape(6, 4) * 7 % 11) / 5 - 1


class Attention(L.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense, self.drop = L.Dense(3), L.Dropout(0.5)

    def call(self, x):
        _, self.scores = x, ops.softmax(self.dense(x))
        return self.drop(x) * ops.sum(self.scores[:, :2], -1, keepdims=True)


class Around(cornu.Model):
    def __init__(self):
        super().__init__()
        self.parts, self.head = [Attention()], L.Dense(2)

    def call(self, x):
        return self.head(self.parts[0](x))


def softmax_of(layer, x):
    kernel, bias = layer.dense.get_weights()
    made = np.exp(x @ kernel + bias)
    return made / made.sum(-1, keepdims=True)


class Stored(unittest.TestCase):
    def test_what_calls_on_arrays_store(self):
        layer = Attention()
        self.assertEqual(layer(X).shape, (6, 4))
        np.testing.assert_allclose(layer.scores, softmax_of(layer, X), rtol=1e-5)
        model = Around()
        model.compile("sgd", "mse")
        model.fit(X, np.ones((6, 2)), verbose=0)
        np.testing.assert_allclose(model(X[:3]), model.predict(X[:3], verbose=0), rtol=1e-5)
        inner = model.parts[0]
        self.assertEqual(inner.scores.shape, (3, 3))
        np.testing.assert_allclose(inner.scores, softmax_of(inner, X[:3]), rtol=1e-5)

    def test_training_reaches_the_layers_of_such_a_call(self):
        model = Around()
        self.assertEqual(np.abs(model(X) - model(X)).max(), 0)
        self.assertGreater(np.abs(model(X, training=True) - model(X)).max(), 0)
        self.assertEqual(np.abs(model(X) - model(X)).max(), 0)

    def test_a_loss_of_what_was_stored(self):
        model = Around()
        model.compile("sgd", "mse")
        model.fit(X, np.ones((6, 2)), verbose=0)
        dense, drop = model.parts[0].dense, model.parts[0].drop
        drop(X, training=True)      # which has been on another device
        with cornu.GradientTape() as tape:
            made = model(X, training=True)
            loss = ops.mean(ops.square(model.parts[0].scores[:, 0])) + 0.0 * ops.mean(made)
        found = tape.gradient(loss, [dense.kernel])[0]
        kernel, step = dense.kernel.numpy(), 1e-2
        for at in ((0, 0), (3, 2)):
            values = []
            for sign in (1, -1):
                moved = kernel.copy()
                moved[at] += sign * step
                dense.kernel.assign(moved)
                values.append((softmax_of(model.parts[0], X)[:, 0] ** 2).mean())
            self.assertAlmostEqual(float(np.asarray(found)[at]),
                                   (values[0] - values[1]) / 2 / step, places=4)


class Parts(L.Layer):
    """Returns its input, too, unless it is only for what comes next."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense, self.downstream, self.factor = L.Dense(3), False, 2.0

    def call(self, x):
        made = self.dense(x) * self.factor
        return made if self.downstream else (made, x)


class Changes(unittest.TestCase):
    def test_calls_after_a_change(self):
        layer = Parts()
        first = layer(X)[0]
        layer.factor = 6.0
        np.testing.assert_allclose(layer(X)[0], 3 * first, rtol=1e-5)
        layer.downstream = True
        np.testing.assert_allclose(layer(X), 3 * first, rtol=1e-5)

    def test_models_before_and_after(self):
        layer, x = Parts(), cornu.Input((4,))
        both = cornu.Model(x, layer(x))
        layer.downstream, layer.factor = True, 4.0
        after = cornu.Sequential([cornu.Input((4,)), layer, L.Dense(1)])
        after.compile("sgd", "mse")
        before = layer.dense.get_weights()[0]
        after.fit(X, np.ones(6), verbose=0)
        self.assertGreater(np.abs(layer.dense.get_weights()[0] - before).max(), 0)
        kernel, bias = layer.dense.get_weights()
        np.testing.assert_allclose(both.predict(X, verbose=0)[0], 2 * (X @ kernel + bias),
                                   rtol=1e-4, atol=1e-6)
        made = 4 * (X @ kernel + bias) @ after.layers[-1].get_weights()[0]
        np.testing.assert_allclose(after.predict(X, verbose=0),
                                   made + after.layers[-1].get_weights()[1], rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
