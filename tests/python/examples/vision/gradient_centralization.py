"""A descendant of RMSprop, a callback that measures epochs, and a model that is compiled twice."""

from time import time

from harness import data, keras, report, start

layers, ops = keras.layers, keras.ops
RMSprop = keras.optimizers.RMSprop


class GCRMSprop(RMSprop):
    def get_gradients(self, loss, params):      # which nothing calls in Keras 3
        grads = []
        for grad in super().get_gradients():
            if len(grad.shape) > 1:
                axis = list(range(len(grad.shape) - 1))
                grad -= ops.mean(grad, axis=axis, keepdims=True)
            grads.append(grad)
        return grads


class TimeHistory(keras.callbacks.Callback):
    def on_train_begin(self, logs={}):
        self.times = []

    def on_epoch_begin(self, batch, logs={}):
        self.epoch_time_start = time()

    def on_epoch_end(self, batch, logs={}):
        self.times.append(time() - self.epoch_time_start)


rescale = layers.Rescaling(1.0 / 255)
model = keras.Sequential([
    layers.Conv2D(4, (3, 3), activation="relu", input_shape=(12, 12, 3)),
    layers.MaxPooling2D(2, 2),
    layers.Conv2D(6, (3, 3), activation="relu"),
    layers.Flatten(), layers.Dropout(0.0),
    layers.Dense(8, activation="relu"),
    layers.Dense(1, activation="sigmoid")])
x, y = rescale(data(6, 12, 12, 3, classes=255)), data(6, classes=2)
losses, times = {}, TimeHistory()
for name, optimizer in (("usual", RMSprop(learning_rate=1e-3)),
                        ("centralized", GCRMSprop(learning_rate=1e-3))):
    start(model)
    model.compile(loss="binary_crossentropy", optimizer=optimizer, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=3, epochs=3, shuffle=False, verbose=0, callbacks=[times])
    losses[name] = history.history["loss"]
report(epochs=[len(times.times)], **losses)
