"""cornu.RematScope and cornu.remat, as Keras' of these names."""

import unittest

import numpy as np

import cornu


def trained(scope, loss=None):
    cornu.set_random_seed(3)
    cornu.clear_session()
    inputs = cornu.Input((32,))
    with scope:
        x = cornu.layers.Dense(64, activation="gelu")(inputs)
        x = cornu.layers.Dropout(0.5)(x)
        x = cornu.layers.Dense(64, activation="tanh", name="middle")(x)
    model = cornu.Model(inputs, cornu.layers.Dense(4)(x))
    model.compile(cornu.optimizers.Adam(0.01, gradient_accumulation_steps=2), "mse")
    values = np.arange(16 * 36, dtype="float32").reshape(16, 36) % 7 - 3
    for _ in range(4):
        model.train_on_batch(values[:, :32], values[:, 32:])
    return [weight.numpy() for weight in model.weights]


class Rematerialization(unittest.TestCase):
    def test_bits_are_equal(self):
        plain = trained(cornu.RematScope(None))
        for scope in (cornu.RematScope(), cornu.RematScope("activations"),
                      cornu.RematScope("larger_than", 0),
                      cornu.RematScope(mode="list_of_layers", layer_names=["middle"])):
            for a, b in zip(plain, trained(scope)):
                np.testing.assert_array_equal(a, b)

    def test_memory(self):
        inner = cornu.Input((64,))
        y = inner
        for _ in range(4):
            y = cornu.layers.Dense(64, activation="tanh")(y)
        block = cornu.Model(inner, y)
        self.assertIs(cornu.remat(block), block)
        explained = cornu.explain(block, batch_size=256, run=False, remat=True, verbose=0)
        self.assertEqual(sorted(explained["remat"]), ["activations", "full", "larger_than", "none"])
        self.assertIsNone(cornu.explain(block, batch_size=256, run=False, verbose=0)["remat"])

    def test_refuses(self):
        with self.assertRaisesRegex(ValueError, "Invalid mode 'all'"):
            cornu.RematScope("all")
        with self.assertRaisesRegex(TypeError, "remat: got function"):
            cornu.remat(trained)
        outer = [cornu.RematScope() for _ in range(8)]
        for scope in outer:
            scope.__enter__()
        with self.assertRaisesRegex(ValueError, "9 scopes in each other"):
            cornu.RematScope().__enter__()
        for scope in outer:
            scope.__exit__()


if __name__ == "__main__":
    unittest.main()
