"""Odd classes of the program's own: what they return, what fails in them, and what comes after."""

import collections
import time
import unittest

import numpy as np

import cornu
from cornu import layers

Pair = collections.namedtuple("Pair", "a b")
X = np.arange(6, dtype="float32").reshape(3, 2)


def layer_of(call):
    """An object of a class of its own with this call."""
    return type("Odd", (layers.Layer,), {"call": lambda self, x: call(x)})()


class OddClasses(unittest.TestCase):
    def test_structures_of_arrays(self):
        made = layer_of(lambda x: {"b": x, "a": [x + 1, None], "n": None})(X)
        self.assertEqual(list(made), ["b", "a", "n"])
        self.assertTrue(np.array_equal(made["b"], X) and np.array_equal(made["a"][0], X + 1))
        self.assertIsNone(made["a"][1])
        pair = layer_of(lambda p: Pair(p.a + 1, p.b * 2))(Pair(X, X))
        self.assertIsInstance(pair, Pair)
        self.assertTrue(np.array_equal(pair.a, X + 1) and np.array_equal(pair.b, X * 2))
        pair = layer_of(lambda p: Pair(p.b, p.a))(Pair(cornu.Input((2,)), cornu.Input((3,))))
        self.assertEqual((pair.a.shape, pair.b.shape), ((None, 3), (None, 2)))

    def test_what_is_no_tensor(self):
        for value in ("text", {1, 2}, [], {}, {"a": 1}, None, (i for i in range(2))):
            for x in (X, cornu.Input((2,))):
                with self.assertRaisesRegex(ValueError, "odd.*: call returns .*Odd.call"):
                    layer_of(lambda _: value)(x)

    def test_a_layer_that_calls_itself(self):
        class Own(layers.Layer):
            def call(self, x):
                return self(x) + 1
        for x in (X, cornu.Input((2,))):
            with self.assertRaisesRegex(ValueError, "its call calls it again.*return self"):
                Own()(x)
        self.assertTrue(np.array_equal(layer_of(lambda x: x + 1)(X), X + 1))

    def test_names_and_shapes_of_weights(self):
        class Own(layers.Layer):
            def __init__(self):
                super().__init__()
                for name in ("w", "w_2", "w", "w", "w_1"):
                    self.add_weight((2,), name=name)
        self.assertEqual([w.name for w in Own()._own], ["w", "w_2", "w_1", "w_3", "w_1_1"])
        for shape in (2.5, (2.5,), (None, 1)):
            with self.assertRaises((TypeError, ValueError)):
                Own().add_weight(shape, name="other")

    def test_lists_in_themselves(self):
        layer = layer_of(lambda x: x + 1)
        layer.parts = [layers.Dense(2)]
        layer.parts.append({"again": layer.parts})
        self.assertTrue(np.array_equal(layer(X), X + 1))
        self.assertEqual(layer.weights, [])

    def test_a_build_that_fails_adds_no_weights(self):
        class Own(layers.Layer):
            fails = True

            def build(self, shape):
                self.w = self.add_weight((shape[-1],), name="w", initializer="ones")
                if self.fails:
                    raise KeyError("in build")

            def call(self, x):
                return x * self.w
        layer = Own()
        for _ in range(2):
            self.assertRaises(KeyError, layer, X)
        layer.fails = False
        x = cornu.Input((2,))
        model = cornu.Model(x, layer(x))
        self.assertEqual([w.path for w in model.weights], [layer.name + "/w"])
        self.assertTrue(np.array_equal(model.predict(X, verbose=0), X))

    def test_a_model_without_super(self):
        class Own(cornu.Model):
            def __init__(self):
                self.dense = layers.Dense(2)

            def call(self, x):
                return self.dense(x)
        with self.assertRaisesRegex(RuntimeError, r"Own: call super\(\).__init__\(\) first"):
            Own()(X)

    def test_several_weights_are_assigned(self):
        class Own(layers.Layer):
            def build(self, shape):
                self.count = self.add_weight((), name="count", initializer="zeros",
                                             trainable=False)
                self.center = self.add_weight((2,), name="center", initializer="zeros",
                                              trainable=False)

            def call(self, x, training=False):
                if training:
                    self.count.assign(self.count + 1.0)
                    self.center.assign(0.5 * self.center + cornu.ops.mean(x, axis=0))
                return x - self.center

        rows = np.arange(16, dtype="float32").reshape(8, 2)
        means = rows[:4].mean(axis=0), rows[4:].mean(axis=0)
        for device in (None, cornu.Device("tpu", shards=1)):
            layer, x = Own(), cornu.Input((2,))
            model = cornu.Model(x, layers.Dense(1)(layer(x)))
            model.compile("sgd", "mse", **({"device": device} if device else {}))
            model.fit(rows, rows[:, :1], batch_size=4, shuffle=False, verbose=0)
            self.assertEqual(layer.count.numpy(), 2.0)
            self.assertTrue(np.allclose(layer.center.numpy(), 0.5 * means[0] + means[1],
                                        rtol=1e-2))     # the tpu computes in bf16

    def test_time_of_large_graphs_is_linear(self):
        def chain(x, n):
            for k in range(n):
                x = x + 1.0 if k % 2 else x * 1.0
            return x

        def seconds(n):
            layer, x = layer_of(lambda x: chain(x, n)), cornu.Input((2,))
            begin = time.process_time()
            layer(x)
            return time.process_time() - begin
        seconds(100)
        few, many = min(seconds(500) for _ in range(3)), min(seconds(4000) for _ in range(2))
        self.assertLess(many, 3 * 8 * few)


if __name__ == "__main__":
    unittest.main()
