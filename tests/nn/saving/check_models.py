"""Real Keras, or onnxruntime, on a model that Cornu saved.

    check_models.py MODEL.keras|MODEL.onnx GOLDEN.safetensors CASE

The .keras file has the weights after the case's step of training, the .onnx file those before it.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "golden"))

import numpy as np
import safetensors.numpy


def numbered(arrays, case, kind):
    found = []
    while f"{case}/{kind}{len(found)}" in arrays:
        found.append(arrays[f"{case}/{kind}{len(found)}"])
    return found


def compare(case, got, want, tolerance):
    if len(got) != len(want):
        sys.exit(f"{case}: {len(got)} arrays, expected {len(want)}")
    for i, (g, w) in enumerate(zip(got, want)):
        if np.shape(g) != w.shape:
            sys.exit(f"{case}: {i} is {np.shape(g)}, expected {w.shape}")
        off = np.abs(np.asarray(g, np.float64) - w).max(initial=0)
        if not off <= tolerance * max(1, np.abs(w).max(initial=0)):
            sys.exit(f"{case}: {i} is off by {off}")


def main():
    path, golden, case = sys.argv[1:]
    arrays = safetensors.numpy.load_file(golden)
    x, y = numbered(arrays, case, "x"), numbered(arrays, case, "y")
    if path.endswith(".onnx"):
        import onnxruntime
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        given = {f"in{i}": a for i, a in enumerate(x)}
        feed = {n: given[n] for n in names}
        got = session.run(None, feed)
        return compare(case, got, y, 1e-5)
    import keras
    model = keras.models.load_model(path)
    s = numbered(arrays, case, "s")
    if s:
        compare(case, [np.asarray(w) for w in model.weights], s, 2e-5)
    else:
        got = model.predict_on_batch(x if len(x) > 1 else x[0])
        compare(case, got if isinstance(got, (list, tuple)) else [got], y, 1e-5)


if __name__ == "__main__":
    main()
