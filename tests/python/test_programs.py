"""What programs written after Keras' examples do besides the usual: variables as attributes,
outputs in dictionaries, steps that train a part. Numbers are by hand, or NumPy's."""

import unittest

import numpy as np

import cornu
from cornu import ops

L = cornu.layers
X = np.arange(12, dtype="float32").reshape(4, 3) / 10 - 0.5


def model_of(layer, shape=(3,)):
    x = cornu.Input(shape)
    return cornu.Model(x, layer(x))


class OwnLayers(unittest.TestCase):
    def test_variables_are_weights(self):
        class Table(L.Layer):
            def build(self, shape):
                self.scale = cornu.Variable(np.full(3, 2.0), name="scale")
                self.index = cornu.Variable(np.array([2, 0, 1]), dtype="int", trainable=False)

            def call(self, x):
                return ops.take(x * self.scale, self.index, axis=1)
        layer = Table()
        model = model_of(layer)
        np.testing.assert_allclose(model.predict(X, verbose=0), 2 * X[:, [2, 0, 1]])
        self.assertEqual([w.dtype for w in model.weights], ["float32", "int32"])
        self.assertEqual(len(model.trainable_weights), 1)
        model.compile(cornu.optimizers.SGD(1.0), "mse")
        model.fit(X, 0 * X, batch_size=4, verbose=0)
        np.testing.assert_allclose(layer.scale, 2 - np.sum(4 * X * X, 0) / X.size, 1e-6)
        layer.scale.assign([1, 1, 1])
        np.testing.assert_allclose(model.predict(X, verbose=0), X[:, [2, 0, 1]])

    def test_a_variable_of_no_layer_is_told(self):
        other = cornu.Variable(1.0)

        class Read(L.Layer):
            def call(self, x):
                return x * other
        with self.assertRaisesRegex(ValueError, "make it an attribute of the layer.*x \\* other"):
            model_of(Read())

    def test_variables_of_models(self):
        class Scaled(cornu.Model):
            def __init__(self):
                super().__init__()
                self.by = cornu.Variable(3.0)

            def call(self, x):
                return x * self.by
        model = Scaled()
        np.testing.assert_allclose(model(X), 3 * X)
        self.assertEqual(len(model.trainable_weights), 1)

    def test_weights_converted_in_a_call_are_no_constants(self):
        class Add(L.Layer):
            def build(self, shape):
                self.w = self.add_weight(shape=(3,), initializer="ones")

            def call(self, x):
                return x + ops.convert_to_tensor(self.w) + self.w.value
        layer = Add()
        model = model_of(layer)
        layer.set_weights([np.array([1, 2, 3])])
        np.testing.assert_allclose(model.predict(X, verbose=0), X + [2, 4, 6], 1e-6)

    def test_equality_is_of_elements(self):
        class Same(L.Layer):
            def call(self, x):
                y = ops.round(x)
                return ops.cast(y == 0, "float32") + 2 * ops.cast(y != ops.abs(y), "float32")
        y = np.round(3 * X)
        np.testing.assert_array_equal(model_of(Same()).predict(3 * X, verbose=0),
                                      (y == 0) + 2.0 * (y < 0))

    def test_shapes_of_two_unknown_extents(self):
        class Flat(L.Layer):
            def call(self, x):
                y = ops.reshape(x, (-1, 2))
                return ops.reshape(y + ops.mean(y, axis=-1, keepdims=True), ops.shape(x))
        model, x = model_of(Flat(), (3, 2)), np.random.default_rng(0).random((5, 3, 2))
        self.assertEqual(model.output_shape, (None, 3, 2))
        np.testing.assert_allclose(model.predict(x, batch_size=2, verbose=0),
                                   x + x.mean(-1, keepdims=True), 1e-6)

    def test_the_usual_training_is_that_of_call(self):
        class Sign(cornu.Model):
            def call(self, x, training=True):
                return -x if training else 1 * x
        model = Sign()
        np.testing.assert_array_equal(model(X), -X)
        np.testing.assert_array_equal(model(X, training=False), X)
        np.testing.assert_array_equal(model.predict(X, verbose=0), X)

    def test_build_that_calls_the_base_s(self):
        class Built(cornu.Model):
            def __init__(self, width=2, **kwargs):
                super().__init__(**kwargs)
                self.width = width

            def build(self, shape):
                self.dense = L.Dense(self.width)
                super().build(shape)

            def call(self, x):
                return self.dense(x)

            def get_config(self):
                return {**super().get_config(), "width": self.width}
        model = Built(5, name="built")
        self.assertEqual(model(X).shape, (4, 5))
        self.assertEqual(model.get_config()["width"], 5)
        self.assertEqual(Built.from_config(model.get_config()).name, "built")


