"""Larger images by moving channels into space."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class DepthToSpace(layers.Layer):
    def __init__(self, block_size):
        super().__init__()
        self.block_size = block_size

    def call(self, x):
        batch, height, width, depth = ops.shape(x)
        depth = depth // (self.block_size ** 2)
        x = ops.reshape(x, [batch, height, width, self.block_size, self.block_size, depth])
        x = ops.transpose(x, [0, 1, 3, 2, 4, 5])
        return ops.reshape(x, [batch, height * self.block_size, width * self.block_size, depth])


class Record(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.psnr = []

    def on_test_batch_end(self, batch, logs=None):
        self.psnr.append(10 * np.log10(1 / logs["loss"]))


args = {"activation": "relu", "kernel_initializer": "orthogonal", "padding": "same"}
inputs = keras.Input(shape=(10, 10, 1))
x = layers.Conv2D(8, 5, **args)(inputs)
x = layers.Conv2D(8, 3, **args)(x)
x = layers.Conv2D(9, 3, **args)(x)
model = start(keras.Model(inputs, DepthToSpace(3)(x)))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.001),
              loss=keras.losses.MeanSquaredError())
record = Record()
x, y = data(4, 10, 10, 1), data(4, 30, 30, 1)
logs = fit(model, x, y, validation_data=(x, y), callbacks=[record])
report(psnr=record.psnr, **logs)
