"""All hooks, stopping, and changing the learning rate."""

import numpy as np
from harness import data, keras, report, start

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
start(model)
model.compile(optimizer=keras.optimizers.RMSprop(learning_rate=0.1), loss="mean_squared_error",
              metrics=["mean_absolute_error"])
seen = []


class Stop(keras.callbacks.Callback):
    def __init__(self, patience=0):
        super().__init__()
        self.patience, self.best_weights = patience, None

    def on_train_begin(self, logs=None):
        self.wait, self.best = 0, np.inf

    def on_epoch_end(self, epoch, logs=None):
        current = logs.get("loss")
        if np.less(current, self.best):
            self.best, self.wait, self.best_weights = current, 0, self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.model.stop_training = True
            self.model.set_weights(self.best_weights)


class Rate(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        lr = float(self.model.optimizer.learning_rate)
        seen.append(lr)
        self.model.optimizer.learning_rate = lr * 0.5

    def on_test_batch_end(self, batch, logs=None):
        seen.append(batch)


x = data(32, 8)
history = model.fit(x, x[:, :1], batch_size=16, epochs=4, shuffle=False, verbose=0,
                    callbacks=[Stop(patience=1), Rate()])
model.evaluate(x, x[:, :1], batch_size=16, verbose=0, callbacks=[Rate()])
report(seen=seen, **history.history)
