"""Losses, metrics, schedules, initializers, regularizers and constraints of the program's own,
functions and classes. The numbers are those of Keras 3.15 on JAX, of the same classes and arrays."""

import copy
import gc
import pickle
import unittest
import weakref

import numpy as np

import cornu
from cornu import layers as L
from cornu import ops
from test_steps import Histories, X, Y, WEIGHTS


def huber(y_true, y_pred):
    error = y_true - y_pred
    small = ops.absolute(error) <= 0.7
    return ops.mean(ops.where(small, 0.5 * ops.square(error), 0.7 * ops.absolute(error) - 0.245),
                    axis=-1)


class Huber(cornu.losses.Loss):
    def __init__(self, delta, name="own_huber", **kwargs):
        super().__init__(name=name, **kwargs)
        self.delta = delta

    def call(self, y_true, y_pred):
        e = ops.absolute(y_true - y_pred)
        return ops.mean(ops.where(e <= self.delta, 0.5 * ops.square(e),
                                  self.delta * e - 0.5 * self.delta ** 2), axis=-1)


def scalar(y_true, y_pred):
    return ops.mean(ops.absolute(y_true - y_pred))


def far(y_true, y_pred):
    return ops.cast(ops.absolute(y_true - y_pred) > 0.5, "float32")


class F1(cornu.metrics.Metric):
    def __init__(self, name="own_f1", **kwargs):
        super().__init__(name=name, **kwargs)
        self.tp = self.add_weight(shape=(), initializer="zeros", name="tp")
        self.counts = self.add_weight(shape=(2,), initializer="zeros", name="counts")

    def update_state(self, y_true, y_pred, sample_weight=None):
        t, p = ops.cast(y_true > 0, self.dtype), ops.cast(y_pred > 0, self.dtype)
        w = 1.0 if sample_weight is None else ops.reshape(sample_weight, (-1, 1))
        self.tp.assign_add(ops.sum(t * p * w))
        self.counts.assign(self.counts + ops.stack([ops.sum(t * w), ops.sum(p * w)]))

    def result(self):
        return 2 * self.tp / (self.counts[0] + self.counts[1] + 1e-7)


class Warm(cornu.optimizers.schedules.LearningRateSchedule):
    def __init__(self, top, warm, total):
        super().__init__()
        self.top, self.warm, self.total = top, warm, total

    def __call__(self, step):
        step = ops.cast(step, "float32")
        part = (step - self.warm) / (self.total - self.warm)
        fall = 0.5 * self.top * (1 + ops.cos(3.14159265 * part))
        return ops.where(step < self.warm, self.top * step / self.warm, fall)


def two_layers():
    model = cornu.Sequential([cornu.Input((4,)), L.Dense(3, activation="tanh"), L.Dense(2)])
    model.set_weights([(np.arange(12).reshape(4, 3) % 5 - 2) / 4, np.zeros(3),
                       (np.arange(6).reshape(3, 2) % 4 - 1.5) / 3, np.zeros(2)])
    return model


