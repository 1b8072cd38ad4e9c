"""Cells of RNN of the program's own with steps and states of any rank, states that outlast a batch,
and weights that a layer assigns to others."""

import unittest

import numpy as np

import cornu
from cornu import layers, ops

X = np.random.default_rng(0).random((3, 5, 4, 4, 2)).astype("float32")
STEPS = np.random.default_rng(1).random((3, 5, 6)).astype("float32")
MASK = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1], [1, 0, 0, 0, 0]], bool)


class ConvCell(layers.Layer):
    """As ConvLSTM2D's."""

    def __init__(self, filters, size, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.state_size = [(size, size, filters)] * 2
        self.output_size = (size, size, filters)

    def build(self, shape):
        last = (4 * self.filters,)
        self.kernel = self.add_weight(shape=(3, 3, shape[-1]) + last)
        self.recurrent = self.add_weight(shape=(3, 3, self.filters) + last)
        self.bias = self.add_weight(shape=last, initializer="zeros")

    def get_initial_state(self, batch_size=None):
        return [ops.zeros((batch_size,) + tuple(size)) for size in self.state_size]

    def call(self, x, states):
        h, c = states
        z = ops.conv(x, self.kernel, padding="same") + self.bias
        i, f, g, o = ops.split(z + ops.conv(h, self.recurrent, padding="same"), 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        return h, [h, c]


class MemoryCell(layers.Layer):
    """A state of rank 3, which it attends to, and which does not begin with zeros."""

    def __init__(self, units, slots, **kwargs):
        super().__init__(**kwargs)
        self.units, self.slots = units, slots
        self.state_size, self.output_size = [units, (slots, units)], units

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units))
        self.query = self.add_weight(shape=(self.units, self.units))

    def get_initial_state(self, batch_size=None):
        return [ops.zeros((batch_size, self.units)),
                0.1 * ops.ones((batch_size, self.slots, self.units))]

    def call(self, x, states):
        h, memory = states
        new = ops.tanh(ops.matmul(x, self.kernel) + ops.matmul(h, self.query))
        a = ops.softmax(ops.sum(memory * new[:, None, :], axis=-1), axis=-1)
        read = ops.sum(a[:, :, None] * memory, axis=1)
        return new + read, [new, memory + a[:, :, None] * (new - read)[:, None, :]]


def by_hand(weights, x, mask=None, h=None, memory=None, reverse=False):
    """The outputs of all steps and the last states of MemoryCell, by NumPy in double."""
    kernel, query = [w.astype("float64") for w in weights]
    rows, steps, _ = x.shape
    h = np.zeros((rows, len(query))) if h is None else h
    memory = np.full((rows, 4, len(query)), 0.1) if memory is None else memory
    y, outputs = np.zeros_like(h), np.zeros((rows, steps, len(query)))
    for t in range(steps)[::-1] if reverse else range(steps):
        new = np.tanh(x[:, t] @ kernel + h @ query)
        a = np.exp((memory * new[:, None]).sum(-1))
        a /= a.sum(-1, keepdims=True)
        read = (a[:, :, None] * memory).sum(1)
        valid = np.ones(rows, bool) if mask is None else mask[:, t]
        y = np.where(valid[:, None], new + read, y)
        memory = np.where(valid[:, None, None],
                          memory + a[:, :, None] * (new - read)[:, None], memory)
        h = np.where(valid[:, None], new, h)
        outputs[:, t] = y
    return outputs, h, memory


def close(case, a, b):
    case.assertEqual(np.shape(a), np.shape(b))
    np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5, atol=2e-6)


class Cells(unittest.TestCase):
    def setUp(self):
        cornu.utils.set_random_seed(3)

    def test_a_cell_that_convolves_is_convlstm(self):
        for options in ({}, {"return_sequences": True, "return_state": True},
                        {"return_sequences": True, "go_backwards": True}):
            wanted = layers.ConvLSTM2D(3, 3, padding="same", **options)
            made = layers.RNN(ConvCell(3, 4), **options)
            for given in ({}, {"mask": MASK}):
                with self.subTest("%s %s" % (options, list(given))):
                    of, y = wanted(X, **given), made(X)
                    made.set_weights(wanted.get_weights())
                    y = made(X, **given)
                    if not options.get("return_state"):
                        of, y = [of], [y]
                    for a, b in zip(y, of):
                        close(self, a, np.asarray(b))

    def test_it_is_trained_over_any_number_of_steps(self):
        def train(layer):
            cornu.utils.set_random_seed(3)
            x = cornu.Input((None, 4, 4, 2))
            y = layers.GlobalAveragePooling2D()(layer()(x))
            model = cornu.Model(x, layers.Dense(1)(y))
            rng = np.random.default_rng(4)
            model.set_weights([rng.normal(size=w.shape) * 0.3 for w in model.weights])
            model.compile("sgd", "mse")
            losses = [model.train_on_batch(part, np.ones((3, 1), "float32"))
                      for part in (X, X[:, :3], X[:, 1:])]
            return [np.asarray(losses)] + model.get_weights()
        for a, b in zip(train(lambda: layers.RNN(ConvCell(3, 4))),
                        train(lambda: layers.ConvLSTM2D(3, 3, padding="same"))):
            close(self, a, b)

    def test_a_cell_with_a_memory(self):
        layer = layers.RNN(MemoryCell(5, 4), return_sequences=True, return_state=True)
        layer(STEPS)
        weights = layer.get_weights()
        h, memory = np.full((3, 5), 0.3, "float32"), np.full((3, 4, 5), -0.2, "float32")
        for given, wanted in (({}, {}), ({"mask": MASK}, {"mask": MASK}),
                              ({"initial_state": [h, memory]}, {"h": h, "memory": memory})):
            for a, b in zip(layer(STEPS, **given), by_hand(weights, STEPS, **wanted)):
                close(self, a, b)

    def test_both_directions_and_several_cells(self):
        both = layers.Bidirectional(layers.RNN(MemoryCell(5, 4), return_sequences=True))
        y, weights = both(STEPS), both.get_weights()
        close(self, y, np.concatenate([by_hand(weights[:2], STEPS)[0],
                                       by_hand(weights[2:], STEPS, reverse=True)[0]], axis=-1))
        stack = layers.RNN([ConvCell(3, 4), ConvCell(2, 4)], return_sequences=True)
        y, weights = stack(X), stack.get_weights()
        first = layers.RNN(ConvCell(3, 4), return_sequences=True)
        second = layers.RNN(ConvCell(2, 4), return_sequences=True)
        first(X), second(first(X))
        first.set_weights(weights[:3])
        second.set_weights(weights[3:])
        close(self, y, np.asarray(second(first(X))))


