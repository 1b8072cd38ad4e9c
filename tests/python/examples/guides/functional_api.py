"""Shared layers, several inputs and outputs, summaries, files."""

import os
import tempfile

from harness import data, fit, keras, report, start

layers = keras.layers
title = keras.Input(shape=(None,), name="title")
body = keras.Input(shape=(None,), name="body")
tags = keras.Input(shape=(5,), name="tags")
shared = layers.Embedding(50, 8)
x = layers.concatenate([layers.LSTM(8)(shared(title)), layers.LSTM(4)(shared(body)), tags])
priority = layers.Dense(1, name="priority")(x)
department = layers.Dense(4, name="department")(x)
model = start(keras.Model(inputs=[title, body, tags],
                          outputs={"priority": priority, "department": department}))
lines = []
model.summary(print_fn=lambda line, **_: lines.append(line))
model.compile(optimizer=keras.optimizers.RMSprop(1e-3),
              loss={"priority": keras.losses.BinaryCrossentropy(from_logits=True),
                    "department": keras.losses.CategoricalCrossentropy(from_logits=True)},
              loss_weights={"priority": 1.0, "department": 0.2})
logs = fit(model, {"title": data(8, 6, classes=50), "body": data(8, 9, classes=50),
                   "tags": data(8, 5, classes=2).astype("float32")},
           {"priority": abs(data(8, 1)) % 1, "department": keras.utils.to_categorical(
               data(8, classes=4), 4)})
path = os.path.join(tempfile.mkdtemp(), "my_model.keras")
model.save(path)
del model
model = keras.models.load_model(path)
report(count=model.count_params(), layers=len(model.layers), lines=len(lines) > 0, **logs)
