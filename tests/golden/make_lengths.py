"""Inputs with unknown extents: models called with several lengths. Writes
lengths/models.safetensors and lengths/summary.txt.

A case is a model in Keras' JSON, "architecture", and the "shape" of its result. w0, w1, … are
its weights; x0_0, x0_1, … a batch of each input, y0 the result for it, x1_0 and y1 those of
the next length. training: the logs of train_on_batch for batches of several lengths in turn, and
the weights after them.
"""

import json

import common
import keras
import numpy as np

L = keras.layers
B = 3
CASES, ARRAYS = {}, {}


def values(name, *shape):
    return common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)


def tokens(name, rows, steps, most=6):
    """Integers below `most`; each row ends with as many zeros as its number."""
    drawn = ((values(name, rows, steps) + 1) / 2 * most).astype(np.int32)
    for i in range(rows):
        if i:
            drawn[i, -i:] = 0
    return np.maximum(drawn, (np.arange(steps) == 0).astype(np.int32))


def draw_weights(name, model):
    for i, w in enumerate(model.weights):
        drawn = 0.7 * values(f"{name}/w{i}", *w.shape)
        w.assign(np.abs(drawn) if "variance" in w.path else drawn)
        ARRAYS[f"{name}/w{i}"] = np.array(w.value)


def case(name, model, lengths, whole=False):
    draw_weights(name, model)
    CASES[name] = {"architecture": json.loads(model.to_json()), "shape": list(model.output_shape)}
    for n, length in enumerate(lengths):
        xs = []
        for i, x in enumerate(model.inputs):
            open_extents = iter(length if isinstance(length, tuple) else (length,) * 8)
            shape = [next(open_extents) if e is None else e for e in x.shape[1:]]
            xs.append(tokens(f"{name}/x{n}_{i}", B, *shape) if whole
                      else values(f"{name}/x{n}_{i}", B, *shape))
            ARRAYS[f"{name}/x{n}_{i}"] = xs[-1]
        ARRAYS[f"{name}/y{n}"] = np.array(model(xs[0] if len(xs) == 1 else xs))


def rows(name, *layers, shape=(None, 4)):
    return keras.Sequential([keras.Input(shape), *layers], name=name)


def embedding():
    return L.Embedding(6, 4, mask_zero=True)


def models():
    several = (5, 9, 4)
    token = (None,)
    case("lstm_gru", rows("lstm_gru", embedding(), L.LSTM(3, return_sequences=True), L.GRU(3),
                          L.Dense(2, activation="softmax"), shape=token), several, True)
    case("simple_rnn", rows("simple_rnn", embedding(), L.SimpleRNN(3), shape=token), several, True)
    case("averaged", rows("averaged", embedding(), L.GlobalAveragePooling1D(), L.Dense(2),
                          shape=token), several, True)
    case("both_ways", rows("both_ways", embedding(), L.Bidirectional(L.LSTM(3)), shape=token),
         several, True)
    case("both_ways_each", rows("both_ways_each", embedding(),
                                L.Bidirectional(L.GRU(2, return_sequences=True)),
                                L.TimeDistributed(L.Dense(3)), shape=token), several, True)
    case("each_step", rows("each_step", L.TimeDistributed(L.Dense(3, activation="relu")),
                           L.LayerNormalization(), L.LSTM(2, return_sequences=True)), several)
    case("masking", rows("masking", L.Masking(0.0), L.LSTM(3)), several)
    case("conv", rows("conv", L.Conv1D(5, 3, activation="relu"), L.GlobalAveragePooling1D(),
                      L.Dense(2)), several)
    case("conv_causal", rows("conv_causal", L.Conv1D(5, 3, padding="causal", dilation_rate=2),
                             L.SeparableConv1D(3, 2, padding="same"), L.GlobalMaxPooling1D()),
         several)
    case("conv_down_up", rows("conv_down_up", L.ZeroPadding1D(2), L.Conv1D(4, 3, strides=2),
                              L.MaxPooling1D(2), L.BatchNormalization(), L.UpSampling1D(3),
                              L.Cropping1D(1)), several)
    case("reshaped", rows("reshaped", L.Reshape((-1, 2)), L.Dense(3), L.Permute((2, 1))), several)
    sizes = ((8, 8), (7, 12), (16, 5))
    images = (None, None, 3)
    case("images", rows("images", L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
                        L.BatchNormalization(), L.MaxPooling2D(2), L.Conv2D(4, 2, padding="same"),
                        L.GlobalAveragePooling2D(), L.Dense(2), shape=images), sizes)
    case("images_full", rows("images_full", L.Rescaling(0.5), L.DepthwiseConv2D(3, padding="same"),
                             L.UpSampling2D(2), L.Cropping2D(1), shape=images), sizes)
    case("one_open", rows("one_open", L.Conv2D(2, 3), L.GlobalMaxPooling2D(), shape=(None, 6, 1)),
         several)
    case("frames", rows("frames", L.TimeDistributed(L.Conv2D(2, 2)),
                        L.TimeDistributed(L.GlobalAveragePooling2D()), L.LSTM(2),
                        shape=(None, 4, 4, 1)), several)

    a, b = keras.Input((None, 4), name="a"), keras.Input((None, 4), name="b")
    joined = L.Concatenate()([L.Dense(3)(a), L.Conv1D(3, 3, padding="same")(b)])
    both = L.Add()([L.Dense(4)(joined), a])
    case("joined", keras.Model([a, b], L.GlobalMaxPooling1D()(both), name="joined"), several)
    behind = L.Concatenate(axis=1)([a, b])
    case("behind", keras.Model([a, b], L.LSTM(3)(behind), name="behind"), several)
    t = keras.Input((None,), name="t")
    x = embedding()(t)
    x = L.Add()([x, L.MultiHeadAttention(2, 2)(x, x)])
    x = L.LayerNormalization()(x)
    case("attention", keras.Model(t, L.GlobalAveragePooling1D()(x), name="attention"), several,
         True)
    return both


