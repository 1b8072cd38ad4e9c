"""GradientTape as TensorFlow has it: what is watched, structures, several gradients, tapes in tapes.
The numbers are derivatives by hand."""

import unittest

import numpy as np

import cornu
from cornu import layers, ops

Tape = cornu.GradientTape


class Tapes(unittest.TestCase):
    def test_operators_on_watched_arrays_are_recorded(self):
        a, b = ops.convert_to_tensor([1.0, 2.0]), ops.convert_to_tensor([3.0, 5.0])
        for compute, of_a in ((lambda: a * a, [2, 4]), (lambda: 2.0 / a, [-2, -0.5]),
                              (lambda: a ** 3 - b * a, [0, 7]), (lambda: -a @ b, [-3, -5]),
                              (lambda: abs(a[1:]) + 1, [0, 1]),
                              (lambda: np.full(2, 3.0, "float32") * a, [3, 3])):
            with Tape() as tape:
                tape.watch(a)
                y = compute()
            np.testing.assert_allclose(np.asarray(tape.gradient(y, a)), of_a, rtol=1e-6)
        self.assertEqual((a * a).tolist(), [1, 4])      # without a tape it is NumPy's
        self.assertEqual(type(a[0] * 2), type(a))

    def test_structures(self):
        a, b = ops.convert_to_tensor([1.0, 2.0]), ops.convert_to_tensor([3.0])
        with Tape() as tape:
            tape.watch({"a": a, "b": [b]})
            y, z = ops.sum(a * a * b), ops.sum(b)
        made = tape.gradient({"y": y, "z": [z]}, {"a": a, "b": (b,)})
        np.testing.assert_allclose(np.asarray(made["a"]), [6, 12])
        np.testing.assert_allclose(np.asarray(made["b"][0]), [5 + 1])
        v = cornu.Variable([1.0, 2.0])
        with Tape() as tape:
            y = v * v
        made = tape.gradient(y, v, output_gradients=np.array([1.0, 10.0], "float32"))
        np.testing.assert_allclose(np.asarray(made), [2, 40])

    def test_several_gradients_of_one_tape(self):
        a = ops.convert_to_tensor(3.0)
        with Tape(persistent=True) as tape:
            tape.watch(a)
            y = a * a
            z = y * y
        self.assertEqual(float(tape.gradient(z, a)), 108)
        self.assertEqual(float(tape.gradient(y, a)), 6)

    def test_jacobians(self):
        a = ops.convert_to_tensor([1.0, 2.0])
        m = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32")
        with Tape(persistent=True) as tape:
            tape.watch(a)
            y = ops.matmul(m, a * a)
        made = np.asarray(tape.jacobian(y, {"a": a})["a"])
        np.testing.assert_allclose(made, m * [2.0, 4.0])
        x = ops.convert_to_tensor(m)
        with Tape() as tape:
            tape.watch(x)
            y = ops.stack([x[:, 0] * x[:, 1], x[:, 0] ** 2, x[:, 1]], axis=1)
        wanted = [[[b, a], [2 * a, 0], [0, 1]] for a, b in m]
        np.testing.assert_allclose(np.asarray(tape.batch_jacobian(y, x)), wanted)

    def test_tapes_in_tapes(self):
        a = ops.convert_to_tensor(3.0)
        with Tape() as outer:
            outer.watch(a)
            with Tape() as inner:
                inner.watch(a)
                y = a * a * a
            first = inner.gradient(y, a)
            doubled = first * 2
        self.assertEqual(float(outer.gradient(doubled, a)), 36)
        model = cornu.Sequential([cornu.Input((3,)), layers.Dense(1)])
        x = ops.convert_to_tensor(np.ones((4, 3), "float32"))
        with Tape() as outer:       # the penalty of a critic's gradient, which is its kernel
            with Tape() as inner:
                inner.watch(x)
                judged = model(x, training=True)
            squares = ops.sum(ops.square(inner.gradient(judged, [x])[0]))
        kernel = model.get_weights()[0]
        made = outer.gradient(squares, model.trainable_variables)
        np.testing.assert_allclose(np.asarray(made[0]), 4 * 2 * kernel, rtol=1e-5)

    def test_what_nothing_uses_has_no_gradient(self):
        a, b, x = cornu.Variable(3.0), cornu.Variable(1.0), np.ones(2, "float32")
        with Tape() as tape:
            tape.watch(x)
            y = a * a + float((x * x)[0])       # NumPy's own
        made = tape.gradient(y, [a, b, x])
        self.assertEqual((float(made[0]), made[1:]), (6, [None, None]))
        zero = tape.gradient(y, [b, x], unconnected_gradients="zero")
        self.assertEqual([np.asarray(g).tolist() for g in zero], [0.0, [0.0, 0.0]])
        with self.assertRaisesRegex(ValueError, "\"none\" or \"zero\""):
            tape.gradient(y, b, unconnected_gradients="one")

    def test_optimizers_take_none(self):
        a, b = cornu.Variable(3.0), cornu.Variable(1.0)
        optimizer = cornu.optimizers.SGD(0.5)
        with Tape() as tape:
            y = a * a
        optimizer.apply_gradients(zip(tape.gradient(y, [a, b]), [a, b]))
        self.assertEqual((float(a), float(b)), (0.0, 1.0))
        with self.assertRaisesRegex(ValueError, "no gradient is given for any variable"):
            optimizer.apply([None, None], [a, b])

    def test_losses_of_other_packages_are_named(self):
        kind = type("EagerTensor", (), {"__module__": "tensorflow.python.framework.ops"})
        with Tape() as tape:
            pass
        with self.assertRaisesRegex(TypeError, "tensorflow are not recorded, cornu.ops has them"):
            tape.gradient(kind(), cornu.Variable(1.0))

        @cornu.function
        def step(x):
            return np.exp(np.asarray(x))

        with self.assertRaisesRegex(TypeError, "cornu.ops in place of functions of NumPy"):
            step(np.ones(2, "float32"))


class Assigned(unittest.TestCase):
    def test_values_are_those_before_an_assignment(self):
        x, variable = np.ones((2, 3), "float32"), cornu.Variable(2.0)
        dense = cornu.layers.Dense(1, kernel_initializer="ones")
        dense(x)
        with cornu.GradientTape() as tape:
            loss, factor = ops.sum(ops.square(dense(x))), variable * 3.0
        gradient = tape.gradient(loss, dense.kernel)
        dense.kernel.assign(np.zeros((3, 1)))
        variable.assign(5.0)
        self.assertEqual((float(loss), float(factor)), (18.0, 6.0))
        np.testing.assert_array_equal(np.asarray(gradient), np.full((3, 1), 12.0))


if __name__ == "__main__":
    unittest.main()
