"""A layer with a weight of its own and a configuration."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class Antirectifier(layers.Layer):
    def __init__(self, initializer="he_normal", **kwargs):
        super().__init__(**kwargs)
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape):
        output_dim = input_shape[-1]
        self.kernel = self.add_weight(shape=(output_dim * 2, output_dim),
                                      initializer=self.initializer, name="kernel", trainable=True)

    def call(self, inputs):
        inputs -= ops.mean(inputs, axis=-1, keepdims=True)
        pos, neg = ops.relu(inputs), ops.relu(-inputs)
        return ops.matmul(ops.concatenate([pos, neg], axis=-1), self.kernel)

    def get_config(self):
        config = super().get_config()
        config["initializer"] = keras.initializers.serialize(self.initializer)
        return config


model = keras.Sequential([keras.Input(shape=(20,)), layers.Dense(12), Antirectifier(),
                          layers.Dense(12), Antirectifier(), layers.Dropout(0.0),
                          layers.Dense(10)])
start(model)
model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              optimizer=keras.optimizers.RMSprop(),
              metrics=[keras.metrics.SparseCategoricalAccuracy()])
report(**fit(model, data(16, 20), data(16, classes=10)))
