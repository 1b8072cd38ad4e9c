"""Training on a TPU: a device in the place of TensorFlow's resolver and strategy. Each batch is
split over the TPU's replicas, products are in bfloat16 with f32 sums, gradients are summed across
replicas. "tpu" is emulated: the arithmetic of its eight replicas on this processor, in this
processor's time.

Three epochs take 8 seconds on two cores (AMD EPYC, Zen 4) and reach 98.8 % of the test digits.
"""

import cornu as keras
from cornu import layers

REPLICAS = 8
tpu = keras.Device("tpu", shards=REPLICAS)
print(tpu.description)

(x_train, y_train), test = keras.datasets.mnist.load_data()
model = keras.Sequential([
    keras.Input((28, 28, 1), scale=1 / 255),
    layers.Conv2D(32, 3, activation="relu"),
    layers.MaxPooling2D(2),
    layers.Conv2D(64, 3, activation="relu"),
    layers.MaxPooling2D(2),
    layers.Flatten(),
    layers.Dense(128, activation="relu"),
    layers.Dense(10, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], device=tpu)
model.fit(x_train, y_train, batch_size=32 * REPLICAS, epochs=3, validation_data=test)
