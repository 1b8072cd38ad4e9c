"""Checks that Keras reads a model saved by Cornu, and that the model predicts what Keras' does.

    check_architecture.py MODEL.safetensors architectures.safetensors CASE
"""

import importlib.util
import pathlib
import sys

import numpy as np

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "python" / "to_keras.py"


def main():
    spec = importlib.util.spec_from_file_location("to_keras", EXAMPLE)
    to_keras = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(to_keras)
    path, golden, case = sys.argv[1:]
    model, _ = to_keras.load_model(path)
    arrays, _ = to_keras.read_safetensors(golden)
    of = lambda kind: [arrays[f"{case}/{kind}{i}"] for i in range(2) if f"{case}/{kind}{i}" in arrays]
    x, want = of("x"), of("y")
    got = model.predict_on_batch(x if len(x) > 1 else x[0])
    got = got if isinstance(got, list) else [got]
    worst = max(float(np.abs(a - b).max()) for a, b in zip(got, want, strict=True))
    sys.exit(f"{case}: off by {worst}" if worst > 1e-6 else 0)


if __name__ == "__main__":
    main()
