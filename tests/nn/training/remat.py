"""Which layers keras.RematScope selects: prints what tests/nn/training/test_remat.c expects.

    KERAS_BACKEND=jax python tests/nn/training/remat.py

Layers are asked by Layer.rematerialized_call, as Layer.__call__ asks them, with symbolic tensors for
a batch of 4: with arrays, "larger_than" of Keras 3.15 fails in compute_output_spec. Of "activations"
those are printed whose activation is not linear, which computes nothing; LSTM, whose activation
Keras fails to replace ("property 'activation' of 'LSTM' object has no setter"), is left out.
"""
import keras
from keras.src.backend.common import remat

chosen = []


def note(f):
    chosen.append(f)
    return f


remat.remat = note


def layers():
    return [keras.layers.Dense(4, activation="relu", name="a"),
            keras.layers.Dropout(0.5, name="drop"),
            keras.layers.Dense(16, name="b"),
            keras.layers.Activation("gelu", name="act"),
            keras.layers.LayerNormalization(name="norm"),
            keras.layers.Reshape((4, 4), name="shape"),
            keras.layers.LSTM(3, name="lstm"),
            keras.layers.ReLU(name="relu")]


def selected(**scope):
    x, names = keras.KerasTensor((4, 8)), []
    with keras.RematScope(**scope):
        made = layers()
    for layer in made:
        skips = scope["mode"] == "activations" and layer.name == "lstm"
        chosen.clear()
        after = layer(x)    # builds it; no call is rematerialized
        if not skips:
            call = layer.rematerialized_call(layer.call, x)
            if scope["mode"] == "activations" and call != layer.call:
                call(x)
        if any(getattr(f, "__name__", "") != "linear" for f in chosen):
            names.append(layer.name)
        x = after
    return " ".join(names)


for mode in ("full", "activations", None):
    print(mode, "->", selected(mode=mode))
for threshold in (11, 12, 16, 63, 64):
    print("larger_than", threshold, "->",
          selected(mode="larger_than", output_size_threshold=threshold))
print("list_of_layers ->", selected(mode="list_of_layers", layer_names=["b", "norm", "nobody"]))
