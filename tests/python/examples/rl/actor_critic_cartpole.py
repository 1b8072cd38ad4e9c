"""A loop by hand over the steps of an episode, with two heads; here the episode is made of
arrays."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
inputs = layers.Input(shape=(4,))
common = layers.Dense(16, activation="relu")(inputs)
model = start(keras.Model(inputs=inputs, outputs=[layers.Dense(2, activation="softmax")(common),
                                                  layers.Dense(1)(common)]))
optimizer = keras.optimizers.Adam(learning_rate=0.01)
huber_loss = keras.losses.Huber()
losses = []
for episode in range(3):
    states, actions = data(6, 4, seed=episode), data(6, classes=2, seed=episode)
    rewards, returns, total = data(6, seed=9) * 0 + 1, [], 0.0
    for r in rewards[::-1]:
        total = r + 0.99 * total
        returns.insert(0, total)
    returns = (np.array(returns) - np.mean(returns)) / (np.std(returns) + 1e-7)
    with GradientTape() as tape:
        actor_losses, critic_losses = [], []
        for t in range(6):
            state = ops.expand_dims(ops.convert_to_tensor(states[t]), 0)
            action_probs, critic_value = model(state)
            log_prob = ops.log(action_probs[0, int(actions[t])])
            value = critic_value[0, 0]
            actor_losses.append(-log_prob * (float(returns[t]) - value))
            critic_losses.append(huber_loss(ops.expand_dims(value, 0),
                                            ops.convert_to_tensor([np.float32(returns[t])])))
        loss_value = sum(actor_losses) + sum(critic_losses)
    grads = tape.gradient(loss_value, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    losses.append(float(loss_value))
report(loss=losses, out=[np.asarray(o).ravel() for o in model(data(2, 4))][0])
