"""Named inputs of numbers and of identifiers, crossed."""

from harness import data, fit, keras, report, start

layers = keras.layers
inputs = {name: layers.Input(name=name, shape=(1,), dtype="float32" if name != "area" else "int64")
          for name in ("height", "slope", "area")}
area = layers.Flatten()(layers.Embedding(4, 3)(inputs["area"]))
x0 = layers.concatenate([inputs["height"], inputs["slope"], area])
cross = x0
for _ in range(2):
    units = cross.shape[-1]
    cross = x0 * layers.Dense(units)(cross) + cross
cross = layers.BatchNormalization()(cross)
deep = layers.Dropout(0.0)(layers.ReLU()(layers.BatchNormalization()(layers.Dense(8)(x0))))
merged = layers.concatenate([cross, deep])
model = keras.Model(inputs=inputs, outputs=layers.Dense(units=3, activation="softmax")(merged))
start(model)
model.compile(optimizer=keras.optimizers.Adam(0.001),
              loss=keras.losses.SparseCategoricalCrossentropy(),
              metrics=[keras.metrics.SparseCategoricalAccuracy()])
x = {"height": data(8, 1), "slope": data(8, 1, seed=1), "area": data(8, 1, classes=3)}
report(**fit(model, x, data(8, classes=3)))