# history of two epochs, weights of the last kernel, evaluate
TRAININGS = {
    "function": (huber, {
        "far": [0.6, 0.5], "loss": [0.297306, 0.293048], "mae": [0.588414, 0.578585],
        "own_f1": [0.555556, 0.555556], "weighted_f1": [0.576923, 0.576923],
        "val_far": [0.55, 0.55], "val_loss": [0.209594, 0.199278], "val_mae": [0.579599, 0.559244],
        "val_own_f1": [0.555556, 0.588235], "val_weighted_f1": [0.555556, 0.588235]},
        [-0.508943, -0.132581, 0.201403, 0.480811, -0.487412, -0.216518],
        [0.199278, 0.55, 0.588235, 0.559244, 0.588235]),
    "sum": (Huber(0.4, reduction="sum"), {
        "far": [0.6, 0.5], "loss": [0.854513, 0.827159], "mae": [0.589857, 0.572353],
        "own_f1": [0.555556, 0.470588], "weighted_f1": [0.576923, 0.54902],
        "val_far": [0.55, 0.5], "val_loss": [0.584907, 0.523756], "val_mae": [0.572622, 0.529073],
        "val_own_f1": [0.588235, 0.533333], "val_weighted_f1": [0.588235, 0.533333]},
        [-0.52253, -0.097376, 0.261449, 0.444652, -0.46909, -0.256395],
        [0.387425, 0.5, 0.533333, 0.529073, 0.533333]),
    "scalar": (scalar, {
        "far": [0.6, 0.5], "loss": [0.82979, 0.803297], "mae": [0.587933, 0.569821],
        "own_f1": [0.555556, 0.526316], "weighted_f1": [0.576923, 0.566038],
        "val_far": [0.5, 0.5], "val_loss": [0.571202, 0.547203], "val_mae": [0.571202, 0.547203],
        "val_own_f1": [0.526316, 0.545455], "val_weighted_f1": [0.526316, 0.545455]},
        [-0.530075, -0.110328, 0.192857, 0.431226, -0.479365, -0.247143],
        [0.547203, 0.5, 0.545455, 0.547203, 0.545455]),
}
TRAININGS["class"] = (Huber(0.7),) + TRAININGS["function"][1:]


