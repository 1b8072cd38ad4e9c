"""Masks that layers make, use and pass on."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class CustomEmbedding(layers.Layer):
    def __init__(self, input_dim, output_dim, mask_zero=False, **kwargs):
        super().__init__(**kwargs)
        self.input_dim, self.output_dim, self.mask_zero = input_dim, output_dim, mask_zero

    def build(self, input_shape):
        self.embeddings = self.add_weight(shape=(self.input_dim, self.output_dim),
                                          initializer="random_normal", dtype="float32")

    def call(self, inputs):
        return ops.take(self.embeddings, ops.cast(inputs, "int32"), axis=0)

    def compute_mask(self, inputs, mask=None):
        return ops.not_equal(inputs, 0) if self.mask_zero else None


class TemporalSoftmax(layers.Layer):
    def call(self, inputs, mask=None):
        assert mask is not None
        broadcast = ops.expand_dims(ops.cast(mask, "float32"), -1)
        exp = ops.exp(inputs) * broadcast
        return exp / ops.sum(exp, axis=1, keepdims=True)


x = keras.utils.pad_sequences([[711, 632, 71], [73, 8, 55, 927], [83, 91, 1, 64, 253, 26]],
                              padding="post") % 50
inputs = keras.Input(shape=(None,), dtype="int32")
y = CustomEmbedding(input_dim=50, output_dim=8, mask_zero=True)(inputs)
y = layers.LSTM(8, return_sequences=True)(y)
model = start(keras.Model(inputs, TemporalSoftmax()(layers.Dense(1)(y))))
model.compile("adam", "mse")
report(out=model.predict(x, verbose=0), **fit(model, x, data(3, 6, 1)))
