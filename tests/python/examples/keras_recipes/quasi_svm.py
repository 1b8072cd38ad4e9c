"""The hinge loss on fixed random features."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class RandomFourierFeatures(layers.Layer):
    def __init__(self, output_dim, scale):
        super().__init__()
        self.output_dim, self.scale = output_dim, scale

    def build(self, input_shape):
        self.kernel = self.add_weight(name="unscaled_kernel", trainable=False,
                                      shape=(input_shape[-1], self.output_dim),
                                      initializer="random_normal")
        self.bias = self.add_weight(name="bias", shape=(self.output_dim,), trainable=False,
                                    initializer="random_uniform")

    def call(self, inputs):
        return ops.cos(ops.matmul(inputs, self.kernel) / self.scale + self.bias)


model = keras.Sequential([keras.Input(shape=(20,)), RandomFourierFeatures(32, scale=2.0),
                          layers.Dense(units=4)])
start(model)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=1e-3), loss=keras.losses.hinge,
              metrics=[keras.metrics.CategoricalAccuracy(name="acc")])
report(**fit(model, data(16, 20), keras.utils.to_categorical(data(16, classes=4), 4)))
