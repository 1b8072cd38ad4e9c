"""What Keras computes of the programs in tests/python/own_programs.py, own/own.json, of those in
own_extended.py, own/extended.json and own/parts.json, and of those in own_networks.py, own/networks.json: by JAX, and by TensorFlow where they need its GradientTape."""

import json
import os
import subprocess
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

import own_extended  # noqa: E402
import own_networks  # noqa: E402
import own_programs  # noqa: E402


def written(name, made):
    import keras
    folder = os.path.join(HERE, "own")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as file:
        json.dump({"keras": keras.__version__, "programs": made}, file,
                  default=float, separators=(",", ":"))


def rounded(value):
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float("%.8g" % value)


def networks(names):
    import keras
    tape = None
    if keras.backend.backend() == "tensorflow":
        from tensorflow import GradientTape as tape
    return {name: {key: rounded(value) for key, value in
                   own_networks.run(keras, name, tape)[1].items()} for name in names}


if sys.argv[1:]:        # of the other backend
    print("\n" + json.dumps(networks(sys.argv[1:])))
else:
    others = subprocess.run([sys.executable, __file__, *own_networks.TAPES], check=True,
                            stdout=subprocess.PIPE, text=True,
                            env=dict(os.environ, KERAS_BACKEND="tensorflow"))
    made = networks([name for name in own_networks.NETWORKS if name not in own_networks.TAPES])
    made.update(json.loads(others.stdout.splitlines()[-1]))
    written("networks.json", made)
    import keras
    for file, programs in (("own.json", own_programs), ("extended.json", own_extended)):
        written(file, {name: programs.run(keras, name)[2] for name in programs.PROGRAMS})
    written("parts.json", own_extended.parts(keras))
