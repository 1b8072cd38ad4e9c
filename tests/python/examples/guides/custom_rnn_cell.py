"""A cell of one's own within RNN."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class MinimalRNNCell(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units, self.state_size = units, units

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units),
                                      initializer="uniform", name="kernel")
        self.recurrent_kernel = self.add_weight(shape=(self.units, self.units),
                                                initializer="uniform", name="recurrent_kernel")

    def call(self, inputs, states):
        output = ops.matmul(inputs, self.kernel) + ops.matmul(states[0], self.recurrent_kernel)
        return output, [output]


x = keras.Input((None, 5))
y = layers.RNN([MinimalRNNCell(8), MinimalRNNCell(6)])(x)
model = start(keras.Model(x, layers.Dense(1)(y)))
model.compile("rmsprop", "mse")
report(**fit(model, data(4, 7, 5), data(4, 1)))
