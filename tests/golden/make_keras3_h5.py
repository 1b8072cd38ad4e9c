"""A .h5 file of Keras 3 whose optimizer has not made a step: "optimizer_weights" has its iteration and
rate, but none of its moments. Writes keras2/unused.h5 and .npz, of the form that make_keras2.py has.

    KERAS_BACKEND=jax python tests/golden/make_keras3_h5.py
"""

import pathlib

import keras
import numpy as np

OUT = pathlib.Path(__file__).resolve().parent / "keras2"

keras.utils.set_random_seed(5)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu"),
                          keras.layers.Dense(2)])
model.compile("adam", keras.losses.MeanSquaredError())
model.save(OUT / "unused.h5")
rng = np.random.default_rng(1)
x, t = (rng.normal(size=(6, n)).astype(np.float32) for n in (4, 2))
y = np.asarray(model.predict_on_batch(x))
losses = [float(np.asarray(model.train_on_batch(x, t))) for _ in range(1)]
for _ in range(3):
    model.reset_metrics()
    losses.append(float(np.asarray(model.train_on_batch(x, t))))
np.savez(OUT / "unused.npz", x0=x, y0=y, t0=t, losses=np.array(losses, np.float32))
print(keras.__version__, losses)
