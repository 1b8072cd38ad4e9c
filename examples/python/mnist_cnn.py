"""Batch normalization and a learning rate that falls, as in the notebook by which TensorFlow shows
its TPUs (tensorflow/tpu, tools/colab/keras_mnist_tpu.ipynb).

Ten epochs take 75 seconds on two cores (AMD EPYC, Zen 4) and reach 99.4 % of the test digits.
"""

import cornu as keras
from cornu import layers

(x_train, y_train), (x_test, y_test) = keras.datasets.mnist.load_data()


def normalized(layer):
    """A normalization has an offset of its own, so the layer before it needs no bias; and relu
    makes a scale superfluous."""
    return [layer, layers.BatchNormalization(scale=False), layers.Activation("relu")]


model = keras.Sequential([
    keras.Input((28, 28, 1), scale=1 / 255),    # bytes to 0 to 1
    *normalized(layers.Conv2D(12, 3, padding="same", use_bias=False)),
    *normalized(layers.Conv2D(24, 6, strides=2, padding="same", use_bias=False)),
    *normalized(layers.Conv2D(32, 6, strides=2, padding="same", use_bias=False)),
    layers.Flatten(),
    *normalized(layers.Dense(200, use_bias=False)),
    layers.Dropout(0.3),
    layers.Dense(10, activation="softmax"),
], name="mnist_cnn")
model.summary()

model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=128, epochs=10, validation_data=(x_test, y_test),
          callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch: 0.01 * 0.666 ** epoch,
                                                           verbose=1)])

loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
print(f"Test loss: {loss:.4f}")
print(f"Test accuracy: {accuracy:.4f}")
