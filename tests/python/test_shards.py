"""Steps of the program's own on devices of several shards compute what they compute on one."""

import unittest

import numpy as np

import cornu
from cornu import distribution, layers, ops

X = np.random.default_rng(0).random((20, 6)).astype("float32")
LABELS = np.arange(20) % 3


def largest(a, b):
    """The largest difference, by the largest of a tensor: two sums of at most 160 numbers in
    another order differ by 160 * 2^-24, which is below 1e-5."""
    return max(float(np.abs(np.asarray(p) - q).max() / max(np.abs(q).max(), 1e-3))
               for p, q in zip(a, b))


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed = cornu.random.SeedGenerator(3)

    def call(self, inputs):
        mean, log_variance = inputs
        noise = cornu.random.normal(ops.shape(mean), seed=self.seed)
        return mean + ops.exp(0.5 * log_variance) * noise


class Variational(cornu.Model):
    """With the mean of the batch as a penalty, which a shard alone does not know."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        x, z = cornu.Input((6,)), cornu.Input((2,))
        hidden = layers.Dense(8, activation="relu")(x)
        mean, log_variance = layers.Dense(2)(hidden), layers.Dense(2)(hidden)
        self.encoder = cornu.Model(x, [mean, log_variance, Sampling()([mean, log_variance])])
        self.decoder = cornu.Model(z, layers.Dense(6, activation="sigmoid")(z))
        self.means = [cornu.metrics.Mean(name="loss"), cornu.metrics.Mean(name="kl")]

    @property
    def metrics(self):
        return self.means

    def train_step(self, data):
        with cornu.GradientTape() as tape:
            mean, log_variance, z = self.encoder(data)
            error = ops.mean(ops.sum(ops.square(data - self.decoder(z)), axis=1))
            kl = -0.5 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance))
            loss = error + kl + ops.sum(ops.square(ops.mean(mean, axis=0)))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        for tracker, value in zip(self.means, (loss, kl)):
            tracker.update_state(value)
        return {tracker.name: tracker.result() for tracker in self.means}


class Adversarial(cornu.Model):
    """The judge sees twice as many rows as the batch has."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.judge = cornu.Sequential([
            cornu.Input((8, 8, 1)), layers.Conv2D(4, 3, strides=2, padding="same"),
            layers.LeakyReLU(0.2), layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.2),
            layers.Dense(1)])
        self.maker = cornu.Sequential([
            cornu.Input((5,)), layers.Dense(32, use_bias=False), layers.BatchNormalization(),
            layers.LeakyReLU(0.2), layers.Reshape((4, 4, 2)),
            layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="sigmoid")])
        self.seed = cornu.random.SeedGenerator(5)
        self.for_judge = cornu.optimizers.Adam(3e-3)
        self.of = cornu.losses.BinaryCrossentropy(from_logits=True)

    def train_step(self, real):
        rows = ops.shape(real)[0]
        made = self.maker(cornu.random.normal((rows, 5), seed=self.seed))
        both = ops.concatenate([made, real], axis=0)
        labels = ops.concatenate([ops.ones((rows, 1)), ops.zeros((rows, 1))], axis=0)
        labels += 0.05 * cornu.random.uniform(ops.shape(labels), seed=self.seed)
        with cornu.GradientTape() as tape:
            judged = self.of(labels, self.judge(both, training=True))
        weights = self.judge.trainable_weights
        self.for_judge.apply_gradients(zip(tape.gradient(judged, weights), weights))
        noise = cornu.random.normal((rows, 5), seed=self.seed)
        with cornu.GradientTape() as tape:
            fooled = self.of(ops.zeros((rows, 1)), self.judge(self.maker(noise, training=True)))
        weights = self.maker.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(fooled, weights), weights))
        return {"judged": judged, "fooled": fooled}


