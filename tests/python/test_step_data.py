"""What train_step and test_step of the program's own get: data of other structures and rows."""

import unittest

import numpy as np

import cornu
from cornu import layers as L
from cornu import ops


class Both(cornu.Model):
    """Trains on rows without labels and on fewer with, and is tested on the latter alone."""

    def __init__(self):
        super().__init__()
        self.linear = cornu.Sequential([cornu.Input((4, 3)), L.Flatten(),
                                        L.Dense(1, kernel_initializer="ones")])
        self.mean = cornu.metrics.Mean(name="mean")
        self.seen = []

    def train_step(self, data):
        (unlabelled, _), (labelled, labels) = data
        self.seen.append((unlabelled.shape, labelled.shape, labels.shape))
        with cornu.GradientTape() as tape:
            every = self.linear(ops.concatenate([unlabelled, labelled], axis=0))
            error = self.linear(labelled)[:, 0] - labels
            loss = ops.mean(ops.square(every)) + ops.mean(ops.square(error))
        variables = self.linear.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        self.mean.update_state(loss)
        return {"mean": self.mean.result()}

    def test_step(self, data):
        rows, labels = data
        self.mean.update_state(ops.mean(ops.square(self.linear(rows)[:, 0] - labels)))
        return {"mean": self.mean.result()}


class Called(Both):
    """Also a model with a call, of other than the data."""

    def call(self, x):
        return self.linear(x)


class Batches(cornu.utils.PyDataset):
    """Two batches, of which the second has fewer rows."""

    def __init__(self, labelled_only=False):
        super().__init__()
        self._labelled_only = labelled_only

    def __len__(self):
        return 2

    def __getitem__(self, i):
        rng, (many, few) = np.random.default_rng(i), ((7, 3), (5, 2))[i]
        x, z = (rng.normal(size=(n, 4, 3)).astype("float32") for n in (many, few))
        labelled = z, np.arange(few, dtype="float32")
        return labelled if self._labelled_only else ((x, np.zeros(many, "int32")), labelled)


def by_numpy(epochs, rate):
    """The means of the losses of training and of test, by epoch."""
    w, b, found = np.ones(12), 0.0, []
    for _ in range(epochs):
        losses, tested = [], []
        for i in range(2):
            (x, _), (z, y) = Batches()[i]
            z = z.reshape(len(z), 12)
            every = np.concatenate([x.reshape(len(x), 12), z])
            made, error = every @ w + b, z @ w + b - y
            losses.append((made ** 2).mean() + (error ** 2).mean())
            d_made, d_error = 2 * made / len(made), 2 * error / len(error)
            w = w - rate * (every.T @ d_made + z.T @ d_error)
            b = b - rate * (d_made.sum() + d_error.sum())
        for i in range(2):
            z, y = Batches(labelled_only=True)[i]
            tested.append(((z.reshape(len(z), 12) @ w + b - y) ** 2).mean())
        found.append((np.mean(losses), np.mean(tested)))
    return np.transpose(found)


class StepData(unittest.TestCase):
    def test_other_rows_and_other_data_to_validate(self):
        losses, tested = by_numpy(3, 0.01)
        for kind in (Both, Called):
            model = kind()
            model.compile(cornu.optimizers.SGD(0.01))
            history = model.fit(Batches(), validation_data=Batches(labelled_only=True), epochs=3,
                                shuffle=False, verbose=0).history
            np.testing.assert_allclose(history["mean"], losses, rtol=1e-5)
            np.testing.assert_allclose(history["val_mean"], tested, rtol=1e-5)
            self.assertIn(((5, 4, 3), (2, 4, 3), (2,)), model.seen)
            again = model.evaluate(Batches(labelled_only=True), verbose=0)
            self.assertAlmostEqual(again / tested[-1], 1, places=5)
            x, y = Batches(labelled_only=True)[0]
            one = model.test_on_batch(x, y)
            self.assertAlmostEqual(one, model.evaluate(x, y, verbose=0), places=5)

    def test_rows_that_change(self):
        class Odd(Batches):
            def __getitem__(self, i):
                (x, zeros), (z, y) = super().__getitem__(i)
                return (x, zeros), (z[:, :4 - i], y)
        model = Both()
        model.compile("sgd")
        with self.assertRaisesRegex(ValueError, r"array 2 of a batch has rows of \(3, 3\), those "
                                    r"before had \(4, 3\): expected the same"):
            model.fit(Odd(), shuffle=False, verbose=0)


if __name__ == "__main__":
    unittest.main()
