"""Real Keras and onnxruntime on the models that Cornu saved: check_models.py FOLDER GOLDENS

FOLDER has CASE.keras with the weights after the case's step of training, and CASE.onnx, where the
model can be one, with those before it. GOLDENS is tests/golden/models/.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import keras
import numpy as np
import onnxruntime
import safetensors.numpy


def numbered(arrays, case, kind):
    found = []
    while f"{case}/{kind}{len(found)}" in arrays:
        found.append(arrays[f"{case}/{kind}{len(found)}"])
    return found


def compare(case, got, want, tolerance):
    if len(got) != len(want):
        return [f"{case}: {len(got)} arrays, expected {len(want)}"]
    for i, (g, w) in enumerate(zip(got, want)):
        if np.shape(g) != w.shape:
            return [f"{case}: {i} is {np.shape(g)}, expected {w.shape}"]
        off = np.abs(np.asarray(g, np.float64) - w).max(initial=0)
        if not off <= tolerance * max(1, np.abs(w).max(initial=0)):
            return [f"{case}: {i} is off by {off}"]
    return []


def by_onnxruntime(path, case, x, y, bound):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {f"in{i}": a for i, a in enumerate(x)}
    kinds = {"tensor(int32)": np.int32, "tensor(float)": np.float32}
    feed = {i.name: given[i.name].astype(kinds[i.type]) for i in session.get_inputs()}
    return compare(f"{case}.onnx", session.run(None, feed), y, bound or 1e-5)


def by_keras(path, case, x, y, s, bound):
    model = keras.models.load_model(path)
    if s and "lora" not in case:   # whose factors are in no file
        by_path = {w.path: np.asarray(w) for w in model.weights}
        return compare(case, list(by_path.values()), s, bound or 2e-5)
    got = model.predict_on_batch(x if len(x) > 1 else x[0])
    return compare(case, got if isinstance(got, (list, tuple)) else [got], y, bound or 1e-5)


def main():
    folder, goldens = map(pathlib.Path, sys.argv[1:])
    faults, counts = [], {".keras": 0, ".onnx": 0}
    for golden in sorted(goldens.glob("*.safetensors")):
        arrays = safetensors.numpy.load_file(golden)
        with safetensors.safe_open(golden, "np") as file:
            about = json.loads(file.metadata()["golden"])["cases"]
        for case in sorted({name.split("/")[0] for name in arrays}):
            bound = about[case].get("bound")
            x, y, s, r = (numbered(arrays, case, kind) for kind in "xysr")
            for suffix in counts:
                path = folder / f"{case}{suffix}"
                if not path.exists():
                    continue
                counts[suffix] += 1
                try:
                    faults += (by_keras(path, case, x, r or y, s, bound) if suffix == ".keras"
                               else by_onnxruntime(path, case, x, r or y, bound))
                except Exception as error:
                    faults.append(f"{path.name}: {str(error)[:400]}")
    print(counts)
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
