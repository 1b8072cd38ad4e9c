"""Causal models as Keras saves them, and the tokens that they continue two sequences with, each
time the most probable one by the whole sequence. Writes generate/.

NAME.keras maps (None, 240) to logits (None, 240, 17); NAME.npz has `tokens` (2, 240), of which the
first `primes` (2) of each were given and the next 219 found, and `logits` (2, 17) of token 218.
"""

import common
import keras
import numpy as np

OUT = common.folder("generate")
STEPS, VOCABULARY, CHANNELS = 240, 17, 12
PRIMES = (3, 21)
L = keras.layers


def attention(x):
    """Blocks of attention, whose query and value differ; the second with fewer heads of keys."""
    y = L.LayerNormalization()(x)
    x = x + L.MultiHeadAttention(3, 4)(y, x, use_causal_mask=True)
    x = x + L.Dense(CHANNELS)(L.Dense(20, activation="gelu")(L.LayerNormalization()(x)))
    return x + L.GroupQueryAttention(4, 4, 2)(x, x, use_causal_mask=True)


def recurrences(x):
    x = L.LSTM(10, return_sequences=True)(x)
    x = L.GRU(11, return_sequences=True)(x)
    x = L.SimpleRNN(9, return_sequences=True)(x)
    return L.TimeDistributed(L.Dense(CHANNELS, activation="tanh"))(x)


def convolutions(x):
    """WaveNet's: gates, dilations that are powers of two, sums of all blocks."""
    skips = []
    for rate in (1, 2, 4, 8):
        f = L.Conv1D(CHANNELS, 2, padding="causal", dilation_rate=rate, activation="tanh")(x)
        g = L.Conv1D(CHANNELS, 3, padding="causal", dilation_rate=rate, activation="sigmoid")(x)
        skips.append(L.Conv1D(CHANNELS, 1)(f * g))
        x = x + skips[-1]
    return L.ReLU()(L.Add()(skips))


def mixed(x):
    x = L.Conv1D(CHANNELS, 4, padding="causal", activation="silu")(x)
    x = L.BatchNormalization()(L.LSTM(CHANNELS, return_sequences=True)(x))
    return x + L.MultiHeadAttention(2, 5, use_bias=False)(x, x, use_causal_mask=True)


def write(name, layers):
    tokens = keras.Input((STEPS,), dtype="int32")
    x = layers(L.Embedding(VOCABULARY, CHANNELS)(tokens))
    model = keras.Model(tokens, L.Dense(VOCABULARY)(x), name=name)
    model.set_weights([
        w + (3 * w.shape[0] ** -0.5 if w.ndim > 1 else 0.5)
        * common.hashed_uniform(f"{name}/{i}", w.size).reshape(w.shape).astype("float32")
        for i, w in enumerate(model.get_weights())])
    all_tokens, counts = np.zeros((len(PRIMES), STEPS), "int32"), list(PRIMES)
    for b, count in enumerate(PRIMES):
        all_tokens[b, :count] = (5 * np.arange(count) + 3 * b + 1) % VOCABULARY
    for _ in range(STEPS - max(PRIMES)):
        logits = model.predict_on_batch(all_tokens)
        for b in range(len(PRIMES)):
            all_tokens[b, counts[b]] = logits[b, counts[b] - 1].argmax()
            counts[b] += 1
    np.savez(OUT / f"{name}.npz", tokens=all_tokens, primes=np.array(PRIMES, "int32"),
             logits=model.predict_on_batch(all_tokens)[:, STEPS - max(PRIMES) - 1])
    model.save(OUT / f"{name}.keras")
    print(name, [len(set(t)) for t in all_tokens.tolist()])


for layers in (attention, recurrences, convolutions, mixed):
    write(layers.__name__, layers)
