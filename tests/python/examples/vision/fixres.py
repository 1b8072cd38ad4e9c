"""Images of two sizes for one network of any size, whose layers but one are frozen for the second.
"""

from harness import data, keras, report, start

layers = keras.layers


def base():
    inputs = keras.Input((None, None, 3))
    x = layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(inputs)
    x = layers.BatchNormalization(name="conv1_bn")(x)
    x = layers.Conv2D(6, 3, strides=2, padding="same")(layers.Activation("relu")(x))
    x = layers.BatchNormalization(epsilon=1.001e-5, name="post_bn")(x)
    x = layers.GlobalAveragePooling2D(name="avg_pool")(layers.Activation("relu")(x))
    return keras.Model(inputs, x, name="base")


def get_training_model(num_classes=5):
    inputs = layers.Input((None, None, 3))
    network = base()
    network.trainable = True
    x = network(layers.Rescaling(scale=1.0 / 127.5, offset=-1)(inputs))
    return keras.Model(inputs, layers.Dense(num_classes, activation="softmax")(x))


def train_and_evaluate(model, x, y, learning_rate=1e-3):
    model.compile(optimizer=keras.optimizers.Adam(learning_rate=learning_rate),
                  loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(x, y, batch_size=2, epochs=2, shuffle=False, verbose=0,
                        validation_data=(x, y),
                        callbacks=[keras.callbacks.EarlyStopping(patience=5)])
    return history.history["loss"], model.evaluate(x, y, verbose=0)


images, labels = 100 + 50 * data(4, 40, 40, 3), data(4, classes=5)
model = start(get_training_model())
smaller, accuracy = train_and_evaluate(model, layers.Resizing(16, 16)(images), labels)
for layer in model.layers[2].layers:
    layer.trainable = False
model.layers[2].get_layer("post_bn").trainable = True
bigger, bigger_accuracy = train_and_evaluate(
    model, layers.CenterCrop(28, 28)(images), labels, learning_rate=1e-4)
report(smaller=smaller, bigger=bigger, accuracy=accuracy, bigger_accuracy=bigger_accuracy,
       trained=[len(model.trainable_weights)])
