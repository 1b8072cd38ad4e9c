"""Meta-learning: an inner loop by hand over little batches, and weights that go part of the way."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
learning_rate, meta_step_size, inner_iters, meta_iters, classes = 0.003, 0.25, 3, 3, 4


def conv_bn(x):
    x = layers.Conv2D(filters=6, kernel_size=3, strides=2, padding="same")(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


inputs = layers.Input(shape=(8, 8, 1))
x = layers.Flatten()(conv_bn(conv_bn(inputs)))
model = start(keras.Model(inputs=inputs, outputs=layers.Dense(classes, activation="softmax")(x)))
optimizer = keras.optimizers.SGD(learning_rate=learning_rate)
loss_fn = keras.losses.SparseCategoricalCrossentropy()
losses = []
for meta_iter in range(meta_iters):
    frac_done = meta_iter / meta_iters
    cur_meta_step_size = (1 - frac_done) * meta_step_size
    old_vars = model.get_weights()
    for i in range(inner_iters):
        images = data(5, 8, 8, 1, seed=10 * meta_iter + i)
        labels = ops.convert_to_tensor(data(5, classes=classes, seed=10 * meta_iter + i))
        with GradientTape() as tape:
            preds = model(images)
            loss = loss_fn(labels, preds)
        grads = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
        losses.append(float(loss))
    new_vars = model.get_weights()
    for var in range(len(new_vars)):
        new_vars[var] = old_vars[var] + ((new_vars[var] - old_vars[var]) * cur_meta_step_size)
    model.set_weights(new_vars)
predicted = model.predict(data(3, 8, 8, 1), verbose=0)
report(loss=losses, predicted=np.asarray(predicted))
