"""A file of a model with a layer and a function of one's own, configs, and weights moved between
models."""

import os
import tempfile

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


@keras.saving.register_keras_serializable(package="MyLayers")
class CustomLayer(layers.Layer):
    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, x):
        return x * self.factor

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


@keras.saving.register_keras_serializable(package="my_package", name="custom_fn")
def custom_fn(x):
    return x ** 2


def get_model():
    inputs = keras.Input(shape=(4,))
    x = CustomLayer(0.5)(inputs)
    return keras.Model(inputs, layers.Dense(5, activation=custom_fn)(x))


model = start(get_model())
model.compile(optimizer="adam", loss="mse")
logs = fit(model, data(6, 4), data(6, 5))
with tempfile.TemporaryDirectory() as folder:
    model.save(os.path.join(folder, "custom_model.keras"))
    reconstructed = keras.models.load_model(os.path.join(folder, "custom_model.keras"))
    model.save_weights(os.path.join(folder, "ckpt.weights.h5"))
    other = get_model()
    other.load_weights(os.path.join(folder, "ckpt.weights.h5"))
layer = layers.Dense(3, activation="relu")
copied = layers.Dense.from_config(layer.get_config())
functional = keras.Model.from_config(model.get_config())
functional.set_weights(model.get_weights())
cloned = keras.models.clone_model(model)
cloned.set_weights(model.get_weights())
x = data(3, 4, seed=5)
report(units=[copied.units], factor=[reconstructed.layers[1].factor],
       out=[np.asarray(m.predict(x, verbose=0)) for m in
            (model, reconstructed, other, functional, cloned)],
       more=fit(reconstructed, data(6, 4), data(6, 5))["loss"], **logs)
