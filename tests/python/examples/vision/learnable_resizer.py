"""A resizer that learns before a classifier, whose images have any size; a layer of activations
that is shared as a default argument."""

from harness import data, fit, keras, report, start

layers = keras.layers
TARGET_SIZE, INTERPOLATION = (6, 6), "bilinear"


def conv_block(x, filters, kernel_size, strides, activation=layers.LeakyReLU(0.2)):
    x = layers.Conv2D(filters, kernel_size, strides, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.0)(x)
    if activation:
        x = activation(x)
    return x


def res_block(x):
    inputs = x
    x = conv_block(x, 4, 3, 1)
    x = conv_block(x, 4, 3, 1, activation=None)
    return layers.Add()([inputs, x])


def get_learnable_resizer(filters=4):
    inputs = layers.Input(shape=[None, None, 3])
    naive_resize = layers.Resizing(*TARGET_SIZE, interpolation=INTERPOLATION)(inputs)
    x = layers.Conv2D(filters=filters, kernel_size=7, strides=1, padding="same")(inputs)
    x = layers.LeakyReLU(0.2)(x)
    x = layers.Conv2D(filters=filters, kernel_size=1, strides=1, padding="same")(x)
    x = layers.LeakyReLU(0.2)(x)
    x = layers.BatchNormalization(momentum=0.0)(x)
    bottleneck = layers.Resizing(*TARGET_SIZE, interpolation=INTERPOLATION)(x)
    x = res_block(bottleneck)
    x = layers.Conv2D(filters=filters, kernel_size=3, strides=1, padding="same",
                      use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.0)(x)
    x = layers.Add()([bottleneck, x])
    x = layers.Conv2D(filters=3, kernel_size=7, strides=1, padding="same")(x)
    return keras.Model(inputs, layers.Add()([naive_resize, x]), name="learnable_resizer")


learnable_resizer = get_learnable_resizer()
backbone = keras.Sequential([layers.Input((*TARGET_SIZE, 3)),
                             layers.Conv2D(6, 3, activation="relu"),
                             layers.GlobalAveragePooling2D(),
                             layers.Dense(2, activation="softmax")])
backbone.trainable = True
inputs = layers.Input((10, 9, 3))
x = layers.Rescaling(scale=1.0 / 255)(inputs)
model = start(keras.Model(inputs, backbone(learnable_resizer(x))))
model.compile(loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1), optimizer="sgd",
              metrics=["accuracy"])
images = abs(data(6, 10, 9, 3)) * 100
logs = fit(model, images, keras.utils.to_categorical(data(6, classes=2), 2))
resized = learnable_resizer.predict(images[:1] / 255, verbose=0)
report(resized=resized, predicted=model.predict(images, verbose=0), **logs)
