"""Models of Keras 2 in its own files, by the package tf-keras. Writes keras2/.

    TF_USE_LEGACY_KERAS=1 python tests/golden/make_keras2.py [CASE…]

CASE.h5 (or .hdf5, .keras) is a whole model; CASE.npz has its inputs x0, x1, … and predictions y0,
…; and for models that are compiled the labels t0, … and `losses` of four steps on that batch after
the one before the model was saved, by the model as it was in memory. VERSIONS names the packages.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import h5py
import json
import numpy as np
import tensorflow as tf
import tf_keras as keras

L = keras.layers
OUT = pathlib.Path(__file__).resolve().parent / "keras2"
CASES = {}


def case(build):
    CASES[build.__name__] = build
    return build


def f32(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape).astype(np.float32)


def whole(n, *shape):
    return np.random.default_rng(sum(shape)).integers(0, n, shape).astype(np.float32)


def spread(model):
    """Weights that are not those of initializers."""
    rng = np.random.default_rng(7)
    model.set_weights([w + rng.uniform(0.0, 0.4, w.shape).astype(w.dtype)
                       if w.dtype == np.float32 else w for w in model.get_weights()])


# ---- Layers ----

@case
def images():
    """Convolutions as of an image classifier of 2019."""
    return keras.Sequential([
        L.Conv2D(4, 3, strides=2, padding="same", input_shape=(9, 8, 3), use_bias=False,
                 kernel_initializer=keras.initializers.VarianceScaling(2.0, "fan_out", "normal")),
        L.BatchNormalization(fused=True), L.ReLU(6.0), L.DepthwiseConv2D(3, padding="same"),
        L.LeakyReLU(0.1), L.SeparableConv2D(5, 2, activation="hard_sigmoid"), L.PReLU(shared_axes=[1, 2]),
        L.ZeroPadding2D(1), L.Conv2DTranspose(3, 2, strides=2), L.ELU(0.5), L.ThresholdedReLU(0.2),
        L.Cropping2D(((1, 0), (0, 1))), L.UpSampling2D(2, interpolation="bilinear"),
        L.MaxPooling2D(2), L.AveragePooling2D(2, 1, "same"), L.SpatialDropout2D(0.2),
        L.GaussianNoise(0.1), L.Activation("swish"), L.GlobalAveragePooling2D(keepdims=True),
        L.Flatten(), L.Dense(4, "relu", kernel_regularizer="l2",
                             kernel_constraint=keras.constraints.MaxNorm(2.0)),
        L.Dropout(0.5), L.AlphaDropout(0.1), L.LayerNormalization(), L.Dense(3), L.Softmax()]), [f32(4, 9, 8, 3)]


@case
def volumes():
    return keras.Sequential([
        L.Conv3D(2, 2, input_shape=(4, 4, 4, 1), activation="relu"), L.MaxPooling3D(2, 1),
        L.UpSampling3D(2), L.ZeroPadding3D(1), L.Conv3DTranspose(2, 2), L.AveragePooling3D(2),
        L.GlobalMaxPooling3D(), L.Reshape((2, 1)), L.Permute((2, 1)), L.Flatten(),
        L.RepeatVector(3), L.Conv1D(2, 2, padding="causal"), L.SeparableConv1D(3, 2, padding="same"),
        L.UpSampling1D(2), L.Cropping1D(1), L.ZeroPadding1D((1, 2)), L.MaxPooling1D(2),
        L.DepthwiseConv1D(2), L.Conv1DTranspose(2, 2), L.GlobalAveragePooling1D(), L.Dense(2)]), \
        [f32(3, 4, 4, 4, 1)]


@case
def recurrent():
    """Layers over time with the defaults of Keras 2, among them the older GRU."""
    return keras.Sequential([
        L.Embedding(9, 4, input_length=6, mask_zero=True),
        L.Bidirectional(L.LSTM(3, return_sequences=True, recurrent_activation="hard_sigmoid")),
        L.GRU(4, return_sequences=True, reset_after=False, recurrent_activation="hard_sigmoid",
              implementation=1),
        L.GRU(3, return_sequences=True), L.SimpleRNN(3, return_sequences=True, activation="relu"),
        L.TimeDistributed(L.Dense(4, activation="hard_sigmoid")),
        L.RNN(L.LSTMCell(3), return_sequences=True),
        L.RNN([L.GRUCell(3), L.SimpleRNNCell(2)], return_sequences=True),
        L.LSTM(3, return_sequences=True, go_backwards=True),
        L.Masking(0.0), L.LSTM(2, unroll=True), L.Dense(2, "softmax")]), [whole(9, 5, 6)]


@case
def convolved():
    return keras.Sequential([
        L.ConvLSTM2D(2, 2, return_sequences=True, input_shape=(3, 5, 5, 1)),
        L.TimeDistributed(L.Conv2D(2, 2)), L.TimeDistributed(L.BatchNormalization()),
        L.TimeDistributed(L.Flatten()), L.LSTM(2)]), [f32(2, 3, 5, 5, 1)]


@case
def oldest():
    """GRU and LSTM as the classes of TensorFlow 1 had them."""
    from tf_keras.src.layers.rnn import gru_v1, lstm_v1
    x = keras.Input((5, 3))
    y = lstm_v1.LSTM(4, return_sequences=True)(x)
    y = gru_v1.GRU(3)(y)
    return keras.Model(x, y), [f32(3, 5, 3)]


@case
def cudnn():
    """CuDNNLSTM and CuDNNGRU: tf-keras computes them on a processor once they are read as LSTM and
    GRU."""
    x = keras.Input((5, 3))
    y = L.Bidirectional(L.LSTM(4, return_sequences=True), name="both")(x)
    y = L.GRU(3, return_sequences=True, name="gru")(y)
    y = L.LSTM(2, name="lstm")(y)
    return keras.Model(x, y), [f32(3, 5, 3)]


@case
def merged():
    """Every layer that joins, shared layers, a layer called on lists and by keywords."""
    a, b = keras.Input((4, 3), name="a"), keras.Input((4, 3), name="b")
    shared = L.Dense(3, activation="tanh", name="shared")
    p, q = shared(a), shared(b)
    sums = [kind()([p, q]) for kind in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum,
                                        L.Minimum)]
    y = L.Concatenate(axis=-1)(sums)
    z = L.Dot((2, 2), normalize=True)([p, q])
    att = L.Attention(use_scale=True)([p, q])
    add = L.AdditiveAttention()([p, q])
    heads = L.MultiHeadAttention(2, 3)(p, q, return_attention_scores=False)
    norm = L.LayerNormalization(axis=-1)(heads + att + add)
    group = L.GroupNormalization(groups=1)(norm)
    unit = L.UnitNormalization()(group)
    out = L.EinsumDense("abc,cd->abd", output_shape=(None, 2), bias_axes="d")(unit)
    return keras.Model([a, b], [y, z, out]), [f32(3, 4, 3), f32(3, 4, 3) + 1]


@case
def nested():
    """Models in models, some called twice; the first layer of one is a model."""
    inner = keras.Sequential([L.Dense(4, "relu", input_shape=(3,)), L.BatchNormalization()], name="inner")
    h = keras.Input((4,))
    branch = keras.Model(h, [L.Add()([h, L.Dense(4, name="deep")(h)]), h], name="branch")
    x, w = keras.Input((3,), name="x"), keras.Input((3,), name="w")
    p, _ = branch(inner(x))
    q, r = branch(inner(w))
    branch.get_layer("deep").trainable = False
    front = keras.Sequential([inner, L.Dense(2, name="last")], name="front")
    return keras.Model([x, w], [L.Concatenate()([p, q, r]), front(x)]), [f32(4, 3), f32(5, 3)[:4]]


@case
def states():
    """From one recurrent layer to another, as a translator has them."""
    s, t = keras.Input((5,), name="source"), keras.Input((4,), name="target")
    y, h, c = L.LSTM(3, return_state=True)(L.Embedding(7, 2, mask_zero=True)(s))
    z = L.LSTM(3, return_sequences=True)(L.Embedding(6, 2)(t), initial_state=[h, c])
    return keras.Model([s, t], L.TimeDistributed(L.Dense(6, "softmax"))(z)), [whole(7, 3, 5),
                                                                             whole(6, 3, 4)]


@case
def prepared():
    P = L.experimental.preprocessing
    x = keras.Input((6, 5, 3))
    y = P.Rescaling(1 / 127.5, offset=-1.0)(x)
    n = P.Normalization(axis=-1)
    n.adapt(f32(20, 6, 5, 3) * 3 + 1)
    y = n(y)
    for layer in (P.RandomFlip("horizontal"), P.RandomRotation(0.1), P.RandomZoom(0.2),
                  P.RandomTranslation(0.1, 0.1), P.RandomContrast(0.1)):
        y = layer(y)
    y = P.Resizing(4, 4)(P.CenterCrop(5, 4)(y))
    return keras.Model(x, L.Dense(2)(L.Flatten()(y))), [f32(2, 6, 5, 3) * 50]


@case
def policy():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = keras.Sequential([L.Dense(4, "relu", input_shape=(3,)), L.Dense(2, dtype="float32")])
    keras.mixed_precision.set_global_policy("float32")
    return model, [f32(4, 3)]


# ---- Functions of TensorFlow ----

@case
def functions():
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    K = keras.backend
    d = L.Dense(4, activation="tanh")
    p, q = d(a), d(b)
    v = tf.stack([p, q], axis=1)
    flags = tf.cast(p > 0.1, tf.float32)
    outputs = [
        p + q * 2.0 - 1.0, 1.0 - p, 2 / (p + 3.0), -p ** 2, p / 2, p // 0.3, p % 0.7, abs(q),
        tf.concat([p, tf.nn.relu(q)], axis=-1)[:, 1:3], v[:, -1], v[..., 0], v[:, :, tf.newaxis],
        v[:, 0, ::2], tf.reduce_mean(v, axis=-1, keepdims=True), tf.reduce_sum(v, [1, 2]),
        K.max(v, axis=1), K.min(v, axis=-1), K.prod(p, axis=1), K.std(p, axis=1), K.var(p, axis=1),
        tf.reshape(v, [-1, 8]), tf.transpose(v, [0, 2, 1]), tf.matmul(v, v, transpose_b=True),
        tf.matmul(v, v, transpose_a=True), tf.matmul(v, tf.transpose(v, [0, 2, 1])), flags,
        tf.where(p > q, p, q), tf.maximum(p, 0.2), tf.minimum(p, q), tf.clip_by_value(p, -0.3, 0.3),
        tf.split(p, 2, axis=1)[1], tf.split(p, [1, 3], axis=-1)[1], tf.expand_dims(p, 1),
        tf.squeeze(tf.expand_dims(p, 1), axis=1), tf.tile(p, [1, 2]), tf.reverse(p, [1]),
        tf.exp(p), tf.math.log(abs(p) + 1.0), tf.sqrt(abs(p)), tf.square(p), tf.math.rsqrt(abs(p) + 1.0),
        tf.sigmoid(p), tf.tanh(p), tf.sin(p), tf.cos(p), tf.floor(p * 3), tf.round(p * 3), tf.sign(p),
        tf.nn.softmax(p), tf.nn.log_softmax(p), tf.nn.relu6(p * 9), tf.nn.leaky_relu(p, 0.3), tf.nn.elu(p),
        tf.nn.gelu(p), tf.nn.swish(p), tf.nn.softplus(p), tf.math.l2_normalize(p, axis=-1),
        tf.cast(tf.argmax(p, axis=-1), tf.float32), tf.math.top_k(p, 2)[0], tf.cumsum(p, axis=1),
        tf.one_hot(tf.cast(abs(p) * 3, tf.int32), 3), tf.gather(p, [2, 0], axis=1),
        tf.pad(p, [[0, 0], [1, 2]]), tf.pad(v, [[0, 0], [1, 1], [0, 2]], "REFLECT"),
        p * tf.constant([1.0, 2.0, 3.0, 4.0]), tf.subtract(p, np.array([1, 0, 1, 0], "float32")),
        tf.image.resize(tf.reshape(p, [-1, 2, 2, 1]), [4, 4]), K.concatenate([p, q]),
        K.sum(p, axis=1, keepdims=True), tf.math.logical_and(p > 0, q > 0), tf.unstack(v, axis=1)[1],
        tf.math.reduce_logsumexp(p, axis=-1), tf.repeat(p, 2, axis=1),
    ]
    outputs = [tf.cast(o, tf.float32) if o.dtype != tf.float32 else o for o in outputs]
    flat = [L.Flatten()(o) if len(o.shape) > 1 else L.Reshape((1,))(tf.expand_dims(o, 1)) for o in outputs]
    both = [L.Concatenate()(flat[:40]), L.Concatenate()(flat[40:])]
    return keras.Model([a, b], both), [f32(3, 4), f32(3, 4) * 0.5 + 0.2]


# ---- Training ----

def two_outputs():
    x = keras.Input((4,), name="x")
    y = L.BatchNormalization()(L.Dense(5, "relu", kernel_regularizer="l2")(x))
    model = keras.Model(x, [L.Dense(3, "softmax", name="scores")(y), L.Dense(1, name="value")(y)])
    return model, [f32(8, 4)], [np.arange(8) % 3, f32(8, 1)]


def classifier():
    model = keras.Sequential([L.Dense(5, "tanh", input_shape=(4,)), L.BatchNormalization(),
                              L.Dense(3, "softmax")])
    return model, [f32(8, 4)], [np.arange(8) % 3]


def compiled(name, optimizer, suffix=".h5", build=classifier, loss="sparse_categorical_crossentropy",
             metrics=("accuracy",), **arguments):
    def make():
        model, x, t = build()
        made = optimizer()
        model.compile(made, loss, metrics=list(metrics) if isinstance(metrics, tuple) else metrics,
                      **arguments)
        return model, x, t
    make.__name__, make.suffix = name, suffix
    CASES[name] = make


O, LEGACY = keras.optimizers, keras.optimizers.legacy
compiled("adam", lambda: O.Adam(0.01, amsgrad=True))
compiled("adamax", lambda: O.Adamax(0.02))
compiled("rmsprop", lambda: O.RMSprop(0.01, momentum=0.5, centered=True))
compiled("sgd", lambda: O.SGD(0.05, momentum=0.9, nesterov=True), suffix=".hdf5")
compiled("adadelta", lambda: O.Adadelta(0.5))
compiled("adagrad", lambda: O.Adagrad(0.1))
compiled("ftrl", lambda: O.Ftrl(0.1, l1_regularization_strength=0.01))
compiled("adamw", lambda: O.AdamW(0.01, use_ema=False))
# In a graph its product of momenta is multiplied once for each weight, not once in a step.
compiled("nadam", lambda: O.Nadam(0.01), run_eagerly=True)
compiled("decayed", lambda: O.Adam(O.schedules.ExponentialDecay(0.05, 2, 0.5, staircase=True)))
# With the names of variables that Keras 2.0 gave them, which do not say what they are.
compiled("unnamed", lambda: LEGACY.Adam(0.02))
compiled("sorted", lambda: LEGACY.Adam(0.02))
compiled("old_adam", lambda: LEGACY.Adam(0.02, decay=0.3, amsgrad=True),
         loss=keras.losses.SparseCategoricalCrossentropy(), metrics=[keras.metrics.SparseCategoricalAccuracy()])
compiled("old_sgd", lambda: LEGACY.SGD(0.05, momentum=0.9, decay=0.2))
compiled("old_rmsprop", lambda: LEGACY.RMSprop(0.01, momentum=0.5, centered=True))
compiled("old_adagrad", lambda: LEGACY.Adagrad(0.1))
compiled("old_adadelta", lambda: LEGACY.Adadelta(0.5))
compiled("old_ftrl", lambda: LEGACY.Ftrl(0.1))
compiled("outputs", lambda: O.Adam(0.01), build=two_outputs,
         loss={"scores": "sparse_categorical_crossentropy", "value": keras.losses.Huber(0.5)},
         metrics={"scores": ["accuracy"], "value": ["mae", "mse"]}, loss_weights={"scores": 1.0, "value": 0.3})
compiled("archive", lambda: O.Adam(0.01), suffix=".keras")


@case
def archive_functional():
    model, x = states()
    return model, x


archive_functional.suffix = ".keras"


# ---- Files ----

def to_cudnn(path):
    """The file as CuDNNLSTM and CuDNNGRU would have written it: tf-keras' own conversion of weights
    the other way, _convert_rnn_weights in saving/legacy/hdf5_format.py."""
    def kernel(k, gates):
        return np.hstack([b.T.ravel().reshape(b.shape) for b in np.hsplit(k, gates)])

    with h5py.File(path, "r+") as f:
        def visit(name, item):
            if not isinstance(item, h5py.Dataset):
                return
            gates = 3 if "gru" in name else 4
            if name.endswith("kernel:0"):
                item[...] = kernel(item[...], gates)
            elif name.endswith("bias:0"):
                b = item[...]
                if gates == 3:
                    changed.append((name, b.ravel()))
                else:
                    first = np.linspace(-0.2, 0.3, b.size).astype("float32")
                    changed.append((name, np.concatenate([first, b - first])))
        changed = []
        f["model_weights"].visititems(visit)
        for name, value in changed:
            del f["model_weights"][name]
            f["model_weights"][name] = value
        config = json.loads(f.attrs["model_config"])
        keep = ("name", "trainable", "dtype", "units", "kernel_initializer", "recurrent_initializer",
                "bias_initializer", "unit_forget_bias", "kernel_regularizer", "recurrent_regularizer",
                "bias_regularizer", "activity_regularizer", "kernel_constraint", "recurrent_constraint",
                "bias_constraint", "return_sequences", "return_state", "go_backwards", "stateful")
        for layer in config["config"]["layers"]:
            for of in (layer, layer["config"].get("layer", {})):
                if of.get("class_name") in ("LSTM", "GRU"):
                    of["class_name"] = "CuDNN" + of["class_name"]
                    of["config"] = {k: v for k, v in of["config"].items() if k in keep}
        f.attrs["model_config"] = json.dumps(config)
        for g in (f, f["model_weights"]):
            g.attrs["keras_version"] = "2.2.4-tf"


def to_unnamed(path, by_name):
    """by_name: in the order of the weights' names, as until 2.0.8."""
    with h5py.File(path, "r+") as f:
        g = f["optimizer_weights"]
        names = [n if isinstance(n, str) else n.decode() for n in g.attrs["weight_names"]]
        values = [g[n][...] for n in names]
        for n in list(g):
            del g[n]
        if by_name:
            half = (len(names) - 1) // 2
            order = np.argsort([n.replace("/m:0", ":0") for n in names[1:1 + half]])
            values = values[:1] + [values[1 + s * half + i] for s in range(2) for i in order]
        new = ["iterations_1:0"] + [f"Variable_{i + 7}:0" for i in range(len(names) - 1)]
        for n, v in zip(new, values):
            g[n] = v
        g.attrs["weight_names"] = [np.bytes_(n) for n in new]
        for g in (f, f["model_weights"]):
            g.attrs["keras_version"] = "2.0.5"


