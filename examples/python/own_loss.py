"""A custom loss, written with keras.ops: sqrt(1 + error^2) - 1, which does not mind outliers.
A second model has the loss as its output, which a mean absolute error to 0 makes as small as can
be; it shares the layers of the first, which predicts. (Layers and losses as classes are written in
C: examples/own_layer.c.)

A second; the network learns y = 2 x + 1 from data of which each twentieth is wrong.
"""

import numpy as np

import cornu as keras
from cornu import layers, ops

random = np.random.default_rng(0)
x = random.uniform(-2, 2, (2000, 1)).astype("float32")
y = 2 * x + 1
y[::20] = 50

given = keras.Input((1,), name="x")
wanted = keras.Input((1,), name="y")
predicted = layers.Dense(1)(given)
model = keras.Model(given, predicted)

error = wanted - predicted
loss = ops.sqrt(1.0 + ops.square(error)) - 1.0
training = keras.Model([given, wanted], loss)
training.compile(keras.optimizers.Adam(0.02), "mean_absolute_error")
training.fit([x, y], np.zeros_like(y), epochs=20, verbose=2)

kernel, bias = (weight.numpy() for weight in model.weights)
print(f"y = {kernel[0, 0]:.3f} x + {bias[0]:.3f}")
print(f"predicted for 0.5: {model.predict(np.array([[0.5]]), verbose=0)[0, 0]:.3f}")
