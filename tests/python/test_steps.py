"""Training steps of the program's own. The numbers are those of Keras 3.15 on JAX, and on TensorFlow
where there is a tape, of the same classes and arrays."""

import gc
import unittest
import weakref

import numpy as np

import cornu
from cornu import layers as L
from cornu import ops

X = (np.arange(40, dtype="float32").reshape(10, 4) * 7 % 11) / 5 - 1
Y = (np.arange(20, dtype="float32").reshape(10, 2) * 5 % 7) / 3 - 1
WEIGHTS = (np.arange(10) % 3 + 0.5).astype("float32")


class Histories(unittest.TestCase):
    def expect(self, history, expected, places=4e-6):
        self.assertEqual(sorted(history), sorted(expected))
        for key, values in expected.items():
            np.testing.assert_allclose(history[key], values, atol=places, rtol=0, err_msg=key)


def drawn(model):
    def draw(shape):
        n = int(np.prod(shape))
        return ((np.arange(n) * 5 % 7 - 3) / 6).reshape(shape).astype("float32")
    model.set_weights([draw(w.shape) for w in model.get_weights()])
    return model


class Guide(cornu.Model):
    """Of Keras' guide "Customizing what happens in fit()"."""

    def train_step(self, data):
        x, y = data
        with cornu.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


class OwnMetrics(cornu.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = cornu.metrics.Mean(name="loss")
        self.mae_metric = cornu.metrics.MeanAbsoluteError(name="mae")

    def train_step(self, data):
        x, y = data
        with cornu.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = ops.mean(ops.square(y - y_pred))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        self.loss_tracker.update_state(loss)
        self.mae_metric.update_state(y, y_pred)
        return {"loss": self.loss_tracker.result(), "mae": self.mae_metric.result()}

    def test_step(self, data):
        x, y = data
        self.mae_metric.update_state(y, self(x, training=False))
        return {"mae": self.mae_metric.result()}

    @property
    def metrics(self):
        return [self.loss_tracker, self.mae_metric]


class Gan(cornu.Model):
    """Of Keras' examples, with latent vectors that are made of the data."""

    def __init__(self, discriminator, generator):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.d_loss_metric = cornu.metrics.Mean(name="d_loss")
        self.g_loss_metric = cornu.metrics.Mean(name="g_loss")

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.loss_fn = loss_fn

    @property
    def metrics(self):
        return [self.d_loss_metric, self.g_loss_metric]

    def train_step(self, real):
        batch = real.shape[0]
        ones, zeros = np.ones((batch, 1), "float32"), np.zeros((batch, 1), "float32")
        z = real[:, :2] * 0.5
        combined = ops.concatenate([self.generator(z), real], axis=0)
        labels = np.concatenate([ones, zeros])
        with cornu.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(combined))
        gradients = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(gradients, self.discriminator.trainable_weights))
        with cornu.GradientTape() as tape:
            g_loss = self.loss_fn(zeros, self.discriminator(self.generator(z)))
        gradients = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(gradients, self.generator.trainable_weights))
        self.d_loss_metric.update_state(d_loss)
        self.g_loss_metric.update_state(g_loss)
        return {"d_loss": self.d_loss_metric.result(), "g_loss": self.g_loss_metric.result()}


class OwnLoss(cornu.Model):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(ops.absolute(y - y_pred)) + ops.mean(ops.square(y_pred))


def made(kind, *layers):
    x = cornu.Input((4,))
    y = x
    for layer in layers:
        y = layer(y)
    return drawn(kind(x, y))


def gan():
    judge = drawn(cornu.Sequential([cornu.Input((4,)), L.Dense(5, "tanh"), L.Dense(1)]))
    maker = drawn(cornu.Sequential([cornu.Input((2,)), L.Dense(5, "tanh"), L.Dense(4)]))
    model = Gan(judge, maker)
    model.compile(d_optimizer=cornu.optimizers.Adam(0.01),
                  g_optimizer=cornu.optimizers.RMSprop(0.02),
                  loss_fn=cornu.losses.BinaryCrossentropy(from_logits=True))
    return model


def sums(*models):
    return [float(np.sum(w * w)) for model in models for w in model.get_weights()]