def as_list(y):
    return list(y) if isinstance(y, (list, tuple)) else [y]


def write(name):
    build = CASES[name]
    suffix = getattr(build, "suffix", ".h5")
    keras.utils.set_random_seed(5)
    keras.backend.clear_session()
    model, x, *t = build()
    spread(model)
    path = str(OUT / f"{name}{suffix}")
    one = lambda v: v if len(v) > 1 else v[0]
    if t:
        model.train_on_batch(one(x), one(t[0]))
    model.save(path)
    if name == "cudnn":
        to_cudnn(path)
        other = build()[0]      # tf-keras converts the weights back
        other.load_weights(path)
        for a, b in zip(other.get_weights(), model.get_weights()):
            np.testing.assert_allclose(a, b, atol=1e-6)
    if name in ("unnamed", "sorted"):
        to_unnamed(path, name == "sorted")
    arrays = {f"x{i}": a for i, a in enumerate(x)}
    arrays |= {f"y{i}": np.asarray(a, np.float32)
               for i, a in enumerate(as_list(model.predict_on_batch(one(x))))}
    if t:
        arrays |= {f"t{i}": np.asarray(a, np.float32) for i, a in enumerate(t[0])}
        losses = []
        for _ in range(4):
            losses.append(as_list(model.train_on_batch(one(x), one(t[0]), reset_metrics=True))[0])
        arrays["losses"] = np.array(losses, np.float32)
    np.savez(OUT / f"{name}.npz", **arrays)
    print(name, os.path.getsize(path), flush=True)


def main():
    OUT.mkdir(exist_ok=True)
    packages = ((m.__name__, m.__version__) for m in (tf, keras, h5py, np))
    (OUT / "VERSIONS").write_text("".join(f"{n} {v}\n" for n, v in packages))
    for name in sys.argv[1:] or CASES:
        write(name)


if __name__ == "__main__":
    main()
