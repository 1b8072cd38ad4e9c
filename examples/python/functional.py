"""The functional API: layers called on symbols, two inputs, two outputs, residual blocks, and a
trunk that both inputs share. The network is shown two handwritten digits at a time and says what
their sum is, and whether the first is the larger one.

Six epochs take 20 seconds on two cores (AMD EPYC, Zen 4); 97 % of the test's sums are right, 99 %
of the comparisons.
"""

import cornu as keras
from cornu import layers


def residual(x, filters):
    """Two convolutions, to whose result the input is added."""
    y = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    y = layers.Conv2D(filters, 3, padding="same")(y)
    return layers.Activation("relu")(layers.Add()([x, y]))


def build_trunk():
    """An image to 64 features."""
    image = keras.Input((28, 28, 1), scale=1 / 255)
    x = image
    for filters in (16, 32):
        x = layers.Conv2D(filters, 3, strides=2, activation="relu")(x)
        x = residual(x, filters)
    x = layers.Dense(64, activation="relu")(layers.Flatten()(x))
    return keras.Model(image, x, name="trunk")


def pairs(x, y):
    """Image i of the first half, and image i of the second, with the labels of both outputs."""
    count = len(x) // 2
    first, second = y[:count], y[count:2 * count]
    return ([x[:count, ..., None], x[count:2 * count, ..., None]],
            {"sum": first + second, "larger": (first > second).astype("uint8")})


trunk = build_trunk()                           # called twice: the same weights
first = keras.Input((28, 28, 1), scale=1 / 255, name="first")
second = keras.Input((28, 28, 1), scale=1 / 255, name="second")
both = layers.Concatenate()([trunk(first), trunk(second)])
both = layers.Dense(64, activation="relu")(both)
model = keras.Model([first, second], [layers.Dense(19, activation="softmax", name="sum")(both),
                                      layers.Dense(1, activation="sigmoid", name="larger")(both)])
model.summary()

model.compile("adam", {"sum": "sparse_categorical_crossentropy", "larger": "binary_crossentropy"},
              metrics={"sum": ["accuracy"], "larger": ["accuracy"]})
train, test = keras.datasets.mnist.load_data()
model.fit(*pairs(*train), batch_size=64, epochs=6)
results = model.evaluate(*pairs(*test), return_dict=True)
print("Sums: %.4f right" % results["sum_accuracy"])
print("Comparisons: %.4f right" % results["larger_accuracy"])
