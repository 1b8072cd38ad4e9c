"""A triplet of images, a layer of distances and a model with a training step of its own."""

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
inputs = layers.Input((12, 12, 3))
x = layers.Flatten()(layers.Conv2D(4, 3, activation="relu")(inputs))
embedding = keras.Model(inputs, layers.Dense(8)(x), name="Embedding")


class DistanceLayer(layers.Layer):
    def call(self, anchor, positive, negative):
        ap = ops.sum(ops.square(anchor - positive), -1)
        an = ops.sum(ops.square(anchor - negative), -1)
        return (ap, an)


parts = [layers.Input(name=name, shape=(12, 12, 3)) for name in ("anchor", "positive", "negative")]
network = keras.Model(inputs=parts, outputs=DistanceLayer()(*[embedding(p) for p in parts]))
start(network)


class SiameseModel(keras.Model):
    def __init__(self, siamese_network, margin=0.5):
        super().__init__()
        self.siamese_network, self.margin = siamese_network, margin
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs):
        return self.siamese_network(inputs)

    def train_step(self, data):
        with GradientTape() as tape:
            loss = self._compute_loss(data)
        gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def _compute_loss(self, data):
        ap_distance, an_distance = self.siamese_network(data)
        return ops.maximum(ap_distance - an_distance + self.margin, 0.0)

    @property
    def metrics(self):
        return [self.loss_tracker]


model = SiameseModel(network)
model.compile(optimizer=keras.optimizers.Adam(0.0001))
triplets = [data(6, 12, 12, 3, seed=i) for i in range(3)]


class Triplets(keras.utils.PyDataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return (tuple(triplets),)


report(loss=model.fit(Triplets(), epochs=3, verbose=0).history["loss"])
