"""Characters in an image, by a layer that adds the CTC loss."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class CTCLayer(layers.Layer):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.loss_fn = keras.losses.CTC()

    def call(self, y_true, y_pred):
        self.add_loss(self.loss_fn(y_true, y_pred))
        return y_pred


image = layers.Input(shape=(32, 16, 1), name="image", dtype="float32")
labels = layers.Input(name="label", shape=(None,), dtype="float32")
x = layers.Conv2D(4, (3, 3), activation="relu", padding="same", name="Conv1")(image)
x = layers.MaxPooling2D((2, 2), name="pool1")(x)
x = layers.Reshape(target_shape=(16, 32), name="reshape")(x)
x = layers.Dense(16, activation="relu", name="dense1")(x)
x = layers.Bidirectional(layers.LSTM(8, return_sequences=True, dropout=0.0))(x)
x = layers.Dense(7, name="dense2")(x)
model = start(keras.models.Model(inputs=[image, labels], outputs=CTCLayer(name="ctc")(labels, x)))
model.compile(optimizer=keras.optimizers.Adam())
logs = fit(model, {"image": data(4, 32, 16, 1), "label": data(4, 5, classes=6) + 1.0})
prediction_model = keras.models.Model(model.input[0], model.get_layer(name="dense2").output)
report(out=np.asarray(prediction_model.predict(data(4, 32, 16, 1), verbose=0)), **logs)
