"""JAX' style: stateless calls, and gradients as functions."""

import copy
import pickle
import unittest

import numpy as np

import cornu
from cornu import layers, ops


def network():
    model = cornu.Sequential([cornu.Input((3,)), layers.Dense(2, kernel_initializer="ones"),
                              layers.BatchNormalization(momentum=0.5)])
    return model


class Gradients(unittest.TestCase):
    def test_of_arrays(self):
        both = cornu.value_and_grad(lambda x, y: ops.sum(x * x * y))
        value, d_x = both(np.array([1.0, 2.0], "float32"), np.array([3.0, 4.0], "float32"))
        self.assertEqual(float(value), 19.0)
        np.testing.assert_array_equal(d_x, [6.0, 16.0])
        _, (d_x, d_y) = cornu.value_and_grad(lambda x, y: ops.sum(x * x * y), argnums=(0, 1))(
            np.array([1.0, 2.0], "float32"), np.array([3.0, 4.0], "float32"))
        np.testing.assert_array_equal(d_y, [1.0, 4.0])

    def test_of_structures_and_more(self):
        def loss(p, x):
            made = ops.matmul(x, p["w"]) + p["b"][0]
            return ops.mean(made ** 2), {"made": made}
        x = np.array([[1.0, 2.0]], "float32")
        p = {"w": np.array([[1.0], [1.0]], "float32"), "b": [np.zeros(1, "float32")]}
        (value, more), grads = cornu.value_and_grad(loss, has_aux=True)(p, x)
        self.assertEqual(float(value), 9.0)
        self.assertEqual(float(more["made"][0, 0]), 3.0)
        self.assertEqual(np.asarray(grads["w"]).tolist(), [[6.0], [12.0]])
        self.assertEqual(np.asarray(grads["b"][0]).tolist(), [6.0])
        grads, more = cornu.grad(loss, has_aux=True)(p, x)
        self.assertEqual(np.asarray(grads["b"][0]).tolist(), [6.0])

    def test_within_a_jit(self):
        @cornu.jit
        def step(x):
            return cornu.grad(lambda y: ops.sum(y ** 3))(x) + 1.0
        np.testing.assert_array_equal(step(np.array([2.0], "float32")), [13.0])

    def test_has_aux_needs_two(self):
        with self.assertRaisesRegex(TypeError, "expected a loss and something else"):
            cornu.value_and_grad(lambda x: ops.sum(x), has_aux=True)(np.ones(2, "float32"))


class Stateless(unittest.TestCase):
    def test_a_call_changes_nothing(self):
        model, x = network(), np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], "float32")
        before = model.get_weights()
        values = [2 * w.numpy() for w in model.trainable_variables]
        moving = [w.numpy() for w in model.non_trainable_variables]
        made, after = model.stateless_call(values, moving, x, training=True)
        np.testing.assert_allclose(made, np.zeros((2, 2)), atol=1e-5)
        np.testing.assert_allclose(after[0], [6.0, 6.0])        # half of a mean of 12
        made, after = model.stateless_call(values, after, x)
        np.testing.assert_allclose(after[0], [6.0, 6.0])
        self.assertGreater(float(made[0, 0]), 1.0)
        for old, new in zip(before, model.get_weights()):
            np.testing.assert_array_equal(old, new)
        with self.assertRaisesRegex(ValueError, "5 values are given for 6 variables"):
            model.stateless_call(values[1:], moving, x)

    def test_a_layer(self):
        dense = layers.Dense(2)
        dense.build((None, 3))
        made, after = dense.stateless_call([np.ones((3, 2)), np.ones(2)], [],
                                           np.ones((1, 3), "float32"))
        self.assertEqual((np.asarray(made).tolist(), after), ([[4.0, 4.0]], []))
        with self.assertRaisesRegex(ValueError, "before it is built"):
            layers.Dense(2).stateless_call([], [], np.ones((1, 3), "float32"))

    def test_a_step_of_an_optimizer(self):
        """Adam's first step is the rate, and the state goes on from there."""
        w = cornu.Variable(np.zeros(2, "float32"))
        adam = cornu.optimizers.Adam(0.5)
        with self.assertRaisesRegex(ValueError, "before build"):
            adam.stateless_apply([], [np.ones(2)], [np.zeros(2)])
        adam.build([w])
        self.assertEqual([v.shape for v in adam.variables], [(), (), (2,), (2,)])
        state, values = [v.numpy() for v in adam.variables], [w.numpy()]
        gradient = np.array([1.0, -2.0], "float32")
        for step in range(1, 4):
            values, state = adam.stateless_apply(state, [gradient], values)
            np.testing.assert_allclose(values[0], [-0.5 * step, 0.5 * step], rtol=1e-4)
            self.assertEqual(int(state[0]), step)
        np.testing.assert_array_equal(w.numpy(), [0.0, 0.0])
        self.assertEqual(int(adam.iterations), 0)
        copy.deepcopy(adam)

    def test_metrics(self):
        mean = cornu.metrics.Mean()
        values = mean.stateless_reset_state()
        for x in ([1.0, 2.0], [6.0]):
            values = mean.stateless_update_state(values, np.array(x, "float32"))
        self.assertEqual(float(mean.stateless_result(values)), 3.0)
        self.assertEqual(float(mean.result()), 0.0)
        accuracy = cornu.metrics.BinaryAccuracy()
        values = accuracy.stateless_update_state([], np.array([[1.0], [0.0]]),
                                                 np.array([[0.9], [0.8]]))
        self.assertEqual(float(accuracy.stateless_result(values)), 0.5)
        pickle.dumps(accuracy)

    def test_where_there_is_no_order(self):
        with self.assertRaisesRegex(NotImplementedError, "a cornu.function or train_step around"):
            with cornu.GradientTape():
                cornu.metrics.Mean().stateless_update_state([0.0, 0.0], np.ones(3, "float32"))

    def test_the_result_of_a_metric_of_compile_is_the_logs(self):
        class Last(cornu.Model):
            def train_step(self, state, data):
                x, y = data
                y_pred, others = self.stateless_call(state[0], state[1], x, training=True)
                logs, values = None, []
                for metric in self.metrics:
                    own = state[3][len(values):len(values) + len(metric.variables)]
                    own = metric.stateless_update_state(
                        own, *((ops.mean(y_pred),) if metric.name == "loss" else (y, y_pred)))
                    logs = metric.stateless_result(own)
                    values += own
                return logs, (state[0], others, state[2], values)
        x = cornu.Input((3,))
        model = Last(x, layers.Dense(1, kernel_initializer="zeros")(x))
        model.compile("sgd", "mse", metrics=["mae"])
        logs = model.fit(np.ones((4, 3)), np.full((4, 1), 2.0), verbose=0).history
        self.assertEqual(logs, {"mae": [2.0]})      # and not the loss

    def test_a_state_of_another_form(self):
        class Wrong(cornu.Model):
            def train_step(self, state, data):
                return {"loss": ops.sum(state[0][0])}, state[:3]
        x = cornu.Input((3,))
        model = Wrong(x, layers.Dense(2)(x))
        model.compile("sgd", "mse")
        with self.assertRaisesRegex(ValueError, r"a state of \[2, 0, 2\] values, expected"):
            model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)


if __name__ == "__main__":
    unittest.main()
