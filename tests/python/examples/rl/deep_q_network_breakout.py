"""A step of Q learning from a batch that was kept, with a target model."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops


def create_q_model():
    return keras.Sequential([
        keras.Input((12, 12, 4)), layers.Conv2D(4, 4, strides=2, activation="relu"),
        layers.Conv2D(6, 3, activation="relu"), layers.Flatten(),
        layers.Dense(8, activation="relu"), layers.Dense(3, activation="linear")])


model, model_target = start(create_q_model()), start(create_q_model())
optimizer = keras.optimizers.Adam(learning_rate=0.00025, clipnorm=1.0)
loss_function = keras.losses.Huber()
losses = []
for step in range(3):
    states, following = data(5, 12, 12, 4, seed=step), data(5, 12, 12, 4, seed=step + 7)
    rewards, actions = data(5, seed=step), data(5, classes=3, seed=step)
    done = data(5, classes=2, seed=step).astype("float32")
    future_rewards = model_target.predict(following, verbose=0)
    updated = rewards + 0.99 * np.amax(future_rewards, axis=1)
    updated = updated * (1 - done) - done
    masks = ops.one_hot(actions, 3)
    with GradientTape() as tape:
        q_values = model(states)
        q_action = ops.sum(ops.multiply(q_values, masks), axis=1)
        loss = loss_function(updated, q_action)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    losses.append(float(loss))
    if step == 1:
        model_target.set_weights(model.get_weights())
report(loss=losses)