class Own(cornu.Model):
    """Any network, with steps of its own and logs that are not means of rows."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def call(self, x, training=False):
        return self.inner(x, training=training)

    def train_step(self, data):
        x, y = data
        with cornu.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return self.compute_metrics(x, y, y_pred) | {"least": ops.sort(y_pred, axis=0)[0, 0]}

    def test_step(self, data):
        x, y = data
        y_pred = self(x, training=False)
        return {"loss": self.compute_loss(y=y, y_pred=y_pred), "std": ops.std(y_pred)}

    def predict_step(self, data):
        y_pred = self(data[0] if isinstance(data, tuple) else data, training=False)
        return y_pred - ops.max(y_pred, axis=0)


def of_images():
    return cornu.Sequential([
        cornu.Input((8, 8, 3)), layers.Conv2D(4, 3, padding="same", use_bias=False),
        layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
        layers.AveragePooling2D(2), layers.Flatten(), layers.Dropout(0.3), layers.Dense(3)
    ]), np.random.default_rng(1).random((20, 8, 8, 3)).astype("float32")


def of_tokens():
    return cornu.Sequential([
        cornu.Input((7,), dtype="int32"), layers.Embedding(11, 8, mask_zero=True),
        layers.LSTM(5, return_sequences=True), layers.Bidirectional(layers.GRU(4)),
        layers.Dense(3)]), np.random.default_rng(1).integers(0, 11, (20, 7))


def of_steps():
    x = cornu.Input((6, 8))
    y = layers.MultiHeadAttention(2, 4, dropout=0.1, use_bias=False)(x, x)
    y = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x + y))
    return (cornu.Model(x, layers.Dense(3)(y)),
            np.random.default_rng(1).random((20, 6, 8)).astype("float32"))


def variational(device):
    model = Variational()
    model.compile(optimizer=cornu.optimizers.Adam(0.01), device=device)
    return model.fit(X, epochs=2, batch_size=8, verbose=0, shuffle=False), model.get_weights()


def adversarial(device):
    model = Adversarial()
    model.compile(optimizer=cornu.optimizers.SGD(0.03, momentum=0.9), device=device)
    images = np.random.default_rng(1).random((20, 8, 8, 1)).astype("float32")
    return model.fit(images, epochs=2, batch_size=8, verbose=0, shuffle=False), model.get_weights()


def own(make):
    def run(device):
        inner, x = make()
        model = Own(inner)
        model.compile(cornu.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=1.0),
                      cornu.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy"], device=device)
        history = model.fit(x, LABELS, epochs=2, batch_size=8, verbose=0, shuffle=False,
                            validation_data=(x, LABELS))
        return history, model.get_weights() + [model.predict(x, batch_size=8, verbose=0)]
    run.__name__ = make.__name__
    return run


RUNS = [variational, adversarial, own(of_images), own(of_tokens), own(of_steps)]


def of(run, device, strategy=None):
    cornu.utils.set_random_seed(1)
    distribution.set_distribution(strategy)
    try:
        history, values = run(device)
    finally:
        distribution.set_distribution(None)
    return values + [np.asarray(v) for v in history.history.values()]


class Steps(unittest.TestCase):
    def test_shards_train_as_one_does(self):
        for run in RUNS:
            for name, shards in (("cpu", 2), ("tpu:v2-8", 4), ("tpu:v2-8", 8)):
                with self.subTest("%s on %d of %s" % (run.__name__, shards, name)):
                    one = of(run, cornu.Device(name, shards=1))
                    self.assertLess(largest(of(run, cornu.Device(name, shards=shards)), one), 1e-5)

    def test_strategies_train_as_one_shard_does(self):
        for run in RUNS:
            with self.subTest(run.__name__):
                mesh = distribution.DeviceMesh((2,), ["batch"], ["cpu:0", "cpu:1"])
                one = of(run, cornu.Device("cpu", shards=1))
                made = of(run, None, distribution.DataParallel(device_mesh=mesh))
                self.assertLess(largest(made, one), 1e-5)

    def test_weights_may_be_cut_too(self):
        mesh = distribution.DeviceMesh((2, 2), ["batch", "model"], ["cpu:%d" % i for i in range(4)])
        layout = distribution.LayoutMap(mesh)
        layout["lstm.*kernel"] = layout["embedding.*"] = (None, "model")
        run = own(of_tokens)
        made = of(run, None, distribution.ModelParallel(layout_map=layout, batch_dim_name="batch"))
        self.assertLess(largest(made, of(run, cornu.Device("cpu", shards=1))), 1e-5)


class Parts(unittest.TestCase):
    """What else is of whole batches: losses and metrics of classes, rows that depend on others."""

    def train(self, device):
        class Ratio(cornu.metrics.Metric):
            def __init__(self):
                super().__init__(name="ratio")
                self.most = self.add_weight(shape=(), initializer="zeros", name="most")

            def update_state(self, y_true, y_pred, sample_weight=None):
                self.most.assign(ops.maximum(self.most, ops.max(y_pred) / ops.mean(y_pred ** 2)))

            def result(self):
                return self.most

        class Centred(layers.Layer):
            def call(self, x):
                return x - ops.mean(x, axis=0)

        cornu.utils.set_random_seed(1)
        model = cornu.Sequential([cornu.Input((6,)), layers.Dense(4, activation="tanh"),
                                  Centred(), layers.Dense(1)])
        model.compile("sgd", lambda a, b: ops.sqrt(ops.mean(ops.square(a - b))),
                      metrics=[Ratio()], device=device)
        history = model.fit(X, LABELS, batch_size=8, epochs=2, verbose=0, shuffle=False)
        return model.get_weights() + [np.asarray(v) for v in history.history.values()]

    def test_they_are_those_of_one_shard(self):
        one = self.train(cornu.Device("cpu", shards=1))
        for shards in (2, 4):
            self.assertLess(largest(self.train(cornu.Device("cpu", shards=shards)), one), 1e-5)

    def test_all_metrics_of_a_step_may_be_given_labels(self):
        class Every(cornu.Model):
            """Its mean of the loss becomes that of labels, weighted by predictions, as in Keras."""

            def __init__(self):
                super().__init__()
                self.net = cornu.Sequential([cornu.Input((6,)), layers.Dense(3, "sigmoid")])

            def train_step(self, x):
                labels, made = x[:, :3], self.net(x)
                for metric in self.metrics:
                    metric.update_state(labels, made)
                with cornu.GradientTape() as tape:
                    loss = self.compute_loss(y=labels, y_pred=self.net(x))
                gradients = tape.gradient(loss, self.net.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.net.trainable_variables))
                return {metric.name: metric.result() for metric in self.metrics}
        for shards in (1, 4):
            cornu.utils.set_random_seed(1)
            model = Every()
            model.compile(cornu.optimizers.SGD(0.0), "mse", metrics=["mae"],
                          device=cornu.Device("cpu", shards=shards))
            logs = model.fit(X, batch_size=8, verbose=0).history
            made, labels = model.net.predict(X, verbose=0), X[:, :3]
            self.assertAlmostEqual(logs["loss"][0], (labels * made).sum() / made.sum(), places=5)
            self.assertAlmostEqual(logs["mae"][0], np.abs(labels - made).mean(), places=5)

    def test_a_layer_may_assign_what_depends_on_rows(self):
        class Moving(layers.Layer):
            def build(self, shape):
                self.mean = self.add_weight(shape=(shape[-1],), initializer="zeros",
                                            trainable=False)

            def call(self, x, training=False):
                if training:
                    self.mean.assign(0.9 * self.mean + 0.1 * ops.mean(x, axis=0))
                return x - self.mean

        def train(device):
            cornu.utils.set_random_seed(1)
            model = cornu.Sequential([cornu.Input((6,)), Moving(), layers.Dense(1)])
            model.compile("sgd", "mse", device=device)
            model.fit(X, LABELS, batch_size=8, epochs=2, verbose=0, shuffle=False)
            return model.get_weights() + [model.predict(X, verbose=0)]

        one = train(cornu.Device("cpu", shards=1))
        self.assertTrue(np.all(one[0] > 0))
        for shards in (2, 4):
            self.assertLess(largest(train(cornu.Device("cpu", shards=shards)), one), 1e-5)


class Functions(unittest.TestCase):
    def train(self, device, rows, wrap):
        cornu.utils.set_random_seed(1)
        model = cornu.Sequential([cornu.Input((6,)), layers.Dense(8, use_bias=False),
                                  layers.BatchNormalization(), layers.ReLU(), layers.Dropout(0.2),
                                  layers.Dense(3)])
        model.compile(device=device)
        optimizer = cornu.optimizers.SGD(0.1, momentum=0.9)
        loss_of = cornu.losses.SparseCategoricalCrossentropy(from_logits=True)
        accuracy, mean = cornu.metrics.SparseCategoricalAccuracy(), cornu.metrics.Mean()
        total, any_above = cornu.Variable(0.0), cornu.Variable(np.zeros(3, bool))

        @wrap
        def step(x, y, scale):
            with cornu.GradientTape() as tape:
                y_pred = model(x, training=True)
                loss = loss_of(y, y_pred) * scale
            weights = model.trainable_variables
            optimizer.apply(tape.gradient(loss, weights), weights)
            accuracy.update_state(y, y_pred)
            mean.update_state(loss)
            total.assign_add(ops.sum(y_pred))
            any_above.assign(ops.any(y_pred > 1.0, axis=0))
            return loss, y_pred, ops.max(y_pred, axis=0)

        made = []
        for i in range(3):
            rng = np.random.default_rng(i)
            made += step(rng.random((rows, 6)).astype("float32"), rng.integers(0, 3, rows), 1.5)
        made += model.get_weights() + [float(accuracy.result()), float(mean.result()),
                                       total.numpy(), any_above.numpy().astype("float32"),
                                       model(X[:3])]
        return [np.asarray(value) for value in made]

    def test_shards_compute_what_one_does(self):
        for wrap in (cornu.function, lambda step: step):
            for rows in (8, 7, 1):
                one = self.train(cornu.Device("cpu", shards=1), rows, wrap)
                for name, shards in (("cpu", 2), ("cpu", 4), ("tpu", 8)):
                    with self.subTest("%d rows on %d of %s" % (rows, shards, name)):
                        wanted = one if name == "cpu" else self.train(
                            cornu.Device(name, shards=1), rows, wrap)
                        made = self.train(cornu.Device(name, shards=shards), rows, wrap)
                        self.assertLess(largest(made, wanted), 1e-5)


if __name__ == "__main__":
    unittest.main()
