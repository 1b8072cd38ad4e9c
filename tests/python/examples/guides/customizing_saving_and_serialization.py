"""Methods by which layers and models save what they have: of their own arrays, of what they build
by, of compile; and models out of files with them."""

import os
import tempfile

import numpy as np
from harness import data, fit, keras, report, start


@keras.saving.register_keras_serializable()
class CustomLayer(keras.layers.Layer):
    def __init__(self, units=4, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units), name="kernel")
        self.inner = keras.layers.Dense(3)
        self.inner.build((None, self.units))

    def call(self, x):
        return self.inner(keras.ops.matmul(x, self.kernel))

    def get_config(self):
        return {**super().get_config(), "units": self.units}

    def get_build_config(self):
        return {"input_shape": (None, 6)}

    def build_from_config(self, config):
        self.build(config["input_shape"])


@keras.saving.register_keras_serializable(package="my_custom_package")
class CustomModel(keras.Model):
    def __init__(self, width=4, **kwargs):
        super().__init__(**kwargs)
        self.layer, self.width = CustomLayer(width), width

    def call(self, x):
        return self.layer(x)

    def get_config(self):
        return {**super().get_config(), "width": self.width}


@keras.saving.register_keras_serializable(package="my_package", name="custom_loss")
def my_loss(y_true, y_pred):
    return keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)


x, y = data(8, 6), data(8, 3)
inputs = keras.Input((6,))
model = start(keras.Model(inputs, CustomLayer(5)(inputs)))
model.compile("adam", my_loss)
logs = fit(model, x, y)
own = CustomModel(7)
own(x)
start(own)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    again = keras.models.load_model(path)
    again.compile("adam", my_loss)
    after = fit(again, x, y)
    weights = os.path.join(folder, "own.weights.h5")
    own.save_weights(weights)
    other = CustomModel(7)
    other(x)
    other.load_weights(weights)
    own.save(path)
    third = keras.models.load_model(path)
same = np.abs(other.predict(x, verbose=0) - own.predict(x, verbose=0)).max()
config = CustomLayer.from_config(again.layers[1].get_config())
report(same=float(same), units=config.units, width=third.width, after=after["loss"],
       third=third.predict(x, verbose=0), **logs)
