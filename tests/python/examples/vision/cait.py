"""Blocks of attention that are models with two outputs, of patches and of a class token, in a model
that returns its scores by the blocks' names."""

from harness import data, keras, report, start

layers, ops = keras.layers, keras.ops


class LayerScale(layers.Layer):
    def __init__(self, init_values: float, projection_dim: int, **kwargs):
        super().__init__(**kwargs)
        self.gamma = self.add_weight(
            shape=(projection_dim,), initializer=keras.initializers.Constant(init_values))

    def call(self, x, training=False):
        return x * self.gamma


class ClassAttention(layers.Layer):
    def __init__(self, projection_dim, num_heads, dropout_rate, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.scale = (projection_dim // num_heads) ** -0.5
        self.q = layers.Dense(projection_dim)
        self.k = layers.Dense(projection_dim)
        self.v = layers.Dense(projection_dim)
        self.attn_drop = layers.Dropout(dropout_rate)
        self.proj = layers.Dense(projection_dim)

    def call(self, x, training=False):
        batch_size, num_patches, num_channels = ops.shape(x)[0], ops.shape(x)[1], ops.shape(x)[2]
        heads, each = self.num_heads, num_channels // self.num_heads
        q = ops.expand_dims(self.q(x[:, 0]), axis=1)
        q = ops.transpose(ops.reshape(q, (batch_size, 1, heads, each)), axes=[0, 2, 1, 3])
        q = q * ops.cast(self.scale, dtype=q.dtype)
        k = ops.reshape(self.k(x), (batch_size, num_patches, heads, each))
        v = ops.reshape(self.v(x), (batch_size, num_patches, heads, each))
        attn = ops.matmul(q, ops.transpose(k, axes=[0, 2, 3, 1]))
        attn = self.attn_drop(ops.nn.softmax(attn, axis=-1), training=training)
        x_cls = ops.transpose(ops.matmul(attn, ops.transpose(v, axes=[0, 2, 1, 3])), [0, 2, 1, 3])
        return self.proj(ops.reshape(x_cls, (batch_size, 1, num_channels))), attn


class TalkingHeadAttention(layers.Layer):
    def __init__(self, projection_dim, num_heads, dropout_rate, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.scale = (projection_dim // num_heads) ** -0.5
        self.qkv = layers.Dense(projection_dim * 3)
        self.attn_drop = layers.Dropout(dropout_rate)
        self.proj = layers.Dense(projection_dim)
        self.proj_l = layers.Dense(num_heads)
        self.proj_w = layers.Dense(num_heads)

    def call(self, x, training=False):
        B, N, C = ops.shape(x)[0], ops.shape(x)[1], ops.shape(x)[2]
        qkv = ops.reshape(self.qkv(x), (B, N, 3, self.num_heads, C // self.num_heads))
        qkv = ops.transpose(qkv, axes=[2, 0, 3, 1, 4])
        q, k, v = qkv[0] * ops.cast(self.scale, dtype=qkv.dtype), qkv[1], qkv[2]
        attn = ops.matmul(q, ops.transpose(k, axes=[0, 1, 3, 2]))
        attn = self.proj_l(ops.transpose(attn, axes=[0, 2, 3, 1]))
        attn = ops.nn.softmax(ops.transpose(attn, axes=[0, 3, 1, 2]), axis=-1)
        attn = self.proj_w(ops.transpose(attn, axes=[0, 2, 3, 1]))
        attn = self.attn_drop(ops.transpose(attn, axes=[0, 3, 1, 2]), training=training)
        x = ops.transpose(ops.matmul(attn, v), axes=[0, 2, 1, 3])
        return self.proj(ops.reshape(x, (B, N, C))), attn


def feed_forward(x, config):
    x = layers.LayerNormalization(epsilon=1e-6)(x)
    for idx, units in enumerate(config["mlp_units"]):
        x = layers.Dense(units, activation=ops.nn.gelu if idx == 0 else None,
                         bias_initializer=keras.initializers.RandomNormal(stddev=1e-6))(x)
    return LayerScale(0.1, config["projection_dim"])(x)


def class_block(config, name):
    x = keras.Input((None, config["projection_dim"]))
    x_cls = keras.Input((None, config["projection_dim"]))
    x1 = layers.LayerNormalization(epsilon=1e-6)(layers.Concatenate(axis=1)([x_cls, x]))
    attn_output, attn_scores = ClassAttention(
        config["projection_dim"], config["num_heads"], 0.0)(x1)
    x2 = layers.Add()([x_cls, LayerScale(0.1, config["projection_dim"])(attn_output)])
    outputs = layers.Add()([x2, feed_forward(x2, config)])
    return keras.Model([x, x_cls], [outputs, attn_scores], name=name)


def patch_block(config, name):
    encoded_patches = keras.Input((None, config["projection_dim"]))
    x1 = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
    attn_output, attn_scores = TalkingHeadAttention(
        config["projection_dim"], config["num_heads"], 0.0)(x1)
    x2 = layers.Add()([encoded_patches, LayerScale(0.1, config["projection_dim"])(attn_output)])
    outputs = layers.Add()([x2, feed_forward(x2, config)])
    return keras.Model(encoded_patches, [outputs, attn_scores], name=name)


class CaiT(keras.Model):
    def __init__(self, config, num_classes, **kwargs):
        super().__init__(**kwargs)
        dim, patch_size = config["projection_dim"], config["patch_size"]
        self.projection = keras.Sequential([
            layers.Conv2D(filters=dim, kernel_size=(patch_size, patch_size), padding="VALID",
                          strides=(patch_size, patch_size), kernel_initializer="lecun_normal"),
            layers.Reshape(target_shape=(-1, dim))], name="projection")
        self.cls_token = self.add_weight(shape=(1, 1, dim), initializer="zeros")
        self.pos_embed = self.add_weight(
            shape=(1, config["num_patches"], dim), initializer="zeros")
        self.pos_drop = layers.Dropout(0.0, name="projection_dropout")
        self.blocks = [patch_block(config, f"sa_ffn_block_{i}") for i in range(2)]
        self.blocks_token_only = [class_block(config, "ca_ffn_block_0")]
        self.norm = layers.LayerNormalization(epsilon=1e-6, name="head_norm")
        self.head = layers.Dense(num_classes, name="classification_head")

    def call(self, x, training=False):
        x = self.pos_drop(self.projection(x) + self.pos_embed)
        sa_ffn_attn, ca_ffn_attn = {}, {}
        for blk in self.blocks:
            x, attn_scores = blk(x)
            sa_ffn_attn[f"{blk.name}_att"] = attn_scores
        cls_tokens = ops.tile(self.cls_token, (ops.shape(x)[0], 1, 1))
        for blk in self.blocks_token_only:
            cls_tokens, attn_scores = blk([x, cls_tokens])
            ca_ffn_attn[f"{blk.name}_att"] = attn_scores
        x = self.norm(ops.concatenate([cls_tokens, x], axis=1))
        return self.head(x[:, 0]), sa_ffn_attn, ca_ffn_attn


model = CaiT({"projection_dim": 8, "num_heads": 2, "mlp_units": [16, 8], "patch_size": 4,
              "num_patches": 4}, num_classes=5)
images = ops.convert_to_tensor(data(3, 8, 8, 3))
model(images)
start(model)
logits, patches, token = model(images)
predicted, _, scores = model.predict(data(3, 8, 8, 3), verbose=0)
resized = ops.image.resize(ops.transpose(scores["ca_ffn_block_0_att"][0, :, :, 1:], (1, 2, 0)),
                           size=(4, 8), interpolation="bicubic")
report(logits=logits, patches=patches["sa_ffn_block_1_att"], token=token["ca_ffn_block_0_att"],
       predicted=predicted, resized=resized)
