"""Programs that import JAX beside Cornu: its functions, jax.jit, jax.grad and jax.value_and_grad."""

import copy
import pickle
import unittest

import numpy as np

import cornu
from cornu import layers as L

try:
    import jax
    from jax import numpy as jnp
except ImportError:
    jax = None


def rows(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def small():
    model = cornu.Sequential([cornu.Input((4,)), L.Dense(3, "tanh"), L.Dense(1)])
    model.set_weights([rows(*w.shape, seed=i) for i, w in enumerate(model.weights)])
    return model


def by_jax(values, x, y):
    """The loss of `small`, in JAX alone."""
    w, b, v, c = values
    return jnp.mean(jnp.square(y - (jnp.tanh(x @ w + b) @ v + c)))


def arrays(model):
    return [np.array(w) for w in model.trainable_variables]


@unittest.skipUnless(jax, "JAX: CORNU_PYTHON=an interpreter with jax")
class Functions(unittest.TestCase):
    """Of JAX, of a layer's tensors and of arrays."""

    def test_in_a_layer(self):
        def call(x):
            y = jnp.concatenate([jax.nn.leaky_relu(x), jax.nn.gelu(x)], axis=-1)
            return jnp.where(y > 0.1, jnp.exp(y), jax.lax.rsqrt(jnp.square(y) + 1)) * \
                jnp.linalg.norm(x, axis=-1, keepdims=True)

        class Calls(L.Layer):
            def call(self, x):
                self.add_loss(0.5 * jnp.sum(x))
                return call(x)
        x = rows(3, 4)
        layer = Calls()
        found = layer(x)
        np.testing.assert_allclose(found, call(jnp.asarray(x)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(layer.losses[0], x.sum() / 2, rtol=1e-5)
        given = cornu.Input((4,))
        found = cornu.Model(given, layer(given)).predict(x, verbose=0)
        np.testing.assert_allclose(found, call(jnp.asarray(x)), rtol=1e-5, atol=1e-6)

    def test_of_variables(self):
        variable = cornu.Variable([1.0, 2.0])
        np.testing.assert_array_equal(jnp.asarray(variable) + 1, [2, 3])
        made = jax.device_put({"a": variable, "b": np.ones(2)}, jax.devices()[0])
        self.assertIsInstance(made["a"], jax.Array)
        np.testing.assert_array_equal(made["a"] + made["b"], [2, 3])

    def test_one_without_a_counterpart_says_so(self):
        class Calls(L.Layer):
            def call(self, x):
                return jnp.asarray(jax.scipy.special.i0(x))
        with self.assertRaises((TypeError, ValueError)):
            Calls()(cornu.Input((4,)))

    def test_what_is_not_ours_is_jax(self):
        self.assertIsInstance(jnp.sum(np.ones(3)), jax.Array)
        self.assertIsInstance(jax.jit(lambda x: x + 1)(jnp.ones(3)), jax.Array)
        np.testing.assert_array_equal(jax.vmap(jax.grad(lambda x: jnp.sum(x ** 2)))(rows(2, 3)),
                                      2 * rows(2, 3))
        self.assertIs(copy.deepcopy(jnp.tanh), jnp.tanh)
        self.assertIs(pickle.loads(pickle.dumps(jax.nn.relu)), jax.nn.relu)


@unittest.skipUnless(jax, "JAX: CORNU_PYTHON=an interpreter with jax")
class Gradients(unittest.TestCase):
    def setUp(self):
        self.model, self.x, self.y = small(), rows(8, 4), rows(8, 1, seed=9)

    def loss(self, trained, others, x, y):
        y_pred, others = self.model.stateless_call(trained, others, x, training=True)
        return jnp.mean(jnp.square(y - y_pred)), others

    def agree(self, found, values):
        for a, b in zip(found, jax.grad(by_jax)(values, self.x, self.y)):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)

    def test_value_and_grad(self):
        values = arrays(self.model)
        (loss, others), grads = jax.value_and_grad(self.loss, has_aux=True)(
            values, [], self.x, self.y)
        np.testing.assert_allclose(loss, by_jax(values, self.x, self.y), rtol=1e-5)
        self.assertEqual(others, [])
        self.agree(grads, values)

    def test_a_step_under_jit(self):
        optimizer = cornu.optimizers.SGD(0.1)
        optimizer.build(self.model.trainable_variables)
        grad_fn = jax.value_and_grad(self.loss, has_aux=True)

        @jax.jit
        def step(state, x, y):
            trained, others, own = state
            (loss, others), grads = grad_fn(trained, others, x, y)
            trained, own = optimizer.stateless_apply(own, grads, trained)
            return loss, (trained, others, own)
        values = arrays(self.model)
        state = [jnp.asarray(v) for v in values], [], [v.numpy() for v in optimizer.variables]
        for _ in range(3):
            wanted, grads = jax.value_and_grad(by_jax)(values, self.x, self.y)
            loss, state = step(state, self.x, self.y)
            np.testing.assert_allclose(loss, wanted, rtol=1e-5)
            values = [v - 0.1 * g for v, g in zip(values, grads)]
        for a, b in zip(state[0], values):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)

    def test_of_a_method_of_what_has_the_model(self):
        case = self

        class Trainer:
            def __init__(self):
                self.network = case.model

            def loss(self, values, x, y):
                y_pred, _ = self.network.stateless_call(values, [], x)
                return jnp.mean(jnp.square(y - y_pred))
        values = arrays(self.model)
        self.agree(jax.jit(jax.grad(Trainer().loss))(values, self.x, self.y), values)

    def test_a_train_step_with_a_state(self):
        class Custom(cornu.Model):
            def compute_loss_and_updates(self, trained, others, x, y, training=False):
                y_pred, others = self.stateless_call(trained, others, x, training=training)
                return self.compute_loss(x, y, y_pred), (y_pred, others)

            def train_step(self, state, data):
                trained, others, own, metrics = state
                x, y = data
                grad_fn = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
                (loss, (_, others)), grads = grad_fn(trained, others, x, y, training=True)
                trained, own = self.optimizer.stateless_apply(own, grads, trained)
                return {"loss": loss}, (trained, others, own, metrics)
        given = cornu.Input((4,))
        own = Custom(given, self.model(given))
        own.compile(cornu.optimizers.SGD(0.1), "mse")
        values = arrays(self.model)
        grads = jax.grad(by_jax)(values, self.x, self.y)
        own.fit(self.x, self.y, batch_size=8, verbose=0)
        for a, b, d in zip(arrays(own), values, grads):
            np.testing.assert_allclose(a, b - 0.1 * d, rtol=2e-5, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