class Functions(Histories):
    def test_losses_metrics_and_schedules_as_keras(self):
        """Of 10 rows in batches of 4: the last one is a step of 2."""
        for name, (loss, expected, kernel, evaluated) in TRAININGS.items():
            with self.subTest(name):
                model = two_layers()
                model.compile(cornu.optimizers.SGD(Warm(0.1, 3, 12)), loss,
                              metrics=[far, F1(), "mae"], weighted_metrics=[F1("weighted_f1")])
                history = model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0,
                                    sample_weight=WEIGHTS, validation_data=(X, Y))
                self.expect(history.history, expected)
                np.testing.assert_allclose(model.get_weights()[2].ravel(), kernel, atol=4e-6)
                np.testing.assert_allclose(model.evaluate(X, Y, batch_size=3, verbose=0),
                                           evaluated, atol=4e-6)

    def test_values_without_rows(self):
        """As Keras reduces them: of the mean over a batch the mean of what is left, or the sum."""
        def of_columns(y_true, y_pred):
            return ops.mean(ops.square(y_true - y_pred), axis=0)

        class Summed(cornu.losses.Loss):
            def call(self, y_true, y_pred):
                return of_columns(y_true, y_pred)
        x, y = np.eye(6, 4, dtype="float32"), np.arange(18.0).reshape(6, 3)
        for loss, reduce in ((of_columns, np.mean), (Summed(reduction="sum"), np.sum)):
            model = cornu.Sequential([cornu.Input((4,)), cornu.layers.Dense(3)])
            model.compile(cornu.optimizers.SGD(0.1), loss)
            wanted = reduce(np.square(y - model.predict(x, verbose=0)).mean(0))
            self.assertAlmostEqual(model.evaluate(x, y, batch_size=8, verbose=0) / wanted, 1, 5)
            error = y - model.predict(x, verbose=0)
            before = model.get_weights()[1]
            model.fit(x, y, batch_size=6, verbose=0)
            step = 0.1 * 2 * error.mean(0) / (3 if reduce is np.mean else 1)
            np.testing.assert_allclose(model.get_weights()[1] - before, step, rtol=1e-4)

    def test_on_arrays(self):
        self.assertAlmostEqual(float(Huber(0.7)(Y, Y * 0.5)), 0.057638895, 7)
        metric = F1()
        self.assertEqual(float(metric(Y, -Y)), 0.0)
        metric.reset_state()
        self.assertAlmostEqual(float(metric(Y, Y)), 1.0, 6)
        self.assertAlmostEqual(float(Warm(0.1, 3, 12)(2)), 0.0666667, 6)

    def test_the_rate_of_a_schedule(self):
        model = two_layers()
        model.compile(cornu.optimizers.Adam(Warm(0.1, 3, 12)), "mse")
        model.fit(X, Y, batch_size=5, epochs=1, verbose=0)
        self.assertAlmostEqual(model.optimizer.learning_rate, 0.2 / 3, 6)
        model.compile(cornu.optimizers.SGD(lambda: 0.25), "mse")
        model.fit(X, Y, epochs=1, verbose=0)
        self.assertEqual(model.optimizer.learning_rate, 0.25)

    def test_exceptions_are_the_program_s(self):
        def wrong(y_true, y_pred):
            raise KeyError("my own mistake")

        def nothing(y_true, y_pred):
            pass

        def branches(y_true, y_pred):
            if ops.mean(y_pred) > 0:
                return y_pred
            return y_true
        for function, kind, text in ((wrong, KeyError, "my own mistake"),
                                     (nothing, TypeError, "nothing: returned None"),
                                     (branches, TypeError, "test_callables.py, line"),
                                     (lambda a, b: a @ b, ValueError, "matmul")):
            model = two_layers()
            model.compile("sgd", function)
            with self.assertRaisesRegex(kind, text):
                model.fit(X, Y, verbose=0)
            model.compile("sgd", "mse")     # nothing is left of it
            model.fit(X, Y, verbose=0)

        class Bad(F1):
            def result(self):
                raise LookupError("no result")
        model = two_layers()
        model.compile("sgd", "mse", metrics=[Bad()])
        with self.assertRaisesRegex(LookupError, "no result"):
            model.fit(X, Y, verbose=0)

    def test_names_of_functions_are_keras(self):
        def MeanError(y_true, y_pred):
            return cornu.ops.abs(y_true - y_pred)
        model = two_layers()
        model.compile("sgd", "mse", metrics=[MeanError, lambda a, b: a - b])
        self.assertEqual(set(model.fit(X, Y, verbose=0).history), {"loss", "mean_error", "lambda"})

    def test_copies_train_on(self):
        model = two_layers()
        model.compile(cornu.optimizers.Adam(Warm(0.1, 3, 12)), huber, metrics=[F1(), far])
        model.fit(X, Y, verbose=0)
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        expected = model.fit(X, Y, shuffle=False, verbose=0).history
        for each in copies:
            self.assertEqual(each.fit(X, Y, shuffle=False, verbose=0).history, expected)

    def test_models_are_freed(self):
        alive = []
        for _ in range(3):
            model = two_layers()
            model.compile("sgd", Huber(0.5), metrics=[F1(), far])
            model.fit(X, Y, verbose=0)
            alive.append(weakref.ref(model._owned.counted))
        del model
        gc.collect()
        self.assertEqual([counted() for counted in alive], [None] * 3)


# ---- Rules of weights, and activations ----

def begin(shape, dtype=None):
    n = int(np.prod(shape))
    return ((np.arange(n) * 5 % 7 - 3) / 6).reshape(shape).astype("float32")


class Begin(cornu.initializers.Initializer):
    def __init__(self, k):
        self.k = k

    def __call__(self, shape, dtype=None):
        return self.k * begin(shape)


class Penalty(cornu.regularizers.Regularizer):
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * ops.sum(ops.square(x))


class Limit(cornu.constraints.Constraint):
    def __call__(self, w):
        return ops.clip(w, -0.4, 0.4)


def penalty(w):
    return 0.05 * ops.sum(ops.absolute(w) ** 3)


def half(w):
    return ops.where(w > 0.3, 0.3, w)


def swish(x):
    return x * ops.sigmoid(1.5 * x)


