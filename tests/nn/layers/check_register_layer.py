"""Real Keras on a model with a custom layer: check_register_layer.py FOLDER

Registers the layer of test_register_layer.c, loads FOLDER/a.keras, predicts what FOLDER/a.npz says, and
writes the layer's JSON, which must be ours.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import keras
import numpy as np


@keras.saving.register_keras_serializable()
class Affine(keras.layers.Layer):
    def __init__(self, offset=0.0, by_channel=False, scale_initializer="ones", **kwargs):
        super().__init__(**kwargs)
        self.offset, self.by_channel = offset, by_channel
        self.scale_initializer = keras.initializers.get(scale_initializer)

    def build(self, shape):
        self.scale = self.add_weight(name="scale", initializer=self.scale_initializer,
                                     shape=(shape[-1] if self.by_channel else 1,))

    def call(self, x):
        return x * self.scale + self.offset

    def get_config(self):
        return super().get_config() | {
            "offset": self.offset, "by_channel": self.by_channel,
            "scale_initializer": keras.initializers.serialize(self.scale_initializer)}


model = keras.models.load_model(os.path.join(sys.argv[1], "a.keras"))
want = np.load(os.path.join(sys.argv[1], "a.npz"))["y"]
x = np.sin(np.arange(60, dtype=np.float32)).reshape(5, 3, 4)
got = model.predict(x, verbose=0)
if not np.abs(got - want).max() <= 1e-5 * np.abs(want).max():
    sys.exit(f"Keras has {got}, Cornu {want}")
written = keras.saving.serialize_keras_object(model.layers[0])
if (written["class_name"], written["registered_name"]) != ("Affine", "Custom>Affine"):
    sys.exit(f"Keras writes {written}")
