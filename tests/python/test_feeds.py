"""Batches from generators, indexed data sets and iterables."""

import unittest

import numpy as np

import cornu
from cornu import layers as L


def rows(count=96):
    x = np.random.default_rng(1).uniform(-1, 1, (count, 2)).astype(np.float32)
    return x, (x[:, 0] > x[:, 1]).astype(np.int64)


def small():
    cornu.set_random_seed(3)
    model = cornu.Sequential([cornu.Input((2,)), L.Dense(8, "relu"), L.Dense(2, "softmax")])
    model.compile(cornu.optimizers.Adam(0.02), "sparse_categorical_crossentropy",
                  metrics=["accuracy"])
    return model


class Passes:
    """Iterated over again and again; counts its passes."""

    def __init__(self, *arrays, size=16):
        self.arrays, self.size, self.passes = arrays, size, 0

    def __iter__(self):
        self.passes += 1
        for i in range(0, len(self.arrays[0]), self.size):
            yield tuple(a[i:i + self.size] for a in self.arrays)


class Indexed:
    """As keras.utils.PyDataset."""

    def __init__(self, x, y, size=16):
        self.x, self.y, self.size, self.ends, self.asked = x, y, size, 0, []

    def __len__(self):
        return -(-len(self.x) // self.size)

    def __getitem__(self, i):
        self.asked.append(i)
        part = slice(i * self.size, (i + 1) * self.size)
        return self.x[part], self.y[part]

    def on_epoch_end(self):
        self.ends += 1


def batches_of_lengths(*lengths):
    rng = np.random.default_rng(2)
    return [(rng.normal(size=(4, n, 3)).astype("float32"),
             rng.normal(size=(4, 1)).astype("float32")) for n in lengths]


class Sequences(cornu.Model):
    """A model of its own call, for sequences of any length."""

    def __init__(self):
        super().__init__()
        self.rnn, self.dense = L.LSTM(5), L.Dense(1)

    def call(self, x):
        return self.dense(self.rnn(x))


class Lengths(unittest.TestCase):
    """Batches whose other axes differ, too."""

    def check(self, make, batches):
        ways = []
        for fits in (True, False):
            model = make()
            model.compile(cornu.optimizers.SGD(0.1), "mse")
            model(batches[0][0])
            model.set_weights([np.random.default_rng(i).normal(size=w.shape)
                               for i, w in enumerate(model.weights)])
            if fits:
                model.fit(iter(batches), steps_per_epoch=len(batches), verbose=0)
            else:
                for batch in batches:
                    model.train_on_batch(*batch)
            ways.append(model.get_weights())
        for one, other in zip(*ways):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)

    def test_each_is_a_step_of_its_length(self):
        self.check(lambda: cornu.Sequential([cornu.Input((None, 3)), L.LSTM(5), L.Dense(1)]),
                   batches_of_lengths(3, 1, 6, 3))

    def test_a_model_of_its_own_call_is_open_where_batches_differ(self):
        model = Sequences()
        model.compile("sgd", "mse")
        batches = batches_of_lengths(2, 4, 7, 1)
        model.fit(iter(batches), steps_per_epoch=4, verbose=0)
        self.assertEqual(tuple(model.inputs[0].shape), (None, None, 3))
        x = batches[2][0]
        np.testing.assert_allclose(model.predict(x, verbose=0), model(x), rtol=1e-6)

    def test_it_predicts_other_lengths_than_those_of_its_first_data(self):
        model = Sequences()
        model.compile("sgd", "mse")
        (x, y), (longer, _), (shorter, _) = batches_of_lengths(3, 8, 2)
        model.fit(x, y, verbose=0)
        for given in (longer, shorter, x):
            np.testing.assert_allclose(model.predict(given, verbose=0), model(given), rtol=1e-6)
            np.testing.assert_allclose(model.predict_on_batch(given), model(given), rtol=1e-6)
        before = model.predict(longer, verbose=0)
        model.fit(x, y, verbose=0)      # the weights are the same
        self.assertTrue(np.abs(model.predict(longer, verbose=0) - before).max() > 0)

    def test_ranks_stay(self):
        model = cornu.Sequential([cornu.Input((None, 3)), L.LSTM(5), L.Dense(1)])
        model.compile("sgd", "mse")
        x, y = batches_of_lengths(3)[0]
        with self.assertRaisesRegex(ValueError, "a batch has arrays of .*, the first one has"):
            model.fit(iter([(x, y), (x[..., None], y)]), steps_per_epoch=2, verbose=0)


