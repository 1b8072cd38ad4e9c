"""Models of the program's own whose steps call them with other than the data, or not at all."""

import unittest

import numpy as np

import cornu
from cornu import layers as L
from cornu import ops

X = (np.arange(40, dtype="float32").reshape(10, 4) * 7 % 11) / 5 - 1
Y = (np.arange(20, dtype="float32").reshape(10, 2) * 5 % 7) / 3 - 1


class Steps(unittest.TestCase):
    def test_a_call_on_other_than_the_data(self):
        class Pair(cornu.Model):
            def __init__(self):
                super().__init__()
                self.left, self.joined = L.Dense(4), L.Dense(3)
                self.seen = cornu.metrics.Mean(name="seen")

            def call(self, inputs):
                return self.joined(ops.concatenate([self.left(inputs[0]), inputs[1]], -1))

            def train_step(self, batch):
                source, target = batch["source"], batch["target"]
                with cornu.GradientTape() as tape:
                    loss = ops.mean(ops.square(self([source, target[:, :-1]]) - target[:, 1:]))
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
                self.seen.update_state(loss)
                return {"loss": self.seen.result()}
        data = {"source": X, "target": X}
        for given in (data, cornu.utils.Dataset.from_tensor_slices(data).batch(5)):
            model = Pair()
            model.compile("adam")
            losses = model.fit(given, epochs=3, verbose=0).history["loss"]
            self.assertLess(losses[2], losses[0])
            self.assertEqual([t.shape for t in model.inputs], [(None, 4), (None, 3)])
        model = Pair()
        model.compile("adam")
        with self.assertRaisesRegex(KeyError, "0"):      # of call, as the step fails, too
            model.fit({"source": X}, verbose=0)

    def test_arrays_of_a_call_that_change(self):
        class Lookup(cornu.Model):
            def __init__(self, table):
                super().__init__()
                self.table, self.dense = table, L.Dense(2)

            def call(self, indices):
                return self.dense(ops.take(self.table, indices, axis=0))
        rows, model = np.arange(6, 10), Lookup(X[:6])
        model.compile("adam", "mse")
        model.fit(rows - 6, Y[:4], verbose=0)
        for table in (X, X * 2):
            model.table = table
            kernel, bias = model.get_weights()
            wanted = table[rows] @ kernel + bias
            np.testing.assert_allclose(model.predict(rows, verbose=0), wanted, atol=1e-5)
            np.testing.assert_allclose(model(rows), wanted, atol=1e-5)
            losses = model.fit(rows, Y[6:], epochs=3, verbose=0).history["loss"]
            self.assertLess(losses[2], losses[0])

    def test_a_part_of_unknown_shapes_is_a_layer_of_the_step(self):
        class Augment(cornu.Model):
            def __init__(self):
                super().__init__()
                self.share = cornu.Variable(0.0, trainable=False)

            def call(self, x, training):
                kept = cornu.random.uniform((5, 1)) >= self.share   # of 5 rows alone
                return ops.where(kept, x, -x) if training else x

        class Parts(cornu.Model):
            def __init__(self):
                super().__init__()
                self.augment = Augment()
                self.net = cornu.Sequential([cornu.Input((4,)), L.Dense(2)])

            def train_step(self, x):
                x = self.augment(x, training=True)
                with cornu.GradientTape() as tape:
                    loss = ops.mean(ops.square(self.net(x) - 1.0))
                gradients = tape.gradient(loss, self.net.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.net.trainable_variables))
                self.augment.share.assign(self.augment.share + 0.125)
                return {"loss": loss}
        model = Parts()
        model.compile("adam")
        model.fit(X, batch_size=5, epochs=2, verbose=0)
        self.assertEqual(float(model.augment.share), 0.5)

    def test_lists_of_data_are_tuples(self):
        seen = []

        class Two(cornu.Model):
            def __init__(self):
                super().__init__()
                self.net = cornu.Sequential([cornu.Input((4,)), L.Dense(2)])

            def train_step(self, data):
                data = data[0] if isinstance(data[0], tuple) else data
                seen.append([type(data), *[v.shape for v in data]])
                with cornu.GradientTape() as tape:
                    loss = ops.mean(ops.square(self.net(data[0]) - data[1]))
                gradients = tape.gradient(loss, self.net.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.net.trainable_variables))
                return {"loss": loss}
        for given in ([X, Y], (X, Y)):
            model = Two()
            model.compile("adam")
            model.fit(given, batch_size=10, verbose=0)
            self.assertEqual(seen.pop(), [tuple, (10, 4), (10, 2)])

    def test_a_call_that_no_step_makes(self):
        class Parts(cornu.Model):
            def __init__(self):
                super().__init__()
                self.net = cornu.Sequential([cornu.Input((4,)), L.Dense(2)])

            def call(self, inputs):
                return self.net(inputs.get("noise"))

            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    loss = ops.mean(ops.square(self.net(x) - y))
                gradients = tape.gradient(loss, self.net.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.net.trainable_variables))
                return {"loss": loss}
        model = Parts()
        model.compile("adam")
        losses = model.fit(X, Y, epochs=3, verbose=0).history["loss"]
        self.assertLess(losses[2], losses[0])


if __name__ == "__main__":
    unittest.main()
