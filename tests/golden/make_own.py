"""What Keras computes of the programs in tests/python/own_programs.py: own/own.json."""

import json
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

import keras  # noqa: E402

import own_programs  # noqa: E402

made = {name: own_programs.run(keras, name)[2] for name in own_programs.PROGRAMS}
folder = os.path.join(HERE, "own")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "own.json"), "w") as file:
    json.dump({"keras": keras.__version__, "programs": made}, file,
              default=float, separators=(",", ":"))
