"""A subclassed model with a latent array as its weight, cross attention, and layers that are made
in build."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


def create_ffn(hidden_units, dropout_rate):
    ffn_layers = []
    for units in hidden_units[:-1]:
        ffn_layers.append(layers.Dense(units, activation="gelu"))
    ffn_layers.append(layers.Dense(units=hidden_units[-1]))
    ffn_layers.append(layers.Dropout(dropout_rate))
    return keras.Sequential(ffn_layers)


class Patches(layers.Layer):
    def __init__(self, patch_size):
        super().__init__()
        self.patch_size = patch_size

    def call(self, images):
        batch_size = ops.shape(images)[0]
        patches = ops.image.extract_patches(
            images, size=(self.patch_size, self.patch_size),
            strides=(self.patch_size, self.patch_size), dilation_rate=1, padding="valid")
        patch_dims = patches.shape[-1]
        return ops.reshape(patches, [batch_size, -1, patch_dims])


class PatchEncoder(layers.Layer):
    def __init__(self, num_patches, projection_dim):
        super().__init__()
        self.num_patches = num_patches
        self.projection = layers.Dense(units=projection_dim)
        self.position_embedding = layers.Embedding(input_dim=num_patches,
                                                   output_dim=projection_dim)

    def call(self, patches):
        positions = ops.arange(start=0, stop=self.num_patches, step=1)
        return self.projection(patches) + self.position_embedding(positions)


def create_cross_attention_module(latent_dim, data_dim, projection_dim, ffn_units, dropout_rate):
    inputs = {"latent_array": layers.Input(shape=(latent_dim, projection_dim),
                                           name="latent_array"),
              "data_array": layers.Input(shape=(data_dim, projection_dim), name="data_array")}
    latent_array = layers.LayerNormalization(epsilon=1e-6)(inputs["latent_array"])
    data_array = layers.LayerNormalization(epsilon=1e-6)(inputs["data_array"])
    query = layers.Dense(units=projection_dim)(latent_array)
    key = layers.Dense(units=projection_dim)(data_array)
    value = layers.Dense(units=projection_dim)(data_array)
    attention_output = layers.Attention(use_scale=True, dropout=0.0)([query, key, value],
                                                                     return_attention_scores=False)
    attention_output = layers.Add()([attention_output, latent_array])
    attention_output = layers.LayerNormalization(epsilon=1e-6)(attention_output)
    outputs = create_ffn(hidden_units=ffn_units, dropout_rate=dropout_rate)(attention_output)
    outputs = layers.Add()([outputs, attention_output])
    return keras.Model(inputs=inputs, outputs=outputs)


def create_transformer_module(latent_dim, projection_dim, num_heads, num_blocks, ffn_units,
                              dropout_rate):
    inputs = layers.Input(shape=(latent_dim, projection_dim))
    x0 = inputs
    for _ in range(num_blocks):
        x1 = layers.LayerNormalization(epsilon=1e-6)(x0)
        attention_output = layers.MultiHeadAttention(num_heads=num_heads, key_dim=projection_dim,
                                                     dropout=0.0)(x1, x1)
        x2 = layers.Add()([attention_output, x0])
        x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
        x3 = create_ffn(hidden_units=ffn_units, dropout_rate=dropout_rate)(x3)
        x0 = layers.Add()([x3, x2])
    return keras.Model(inputs=inputs, outputs=x0)


class Perceiver(keras.Model):
    def __init__(self, patch_size, data_dim, latent_dim, projection_dim, ffn_units,
                 classifier_units):
        super().__init__()
        self.latent_dim, self.data_dim, self.patch_size = latent_dim, data_dim, patch_size
        self.projection_dim, self.ffn_units = projection_dim, ffn_units
        self.classifier_units = classifier_units

    def build(self, input_shape):
        self.latent_array = self.add_weight(shape=(self.latent_dim, self.projection_dim),
                                            initializer="random_normal", trainable=True)
        self.patch_encoder = PatchEncoder(self.data_dim, self.projection_dim)
        self.cross_attention = create_cross_attention_module(
            self.latent_dim, self.data_dim, self.projection_dim, self.ffn_units, 0.0)
        self.transformer = create_transformer_module(self.latent_dim, self.projection_dim, 2, 1,
                                                     self.ffn_units, 0.0)
        self.global_average_pooling = layers.GlobalAveragePooling1D()
        self.classification_head = create_ffn(hidden_units=self.classifier_units,
                                              dropout_rate=0.0)
        self.patcher = Patches(self.patch_size)
        super().build(input_shape)

    def call(self, inputs):
        encoded_patches = self.patch_encoder(self.patcher(inputs))
        cross_attention_inputs = {"latent_array": ops.expand_dims(self.latent_array, 0),
                                  "data_array": encoded_patches}
        for _ in range(2):
            latent_array = self.cross_attention(cross_attention_inputs)
            latent_array = self.transformer(latent_array)
            cross_attention_inputs["latent_array"] = latent_array
        return self.classification_head(self.global_average_pooling(latent_array))


model = Perceiver(3, 9, 4, 8, [8, 8], [8, 3])
images = data(6, 9, 9, 3)
model(images)
start(model)
model.compile(optimizer=keras.optimizers.Lamb(learning_rate=0.001, weight_decay=0.0001),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")])
report(**fit(model, images, data(6, classes=3)))
