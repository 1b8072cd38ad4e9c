"""An encoder-decoder transformer, made as models/transformer.c makes it of Keras' layers. Writes
translation/transformer.safetensors: weights, tokens with padding, what the model predicts, the loss
of a step of SGD with rate 1 and the weights after it, which are w - gradient."""

import common
import keras
import numpy as np

L = keras.layers
S, T, ROWS = 6, 6, 3
SETTINGS = {"source_vocabulary": 12, "target_vocabulary": 14, "sequence_length": 6, "channels": 8,
            "key_dim": 4, "hidden": 12, "heads": 2, "layers": 2}


class PositionEmbedding(L.Layer):
    """KerasHub's, without its arguments."""

    def __init__(self, length, **kwargs):
        super().__init__(**kwargs)
        self.length = length
        self.supports_masking = True

    def build(self, shape):
        self.embeddings = self.add_weight(name="embeddings", shape=(self.length, shape[-1]))

    def call(self, x):
        return keras.ops.broadcast_to(self.embeddings[: x.shape[1]], keras.ops.shape(x))


def embedded(side, tokens, vocabulary):
    c = SETTINGS
    x = L.Embedding(vocabulary, c["channels"], mask_zero=True, name=f"{side}_tokens")(tokens)
    return L.Add()([x, PositionEmbedding(c["sequence_length"], name=f"{side}_positions")(x)])


def normalized(name, x):
    return L.LayerNormalization(epsilon=1e-3, name=name)(x)


def attended(name, x, to, causal=False):
    layer = L.MultiHeadAttention(SETTINGS["heads"], SETTINGS["key_dim"], name=name)
    return layer(x, to, use_causal_mask=causal)


def dense(p, x):
    y = L.Dense(SETTINGS["hidden"], activation="relu", name=f"{p}_dense")(normalized(f"{p}_dense_norm", x))
    return L.Add(name=f"{p}_out")([x, L.Dense(SETTINGS["channels"], name=f"{p}_dense_out")(y)])


def transformer():
    source, target = keras.Input((S,), name="source"), keras.Input((T,), name="target")
    x = embedded("encoder", source, SETTINGS["source_vocabulary"])
    for i in range(SETTINGS["layers"]):
        p = f"encoder_{i}"
        y = normalized(f"{p}_attention_norm", x)
        x = dense(p, L.Add()([x, attended(f"{p}_attention", y, y)]))
    y = embedded("decoder", target, SETTINGS["target_vocabulary"])
    for i in range(SETTINGS["layers"]):
        p = f"decoder_{i}"
        z = normalized(f"{p}_attention_norm", y)
        y = L.Add()([y, attended(f"{p}_attention", z, z, causal=True)])
        z = attended(f"{p}_cross", normalized(f"{p}_cross_norm", y), normalized(f"{p}_source_norm", x))
        y = dense(p, L.Add()([y, z]))
    y = L.Dense(SETTINGS["target_vocabulary"], activation="softmax",
                name="token")(normalized("decoder_norm", y))
    return keras.Model([source, target], y, name="transformer")


def tokens(random, vocabulary, lengths, width):
    rows = np.zeros((ROWS, width), np.int32)
    for row, length in zip(rows, lengths):
        row[:length] = random.randint(1, vocabulary, length)
    return rows


if __name__ == "__main__":
    to = common.folder("translation")
    random = np.random.RandomState(3)
    model = transformer()
    arrays, names = {}, []
    for w in model.weights:
        w.assign(random.normal(0, 0.4, w.shape) + (1.0 if w.path.endswith("gamma") else 0.0))
        arrays["before/" + w.path] = np.array(w.value)
        names.append(w.path)
    x = [tokens(random, 12, (6, 3, 5), S), tokens(random, 14, (4, 6, 2), T)]
    y = tokens(random, 14, (4, 6, 2), T)
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss="sparse_categorical_crossentropy")
    arrays |= {"source": x[0], "target": x[1], "next": y, "predicted": model.predict(x, verbose=0)}
    loss = model.train_on_batch(x, y)
    for w in model.weights:
        arrays["after/" + w.path] = np.array(w.value)
    common.write_arrays(to / "transformer.safetensors", arrays,
                        {"settings": SETTINGS, "weights": names, "loss": float(np.asarray(loss))})