class Graphs(unittest.TestCase):
    """Nodes of a graph are more rows, or others, than the batch, which has indices of them."""

    def test_statistics_are_of_all_nodes(self):
        nodes = np.random.default_rng(0).standard_normal((8, 3)).astype("float32")
        neighbours = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4], "int32")

        class Nodes(cornu.Model):
            def __init__(self):
                super().__init__()
                self.first, self.second = L.BatchNormalization(), L.BatchNormalization()

            def call(self, indices, training=False):
                x = ops.take(self.first(nodes), neighbours, axis=0)
                return ops.take(self.second(x), indices, axis=0)

        def normalized(x):
            return (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3)
        for count in (4, 5):
            model, indices = Nodes(), np.arange(count, dtype="int32")
            model(indices)
            model.compile("sgd", lambda y, y_pred: ops.mean(ops.square(y_pred - y), axis=-1))
            found = model.train_on_batch(indices, np.ones((count, 3), "float32"))
            wanted = normalized(normalized(nodes)[neighbours])[indices]
            self.assertAlmostEqual(found, float(np.mean((wanted - 1) ** 2)), 4)


class Models(unittest.TestCase):
    def test_outputs_in_dictionaries_and_lists(self):
        x = cornu.Input((3,))
        model = cornu.Model(x, {"b": x * 2, "a": x * 3})
        for made in (model.predict(X, verbose=0), model(X), model.predict_on_batch(X)):
            self.assertEqual(sorted(made), ["a", "b"])
            np.testing.assert_allclose(made["a"], 3 * X)
        self.assertEqual(sorted(model(cornu.Input((3,)))), ["a", "b"])
        model = cornu.Model(x, (x + 1, [x * 2, x * 3]))
        first, (second, third) = model.predict(X, verbose=0)
        np.testing.assert_allclose(third, model(X)[1][1])
        np.testing.assert_allclose(first + second, 3 * X + 1, 1e-6)

    def test_output_of_a_sequential_is_that_of_its_call(self):
        inner = cornu.Sequential([L.Rescaling(2.0)])
        x = cornu.Input((3,))
        model = cornu.Model(x, inner(x) + 1)
        np.testing.assert_allclose(cornu.Model(model.input, inner.output).predict(X, verbose=0),
                                   2 * X)

    def test_validation_data_without_labels(self):
        class Own(cornu.Model):
            def test_step(self, data):
                return {"loss": ops.mean(self(data))}

            def train_step(self, data):
                return {"loss": ops.mean(self(data))}
        x = cornu.Input((3,))
        model = Own(x, x * 1.0)
        model.compile("sgd")
        for given in ((X[:2],), X[:2]):
            found = model.fit(X, validation_data=given, batch_size=4, verbose=0).history
            self.assertAlmostEqual(found["val_loss"][0], float(np.mean(X[:2])), 6)

    def test_losses_that_do_not_reduce(self):
        loss = cornu.losses.MeanSquaredError(reduction=None)
        weights = np.array([1, 2, 0, 3], "float32")
        values = np.mean(X ** 2, axis=1)
        np.testing.assert_allclose(loss(0 * X, X), values, 1e-6)
        np.testing.assert_allclose(loss(0 * X, X, sample_weight=weights), values * weights, 1e-6)
        np.testing.assert_allclose(loss(0 * X, X, sample_weight=weights[:, None]),
                                   values * weights, 1e-6)

    def test_arguments_as_keras_takes_them(self):
        self.assertEqual(L.Conv2D(2, 3, padding="VALID")(cornu.Input((5, 5, 1))).shape,
                         (None, 3, 3, 2))
        np.testing.assert_allclose(cornu.activations.softmax(ops.zeros((4, 2)), axis=0), 0.25)
        np.testing.assert_allclose(cornu.activations.relu(X, negative_slope=0.5),
                                   np.where(X > 0, X, X / 2))
        np.testing.assert_allclose(cornu.utils.normalize(cornu.Variable(X)),
                                   X / np.linalg.norm(X, axis=-1, keepdims=True), 1e-6)

    def test_attention_to_many_rows_by_one_query(self):
        q, k = cornu.Input((2, 3)), cornu.Input((4, 3))
        model = cornu.Model([q, k], L.Attention()([q[:1], k]))
        rng = np.random.default_rng(0)
        q, k = rng.random((5, 2, 3)), rng.random((5, 4, 3))
        p = np.exp(q[:1] @ k.transpose(0, 2, 1))
        np.testing.assert_allclose(model([q, k]), p / p.sum(-1, keepdims=True) @ k, 1e-5)


