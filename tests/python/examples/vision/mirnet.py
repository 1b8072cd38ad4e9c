"""Features at two scales that are weighed by each other; TensorFlow's functions in a layer, a loss
and a metric. It runs on TensorFlow."""

import tensorflow as tf
from harness import data, fit, keras, report, start

layers = keras.layers


def fuse(a, b):
    channels = a.shape[-1]
    x = layers.GlobalAveragePooling2D()(layers.Add()([a, b]))
    x = layers.Reshape((1, 1, channels))(x)
    x = layers.Conv2D(channels // 2, (1, 1), activation="relu")(x)
    first, second = [layers.Conv2D(channels, (1, 1), activation="softmax")(x) for _ in range(2)]
    return layers.Add()([a * first, b * second])


class ChannelPooling(layers.Layer):
    def __init__(self, axis=-1, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.axis = axis
        self.concat = layers.Concatenate(axis=self.axis)

    def call(self, inputs):
        average = tf.expand_dims(tf.reduce_mean(inputs, axis=-1), axis=-1)
        largest = tf.expand_dims(tf.reduce_max(inputs, axis=-1), axis=-1)
        return self.concat([average, largest])

    def get_config(self):
        config = super().get_config()
        config.update({"axis": self.axis})


def spatial_attention(x):
    feature_map = layers.Conv2D(1, (1, 1))(ChannelPooling(axis=-1)(x))
    return x * keras.activations.sigmoid(feature_map)


def residual_block(x, channels):
    low = layers.MaxPooling2D()(layers.Conv2D(channels, (3, 3), padding="same",
                                              activation="relu")(x))
    low = layers.UpSampling2D()(layers.Conv2D(channels, (1, 1))(low))
    x = fuse(spatial_attention(x), spatial_attention(low))
    return layers.Conv2D(channels, (3, 3), padding="same")(x)


def charbonnier_loss(y_true, y_pred):
    return tf.reduce_mean(tf.sqrt(tf.square(y_true - y_pred) + tf.square(1e-3)))


def peak_signal_noise_ratio(y_true, y_pred):
    return tf.image.psnr(y_pred, y_true, max_val=255.0)


inputs = keras.Input(shape=[None, None, 3])
x1 = layers.Conv2D(6, (3, 3), padding="same")(inputs)
x1 = layers.Add()([residual_block(x1, 6), x1])
model = start(keras.Model(inputs, layers.Add()([inputs, layers.Conv2D(3, (3, 3),
                                                                      padding="same")(x1)])))
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=charbonnier_loss,
              metrics=[peak_signal_noise_ratio])
low, high = abs(data(3, 8, 8, 3)) % 1, abs(data(3, 8, 8, 3, seed=1)) % 1
logs = fit(model, low, high)
report(enhanced=model.predict(low[:, :6], verbose=0), **logs)
