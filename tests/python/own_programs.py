"""Programs with layers and models of their own, for Keras and for Cornu alike: each gets the
package and returns a model, its inputs and its outputs. tests/golden/make_own.py keeps what Keras
makes of them."""

import numpy as np


def numbers(shape, seed, scale=0.5):
    return np.random.default_rng(seed).normal(0, scale, shape).astype("float32")


def linear(keras):
    ops, layers = keras.ops, keras.layers

    class Linear(layers.Layer):
        def __init__(self, units=4, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1], self.units), name="w")
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", name="b")

        def call(self, inputs):
            return ops.matmul(inputs, self.w) + self.b

    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.layers_ = [Linear(6), Linear(5)]
            self.last = Linear(2)

        def call(self, x):
            for layer in self.layers_:
                x = ops.relu(layer(x))
            return self.last(x)

    x = keras.Input((3,))
    return keras.Model(x, Block()(x)), numbers((10, 3), 1), numbers((10, 2), 2)


def subclassed(keras):
    ops, layers = keras.ops, keras.layers

    class MyModel(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = layers.Dense(8, activation="tanh")
            self.norm = layers.BatchNormalization()
            self.second = layers.Dense(1)

        def call(self, x, training=False):
            x = self.norm(self.first(x), training=training)
            return self.second(x * 2.0 if training else ops.multiply(x, 2.0))

    model = MyModel()
    model(numbers((1, 4), 0))       # which builds it
    return model, numbers((8, 4), 3), numbers((8, 1), 4)


def centred(keras):
    """Rows depend on each other, a loss is added, and a weight counts."""
    ops, layers = keras.ops, keras.layers

    class Centred(layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")
            self.count = self.add_weight(shape=(), initializer="zeros", trainable=False,
                                         name="count")

        def call(self, x, training=False):
            y = (x - ops.mean(x, axis=0, keepdims=True)) * self.scale
            self.add_loss(0.01 * ops.sum(ops.square(self.scale)))
            if training:
                self.count.assign_add(1.0)
            return y

    x = keras.Input((4,))
    return (keras.Model(x, keras.layers.Dense(2)(Centred()(x))), numbers((8, 4), 5),
            numbers((8, 2), 6))


def masked(keras):
    ops, layers = keras.ops, keras.layers

    class Embed(layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=(20, 6), name="table")

        def call(self, x):
            return ops.take(self.table, ops.cast(x, "int32"), axis=0)

        def compute_mask(self, x, mask=None):
            return ops.not_equal(x, 0)

    class Weighted(layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.supports_masking = True

        def call(self, x, mask=None):
            return x * ops.expand_dims(ops.cast(mask, "float32"), -1) + 0.5

    x = keras.Input((5,), dtype="int32")
    model = keras.Model(x, layers.LSTM(3)(Weighted()(Embed()(x))))
    data = np.random.default_rng(7).integers(1, 20, (6, 5)).astype("int32")
    data[:, 3:] = 0
    return model, data, numbers((6, 3), 8)


def cell(keras):
    ops, layers = keras.ops, keras.layers

    class Cell(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = self.state_size = units

        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], self.units), name="kernel")
            self.recurrent = self.add_weight(shape=(self.units, self.units), name="recurrent")

        def call(self, inputs, states):
            y = ops.tanh(ops.matmul(inputs, self.kernel) + ops.matmul(states[0], self.recurrent))
            return y, [y]

    x = keras.Input((4, 3))
    y = layers.RNN(Cell(5), return_sequences=True)(x)
    y = layers.Lambda(lambda t: t ** 2 + 1.0)(layers.RNN(Cell(2))(y))
    return keras.Model(x, y), numbers((6, 4, 3), 9), numbers((6, 2), 10)


def tied(keras):
    """Several tensors in and out, and a weight of an inner layer that is read."""
    ops, layers = keras.ops, keras.layers

    class Tied(layers.Layer):
        def __init__(self):
            super().__init__()
            self.embed = layers.Embedding(11, 4)

        def call(self, tokens, bias):
            x = self.embed(tokens) + self.embed(np.arange(3))
            return {"logits": ops.matmul(x, ops.transpose(self.embed.embeddings)),
                    "mean": ops.mean(x, axis=-1) + bias}

    tokens, bias = keras.Input((3,), dtype="int32"), keras.Input((3,))
    made = Tied()(tokens, bias=bias)
    model = keras.Model([tokens, bias], [made["logits"], made["mean"]])
    data = np.random.default_rng(11).integers(0, 11, (5, 3)).astype("int32")
    return model, [data, numbers((5, 3), 12)], [numbers((5, 3, 11), 13), numbers((5, 3), 14)]


class Leaky:
    """Makes cells with two states, which a program gives its own beginning."""

    def __new__(cls, keras):
        ops, layers = keras.ops, keras.layers

        @keras.saving.register_keras_serializable("Tests")
        class LeakyCell(layers.Layer):
            def __init__(self, units, **kwargs):
                super().__init__(**kwargs)
                self.units, self.state_size, self.output_size = units, [units, 2], units

            def build(self, shape):
                self.kernel = self.add_weight(shape=(shape[-1], self.units), name="kernel")
                self.mixed = self.add_weight(shape=(self.units, 2), name="mixed")
                self.inner = layers.Dense(self.units, activation="sigmoid")
                self.inner.build((None, self.units))

            def get_initial_state(self, batch_size=None):
                return [ops.zeros((batch_size, self.units)), ops.ones((batch_size, 2)) * 0.5]

            def call(self, inputs, states):
                h, slow = states
                h = ops.tanh(ops.matmul(inputs, self.kernel) + h) * self.inner(h)
                slow = 0.9 * slow + 0.1 * ops.matmul(h, self.mixed)
                h = h + ops.sum(slow, axis=-1, keepdims=True)
                return h, [h, slow]

            def compute_output_shape(self, shape, *_):
                return (shape[0], self.units), [(shape[0], self.units), (shape[0], 2)]

            def get_config(self):
                return {**super().get_config(), "units": self.units}
        return LeakyCell


def open_cell(keras):
    """Cells of its own, one after another with one of Keras', for any number of steps, masked."""
    layers, leaky = keras.layers, Leaky(keras)
    x = keras.Input((None, 3))
    y = layers.RNN([leaky(5), layers.GRUCell(4)], return_sequences=True)(layers.Masking()(x))
    y = layers.RNN(leaky(2), go_backwards=True)(y)
    data = numbers((6, 4, 3), 15)
    data[1:4, 3:] = 0
    return keras.Model(x, y), data, numbers((6, 2), 16)


def both_ways(keras):
    """Bidirectional of a cell of its own."""
    layers, leaky = keras.layers, Leaky(keras)
    x = keras.Input((4, 3))
    y = layers.Bidirectional(layers.RNN(leaky(3), return_sequences=True))(x)
    y = layers.Bidirectional(layers.RNN(leaky(2)), merge_mode="ave")(y)
    return keras.Model(x, y), numbers((6, 4, 3), 17), numbers((6, 2), 18)


def distributed(keras):
    """TimeDistributed of a layer of its own, and of a model with one that is called, too."""
    ops, layers = keras.ops, keras.layers

    class Gate(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units, self.inner = units, layers.Dense(units)

        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], self.units), name="w")
            self.inner.build(shape)

        def call(self, x):
            return ops.sigmoid(ops.matmul(x, self.w)) * self.inner(x)

        def compute_output_shape(self, shape):
            return (*shape[:-1], self.units)

    step = keras.Input((3,))
    each = keras.Model(step, layers.Dense(2)(Gate(4)(step)))
    x = keras.Input((4, 3))
    y = layers.TimeDistributed(each)(x)
    y = layers.TimeDistributed(Gate(2))(y) + ops.expand_dims(each(x[:, 0]), 1)
    return keras.Model(x, y), numbers((6, 4, 3), 19), numbers((6, 4, 2), 20)


