"""Trees as models of one's own, with routing in a loop over the levels, and a forest of them."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
DEPTH, FEATURES, CLASSES = 3, 10, 2


class NeuralDecisionTree(keras.Model):
    def __init__(self, depth, num_features, used_features_rate, num_classes, seed):
        super().__init__()
        self.depth, self.num_classes = depth, num_classes
        self.num_leaves = 2 ** depth
        one_hot = np.eye(num_features)
        chosen = np.random.default_rng(seed).choice(
            np.arange(num_features), int(num_features * used_features_rate), replace=False)
        self.used_features_mask = ops.convert_to_tensor(one_hot[chosen], dtype="float32")
        self.pi = self.add_weight(initializer="random_normal", dtype="float32", trainable=True,
                                  shape=[self.num_leaves, self.num_classes])
        self.decision_fn = layers.Dense(units=self.num_leaves, activation="sigmoid",
                                        name="decision")

    def call(self, features):
        batch_size = ops.shape(features)[0]
        features = ops.matmul(features, ops.transpose(self.used_features_mask))
        decisions = ops.expand_dims(self.decision_fn(features), axis=2)
        decisions = layers.concatenate([decisions, 1 - decisions], axis=2)
        mu = ops.ones([batch_size, 1, 1])
        begin_idx, end_idx = 1, 2
        for level in range(self.depth):
            mu = ops.reshape(mu, [batch_size, -1, 1])
            mu = ops.tile(mu, (1, 1, 2))
            mu = mu * decisions[:, begin_idx:end_idx, :]
            begin_idx, end_idx = end_idx, end_idx + 2 ** (level + 1)
        mu = ops.reshape(mu, [batch_size, self.num_leaves])
        return ops.matmul(mu, ops.softmax(self.pi))


class NeuralDecisionForest(keras.Model):
    def __init__(self, num_trees, depth, num_features, used_features_rate, num_classes):
        super().__init__()
        self.num_trees, self.num_classes = num_trees, num_classes
        self.ensemble = [NeuralDecisionTree(depth, num_features, used_features_rate, num_classes, i)
                         for i in range(num_trees)]

    def call(self, inputs):
        batch_size = ops.shape(inputs)[0]
        outputs = ops.zeros([batch_size, self.num_classes])
        for tree in self.ensemble:
            outputs += tree(inputs)
        return outputs / self.num_trees


inputs = layers.Input(shape=(FEATURES,))
features = layers.BatchNormalization()(inputs)
model = keras.Model(inputs, NeuralDecisionForest(3, DEPTH, FEATURES, 0.5, CLASSES)(features))
start(model)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.01),
              loss=keras.losses.SparseCategoricalCrossentropy(),
              metrics=[keras.metrics.SparseCategoricalAccuracy()])
report(**fit(model, data(16, FEATURES), data(16, classes=CLASSES)))
