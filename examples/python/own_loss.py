"""A layer and a loss of the program's own. The loss, sqrt(1 + error^2) - 1, does not mind outliers.
Both are functions of cornu.ops that run once, to be recorded: the library trains them without
Python.

A second; the network learns y = 2 x + 1 from data of which each twentieth is wrong.
"""

import numpy as np

import cornu as keras
from cornu import layers, ops

random = np.random.default_rng(0)
x = random.uniform(-2, 2, (2000, 1)).astype("float32")
y = 2 * x + 1
y[::20] = 50


class Line(layers.Layer):
    def build(self, shape):
        self.factor = self.add_weight(shape=(shape[-1], 1))
        self.term = self.add_weight(shape=(1,), initializer="zeros")

    def call(self, inputs):
        return ops.matmul(inputs, self.factor) + self.term


def charbonnier(y_true, y_pred):
    return ops.mean(ops.sqrt(1.0 + ops.square(y_true - y_pred)) - 1.0, axis=-1)


model = keras.Sequential([Line()])
model.compile(keras.optimizers.Adam(0.02), charbonnier)
model.fit(x, y, epochs=20, verbose=2)

factor, term = (weight.numpy() for weight in model.weights)
print(f"y = {factor[0, 0]:.3f} x + {term[0]:.3f}")
print(f"predicted for 0.5: {model.predict(np.array([[0.5]]), verbose=0)[0, 0]:.3f}")