def many(keras):
    """More weights of its own than a model has inputs."""
    ops, layers = keras.ops, keras.layers

    class Polynomial(layers.Layer):
        def build(self, shape):
            self.factors = [self.add_weight(shape=(shape[-1],), name="factor_%d" % i)
                            for i in range(45)]

        def call(self, x):
            y = ops.zeros_like(x)
            for factor in self.factors:
                y = 0.9 * y * ops.tanh(x) + factor
            return y

        def compute_output_shape(self, shape):
            return shape

    x = keras.Input((4, 3))
    y = layers.TimeDistributed(Polynomial())(Polynomial()(x))
    return keras.Model(x, y), numbers((6, 4, 3), 21), numbers((6, 4, 3), 22)


PROGRAMS = {each.__name__: each for each in (linear, subclassed, centred, masked, cell, tied,
                                             open_cell, both_ways, distributed, many)}


def run(keras, name, programs=PROGRAMS):
    """What a program computes: the shapes of its weights, predictions, the losses of three epochs,
    and predictions after them."""
    model, x, y = programs[name](keras)
    model.set_weights([abs(numbers(w.shape, 100 + i)) if "variance" in w.path else
                       numbers(w.shape, 100 + i) for i, w in enumerate(model.weights)])
    made = {"shapes": [list(w.shape) for w in model.get_weights()],
            "before": _lists(model.predict(x, verbose=0))}
    model.compile(keras.optimizers.SGD(0.05), "mse")
    history = model.fit(x, y, epochs=3, batch_size=4, shuffle=False, verbose=0)
    made["losses"] = history.history["loss"]
    made["after"] = _lists(model.predict(x, verbose=0))
    return model, x, made


def _lists(values):
    return [v.tolist() for v in (values if isinstance(values, list) else [values])]