def training():
    model = rows("training", embedding(), L.LSTM(3), L.Dense(1), shape=(None,))
    draw_weights("training", model)
    model.compile(keras.optimizers.SGD(0.2), "mean_squared_error")
    losses = []
    for n, steps in enumerate((5, 9, 5, 4)):
        x = tokens(f"training/x{n}", 4, steps)
        y = values(f"training/y{n}", 4, 1)
        ARRAYS[f"training/x{n}_0"], ARRAYS[f"training/y{n}"] = x, y
        model.reset_metrics()
        losses.append(float(model.train_on_batch(x, y)))
    for i, w in enumerate(model.weights):
        ARRAYS[f"training/after{i}"] = np.array(w.value)
    CASES["training"] = {"architecture": json.loads(model.to_json()), "losses": losses}


def padded():
    """pad_sequences of lists of several lengths, by its arguments."""
    sequences = [[1, 2, 3], [4], [], [5, 6, 7, 8, 9], [10, 11]]
    for n, arguments in enumerate((
            {}, {"padding": "post"}, {"maxlen": 3}, {"maxlen": 3, "truncating": "post"},
            {"maxlen": 3, "padding": "post"}, {"maxlen": 7, "value": -1},
            {"maxlen": 3, "padding": "post", "truncating": "post", "value": 4},
            {"dtype": "float32", "value": 0.5}, {"maxlen": 4, "dtype": "uint8", "value": 255})):
        CASES[f"padded{n}"] = arguments
        ARRAYS[f"padded{n}/y"] = keras.utils.pad_sequences(sequences, **arguments)
    steps = [np.arange(2 * n, dtype=np.float32).reshape(n, 2) for n in (3, 1, 4)]
    CASES["padded_steps"] = {"maxlen": 3, "dtype": "float32"}
    ARRAYS["padded_steps/y"] = keras.utils.pad_sequences(steps, maxlen=3, dtype="float32")


out = common.folder("lengths")
models()
training()
padded()
common.write_arrays(out / "models.safetensors", ARRAYS, CASES)
keras.utils.clear_session()
lines = []
rows("images", L.Conv2D(4, 3), L.GlobalAveragePooling2D(), L.Dense(2),
     shape=(None, None, 3)).summary(line_length=80, print_fn=lambda text: lines.append(text))
(out / "summary.txt").write_text("\n".join(lines))
