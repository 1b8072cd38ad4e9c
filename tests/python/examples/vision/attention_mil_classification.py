"""Attention over the images of a bag, in a layer that builds its weights with regularizers."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
BAG_SIZE = 3


class MILAttentionLayer(layers.Layer):
    def __init__(self, weight_params_dim, kernel_initializer="glorot_uniform",
                 kernel_regularizer=None, use_gated=False, **kwargs):
        super().__init__(**kwargs)
        self.weight_params_dim, self.use_gated = weight_params_dim, use_gated
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.v_init = self.w_init = self.u_init = self.kernel_initializer
        self.v_regularizer = self.w_regularizer = self.u_regularizer = self.kernel_regularizer

    def build(self, input_shape):
        input_dim = input_shape[0][1]
        self.v_weight_params = self.add_weight(
            shape=(input_dim, self.weight_params_dim), initializer=self.v_init, name="v",
            regularizer=self.v_regularizer, trainable=True)
        self.w_weight_params = self.add_weight(
            shape=(self.weight_params_dim, 1), initializer=self.w_init, name="w",
            regularizer=self.w_regularizer, trainable=True)
        if self.use_gated:
            self.u_weight_params = self.add_weight(
                shape=(input_dim, self.weight_params_dim), initializer=self.u_init, name="u",
                regularizer=self.u_regularizer, trainable=True)
        else:
            self.u_weight_params = None
        self.input_built = True

    def call(self, inputs):
        instances = [self.compute_attention_scores(instance) for instance in inputs]
        instances = ops.stack(instances)
        alpha = ops.softmax(instances, axis=0)
        return [alpha[i] for i in range(alpha.shape[0])]

    def compute_attention_scores(self, instance):
        original_instance = instance
        instance = ops.tanh(ops.tensordot(instance, self.v_weight_params, axes=1))
        if self.use_gated:
            instance = instance * ops.sigmoid(
                ops.tensordot(original_instance, self.u_weight_params, axes=1))
        return ops.tensordot(instance, self.w_weight_params, axes=1)


inputs, embeddings = [], []
shared_dense_layer_1 = layers.Dense(8, activation="relu")
shared_dense_layer_2 = layers.Dense(6, activation="relu")
for _ in range(BAG_SIZE):
    inp = layers.Input((5, 5))
    inputs.append(inp)
    embeddings.append(shared_dense_layer_2(shared_dense_layer_1(layers.Flatten()(inp))))
alpha = MILAttentionLayer(weight_params_dim=7, kernel_regularizer=keras.regularizers.L2(0.01),
                          use_gated=True, name="alpha")(embeddings)
multiply_layers = [layers.multiply([alpha[i], embeddings[i]]) for i in range(len(alpha))]
concat = layers.concatenate(multiply_layers, axis=1)
model = start(keras.Model(inputs, layers.Dense(2, activation="softmax")(concat)))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
bags = [data(6, 5, 5, seed=i) for i in range(BAG_SIZE)]
logs = fit(model, bags, data(6, classes=2))
intermediate_model = keras.Model(model.input, model.get_layer("alpha").output)
report(weights=ops.convert_to_numpy(ops.squeeze(ops.swapaxes(
    ops.stack(intermediate_model.predict(bags, verbose=0)), 1, 0))), **logs)
