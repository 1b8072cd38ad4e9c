"""A loss and a metric of one's own, add_loss, several inputs and outputs, class and sample weights,
a schedule and a callback."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class CustomMSE(keras.losses.Loss):
    def __init__(self, regularization_factor=0.1, name="custom_mse"):
        super().__init__(name=name)
        self.regularization_factor = regularization_factor

    def call(self, y_true, y_pred):
        mse = ops.mean(ops.square(y_true - y_pred), axis=-1)
        return mse + ops.mean(ops.square(0.5 - y_pred), axis=-1) * self.regularization_factor


class CategoricalTruePositives(keras.metrics.Metric):
    def __init__(self, name="categorical_true_positives", **kwargs):
        super().__init__(name=name, **kwargs)
        self.true_positives = self.add_variable(shape=(), name="ctp", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = ops.reshape(ops.argmax(y_pred, axis=1), (-1, 1))
        y_true = ops.argmax(y_true, axis=1)
        values = ops.cast(ops.cast(y_true, "int32") == ops.cast(y_pred[:, 0], "int32"), "float32")
        self.true_positives.assign_add(ops.sum(values))

    def result(self):
        return self.true_positives.value

    def reset_state(self):
        self.true_positives.assign(0)


def plain():
    inputs = keras.Input(shape=(20,), name="digits")
    x = layers.Dense(12, activation="relu")(inputs)
    return start(keras.Model(inputs, layers.Dense(4, activation="softmax")(x)))


x, y = data(16, 20), data(16, classes=4)
own = plain()
own.compile(optimizer=keras.optimizers.Adam(), loss=CustomMSE(),
            metrics=[CategoricalTruePositives()])
first = fit(own, x, keras.utils.to_categorical(y, 4))

weighted = plain()
schedule = keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=2, decay_rate=0.9,
                                                       staircase=True)
weighted.compile(keras.optimizers.RMSprop(learning_rate=schedule),
                 keras.losses.SparseCategoricalCrossentropy(),
                 metrics=[keras.metrics.SparseCategoricalAccuracy()])
second = fit(weighted, x, y, class_weight={0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0})
third = fit(weighted, x, y, sample_weight=np.linspace(0.1, 2, 16), validation_split=0.25)

image_input = keras.Input(shape=(8, 8, 3), name="img_input")
series_input = keras.Input(shape=(None, 5), name="ts_input")
a = layers.GlobalMaxPooling2D()(layers.Conv2D(3, 3)(image_input))
b = layers.GlobalMaxPooling1D()(layers.Conv1D(3, 3)(series_input))
joined = layers.concatenate([a, b])
model = start(keras.Model(inputs=[image_input, series_input], outputs=[
    layers.Dense(1, name="score_output")(joined), layers.Dense(5, name="class_output")(joined)]))
model.compile(
    optimizer=keras.optimizers.RMSprop(1e-3),
    loss={"score_output": keras.losses.MeanSquaredError(),
          "class_output": keras.losses.CategoricalCrossentropy(from_logits=True)},
    metrics={"score_output": [keras.metrics.MeanAbsolutePercentageError()],
             "class_output": [keras.metrics.CategoricalAccuracy()]},
    loss_weights={"score_output": 2.0, "class_output": 1.0})
fourth = fit(model, {"img_input": data(6, 8, 8, 3), "ts_input": data(6, 20, 5)},
             {"score_output": data(6, 1), "class_output": abs(data(6, 5))})
report(loss1=first["loss"], metric1=first["categorical_true_positives"], loss2=second["loss"],
       loss3=third["loss"], val3=third["val_loss"], **fourth)
