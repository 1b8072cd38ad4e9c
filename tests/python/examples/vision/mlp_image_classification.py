"""The MLP mixer as a layer of one's own."""

from harness import data, fit, keras, report, start

layers = keras.layers


class MLPMixerLayer(layers.Layer):
    def __init__(self, num_patches, hidden_units, dropout_rate, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.mlp1 = keras.Sequential([layers.Dense(units=num_patches, activation="gelu"),
                                      layers.Dense(units=num_patches),
                                      layers.Dropout(rate=dropout_rate)])
        self.mlp2 = keras.Sequential([layers.Dense(units=num_patches, activation="gelu"),
                                      layers.Dense(units=hidden_units),
                                      layers.Dropout(rate=dropout_rate)])
        self.normalize = layers.LayerNormalization(epsilon=1e-6)

    def build(self, input_shape):
        return super().build(input_shape)

    def call(self, inputs):
        x = self.normalize(inputs)
        channels = keras.ops.transpose(x, axes=(0, 2, 1))
        mixed = keras.ops.transpose(self.mlp1(channels), axes=(0, 2, 1))
        x = mixed + inputs
        return x + self.mlp2(self.normalize(x))


inputs = layers.Input(shape=(9, 8))
x = keras.Sequential([MLPMixerLayer(9, 8, 0.0) for _ in range(2)])(inputs)
y = layers.Dense(4)(layers.Dropout(0.0)(layers.GlobalAveragePooling1D()(x)))
model = start(keras.Model(inputs=inputs, outputs=y))
model.compile(optimizer=keras.optimizers.Adam(0.005),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
report(**fit(model, data(8, 9, 8), data(8, classes=4)))