class Feeds(unittest.TestCase):
    def same_weights(self, one, two):
        for a, b in zip(one.get_weights(), two.get_weights()):
            np.testing.assert_array_equal(a, b)

    def trained(self, x, y, **arguments):
        model = small()
        model.fit(x, y, batch_size=16, shuffle=False, verbose=0, **arguments)
        return model

    def test_an_iterable_is_a_pass_an_epoch(self):
        """The same steps as from arrays, the last batch having fewer rows."""
        x, y = rows(90)
        data, model = Passes(x, y), small()
        history = model.fit(data, epochs=3, verbose=0)
        self.assertEqual((history.epoch, data.passes), ([0, 1, 2], 3))
        self.same_weights(model, self.trained(x, y, epochs=3))

    def test_a_generator_goes_on_from_epoch_to_epoch(self):
        x, y = rows()
        given = []

        def endless():
            while True:
                for i in range(0, 96, 16):
                    given.append(i)
                    yield x[i:i + 16], y[i:i + 16]

        model = small()
        model.fit(endless(), epochs=3, steps_per_epoch=4, verbose=0)
        self.assertEqual(given[:12], list(range(0, 96, 16)) * 2)
        self.same_weights(model, self.trained(x, y, epochs=2))

    def test_an_indexed_data_set(self):
        x, y = rows()
        data, model = Indexed(x, y), small()
        model.fit(data, epochs=2, shuffle=False, verbose=0)
        self.assertEqual((data.ends, data.asked), (2, list(range(6)) * 2))
        self.same_weights(model, self.trained(x, y, epochs=2))
        data.asked.clear()
        model.fit(data, epochs=4, verbose=0)
        self.assertNotEqual(data.asked, list(range(6)) * 4)
        self.assertEqual(sorted(data.asked), sorted(list(range(6)) * 4))

    def test_weights_validation_and_evaluation(self):
        x, y = rows()
        weights = np.linspace(0.1, 2, 96)
        model, other = small(), small()
        found = model.fit(Passes(x, y, weights), epochs=2, verbose=0,
                          validation_data=Passes(x, y, size=32)).history
        expected = other.fit(x, y, batch_size=16, epochs=2, shuffle=False, sample_weight=weights,
                             validation_data=(x, y), validation_batch_size=32, verbose=0).history
        self.assertEqual(found, expected)
        self.assertEqual(model.evaluate(Passes(x, y), verbose=0),
                         model.evaluate(x, y, batch_size=16, verbose=0))
        self.assertEqual(model.evaluate(Passes(x, y), steps=2, verbose=0),
                         model.evaluate(x[:32], y[:32], batch_size=16, verbose=0))
        np.testing.assert_allclose(model.predict(Passes(x, y)), model.predict(x, verbose=0),
                                   atol=1e-6)
        self.assertEqual(model.predict(Indexed(x, y), steps=2).shape, (32, 2))

    def test_several_inputs_by_name_and_other_types(self):
        a, b = L.Input((2,), name="a"), L.Input((3,), name="b")
        out = L.Dense(1, name="out")(L.Concatenate()([a, b]))
        model = cornu.Model([a, b], out)
        model.compile("sgd", "mse")
        rng = np.random.default_rng(0)
        one, two, y = rng.random((20, 2)), rng.integers(0, 9, (20, 3)).astype(np.int8), \
            rng.random((20, 1))

        def batches():
            for i in range(0, 20, 5):
                part = slice(i, i + 5)
                yield {"b": two[part], "a": np.asfortranarray(one[part])}, {"out": y[part]}

        expected = model.evaluate([one, two], y, batch_size=5, verbose=0)
        self.assertEqual(model.evaluate(batches(), verbose=0), expected)

    def test_class_weights_and_a_model_that_is_not_built(self):
        x, y = rows()
        cornu.set_random_seed(3)
        model = cornu.Sequential([L.Dense(2, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
        model.fit(Passes(x, y), class_weight={0: 0.0, 1: 0.0}, verbose=0)
        before = model.get_weights()
        model.fit(Passes(x, y), class_weight={0: 0.0, 1: 0.0}, verbose=0)
        for a, b in zip(before, model.get_weights()):
            np.testing.assert_array_equal(a, b)
        model.fit(Passes(x, y), class_weight={0: 1.0, 1: 2.0}, verbose=0)
        self.assertTrue((before[0] != model.get_weights()[0]).any())

    def test_what_is_wrong_is_said(self):
        x, y = rows()
        model = small()
        with self.assertRaisesRegex(ValueError, "y is given with batches"):
            model.fit(Passes(x, y), y)
        self.assertEqual(model.evaluate(Passes(x, y), batch_size=3, verbose=0),
                         model.evaluate(Passes(x, y), verbose=0))
        with self.assertRaisesRegex(ValueError, "no batch"):
            model.fit(iter([]))
        with self.assertRaisesRegex(ValueError, "4 parts"):
            model.fit(Passes(x, y, y, y))
        with self.assertRaisesRegex(ValueError, "as many rows"):
            model.fit(iter([(x[:4], y[:3])]))
        with self.assertRaisesRegex(ValueError, r"float64 \(2,\).*first one has float32 \(2,\)"):
            model.fit(iter([(x[:4], y[:4]), (x[:4].astype(float), y[:4])]), verbose=0)
        with self.assertRaisesRegex(ValueError, "components"):
            model.fit(Passes(x), verbose=0)

    def test_batches_are_taken_as_they_come(self):
        """Of 4, 2, 3 and 1 rows: four steps. The means are Keras' (run with 3.15.1)."""
        x = cornu.Input((1,))
        model = cornu.Model(x, L.Dense(1, use_bias=False, kernel_initializer="ones")(x))
        model.compile(cornu.optimizers.SGD(0.0), "mae")
        for sizes, means in (((4, 2, 3, 1), [4, 10 / 3, 29 / 9, 3]),
                             ((1, 3, 2, 4), [1, 2.5, 14 / 6, 3])):
            losses = []

            class Batches(cornu.callbacks.Callback):
                def on_train_batch_end(self, batch, logs=None):
                    losses.append(logs["loss"])

            def batches():
                for n in sizes:
                    yield np.full((n, 1), n, np.float32), np.zeros((n, 1))

            model.fit(batches(), verbose=0, callbacks=[Batches()])
            np.testing.assert_allclose(losses, means, rtol=1e-6)
            found = model.predict(batches(), verbose=0)
            np.testing.assert_array_equal(found[:, 0], np.repeat(sizes, sizes))
            self.assertAlmostEqual(model.evaluate(batches(), verbose=0), 3.0, 6)

    def test_batches_grow_where_they_are_weighted(self):
        """By class, behind which a stage computes the weights."""
        x, y = rows()
        parts = [slice(0, 2), slice(2, 9), slice(9, 12), slice(12, 40)]
        model, other = small(), small()
        model.fit([(x[p], y[p]) for p in parts].__iter__(), class_weight={0: 1.0, 1: 3.0},
                  verbose=0)
        for p in parts:
            other.train_on_batch(x[p], y[p], class_weight={0: 1.0, 1: 3.0})
        for a, b in zip(model.get_weights(), other.get_weights()):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)

    def test_validation_has_the_same_samples_in_each_epoch(self):
        """Batches 0, 1, 2, ... of which two are an evaluation: 0.5 in each epoch, as in Keras."""
        x = cornu.Input((1,))
        model = cornu.Model(x, L.Dense(1, use_bias=False, kernel_initializer="ones")(x))
        model.compile(cornu.optimizers.SGD(0.0), "mae")
        given, memory = [], np.zeros((2, 1), np.float32)

        def endless():
            while True:
                memory[:] = len(given)
                given.append(len(given))
                yield memory, np.zeros((2, 1))

        def fit(steps):
            return model.fit(np.ones((4, 1)), np.zeros((4, 1)), epochs=3, verbose=0,
                             validation_data=endless(), validation_steps=steps).history

        self.assertEqual(fit(2)["val_loss"], [0.5, 0.5, 0.5])
        self.assertLessEqual(len(given), 3)
        given.clear()
        self.assertEqual(fit(3)["val_loss"], [1.0, 1.0, 1.0])
        three = ((np.full((2, 1), i), np.zeros((2, 1))) for i in range(3))
        found = model.fit(np.ones((4, 1)), np.zeros((4, 1)), epochs=2, verbose=0,
                          validation_data=three).history
        self.assertEqual(found["val_loss"], [1.0, 1.0])

    def test_epochs_without_validation_have_no_entry(self):
        x, y = rows()
        for data in ((x, y), Passes(x, y)):
            history = small().fit(x, y, epochs=5, validation_data=data, validation_freq=2,
                                  verbose=0).history
            self.assertEqual([len(history[key]) for key in ("loss", "val_loss", "val_accuracy")],
                             [5, 2, 2])
            self.assertFalse(np.isnan(history["val_loss"]).any())

    def test_an_iterator_that_ended_says_so(self):
        x, y = rows()
        batches = ((x[i:i + 16], y[i:i + 16]) for i in range(0, 96, 16))
        with self.assertRaisesRegex(ValueError, "the iterator ended after 6 batches, so that there "
                                    "is none for another epoch; expected steps_per_epoch"):
            small().fit(batches, epochs=2, verbose=0)
        batches = ((x[i:i + 16], y[i:i + 16]) for i in range(0, 96, 16))
        history = small().fit(batches, epochs=2, steps_per_epoch=3, verbose=0)
        self.assertEqual(history.epoch, [0, 1])

    def test_an_exception_ends_the_call(self):
        x, y = rows()

        def broken():
            yield x[:16], y[:16]
            raise KeyError("the third shelf")

        model = small()
        with self.assertRaisesRegex(KeyError, "the third shelf"):
            model.fit(broken(), verbose=0)
        model.fit(x, y, verbose=0)

    def test_batches_of_pytorch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch: CORNU_PYTHON=an interpreter with torch")
        x, y = rows(90)
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(
            torch.from_numpy(x), torch.from_numpy(y)), batch_size=16)
        model = small()
        model.fit(data, epochs=2, verbose=0)
        self.same_weights(model, self.trained(x, y, epochs=2))

    def test_a_list_is_a_batch_as_a_tuple(self):
        x, y = rows(32)
        batches = [[x[:16], y[:16]], [x[16:], y[16:]]]
        one, other = small(), small()
        one.fit(Passes(x, y), epochs=1, shuffle=False, verbose=0)
        other.fit(iter(batches), steps_per_epoch=2, verbose=0)
        self.same_weights(one, other)
        np.testing.assert_allclose(other.predict(iter(batches), verbose=0),
                                   other.predict(x, verbose=0), rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
