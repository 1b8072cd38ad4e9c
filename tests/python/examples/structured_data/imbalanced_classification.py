"""Class weights and metrics of counts."""

from harness import data, fit, keras, report, start

x, y = data(64, 8), (data(64, 1, classes=10) == 0).astype("uint8")
model = keras.Sequential([keras.Input(shape=x.shape[1:])] + [
    layer for _ in range(2) for layer in (keras.layers.Dense(16, activation="relu"),
                                          keras.layers.Dropout(0.0))] + [
    keras.layers.Dense(1, activation="sigmoid")])
start(model)
metrics = [keras.metrics.FalseNegatives(name="fn"), keras.metrics.FalsePositives(name="fp"),
           keras.metrics.TrueNegatives(name="tn"), keras.metrics.TruePositives(name="tp"),
           keras.metrics.Precision(name="precision"), keras.metrics.Recall(name="recall")]
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="binary_crossentropy", metrics=metrics)
report(**fit(model, x, y, validation_data=(x, y), class_weight={0: 1 / 58, 1: 1 / 6}))
