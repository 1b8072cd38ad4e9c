"""Nested layers, losses that layers add, an endpoint, a layer with a config, and a model of
them."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class Linear(layers.Layer):
    def __init__(self, units=32, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="random_normal",
                                 trainable=True)
        self.b = self.add_weight(shape=(self.units,), initializer="random_normal", trainable=True)

    def call(self, inputs):
        return ops.matmul(inputs, self.w) + self.b

    def get_config(self):
        config = super().get_config()
        config.update({"units": self.units})
        return config


class ComputeSum(layers.Layer):
    def __init__(self, input_dim):
        super().__init__()
        self.total = self.add_weight(initializer="zeros", shape=(input_dim,), trainable=False)

    def call(self, inputs):
        self.total.assign_add(ops.sum(inputs, axis=0))
        return inputs + 0.001 * self.total


class ActivityRegularizationLayer(layers.Layer):
    def __init__(self, activity_regularizer_rate=1e-2):
        super().__init__()
        self.rate = activity_regularizer_rate

    def call(self, inputs):
        self.add_loss(self.rate * ops.mean(inputs))
        return inputs


class MLPBlock(layers.Layer):
    def __init__(self):
        super().__init__()
        self.linear_1, self.linear_2 = Linear(8), Linear(6)
        self.regularization, self.linear_3 = ActivityRegularizationLayer(), Linear(1)

    def call(self, inputs):
        x = keras.activations.relu(self.linear_1(inputs))
        x = self.regularization(keras.activations.relu(self.linear_2(x)))
        return self.linear_3(x)


class LogisticEndpoint(layers.Layer):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def call(self, targets, logits, sample_weights=None):
        self.add_loss(self.loss_fn(targets, logits, sample_weights))
        return ops.sigmoid(logits)


mlp = MLPBlock()
mlp(ops.ones(shape=(3, 10)))
counts = [len(mlp.weights), len(mlp.trainable_weights)]
layer = Linear.from_config(Linear(64).get_config())
inputs = keras.Input((10,), name="inputs")
targets = keras.Input((1,), name="targets")
logits = MLPBlock()(ComputeSum(10)(inputs))
endpoint = start(keras.Model([inputs, targets], LogisticEndpoint(name="predictions")(
    targets, layers.Dense(1)(logits))))
endpoint.compile(optimizer="adam")
logs = fit(endpoint, {"inputs": data(6, 10), "targets": data(6, 1, classes=2)})
report(counts=counts + [layer.units], out=endpoint.predict(
    {"inputs": data(6, 10), "targets": data(6, 1, classes=2)}, verbose=0), **logs)
