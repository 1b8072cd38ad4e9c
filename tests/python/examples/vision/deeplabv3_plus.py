"""Layers of a network by their names, as backbone; dilated convolutions, and labels of pixels whose
resizing has left fractions."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
IMAGE_SIZE, NUM_CLASSES = 32, 5


def backbone(inputs, input_tensor):
    x = layers.Conv2D(6, 3, strides=4, padding="same", activation="relu", name="low")(input_tensor)
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu", name="high")(x)
    return keras.Model(inputs, layers.Conv2D(8, 3, name="unused")(x))


def convolution_block(block_input, num_filters=6, kernel_size=3, dilation_rate=1, use_bias=False):
    x = layers.Conv2D(num_filters, kernel_size=kernel_size, dilation_rate=dilation_rate,
                      padding="same", use_bias=use_bias,
                      kernel_initializer=keras.initializers.HeNormal())(block_input)
    return ops.nn.relu(layers.BatchNormalization()(x))


def pyramid_pooling(dspp_input):
    dims = dspp_input.shape
    x = layers.AveragePooling2D(pool_size=(dims[-3], dims[-2]))(dspp_input)
    x = convolution_block(x, kernel_size=1, use_bias=True)
    out_pool = layers.UpSampling2D(size=(dims[-3] // x.shape[1], dims[-2] // x.shape[2]),
                                   interpolation="bilinear")(x)
    out_1 = convolution_block(dspp_input, kernel_size=1, dilation_rate=1)
    out_2 = convolution_block(dspp_input, kernel_size=3, dilation_rate=2)
    x = layers.Concatenate(axis=-1)([out_pool, out_1, out_2])
    return convolution_block(x, kernel_size=1)


def get_model(image_size, num_classes):
    model_input = keras.Input(shape=(image_size, image_size, 3))
    preprocessed = keras.applications.resnet50.preprocess_input(model_input)
    network = backbone(model_input, preprocessed)
    x = pyramid_pooling(network.get_layer("high").output)
    input_a = layers.UpSampling2D(size=(image_size // 4 // x.shape[1],
                                        image_size // 4 // x.shape[2]),
                                  interpolation="bilinear")(x)
    input_b = convolution_block(network.get_layer("low").output, num_filters=4, kernel_size=1)
    x = convolution_block(layers.Concatenate(axis=-1)([input_a, input_b]))
    x = layers.UpSampling2D(size=(image_size // x.shape[1], image_size // x.shape[2]),
                            interpolation="bilinear")(x)
    return keras.Model(inputs=model_input, outputs=layers.Conv2D(
        num_classes, kernel_size=(1, 1), padding="same")(x))


model = start(get_model(IMAGE_SIZE, NUM_CLASSES))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.001),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
images = 20 * data(2, IMAGE_SIZE, IMAGE_SIZE, 3)
masks = data(2, IMAGE_SIZE, IMAGE_SIZE, 1, classes=NUM_CLASSES) * 0.9
logs = fit(model, images, masks.astype("float32"))
prediction = np.squeeze(model.predict(images[:1], verbose=0))
report(prediction=prediction, classes=np.argmax(prediction, axis=2), **logs)