class Rules(unittest.TestCase):
    def model(self):
        return cornu.Sequential([
            cornu.Input((4,)),
            L.Dense(3, activation=swish, kernel_initializer=begin, kernel_regularizer=penalty,
                    kernel_constraint=Limit()),
            L.Dense(2, kernel_initializer=Begin(0.5), bias_initializer=begin,
                    kernel_regularizer=Penalty(0.02), kernel_constraint=half,
                    activity_regularizer=Penalty(0.03))])

    def test_a_regularizer_of_activities_has_the_rows_of_the_batch(self):
        """Also of the last one, which is smaller. As Keras' it counts by its mean over rows."""
        class Apart(cornu.regularizers.Regularizer):
            def __call__(self, x):
                product = cornu.ops.matmul(x, cornu.ops.transpose(x))
                return 0.1 * cornu.ops.sum(cornu.ops.square(product - 1.0))
        model = cornu.Sequential([cornu.Input((3,)), cornu.layers.Dense(
            3, activity_regularizer=Apart())])
        model.set_weights([np.eye(3), np.zeros(3)])
        model.compile("sgd", "mse")
        x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")

        def loss(rows):
            return 0.1 * np.sum((rows @ rows.T - 1) ** 2)
        self.assertAlmostEqual(model.evaluate(x, x, batch_size=4, verbose=0),
                               (loss(x[:4]) + loss(x[4:])) / 5, places=4)

    def test_as_keras(self):
        model = self.model()
        model.compile(cornu.optimizers.SGD(0.2), "mse")
        history = model.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0)
        np.testing.assert_allclose(history.history["loss"], [0.642623, 0.515698, 0.490258],
                                   atol=2e-6)
        np.testing.assert_allclose(
            np.concatenate([w.ravel() for w in model.get_weights()]),
            [-0.35351, 0.29374, 0.03006, -0.28555, 0.37821, 0.18719, -0.22061, -0.34368, 0.28183,
             0.08897, -0.32712, 0.36131, -0.07309, 0.01416, 0.032, -0.27148, 0.14703, 0.12794,
             -0.02359, 0.19997, 0.05396, 0.03812, 0.04199], atol=1e-5)
        np.testing.assert_allclose(model(X[:1]), [[0.004496, 0.08735]], atol=2e-6)

    def test_of_layers_of_its_own(self):
        class Scale(L.Layer):
            def build(self, shape):
                self.w = self.add_weight((shape[-1],), initializer=Begin(2.0),
                                         regularizer=Penalty(0.5), constraint=half)

            def call(self, x):
                return x * self.w
        x = cornu.Input((4,))
        model = cornu.Model(x, Scale()(x))
        np.testing.assert_allclose(model.get_weights()[0], 2 * begin((4,)))
        model.compile(cornu.optimizers.SGD(0.0), "mse")
        expected = np.mean((X * (2 * begin((4,))) - X) ** 2) + 0.5 * np.sum((2 * begin((4,))) ** 2)
        self.assertAlmostEqual(model.evaluate(X, X, verbose=0), expected, 4)
        model.train_on_batch(X, X)
        self.assertLess(float(model.get_weights()[0].max()), 0.30001)

    def test_what_is_wrong_is_told(self):
        def train(**given):
            model = cornu.Sequential([cornu.Input((4,)), L.Dense(2, **given)])
            model.compile("sgd", "mse")
            model.fit(X, Y, verbose=0)
        for given, kind, text in (
                ({"kernel_initializer": lambda shape: np.zeros(3)}, ValueError,
                 "expected \\(4, 2\\)"),
                ({"kernel_regularizer": lambda w: w}, ValueError, "expected \\(\\)"),
                ({"kernel_constraint": lambda w: ops.sum(w)}, ValueError, "expected \\(4, 2\\)"),
                ({"kernel_constraint": lambda w: 1 / 0}, ZeroDivisionError, "division")):
            with self.subTest(given), self.assertRaisesRegex(kind, text):
                train(**given)
        with self.assertRaisesRegex(NotImplementedError, "is a function without a name for files"):
            self.model().to_json()
        with self.assertRaisesRegex(TypeError, "expected a name"):
            L.LSTM(3, activation=swish)


# ---- Training steps ----


if __name__ == "__main__":
    unittest.main()
