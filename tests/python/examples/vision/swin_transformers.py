"""Attention in windows that are shifted: indices and masks as variables, `roll`, and a layer for
patches."""

import numpy as np
from harness import data, fit, keras, report

layers, ops = keras.layers, keras.ops


def window_partition(x, window_size):
    _, height, width, channels = x.shape
    x = ops.reshape(x, (-1, height // window_size, window_size, width // window_size, window_size,
                        channels))
    return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)),
                       (-1, window_size, window_size, channels))


def window_reverse(windows, window_size, height, width, channels):
    x = ops.reshape(windows, (-1, height // window_size, width // window_size, window_size,
                              window_size, channels))
    return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, height, width, channels))


class WindowAttention(layers.Layer):
    def __init__(self, dim, window_size, num_heads, qkv_bias=True, dropout_rate=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.window_size, self.num_heads = dim, window_size, num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = layers.Dense(dim * 3, use_bias=qkv_bias)
        self.dropout = layers.Dropout(dropout_rate)
        self.proj = layers.Dense(dim)

    def build(self, input_shape):
        height, width = self.window_size
        self.relative_position_bias_table = self.add_weight(
            shape=((2 * height - 1) * (2 * width - 1), self.num_heads),
            initializer=keras.initializers.Zeros(), trainable=True)
        coords = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"))
        flat = coords.reshape(2, -1)
        relative = (flat[:, :, None] - flat[:, None, :]).transpose([1, 2, 0])
        relative[:, :, 0] += height - 1
        relative[:, :, 1] += width - 1
        relative[:, :, 0] *= 2 * width - 1
        relative_position_index = relative.sum(-1)
        self.relative_position_index = keras.Variable(
            initializer=relative_position_index, shape=relative_position_index.shape, dtype="int",
            trainable=False)

    def call(self, x, mask=None):
        _, size, channels = x.shape
        x_qkv = ops.reshape(self.qkv(x), (-1, size, 3, self.num_heads, channels // self.num_heads))
        x_qkv = ops.transpose(x_qkv, (2, 0, 3, 1, 4))
        q, k, v = x_qkv[0], x_qkv[1], x_qkv[2]
        attn = (q * self.scale) @ ops.transpose(k, (0, 1, 3, 2))
        elements = self.window_size[0] * self.window_size[1]
        index = ops.reshape(self.relative_position_index, (-1,))
        bias = ops.take(self.relative_position_bias_table, index, axis=0)
        bias = ops.transpose(ops.reshape(bias, (elements, elements, -1)), (2, 0, 1))
        attn = attn + ops.expand_dims(bias, axis=0)
        if mask is not None:
            windows = mask.shape[0]
            mask_float = ops.cast(ops.expand_dims(ops.expand_dims(mask, axis=1), axis=0),
                                  "float32")
            attn = ops.reshape(attn, (-1, windows, self.num_heads, size, size)) + mask_float
            attn = ops.reshape(attn, (-1, self.num_heads, size, size))
        attn = self.dropout(keras.activations.softmax(attn, axis=-1))
        x_qkv = ops.transpose(attn @ v, (0, 2, 1, 3))
        return self.dropout(self.proj(ops.reshape(x_qkv, (-1, size, channels))))


class SwinTransformer(layers.Layer):
    def __init__(self, dim, num_patch, num_heads, window_size=2, shift_size=0, num_mlp=16,
                 **kwargs):
        super().__init__(**kwargs)
        self.num_patch, self.window_size, self.shift_size = num_patch, window_size, shift_size
        self.norm1 = layers.LayerNormalization(epsilon=1e-5)
        self.attn = WindowAttention(dim, window_size=(window_size, window_size),
                                    num_heads=num_heads)
        self.drop_path = layers.Dropout(0.0)
        self.norm2 = layers.LayerNormalization(epsilon=1e-5)
        self.mlp = keras.Sequential([layers.Dense(num_mlp),
                                     layers.Activation(keras.activations.gelu),
                                     layers.Dropout(0.0), layers.Dense(dim)])

    def build(self, input_shape):
        self.attn.build((None, self.window_size * self.window_size, input_shape[-1]))
        if self.shift_size == 0:
            self.attn_mask = None
            return
        height, width = self.num_patch
        slices = (slice(0, -self.window_size), slice(-self.window_size, -self.shift_size),
                  slice(-self.shift_size, None))
        mask_array, count = np.zeros((1, height, width, 1)), 0
        for h in slices:
            for w in slices:
                mask_array[:, h, w, :] = count
                count += 1
        mask_windows = window_partition(ops.convert_to_tensor(mask_array), self.window_size)
        mask_windows = ops.reshape(mask_windows, [-1, self.window_size * self.window_size])
        attn_mask = ops.expand_dims(mask_windows, axis=1) - ops.expand_dims(mask_windows, axis=2)
        attn_mask = ops.where(attn_mask != 0, -100.0, attn_mask)
        attn_mask = ops.where(attn_mask == 0, 0.0, attn_mask)
        self.attn_mask = keras.Variable(initializer=attn_mask, shape=attn_mask.shape,
                                        dtype=attn_mask.dtype, trainable=False)

    def call(self, x, training=False):
        (height, width), channels = self.num_patch, x.shape[-1]
        skip = x
        x = ops.reshape(self.norm1(x), (-1, height, width, channels))
        if self.shift_size > 0:
            x = ops.roll(x, shift=[-self.shift_size, -self.shift_size], axis=[1, 2])
        windows = window_partition(x, self.window_size)
        windows = ops.reshape(windows, (-1, self.window_size * self.window_size, channels))
        windows = self.attn(windows, mask=self.attn_mask)
        windows = ops.reshape(windows, (-1, self.window_size, self.window_size, channels))
        x = window_reverse(windows, self.window_size, height, width, channels)
        if self.shift_size > 0:
            x = ops.roll(x, shift=[self.shift_size, self.shift_size], axis=[1, 2])
        x = self.drop_path(ops.reshape(x, (-1, height * width, channels)), training=training)
        x = skip + x
        return x + self.drop_path(self.mlp(self.norm2(x)))


def patch_extract(images):
    patches = ops.image.extract_patches(images=images, size=(2, 2), strides=(1, 1), dilation_rate=1,
                                        padding="valid")
    return ops.reshape(patches[:, ::2, ::2], (-1, 16, 12))


class PatchEmbedding(layers.Layer):
    def __init__(self, num_patch, embed_dim, **kwargs):
        super().__init__(**kwargs)
        self.num_patch = num_patch
        self.proj = layers.Dense(embed_dim)
        self.pos_embed = layers.Embedding(input_dim=num_patch, output_dim=embed_dim)

    def call(self, patch):
        return self.proj(patch) + self.pos_embed(ops.arange(start=0, stop=self.num_patch))


class PatchMerging(keras.layers.Layer):
    def __init__(self, num_patch, embed_dim):
        super().__init__()
        self.num_patch, self.embed_dim = num_patch, embed_dim
        self.linear_trans = layers.Dense(2 * embed_dim, use_bias=False)

    def call(self, x):
        (height, width), (_, _, C) = self.num_patch, x.shape
        x = ops.reshape(x, (-1, height, width, C))
        x = ops.concatenate((x[:, 0::2, 0::2, :], x[:, 1::2, 0::2, :], x[:, 0::2, 1::2, :],
                             x[:, 1::2, 1::2, :]), axis=-1)
        return self.linear_trans(ops.reshape(x, (-1, (height // 2) * (width // 2), 4 * C)))


inputs = layers.Input(shape=(16, 12))
x = PatchEmbedding(16, 8)(inputs)
for shift in (0, 1):
    x = SwinTransformer(dim=8, num_patch=(4, 4), num_heads=2, shift_size=shift)(x)
x = layers.GlobalAveragePooling1D()(PatchMerging((4, 4), embed_dim=8)(x))
model = keras.Model(inputs, layers.Dense(3, activation="softmax")(x))
patches = ops.convert_to_numpy(patch_extract(data(6, 8, 8, 3)))
model.set_weights([w if np.asarray(w).dtype.kind != "f" or np.min(w) <= -100 else
                   np.random.default_rng(i).standard_normal(np.shape(w)).astype("float32") / 3
                   for i, w in enumerate(model.get_weights())])
model.compile(loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
              optimizer=keras.optimizers.AdamW(learning_rate=1e-3, weight_decay=0.0001),
              metrics=[keras.metrics.CategoricalAccuracy(name="accuracy")])
report(count=len(model.weights), patches=patches,
       **fit(model, patches, keras.utils.to_categorical(data(6, classes=3), 3)))
