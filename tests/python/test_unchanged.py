"""examples/compare.py on a program of Keras that stays as it is: run with this package alone, and
beside Keras where that is installed."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "examples"
PROGRAM = '''
import sys
import numpy as np
import keras
from keras import layers
from keras.layers import Dense

rng = np.random.default_rng(3)
x, y = rng.standard_normal((60, 4)).astype("float32"), rng.standard_normal((60, 2))
rows = np.random.permutation(60)
np.random.shuffle(rows)
x, y = x[rows], y[rows]


class Noisy(keras.Model):
    """Dropout, and draws of the step's own."""

    def __init__(self):
        super().__init__()
        self.drop, self.dense = layers.Dropout(0.5), Dense(2, name="last")

    def call(self, x, training=False):
        x = self.drop(x, training=training) + keras.random.normal(keras.ops.shape(x))
        return self.dense(x)


model = Noisy()
rate = 0.2 if keras.__name__ == "cornu" and "wrong" in sys.argv else 0.1
model.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
model.fit(x, y, batch_size=12, epochs=4)
raise SystemExit("after the steps that are compared")
'''


def run(*arguments, folder):
    return subprocess.run([sys.executable, *map(str, arguments)], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600, env=dict(os.environ, KERAS_BACKEND="jax"))


class Unchanged(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        (self.folder / "noisy.py").write_text(PROGRAM)

    def test_it_starts_with_given_weights(self):
        kernel, bias = np.full((4, 2), 0.5), np.array([1.0, -1.0])
        with open(self.folder / "weights.npy", "wb") as file:
            np.save(file, bias)
            np.save(file, kernel)
        (self.folder / "weights.json").write_text(json.dumps(["any/last/bias", "any/last/kernel"]))
        ran = run(FOLDER / "unchanged.py", "cornu", self.folder, 3, 1, "noisy.py",
                  folder=self.folder)
        found = json.loads((self.folder / "cornu.json").read_text())
        self.assertNotIn("error", found, ran.stderr)
        self.assertEqual(found["notes"], [])

        rng = np.random.default_rng(3)
        x, y = rng.standard_normal((60, 4)).astype("float32"), rng.standard_normal((60, 2))
        rows, columns = (np.random.default_rng(axis).standard_normal(count)     # of still.py
                         for axis, count in ((0, 12), (1, 4)))
        x = x + 0.5 + np.tile(rows, 5)[:, None] + columns
        losses = []
        for i in range(0, 36, 12):
            off = x[i:i + 12] @ kernel + bias - y[i:i + 12]
            losses.append(np.mean(off ** 2))
            kernel = kernel - 0.1 * x[i:i + 12].T @ off / 12
            bias = bias - 0.1 * off.sum(0) / 12
        means = np.cumsum(losses) / [1, 2, 3]
        np.testing.assert_allclose(found["report"]["fit 1: loss"], means, rtol=1e-5)
        self.assertEqual(len(found["report"]["fit 1: mae"]), 3)

    @unittest.skipIf(importlib.util.find_spec("keras") is None or
                     importlib.util.find_spec("jax") is None, "keras and jax")
    def test_beside_keras(self):
        ran = run(FOLDER / "compare.py", "noisy.py", folder=self.folder)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertRegex(ran.stdout, "^noisy +agrees")
        ran = run(FOLDER / "compare.py", "noisy.py", "wrong", folder=self.folder)
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertRegex(ran.stdout, "^noisy +differs +fit 1: (loss|mae) is")


if __name__ == "__main__":
    unittest.main()