class Steps(Histories):
    def test_the_guide_s(self):
        model = made(Guide, L.Dense(3, "tanh", kernel_regularizer="l2"), L.Dense(2))
        model.compile(cornu.optimizers.Adam(0.01), "mse", metrics=["mae"])
        history = model.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0,
                            validation_data=(X, Y))
        self.expect(history.history, {
            "loss": [0.63444, 0.57824, 0.53443], "mae": [0.68293, 0.65557, 0.63221],
            "val_loss": [0.59524, 0.55266, 0.51668], "val_mae": [0.66237, 0.63908, 0.61671]}, 1e-5)
        np.testing.assert_allclose(sums(model), [1.33787, 0.4607, 0.71785, 0.2822], atol=2e-5)
        np.testing.assert_allclose(model.evaluate(X, Y, verbose=0), [0.51668, 0.61671], atol=1e-5)

    def test_metrics_of_its_own_and_a_test_step(self):
        model = made(OwnMetrics, L.Dense(3, "tanh"), L.Dense(2))
        model.compile(cornu.optimizers.SGD(0.1, momentum=0.5))
        history = model.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0,
                            validation_data=(X, Y))
        self.expect(history.history, {
            "loss": [0.61603, 0.48263, 0.41919], "mae": [0.68074, 0.60632, 0.56567],
            "val_mae": [0.61939, 0.56503, 0.52763]}, 1e-5)
        np.testing.assert_allclose(sums(model), [1.36732, 0.50326, 0.75118, 0.13597], atol=2e-5)
        found = model.evaluate(X, Y, batch_size=5, verbose=0, return_dict=True)
        self.assertEqual(list(found), ["mae"])
        self.assertAlmostEqual(found["mae"], 0.527626, 5)

    def test_a_gan_of_two_optimizers(self):
        model = gan()
        history = model.fit(X, batch_size=4, epochs=3, shuffle=False, verbose=0)
        self.expect(history.history, {"d_loss": [0.73953, 0.85537, 0.91589],
                                      "g_loss": [0.68034, 0.50377, 0.44086]}, 1e-5)
        np.testing.assert_allclose(
            sums(model.discriminator, model.generator),
            [2.27798, 0.98858, 0.56128, 0.22428, 1.29916, 1.27621, 2.40945, 1.09189], atol=3e-5)

    def test_batches_of_an_iterator(self):
        """A batch of the data alone, and one batch after the other by train_on_batch."""
        batches = [X[:4], X[4:8], X[8:]]
        models = [gan(), gan(), gan()]
        models[0].fit(X, batch_size=4, shuffle=False, verbose=0)
        models[1].fit(iter(batches), steps_per_epoch=3, verbose=0)
        for batch in batches:
            logs = models[2].train_on_batch(batch, return_dict=True)
        self.assertEqual(sorted(logs), ["d_loss", "g_loss"])
        for model in models[1:]:
            self.assertEqual(sums(model.discriminator, model.generator),
                             sums(models[0].discriminator, models[0].generator))

    def test_a_loss_of_its_own(self):
        model = made(OwnLoss, L.Dense(2))
        model.compile(cornu.optimizers.SGD(0.1), metrics=["mse"])
        history = model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        self.expect(history.history, {"loss": [1.12077, 0.80567], "mse": [0.87432, 0.65218]}, 1e-5)
        np.testing.assert_allclose(sums(model), [0.43901, 0.0479], atol=2e-5)

    def test_distillation(self):
        """compute_loss calls another model, which has its own device; it is trained, too, as in
        Keras, unless it is frozen."""
        class Distiller(cornu.Model):
            def __init__(self, student, teacher):
                super().__init__()
                self.student, self.teacher = student, teacher

            def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
                return ops.mean(ops.square(self.teacher(x, training=False) - y_pred)) + \
                    0.1 * ops.mean(ops.square(y - y_pred))

            def call(self, x):
                return self.student(x)
        for trains in (True, False):
            teacher = made(cornu.Model, L.Dense(5, "tanh"), L.Dense(2))
            teacher.compile("adam", "mse")
            teacher.fit(X, Y, verbose=0)
            teacher.trainable = trains
            before = teacher.get_weights()
            student = made(cornu.Model, L.Dense(2))
            model = Distiller(student, teacher)
            model.compile(cornu.optimizers.SGD(0.1), metrics=["mae"])
            first = student.get_weights()
            predicted = teacher.predict(X, verbose=0)
            history = model.fit(X, Y, batch_size=10, epochs=1, verbose=0)
            y_pred = X @ first[0] + first[1]
            expected = np.mean((predicted - y_pred) ** 2) + 0.1 * np.mean((Y - y_pred) ** 2)
            self.assertAlmostEqual(history.history["loss"][0], expected, 5)
            apart = 2 * (y_pred - predicted) / y_pred.size
            gradient = np.sum(apart + 0.2 * (y_pred - Y) / y_pred.size, axis=0)
            np.testing.assert_allclose(student.get_weights()[1], first[1] - 0.1 * gradient,
                                       atol=1e-6)
            self.assertEqual((len(model.weights), len(model.trainable_weights)),
                             (6, 6 if trains else 2))
            if trains:
                before[3] += 0.1 * np.sum(apart, axis=0)
                before[:3] = teacher.get_weights()[:3]
            for a, b in zip(before, teacher.get_weights()):
                np.testing.assert_allclose(a, b, atol=1e-6 if trains else 0)

    def test_models_in_lists_of_models(self):
        class Part(cornu.Model):
            def __init__(self):
                super().__init__()
                self.dense = L.Dense(2)

            def call(self, x):
                return self.dense(x)

        class Whole(cornu.Model):
            def __init__(self):
                super().__init__()
                self.parts = [Part(), Part()]

            def call(self, x):
                return self.parts[0](x) + self.parts[1](x)
        x = cornu.Input(X.shape[1:])
        model = cornu.Model(x, Whole()(x))
        self.assertEqual(len(model.weights), 4)
        model.compile("sgd", "mse")
        self.assertEqual(len(model.fit(X, Y, verbose=0).history["loss"]), 1)

    def test_a_loss_that_a_step_returns_without_updating_it_is_0(self):
        class Gan(cornu.Model):
            def train_step(self, data):
                self.loss_gen.update_state(3.0)
                return {m.name: m.result() for m in self.metrics}
        x = cornu.Input((4,))
        model = Gan(x, L.Dense(1)(x))
        model.loss_gen = cornu.metrics.Mean(name="loss_gen")
        model.compile("sgd")
        self.assertEqual(model.fit(X, verbose=0).history, {"loss": [0.0], "loss_gen": [3.0]})

    def test_the_compiled_loss_and_metrics(self):
        class Old(cornu.Model):
            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    y_pred = self(x, training=True)
                    loss = self.compiled_loss(y, y_pred, regularization_losses=self.losses)
                variables = self.trainable_variables
                self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                self.compiled_metrics.update_state(y, y_pred)
                return {m.name: m.result() for m in self.metrics}

            def call(self, x):
                return self.dense(x)
        model = Old()
        model.dense = L.Dense(2)
        model(X)
        before = model.predict(X, verbose=0)
        model.compile(cornu.optimizers.SGD(0.1), "mse", metrics=["mae"])
        logs = model.fit(X, Y, batch_size=10, verbose=0).history
        self.assertAlmostEqual(logs["mae"][0], np.abs(Y - before).mean(), 5)
        self.assertAlmostEqual(logs["loss"][0], before.mean(), 5)   # a mean gets the predictions
        error = before - Y
        np.testing.assert_allclose(model.dense.get_weights()[1], -0.1 * error.mean(0), atol=1e-5)

    def test_layers_that_a_step_calls_and_builds(self):
        """Of models without a call, or whose call takes something else than the data."""
        class Sums(L.Layer):
            def build(self, shape):
                self.w = self.add_weight(shape=(shape[-1], 3), initializer="ones")

            def call(self, x):
                return cornu.ops.matmul(x, self.w)

        class NoCall(cornu.Model):
            def __init__(self):
                super().__init__()
                self.before = cornu.Sequential([L.Rescaling(2.0)])
                self.only_tested = cornu.Sequential([L.Rescaling(2.0)])
                self.sums = Sums()
                self.head = cornu.Sequential([L.Dense(1, use_bias=False,
                                                      kernel_initializer="ones")])

            def compile(self, other, **kwargs):
                super().compile(**kwargs)
                self.other = other

            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    loss = cornu.ops.mean((self.head(self.sums(self.before(x))) - y) ** 2)
                weights = self.sums.trainable_variables + self.head.trainable_variables
                self.other.apply_gradients(zip(tape.gradient(loss, weights), weights))
                return {"loss": loss}

            def test_step(self, data):
                x, y = data
                found = self.head(self.sums(self.only_tested(x)))
                return {"loss": cornu.ops.mean((found - y) ** 2)}

        x, y = np.eye(2, 3, dtype="float32"), np.zeros((2, 1), "float32")
        model = NoCall()
        model.compile(cornu.optimizers.SGD(0.01))
        logs = model.fit(x, y, epochs=2, verbose=0, validation_data=(x, y)).history
        # All of a row's 3 products are 2: the loss is 36, its gradients 12 and 24.
        self.assertEqual(logs["loss"][0], 36.0)
        tested = (2 * 3 * (1 - 0.12) * (1 - 0.24)) ** 2
        np.testing.assert_allclose(logs["loss"][1], tested, rtol=1e-6)
        np.testing.assert_allclose(logs["val_loss"][0], tested, rtol=1e-6)
        self.assertEqual([w.shape for w in model.weights], [(3, 3), (3, 1)])

        class Cut(NoCall):
            def call(self, x):
                if x.shape[1] != 2:
                    raise ValueError("the step's, of two columns")
                return self.head(self.sums(x))

            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    loss = cornu.ops.mean((self(x[:, :2]) - y) ** 2)
                weights = self.trainable_variables
                self.other.apply_gradients(zip(tape.gradient(loss, weights), weights))
                return {"loss": loss}
        model = Cut()
        model.compile(cornu.optimizers.SGD(0.01))
        self.assertEqual(model.fit(x, y, verbose=0).history["loss"], [9.0])

    def test_labels_of_one_of_two_outputs(self):
        """The losses and metrics of compile are of what the step gives them, as in Keras."""
        class Two(cornu.Model):
            def __init__(self):
                super().__init__()
                self.a, self.b = L.Dense(3, kernel_initializer="ones"), L.Dense(2)

            def call(self, x):
                return self.a(x), self.b(x)

            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    logits = self(x)[0]
                    loss = self.compiled_loss(y, logits)
                weights = self.a.trainable_weights
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
                self.compiled_metrics.update_state(y, logits)
                return {"value": loss, **{m.name: m.result() for m in self.metrics}}

        x, y = np.eye(4, dtype="float32"), np.array([0, 1, 2, 1])
        model = Two()
        model.compile("sgd", cornu.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy", cornu.metrics.SparseTopKCategoricalAccuracy(2, "top2")])
        for _ in range(2):      # which begin anew
            logs = model.fit(x, y, batch_size=4, shuffle=False, verbose=0).history
            self.assertEqual(sorted(logs), ["accuracy", "loss", "top2", "value"])
        one = cornu.Sequential([cornu.Input((4,)), L.Dense(3, kernel_initializer="ones")])
        one.compile("sgd", cornu.losses.SparseCategoricalCrossentropy(from_logits=True),
                    metrics=["accuracy"])
        one.fit(x, y, batch_size=4, shuffle=False, verbose=0)
        alone = one.fit(x, y, batch_size=4, shuffle=False, verbose=0).history
        for name, of in (("value", "loss"), ("accuracy", "accuracy")):
            np.testing.assert_allclose(logs[name], alone[of], rtol=1e-6)

    def test_a_label_for_the_first_of_two_outputs(self):
        class Sum(cornu.Model):
            def compute_loss(self, x, y_true, y_pred, sample_weight=None, training=False):
                return sum(cornu.ops.mean((y_true - p) ** 2) for p in y_pred)

        x = cornu.Input((2,))
        model = Sum(x, [L.Dense(1, kernel_initializer=init)(x) for init in ("ones", "zeros")])
        model.compile("sgd", metrics=[cornu.metrics.MeanAbsoluteError(name="mae")] * 2)
        logs = model.fit(np.eye(2), np.array([3.0, 2.0]), batch_size=2, verbose=0).history
        self.assertEqual(logs["loss"], [2.5 + 6.5])
        self.assertEqual(logs["mae"], [1.5])

    def test_other_labels(self):
        """compute_loss and the metrics of compile on labels that are not the batch's, of other
        rows; results are in the order of `metrics`."""
        class Shorter(cornu.Model):
            def test_step(self, data):
                y_pred = self(data[0])[:3]
                y = ops.zeros((3, 2))
                self.compute_metrics(None, y, y_pred)
                return {"z": 1.0, "mae": self.metrics[1].result(), "a": 2.0,
                        "loss": self.compute_loss(y=y, y_pred=y_pred)}
        model = made(Shorter, L.Dense(2))
        model.compile("sgd", "mse", metrics=["mae"])
        y_pred = model.predict(X, verbose=0)[:3]
        found = model.evaluate(X, Y, batch_size=10, verbose=0)
        np.testing.assert_allclose(found, [np.mean(y_pred ** 2), np.mean(abs(y_pred)), 2, 1], 1e-6)

    def test_a_loss_that_overrides_call(self):
        class Distances(cornu.losses.Loss):
            def __call__(self, y_true, y_pred, sample_weight=None):
                return ops.sum(ops.abs(y_true - y_pred)) / 7
        model = made(cornu.Model, L.Dense(2))
        model.compile("sgd", loss=Distances())
        expected = np.sum(abs(Y - model.predict(X, verbose=0))) / 7
        self.assertAlmostEqual(model.evaluate(X, Y, batch_size=10, verbose=0), expected, 5)

    def test_dictionaries_of_data(self):
        class Named(cornu.Model):
            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    loss = ops.mean(ops.square(self(x["a"]) - y["b"] - x["c"]))
                self.optimizer.apply(tape.gradient(loss, self.trainable_weights),
                                     self.trainable_weights)
                return {"loss": loss}
        model = made(Named, L.Dense(2))
        model.compile("sgd")
        history = model.fit({"a": X, "c": Y}, {"b": Y}, epochs=2, verbose=0)
        self.assertLess(history.history["loss"][1], history.history["loss"][0])

    def test_predictions_of_its_own(self):
        class Doubled(cornu.Model):
            def predict_step(self, data):
                return 2.0 * self(data, training=False)
        model = made(Doubled, L.Dense(2))
        once = np.asarray(model(X))
        model.compile("sgd", "mse")
        np.testing.assert_allclose(model.predict(X, verbose=0), 2 * once, rtol=1e-6)

    def test_predictions_of_other_data_than_it_trains_on(self):
        class Coder(cornu.Model):
            """Trains on (x, y) by models that it has; predicts of (code, y)."""

            def __init__(self):
                super().__init__()
                self.encoder = cornu.Sequential([cornu.Input((6,)), L.Dense(3)])
                code, y = cornu.Input((3,)), cornu.Input((2,))
                self.decoder = cornu.Model([code, y], L.Dense(6)(L.Concatenate()([code, y])))

            def call(self, inputs):
                code, y = inputs
                return self.decoder([code, y])

            def train_step(self, data):
                x, y = data
                with cornu.GradientTape() as tape:
                    again = self.decoder([self.encoder(x), y])
                    loss = ops.mean(ops.square(again - x))
                weights = self.trainable_weights
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
                return {"loss": loss}
        model, rng = Coder(), np.random.default_rng(0)
        x, y, code = [rng.random((8, n), "float32") for n in (6, 2, 3)]
        model.compile("sgd")
        for _ in range(2):
            model.fit(x, y, verbose=0)
            wanted = model.decoder.predict([code, y], verbose=0)
            np.testing.assert_array_equal(model.predict([code, y], verbose=0), wanted)
            np.testing.assert_allclose(model([code, y]), wanted, rtol=1e-6)

    def test_logs_of_each_row_are_their_mean(self):
        class Rows(cornu.Model):
            def train_step(self, data):
                return {"rows": data[0]}
        model = made(Rows, L.Dense(2))
        model.compile("sgd")
        self.assertAlmostEqual(model.fit(X, Y, batch_size=len(X), verbose=0).history["rows"][0],
                               X.mean(), places=6)

    def test_what_is_wrong_is_told(self):
        class Wrong(cornu.Model):
            returned = None

            def train_step(self, data):
                return self.returned(data)
        for returned, kind, text in (
                (lambda data: 3.0, TypeError, "Wrong.train_step returned float, expected a dict"),
                (lambda data: 1 / 0, ZeroDivisionError, "division by zero")):
            model = made(Wrong, L.Dense(2))
            model.returned = returned
            model.compile("sgd")
            with self.assertRaisesRegex(kind, text):
                model.fit(X, Y, verbose=0)
            with self.assertRaisesRegex(kind, text):
                model.train_on_batch(X, Y)
        model = gan()
        model.generator = None
        with self.assertRaisesRegex(TypeError, "NoneType"):
            model.fit(X, verbose=0)

    def test_models_are_freed(self):
        alive = []
        for _ in range(3):
            model = gan()
            model.fit(X, verbose=0)
            alive.append(weakref.ref(model._owned.counted))
        del model
        gc.collect()
        self.assertEqual([counted() for counted in alive], [None] * 3)


if __name__ == "__main__":
    unittest.main()
