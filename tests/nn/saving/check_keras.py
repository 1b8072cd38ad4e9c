"""Real Keras on models that Cornu saved: check_keras.py FOLDER CASE...

Loads FOLDER/CASE.keras and, from zeros, FOLDER/CASE.weights.h5 and its shards; predicts what
FOLDER/CASE.npz says (p0, p1 from x0, x1), and goes on training to the losses in it.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import keras
import numpy as np


def numbered(arrays, letter):
    found = [arrays[f"{letter}{i}"] for i in range(2) if f"{letter}{i}" in arrays]
    return found if len(found) > 1 else found[0]


def compare(what, got, want):
    for g, w in zip(got if isinstance(got, list) else [got],
                    want if isinstance(want, list) else [want]):
        difference = np.abs(np.asarray(g) - w).max()
        if not difference <= 1e-5 * max(1, np.abs(w).max()):
            sys.exit(f"{what}: Keras has {g}, Cornu {w}")


for case in sys.argv[2:]:
    name = os.path.join(sys.argv[1], case)
    arrays = np.load(f"{name}.npz")
    x, y = numbered(arrays, "x"), numbered(arrays, "y")
    model = keras.models.load_model(f"{name}.keras")
    compare(f"{case}.keras", model.predict(x, verbose=0), numbered(arrays, "p"))
    other = keras.models.clone_model(model)
    for weight in other.weights:
        weight.assign(np.zeros(weight.shape))
    other.load_weights(f"{name}.weights.h5")
    compare(f"{case}.weights.h5", other.predict(x, verbose=0), numbered(arrays, "p"))
    for weight in other.weights:
        weight.assign(np.zeros(weight.shape))
    other.load_weights(f"{name}.weights.json")
    compare(f"{case}.weights.json", other.predict(x, verbose=0), numbered(arrays, "p"))
    losses = [model.fit(x, y, batch_size=8, shuffle=False, verbose=0).history["loss"][0]
              for _ in arrays["losses"]]
    compare(f"{case}: losses", np.array(losses) * 0.1, arrays["losses"] * 0.1)
print("agreed")
