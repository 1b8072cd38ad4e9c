"""A Sequential model of convolutions."""

from harness import data, fit, keras, report, start

layers = keras.layers

x = data(16, 28, 28, 1)
y = keras.utils.to_categorical(data(16, classes=10), 10)
model = keras.Sequential([
    keras.Input(shape=(28, 28, 1)),
    layers.Conv2D(8, kernel_size=(3, 3), activation="relu"),
    layers.MaxPooling2D(pool_size=(2, 2)),
    layers.Conv2D(16, kernel_size=(3, 3), activation="relu"),
    layers.MaxPooling2D(pool_size=(2, 2)),
    layers.Flatten(),
    layers.Dropout(0.0),
    layers.Dense(10, activation="softmax"),
])
start(model)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
logs = fit(model, x, y)
score = model.evaluate(x, y, verbose=0)
report(score=score, **logs)
