"""Two images through one network, a distance by functions of ops, and a loss of one's own."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


def euclidean_distance(vects):
    x, y = vects
    sum_square = ops.sum(ops.square(x - y), axis=1, keepdims=True)
    return ops.sqrt(ops.maximum(sum_square, keras.backend.epsilon()))


def loss(margin=1):
    def contrastive_loss(y_true, y_pred):
        square_pred = ops.square(y_pred)
        margin_square = ops.square(ops.maximum(margin - y_pred, 0))
        return ops.mean((1 - y_true) * square_pred + y_true * margin_square)
    return contrastive_loss


inputs = layers.Input((28, 28, 1))
x = layers.BatchNormalization()(inputs)
x = layers.Conv2D(4, (5, 5), activation="tanh")(x)
x = layers.AveragePooling2D(pool_size=(2, 2))(x)
x = layers.Flatten()(x)
embedding = keras.Model(inputs, layers.Dense(10, activation="tanh")(layers.BatchNormalization()(x)))
one, two = layers.Input((28, 28, 1)), layers.Input((28, 28, 1))
merged = layers.Lambda(euclidean_distance, output_shape=(1,))([embedding(one), embedding(two)])
out = layers.Dense(1, activation="sigmoid")(layers.BatchNormalization()(merged))
siamese = start(keras.Model(inputs=[one, two], outputs=out))
siamese.compile(loss=loss(margin=1), optimizer="RMSprop", metrics=["accuracy"])
report(**fit(siamese, [data(8, 28, 28, 1), data(8, 28, 28, 1, seed=1)],
             data(8, 1, classes=2).astype("float32")))
