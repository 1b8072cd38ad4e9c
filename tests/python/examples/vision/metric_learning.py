"""Similarities of anchors and positives in a train_step of one's own."""

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
anchors, positives = data(5, 10, 10, 3), data(5, 10, 10, 3, seed=1)


class EmbeddingModel(keras.Model):
    def train_step(self, data):
        if isinstance(data, tuple):
            data = data[0]
        anchors, positives = data[0], data[1]
        with GradientTape() as tape:
            anchor_embeddings = self(anchors, training=True)
            positive_embeddings = self(positives, training=True)
            similarities = ops.einsum("ae,pe->ap", anchor_embeddings, positive_embeddings)
            similarities /= 0.2
            loss = self.compute_loss(y=ops.arange(5), y_pred=similarities)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(ops.arange(5), similarities)
        return {m.name: m.result() for m in self.metrics}


class Pairs(keras.utils.PyDataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return ((anchors, positives),)


inputs = layers.Input(shape=(10, 10, 3))
x = layers.Conv2D(filters=8, kernel_size=3, strides=2, activation="relu")(inputs)
x = layers.GlobalAveragePooling2D()(x)
embeddings = layers.UnitNormalization()(layers.Dense(units=4, activation=None)(x))
model = start(EmbeddingModel(inputs, embeddings))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=1e-3),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
report(loss=model.fit(Pairs(), epochs=3, verbose=0).history["loss"])
