"""Real Keras on losses and metrics of models that Cornu compiled: check_compiled.py FOLDER COUNT

Loads FOLDER/scores0.keras, …, whose loss and metrics of (x, y) must be the `scores` in
FOLDER/scores0.npz, a vector's by its mean, named in FOLDER/scores0.txt. Saves each again as
FOLDER/scores0_back.keras, with tuples for lists where Keras takes both.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import keras
import numpy as np

for i in range(int(sys.argv[2])):
    name = os.path.join(sys.argv[1], f"scores{i}")
    arrays = np.load(f"{name}.npz")
    model = keras.models.load_model(f"{name}.keras")
    result = model.evaluate(arrays["x"], arrays["y"], batch_size=8, verbose=0, return_dict=True)
    with open(f"{name}.txt", encoding="utf-8") as file:
        keys = file.read().split()
    if sorted(keys) != sorted(result):
        sys.exit(f"{name}: Keras has {list(result)}, Cornu {keys}")
    for key, expected in zip(keys, arrays["scores"]):
        got = np.mean(result[key])
        if not abs(got - expected) <= 1e-5 * max(1, abs(expected)):
            sys.exit(f"{name}: {key}: Keras has {got}, Cornu {expected}")
    for item in [model.loss] + getattr(model._compile_metrics, "_user_metrics", []):
        for argument in ("axis", "init_thresholds"):
            if isinstance(getattr(item, argument, None), list):
                setattr(item, argument, tuple(getattr(item, argument)))
    model.save(f"{name}_back.keras")
print("agreed")