class Steps(unittest.TestCase):
    def parts(self, optimizer, compile_with):
        """A model of two, of which a step trains one; its gradient is 1."""
        def part():
            x = cornu.Input((1,))
            return cornu.Model(x, L.Dense(1, use_bias=False, kernel_initializer="ones")(x),
                               name="part")

        class Own(cornu.Model):
            def __init__(self):
                super().__init__()
                self.first, self.second = part(), part()

            def compile(self, optimizer, **kwargs):
                if compile_with:
                    super().compile(optimizer=optimizer, **kwargs)
                else:
                    super().compile(**kwargs)
                    self.optimizer = optimizer

            def train_step(self, x):
                with cornu.GradientTape() as tape:
                    loss = ops.sum(self.first(x))
                weights = self.first.trainable_weights
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
                for a, b in zip(self.first.weights, self.second.weights):
                    b.assign(0.5 * b + 0.5 * a)
                return {"loss": loss}
        model = Own()
        model.compile(optimizer=optimizer)
        model.fit(np.ones((1, 1), "float32"), epochs=2, verbose=0)
        return float(model.first.weights[0].numpy()[0, 0]), float(
            model.second.weights[0].numpy()[0, 0])

    def test_optimizers_of_layers(self):
        """Each layer has its own; that of compile is not used."""
        class Own(cornu.Model):
            def __init__(self):
                super().__init__()
                self.parts = [L.Dense(1, use_bias=False, kernel_initializer="ones")
                              for _ in range(2)]
                self.own = [cornu.optimizers.SGD(rate) for rate in (0.25, 0.5)]

            def call(self, x):
                return self.parts[1](self.parts[0](x))

            def train_step(self, data):
                x, _ = data
                for part, optimizer in zip(self.parts, self.own):
                    with cornu.GradientTape() as tape:
                        loss = ops.sum(part(x))
                    weights = part.trainable_weights
                    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
                return {"loss": loss}
        for built in (False, True):
            model, x = Own(), np.ones((1, 1), "float32")
            model(x)
            for part, optimizer in zip(model.parts, model.own):
                if built:
                    optimizer.build(part.trainable_weights)
            model.compile("sgd", "mse")
            model.fit(x, x, epochs=2, verbose=0)
            self.assertEqual([float(p.weights[0].numpy()[0, 0]) for p in model.parts], [0.5, 0.0])

    def test_some_of_the_weights(self):
        """The other part decays by its average alone. Both have one name."""
        for compile_with in (True, False):
            decayed = cornu.optimizers.SGD(0.1, weight_decay=0.1)
            first, second = self.parts(decayed, compile_with)
            one = 1 - 0.1 * 0.1 - 0.1
            two = one - 0.1 * 0.1 * one - 0.1
            self.assertAlmostEqual(first, two, 6)
            self.assertAlmostEqual(second, 0.5 * (0.5 + 0.5 * one) + 0.5 * two, 6)
        self.assertAlmostEqual(self.parts("sgd", True)[0], 1 - 2 * 0.01, 6)

    def test_what_compile_was_given(self):
        model = model_of(L.Dense(1))
        self.assertIsNone(model.loss)
        model.compile("sgd", loss="mse")
        self.assertEqual(model.loss, "mse")


if __name__ == "__main__":
    unittest.main()
