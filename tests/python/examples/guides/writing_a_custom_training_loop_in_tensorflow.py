"""Batches, gradients and metrics by hand."""

from harness import GradientTape, data, keras, report, start

layers = keras.layers
inputs = keras.Input(shape=(16,))
x = layers.Dense(12, activation="relu")(inputs)
model = start(keras.Model(inputs, layers.Dense(4)(x)))
optimizer = keras.optimizers.Adam(learning_rate=1e-2)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
metric = keras.metrics.SparseCategoricalAccuracy()
losses = []
for step in range(3):
    x_batch, y_batch = data(8, 16, seed=step), data(8, classes=4, seed=step)
    with GradientTape() as tape:
        logits = model(x_batch, training=True)
        loss_value = loss_fn(y_batch, logits)
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply(grads, model.trainable_weights)
    metric.update_state(y_batch, logits)
    losses.append(float(loss_value))
report(loss=losses, accuracy=float(metric.result()))
