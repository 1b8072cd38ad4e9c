"""Functions that are recorded once: steps by hand, gradients, variables, tapes."""

import gc
import threading
import unittest
import weakref

import numpy as np

import cornu
from cornu import layers as L, ops

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (96, 12, 12, 1)).astype(np.uint8)
Y = RNG.integers(0, 10, 96).astype(np.uint8)


def network():
    """The same one each time."""
    cornu.set_random_seed(3)
    cornu.clear_session()
    return cornu.Sequential([
        cornu.Input((12, 12, 1), scale=1 / 255), L.Conv2D(8, 3, activation="relu"),
        L.MaxPooling2D(2), L.BatchNormalization(), L.Flatten(), L.Dropout(0.5),
        L.Dense(10, activation="softmax")])


class Loops(unittest.TestCase):
    """Loops by hand have the bits of fit."""

    @classmethod
    def setUpClass(cls):
        cls.fitted = network()
        cls.fitted.compile(cornu.optimizers.Adam(1e-3), "sparse_categorical_crossentropy",
                           metrics=["accuracy"])
        cls.history = cls.fitted.fit(X, Y, batch_size=32, epochs=2, shuffle=False, verbose=0)

    def same(self, model):
        for a, b in zip(self.fitted.get_weights(), model.get_weights()):
            np.testing.assert_array_equal(a, b)

    def loop(self, model, step):
        for _ in range(2):
            for i in range(0, 96, 32):
                step(X[i:i + 32], Y[i:i + 32])

    def test_a_function(self):
        model, calls = network(), []
        optimizer = cornu.optimizers.Adam(1e-3)
        loss_of = cornu.losses.SparseCategoricalCrossentropy()
        accuracy = cornu.metrics.SparseCategoricalAccuracy()
        mean = cornu.metrics.Mean(name="loss")

        @cornu.function
        def step(x, y):
            calls.append(x.shape)
            p = model(x, training=True)
            loss = loss_of(y, p)
            optimizer.apply(cornu.gradients(loss, model.trainable_weights),
                            model.trainable_weights)
            accuracy.update_state(y, p)
            mean.update_state(loss)
            return {"loss": loss, "accuracy": accuracy.result(), "mean": mean.result()}

        for epoch in range(2):
            accuracy.reset_state()
            mean.reset_state()
            losses = []
            for i in range(0, 96, 32):
                logs = step(X[i:i + 32], Y[i:i + 32])
                losses.append(logs["loss"])
            self.assertAlmostEqual(float(logs["mean"]), self.history.history["loss"][epoch], 5)
            self.assertAlmostEqual(float(mean.result()), float(np.mean(losses)), 5)
            self.assertAlmostEqual(float(logs["accuracy"]),
                                   self.history.history["accuracy"][epoch], 6)
        self.same(model)
        # Once more as the optimizer is built, whose variables are packed.
        self.assertEqual(calls, [(32, 12, 12, 1)] * 2)
        self.assertEqual(optimizer.iterations, 6)

    def test_a_tape_in_a_function(self):
        model, optimizer = network(), cornu.optimizers.Adam(1e-3)
        optimizer.build(model.trainable_variables) if model.built and \
            model.trainable_weights[0]._weight.variable else None
        loss_of = cornu.losses.SparseCategoricalCrossentropy()

        @cornu.function
        def step(x, y):
            with cornu.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        self.loop(model, step)
        self.same(model)

    def test_calls_and_gradients_after_an_update(self):
        """A model that was updated is called as it is then; the gradients of what was computed
        before are with respect to the weights that this read."""
        def model(kind=cornu.Model):
            x = cornu.Input((2,))
            return kind(x, L.Dense(1, kernel_initializer="ones", use_bias=False)(x))

        def update(network, x, apply):
            with cornu.GradientTape(persistent=True) as tape:
                first, second = ops.sum(network(x)), ops.sum(network(x) ** 2)
            apply(tape.gradient(first, network.trainable_variables))
            gradient, = tape.gradient(second, network.trainable_variables)
            apply([gradient])
            return {"loss": first, "gradient": ops.sum(gradient), "after": ops.sum(network(x))}

        class Own(cornu.Model):
            def train_step(self, data):
                return update(self, data, lambda g: self.optimizer.apply(
                    g, self.trainable_variables))
        x, network, optimizer = np.array([[1, 2]], "float32"), model(), cornu.optimizers.SGD(0.1)
        step = cornu.function(lambda x: update(network, x, lambda g: optimizer.apply(
            g, network.trainable_variables)))
        own = model(Own)
        own.compile(cornu.optimizers.SGD(0.1))
        logs = own.fit(x, epochs=2, verbose=0).history
        for i, (first, gradient) in enumerate(((3.0, 18.0), (-0.5, -3.0))):
            made = step(x)
            for name, wanted in (("loss", first), ("gradient", gradient), ("after", -0.5)):
                self.assertAlmostEqual(float(made[name]), wanted, 5)
                self.assertAlmostEqual(logs[name][i], wanted, 5)

    def test_a_tape_without_a_function(self):
        model, optimizer = network(), cornu.optimizers.Adam(1e-3)
        loss_of = cornu.losses.SparseCategoricalCrossentropy()

        def step(x, y):
            with cornu.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
                self.assertGreater(float(loss), 0)      # computes, and moves no statistics
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            self.assertLess(float(loss), 20)
        self.loop(model, step)
        self.same(model)

    def test_with_what_compile_made(self):
        model = network()
        model.compile(cornu.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
        loss_of = cornu.losses.SparseCategoricalCrossentropy()

        @cornu.function
        def step(x, y):
            loss = loss_of(y, model(x, training=True))
            model.optimizer.apply(cornu.gradients(loss, model.trainable_weights))
        self.loop(model, step)
        self.same(model)
        before = model.get_weights()
        model.fit(X[:32], Y[:32], batch_size=32, verbose=0)
        step(X[:32], Y[:32])
        self.assertFalse(np.array_equal(before[0], model.get_weights()[0]))


class Functions(unittest.TestCase):
    def test_types_and_structures(self):
        calls = []

        @cornu.function
        def f(x, scale, more=None):
            calls.append(1)
            return [x * scale, {"sum": ops.sum(x), "same": x, "number": 3, "none": more}]
        a = np.arange(3.0)
        product, rest = f(a, 2)
        np.testing.assert_array_equal(product, [0, 2, 4])
        self.assertEqual((rest["sum"], rest["number"], rest["none"]), (3, 3, None))
        np.testing.assert_array_equal(rest["same"], a)
        self.assertEqual(product.dtype, "float32")
        f(a + 1, 2), f(a, 2)
        self.assertEqual(len(calls), 1)
        self.assertEqual(f(a, 3)[0][2], 6)
        self.assertEqual(f(a[:2], 2)[0].shape, (2,))
        self.assertEqual(f(a.astype("int32"), 2)[0].dtype, "int32")
        self.assertEqual(len(calls), 4)
        self.assertEqual(f(a, 2, more=[np.ones(2)])[1]["none"][0].tolist(), [1, 1])

    def test_variables(self):
        total = cornu.Variable(np.zeros(2), name="total")
        count = cornu.Variable(0, dtype="int32")

        @cornu.function
        def add(x):
            total.assign_add(x)
            count.assign_add(1)
            return total * 1.0
        np.testing.assert_array_equal(add(np.ones(2)), [1, 1])
        np.testing.assert_array_equal(add(np.ones(2) * 2), [3, 3])
        self.assertEqual(int(count), 2)
        total.assign([5, 5])
        np.testing.assert_array_equal(add(np.zeros(2)), [5, 5])
        np.testing.assert_array_equal(total + 1, [6, 6])
        total.assign_sub([1, 2])
        np.testing.assert_array_equal(total.numpy(), [4, 3])
        self.assertEqual((total.shape, total.dtype, count.dtype), ((2,), "float32", "int32"))
        self.assertEqual(cornu.Variable("zeros", shape=(2, 3)).shape, (2, 3))
        self.assertEqual(np.std(cornu.Variable("glorot_uniform", shape=(4, 3)).numpy()) > 0, True)
        with self.assertRaisesRegex(ValueError, r"total has the shape \(2,\).*test_functions.py"):
            cornu.function(lambda x: total.assign(x))(np.ones(3))

    def test_variables_are_trained(self):
        w, b = cornu.Variable(np.zeros(3)), cornu.Variable(0.0)
        optimizer = cornu.optimizers.SGD(0.1)

        @cornu.function
        def step(x, y):
            loss = ops.mean(ops.square(ops.sum(x * w, axis=1) + b - y))
            optimizer.apply(cornu.gradients(loss, [w, b]), [w, b])
            return loss
        x = RNG.standard_normal((64, 3))
        y = x @ [1, -2, 3] + 0.5
        losses = [float(step(x, y)) for _ in range(200)]
        self.assertLess(losses[-1], 1e-3)
        np.testing.assert_allclose(w.numpy(), [1, -2, 3], atol=0.05)
        optimizer.learning_rate = 0.0
        before = w.numpy()
        step(x, y)
        np.testing.assert_array_equal(w.numpy(), before)

    def test_methods(self):
        class Counter:
            def __init__(self):
                self.value = cornu.Variable(0.0)

            @cornu.function
            def add(self, x):
                self.value.assign_add(ops.sum(x))
                return self.value * 1
        a, b = Counter(), Counter()
        self.assertEqual((a.add(np.ones(2)), a.add(np.ones(2)), b.add(np.ones(3))), (2, 4, 3))
        gone = weakref.ref(a)
        del a
        gc.collect()
        self.assertIsNone(gone())

    def test_functions_in_functions(self):
        @cornu.function
        def double(x):
            return x * 2
        self.assertEqual(cornu.function(lambda x: double(x) + 1)(np.ones(1))[0], 3)

    def test_control_flow_on_static_values(self):
        @cornu.function
        def f(x, n):
            for i in range(n):
                x = x + i if x.shape[0] == 2 else x * 0
            return sum(row for row in x)
        self.assertEqual(f(np.ones((2, 1)), 3), 8)

    def test_random_numbers_differ_from_run_to_run(self):
        dropout = L.Dropout(0.5)
        f = cornu.function(lambda x: dropout(x, training=True))
        one, two = f(np.ones((1, 99))), f(np.ones((1, 99)))
        self.assertFalse(np.array_equal(one, two))

    def test_regularizers(self):
        layer = L.Dense(1, kernel_regularizer=cornu.regularizers.L2(0.5), use_bias=False)
        x = np.ones((2, 3), np.float32)
        layer(x)

        @cornu.function
        def f(x):
            y = layer(x)
            return y, sum(layer.losses)
        kernel = layer.get_weights()[0]
        self.assertAlmostEqual(float(f(x)[1]), float(0.5 * np.sum(kernel ** 2)), 5)

    def test_elements_are_not_known(self):
        def check(what, message, body):
            with self.assertRaisesRegex(what, message) as raised:
                cornu.function(body)(np.ones(3))
            self.assertIn("test_functions.py, line", str(raised.exception))

        def condition(x):
            if ops.sum(x) > 0:
                return x
        check(TypeError, "True or False is needed .* Use ops.where or ops.cond", condition)
        check(TypeError, "a number is needed", lambda x: int(x[0]))
        check(TypeError, "a number is needed", lambda x: range(3)[x[0]])
        check(TypeError, "an array is needed", lambda x: np.asarray(x))
        check(TypeError, "where a number is expected", lambda x: ops.sum(x, axis=x))
        kept = []
        cornu.function(lambda x: kept.append(x + 1))(np.ones(3))
        with self.assertRaisesRegex(ValueError, "another recording, which has ended"):
            cornu.function(lambda x: x + kept[0])(np.ones(3))
        self.assertIn("cornu.Value shape=(3,)", repr(kept[0]))

    def test_an_exception_in_a_function(self):
        @cornu.function
        def f(x):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            f(np.ones(3))
        self.assertEqual(ops.add(np.ones(1), 1)[0], 2)      # nothing is recorded any more

    def test_recordings_are_bounded(self):
        f = cornu.function(lambda x, n: x + n)
        for n in range(70):
            self.assertEqual(f(np.ones(1), n)[0], n + 1)
        self.assertLessEqual(len(f._recorded), 64)

    def test_models_that_are_gone(self):
        def one():
            model = cornu.Sequential([L.Dense(2), L.Dense(1)])
            step = cornu.function(lambda x: model(x))
            step(np.ones((1, 2))), model(np.ones((1, 2)))
            return weakref.ref(model), weakref.ref(model.layers[0])
        gone = [one() for _ in range(5)]
        gc.collect()
        self.assertEqual([r() for pair in gone for r in pair], [None] * 10)

    def test_threads(self):
        f, found = cornu.function(lambda x: ops.sum(x * 2)), []

        def work(i):
            g = cornu.function(lambda x: x + i)
            found.append(all(g(np.ones(2))[0] == 1 + i for _ in range(20)))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(found, [True] * 3)
        self.assertEqual(f(np.ones(2)), 4)

    def test_a_model_that_moves(self):
        model = cornu.Sequential([L.Dense(1)])
        x = np.ones((2, 3), np.float32)
        f = cornu.function(lambda x: model(x))
        y = f(x)
        model.compile("sgd", "mse", device="reference")
        np.testing.assert_allclose(f(x), y, rtol=1e-6)
        model.fit(x, np.zeros((2, 1)), verbose=0)
        self.assertFalse(np.array_equal(f(x), y))
        np.testing.assert_allclose(f(x), model.predict(x, verbose=0), rtol=1e-6)

    def test_two_devices(self):
        a, b = cornu.Sequential([L.Dense(3)]), cornu.Sequential([L.Dense(3)])
        x = np.ones((2, 3), np.float32)
        for model in (a, b):
            model.build((None, 3))
            model.compile("sgd", "mse")
        with self.assertRaisesRegex(ValueError, "on different devices.*compile.device="):
            cornu.function(lambda x: b(a(x)))(x)


class Scale(L.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

    def call(self, x):
        return x * self.scale


class Network(cornu.Model):
    def __init__(self):
        super().__init__()
        self.scale, self.drop, self.out = Scale(), L.Dropout(0.5), L.Dense(1)

    def call(self, x, training=False):
        return self.out(self.drop(ops.relu(self.scale(x)), training=training))


class OwnClasses(unittest.TestCase):
    """Layers and models of the program's own, on arrays and in functions."""

    def test_a_layer(self):
        x = np.array([[1.0, 2.0]], np.float32)
        layer = Scale()
        np.testing.assert_array_equal(layer(x), x)

        @cornu.function
        def f(x):
            return cornu.gradients(ops.sum(layer(x)) + ops.sum(ops.square(layer.scale)),
                                   layer.trainable_weights)[0]
        np.testing.assert_allclose(f(x), [3, 4])

    def test_a_model(self):
        x, y = np.ones((4, 3), np.float32), np.full((4, 1), 2, np.float32)
        found = []
        for in_function in (True, False):
            cornu.set_random_seed(5)
            cornu.clear_session()
            model, optimizer = Network(), cornu.optimizers.Adam(0.05)
            loss_of = cornu.losses.MeanSquaredError()

            def step(x, y):
                with cornu.GradientTape() as tape:
                    loss = loss_of(y, model(x, training=True))
                gradients = tape.gradient(loss, model.trainable_weights)
                optimizer.apply_gradients(zip(gradients, model.trainable_weights))
                return loss
            step = cornu.function(step) if in_function else step
            found.append([float(step(x, y)) for _ in range(60)])
        self.assertLess(found[0][-1], found[0][0])
        self.assertEqual(found[0], found[1])


class Gradients(unittest.TestCase):
    def test_of_arrays(self):
        x = np.array([1.0, 2.0, 3.0], np.float32)
        with cornu.GradientTape() as tape:
            tape.watch(x)
            y = ops.sum(x ** 2 if isinstance(x, cornu.Tensor) else ops.square(x))
        np.testing.assert_allclose(tape.gradient(y, x), 2 * x)
        self.assertEqual(float(y), 14)

    def test_structures_and_sums(self):
        v, w = cornu.Variable([1.0, 2.0]), cornu.Variable(3.0)
        with cornu.GradientTape(persistent=True) as tape:
            y = v * w
        found = tape.gradient(y, {"v": v, "w": [w]})
        np.testing.assert_allclose(found["v"], [3, 3])
        np.testing.assert_allclose(found["w"][0], 3)
        self.assertEqual(found["w"][0].numpy().shape, ())

    def test_of_an_intermediate_value(self):
        @cornu.function
        def f(x):
            y = ops.square(x)
            return cornu.gradients(ops.sum(y * 3), [y, x])
        dy, dx = f(np.array([1.0, 2.0]))
        np.testing.assert_allclose(dy, [3, 3])
        np.testing.assert_allclose(dx, [6, 12])

    def test_of_gradients(self):
        @cornu.function
        def f(x):
            d, = cornu.gradients(ops.sum(x * x * x), [x])
            return cornu.gradients(ops.sum(d), [x])[0]
        np.testing.assert_allclose(f(np.array([1.0, 2.0])), [6, 12])

    def test_what_is_wrong(self):
        with self.assertRaisesRegex(TypeError, "gradients: the loss is .*rray.*test_functions.py"):
            cornu.gradients(np.ones(1), [])
        v, w = cornu.Variable(1.0), cornu.Variable(2.0)
        optimizer = cornu.optimizers.SGD(0.1)
        optimizer.build([v])
        with self.assertRaisesRegex(ValueError, "expected the 1 variables that it was built for"):
            cornu.function(lambda x: optimizer.apply([x], [w]))(np.float32(1))
        with self.assertRaisesRegex(ValueError, "2 gradients are given for 1 variables"):
            optimizer.apply([1.0, 2.0], [v])

    def test_apply_of_arrays(self):
        v = cornu.Variable([1.0, 2.0])
        optimizer = cornu.optimizers.SGD(0.5)
        for _ in range(2):
            optimizer.apply([np.ones(2)], [v])
        np.testing.assert_allclose(v.numpy(), [0, 1])
        self.assertEqual(optimizer.iterations, 2)


if __name__ == "__main__":
    unittest.main()