class States(unittest.TestCase):
    def make(self):
        x = cornu.Input(batch_shape=(3, 5, 6))
        layer = layers.RNN(MemoryCell(5, 4), stateful=True)
        return cornu.Model(x, layer(x)), layer

    def test_they_begin_as_the_cell_says_and_outlast_compile(self):
        model, layer = self.make()
        weights, h, memory = model.get_weights(), None, None
        for i in range(4):
            outputs, h, memory = by_hand(weights, STEPS, h=h, memory=memory)
            close(self, model.predict(STEPS, batch_size=3, verbose=0), outputs[:, -1])
            if i == 1:
                model.compile("sgd", "mse")
        layer.reset_state()         # to zeros
        outputs = by_hand(weights, STEPS, h=np.zeros((3, 5)), memory=np.zeros((3, 4, 5)))[0]
        close(self, model.predict(STEPS, batch_size=3, verbose=0), outputs[:, -1])

    def test_another_device_begins_anew(self):
        model, _ = self.make()
        first = model.predict(STEPS, batch_size=3, verbose=0)
        model.compile("sgd", "mse", device=cornu.Device("cpu"))
        close(self, model.predict(STEPS, batch_size=3, verbose=0), first)


class Masked(layers.Layer):
    """Zeroes the first row of another layer's kernel in each call."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(2)

    def build(self, shape):
        self.dense.build(shape)
        self.mask = np.ones(self.dense.kernel.shape, "float32")
        self.mask[0] = 0

    def call(self, x):
        self.dense.kernel.assign(self.dense.kernel * self.mask)
        return self.dense(x)


class Assigned(unittest.TestCase):
    X = np.random.default_rng(2).normal(size=(6, 3)).astype("float32")

    def test_the_layer_is_called_with_what_it_was_assigned(self):
        x = cornu.Input((3,))
        layer = Masked()
        model = cornu.Model(x, layer(x))
        kernel, bias = [np.array(w) for w in model.get_weights()]
        mask = layer.mask
        close(self, model.predict(self.X, verbose=0), self.X @ (kernel * mask) + bias)
        model.compile(cornu.optimizers.SGD(0.1), "mse")
        kernel = np.array(model.get_weights()[0])
        for _ in range(2):
            error = self.X @ (kernel * mask) + bias - 1
            loss = model.train_on_batch(self.X, np.ones((6, 2), "float32"))
            self.assertAlmostEqual(loss, float(np.mean(error ** 2)), places=5)
            kernel = kernel - 0.1 * (2 / error.size) * (self.X.T @ error) * mask
            bias = bias - 0.1 * (2 / error.size) * error.sum(axis=0)
            close(self, model.get_weights()[0], kernel)
            close(self, model.get_weights()[1], bias)

    def test_what_depends_on_the_operands_is_refused(self):
        class Late(Masked):
            def call(self, x):
                self.dense.kernel.assign(self.dense.kernel * ops.mean(x))
                return self.dense(x)

        class Twice(Masked):
            def call(self, x):
                y = self.dense(x)
                self.dense.kernel.assign(self.dense.kernel * 2.0)
                return y + self.dense(x)

        for kind, text in ((Late, "depends on weights alone"), (Twice, "after a call of its")):
            with self.assertRaisesRegex(Exception, text):
                kind()(cornu.Input(self.X.shape[1:]))


class WithoutTraining(unittest.TestCase):
    def test_such_a_model_is_trained_as_it_predicts(self):
        class Plain(cornu.Model):
            def __init__(self):
                super().__init__()
                self.norm, self.dense = layers.BatchNormalization(), layers.Dense(1)

            def call(self, x):
                return self.dense(self.norm(x))

        class Asks(Plain):
            def call(self, x, training=False):
                return self.dense(self.norm(x, training=training))

        class Own(Plain):       # compute_loss makes a step of its own
            def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
                return ops.mean(ops.square(y - y_pred))

        x, y = np.full((8, 3), 2, "float32"), np.ones((8, 1), "float32")
        for kind, moves in ((Plain, False), (Own, False), (Asks, True)):
            model = kind()
            model.compile("sgd", "mse")
            model.fit(x, y, verbose=0)
            self.assertEqual(bool(np.any(model.norm.moving_mean.numpy())), moves)
            self.assertTrue(np.any(model.dense.bias.numpy()))
        x = cornu.Input((3,))       # within another model it is told
        inner = Plain()
        model = cornu.Model(x, inner(x))
        model.compile("sgd", "mse")
        model.fit(np.full((8, 3), 2, "float32"), y, verbose=0)
        self.assertTrue(np.any(inner.norm.moving_mean.numpy()))


if __name__ == "__main__":
    unittest.main()
