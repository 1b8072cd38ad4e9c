"""A flow of coupling networks that runs in both directions by `training`, with a likelihood as its
loss."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops, regularizers = keras.layers, keras.ops, keras.regularizers


def Coupling(input_shape):
    inputs = keras.layers.Input(shape=[input_shape])
    made = []
    for last in ("linear", "tanh"):
        x = inputs
        for _ in range(2):
            x = layers.Dense(6, activation="relu", kernel_regularizer=regularizers.l2(0.01))(x)
        made.append(layers.Dense(input_shape, activation=last,
                                 kernel_regularizer=regularizers.l2(0.01))(x))
    return start(keras.Model(inputs=inputs, outputs=[made[1], made[0]]))


class RealNVP(keras.Model):
    def __init__(self, num_coupling_layers):
        super().__init__()
        self.num_coupling_layers = num_coupling_layers
        self.masks = np.array([[0, 1], [1, 0]] * (num_coupling_layers // 2), dtype="float32")
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.layers_list = [Coupling(2) for i in range(num_coupling_layers)]

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, x, training=True):
        log_det_inv = 0
        direction = 1
        if training:
            direction = -1
        for i in range(self.num_coupling_layers)[::direction]:
            x_masked = x * self.masks[i]
            reversed_mask = 1 - self.masks[i]
            s, t = self.layers_list[i](x_masked)
            s *= reversed_mask
            t *= reversed_mask
            gate = (direction - 1) / 2
            x = (reversed_mask * (x * ops.exp(direction * s) + direction * t * ops.exp(gate * s))
                 + x_masked)
            log_det_inv += gate * ops.sum(s, axis=1)
        return x, log_det_inv

    def log_loss(self, x):
        y, logdet = self(x)
        log_prob = -0.5 * ops.sum(ops.square(y), axis=1) - np.log(2 * np.pi)
        return -ops.mean(log_prob + logdet)

    def train_step(self, data):
        with GradientTape() as tape:
            loss = self.log_loss(data)
        g = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(g, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        loss = self.log_loss(data)
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


points = data(12, 2)
model = RealNVP(num_coupling_layers=4)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.01))
logs = model.fit(points, batch_size=12, epochs=3, verbose=0, shuffle=False,
                 validation_data=(points[:4],)).history
z, _ = model(points)
x, _ = model.predict(points, verbose=0)
report(z=z, x=x, **logs)
