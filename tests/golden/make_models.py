"""Layers in small models: as Keras writes them, their predictions and a step of training. Writes
models/, a file for each family of layers.

A case has in its settings `model`, which is model.to_json(), and `paths`, those of model.weights;
its arrays are the weights before, w0, …, and after a step of SGD at 0.1 on the mean squared error
of every output, s0, …; inputs x0, …, predictions y0, … and targets z0, …. All are kept as floats
where Keras has narrower ones or int8; `bound` is there where they are off by more than 1e-5. A case
that is quantized by model.quantize also has `mode`, `float`, the model before, and its weights, f0,
…; one with integers and LoRA r0, …, the predictions of the file, in which both are one kernel.
"""

import json
import sys
import tempfile

import common
import keras
import numpy as np

L = keras.layers
OUT = common.HERE / "models"
RATE = 0.1


def values(name, shape, kind):
    """kind: None for floats, or the number of indices."""
    count = int(np.prod(shape))
    x = common.hashed_uniform(name, count).reshape(shape)
    if kind is None:
        return x
    return np.minimum((x + 1) / 2 * kind, kind - 1).astype(np.int32)


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def as_floats(arrays):
    return [np.asarray(a).astype(np.float32) for a in arrays]


def case(group, name, build, inputs, rows=4, train=True, mode=None, bound=None, lazy=False):
    """inputs: for each input of the model its shape without the batch, or a pair of the shape and
    the number of indices. mode: for model.quantize. lazy: some weights are made when it is first
    called."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(7)
    shapes = [i if len(i) != 2 or not isinstance(i[0], tuple) else i[0] for i in inputs]
    kinds = [None if len(i) != 2 or not isinstance(i[0], tuple) else i[1] for i in inputs]
    symbols = [keras.Input(s, dtype="float32" if k is None else "int32", name=f"in{i}")
               for i, (s, k) in enumerate(zip(shapes, kinds))]
    model = keras.Model(symbols if len(symbols) > 1 else symbols[0], build(*symbols), name=name)
    if lazy:
        model.predict_on_batch([values("", (rows, *s), k) for s, k in zip(shapes, kinds)])
    for i, weight in enumerate(model.weights):
        if np.issubdtype(np.dtype(weight.dtype), np.floating):
            weight.assign(np.asarray(weight) + 0.3 * values(f"{name}/w{i}", weight.shape, None))
        elif weight.dtype == "int8":
            most = 7 if "zero" in weight.path else 127
            weight.assign(np.round(most * values(f"{name}/w{i}", weight.shape, None)))
    about, arrays = {}, {}
    if mode:
        about = {"mode": mode, "float": json.loads(model.to_json()),
                 "float_paths": [w.path for w in model.weights]}
        arrays = {f"f{i}": a for i, a in enumerate(as_floats(model.weights))}
        if "/" in mode:
            block = int(mode.split("/")[1])
            model.quantize(config=keras.quantizers.Int4QuantizationConfig(block_size=block))
        else:
            model.quantize(mode)
    if bound:
        about["bound"] = bound
    text = model.to_json()
    fixed = [tuple(5 if e is None else e for e in s) for s in shapes]
    x = [values(f"{name}/x{i}", (rows, *s), k) for i, (s, k) in enumerate(zip(fixed, kinds))]
    arrays |= {f"x{i}": a for i, a in enumerate(x)}
    arrays |= {f"w{i}": w for i, w in enumerate(as_floats(model.weights))}
    y = as_floats(as_list(model.predict_on_batch(x if len(x) > 1 else x[0])))
    arrays |= {f"y{i}": a for i, a in enumerate(y)}
    if "lora" in name and any(w.dtype == "int8" for w in model.weights):
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model.keras")
            back = keras.models.load_model(f"{folder}/model.keras")
        back = back.predict_on_batch(x if len(x) > 1 else x[0])
        arrays |= {f"r{i}": a for i, a in enumerate(as_floats(as_list(back)))}
    paths = [w.path for w in model.weights]
    assert len(set(paths)) == len(paths), paths
    if train:
        z = [values(f"{name}/z{i}", a.shape, None) for i, a in enumerate(y)]
        model.compile(keras.optimizers.SGD(RATE), loss=["mse"] * len(y) if len(y) > 1 else "mse")
        model.train_on_batch(x if len(x) > 1 else x[0], z if len(z) > 1 else z[0])
        arrays |= {f"z{i}": a for i, a in enumerate(z)}
        arrays |= {f"s{i}": w for i, w in enumerate(as_floats(model.weights))}
    group[name] = ({**about, "model": json.loads(text), "paths": paths, "inputs": len(x),
                    "outputs": len(y), "train": train}, arrays)


def write(family, group):
    common.write_arrays(OUT / f"{family}.safetensors",
                        {f"{n}/{k}": v for n, (_, a) in group.items() for k, v in a.items()},
                        {n: about for n, (about, _) in group.items()})


def lookup(symbol):
    """Indices with a mask."""
    return L.Embedding(5, 3, mask_zero=True)(symbol)


def attention():
    group = {}
    two, three = [(4, 3), (5, 3)], [(4, 3), (5, 2), (5, 3)]
    masked = [((4,), 5), ((5,), 5)]
    for kind in L.Attention, L.AdditiveAttention:
        short = "attention" if kind is L.Attention else "additive"
        case(group, short, lambda q, v: L.Dense(2)(kind()([q, v])), two)
        case(group, f"{short}_key", lambda q, v, k: kind(use_scale=True)([q, v, k]), three)
        case(group, f"{short}_causal", lambda q, v: kind(dropout=0.5)([q, v], use_causal_mask=True),
             two, train=False)
        case(group, f"{short}_scores",
             lambda q, v: [L.Dense(2)(y) for y in kind(use_scale=False)(
                 [q, v], return_attention_scores=True)], two)
        def both(q, v):
            q, v = lookup(q), lookup(v)
            return L.GlobalAveragePooling1D()(kind()([q, v], use_causal_mask=True))
        case(group, f"{short}_masked", both, masked)
        case(group, f"{short}_value_masked", lambda q, v: kind()([q, lookup(v)]),
             [(4, 3), masked[1]])
        case(group, f"{short}_open", lambda q, v: L.Dense(2)(kind()([q, v])),
             [(None, 3), (None, 3)])
    case(group, "attention_concat", lambda q, v: L.Attention(score_mode="concat")([q, v]), two)
    case(group, "attention_concat_scale",
         lambda q, v: L.Attention(use_scale=True, score_mode="concat")([q, v]), two)
    write("attention", group)


def heads():
    group = {}
    two, three = [(4, 3), (5, 2)], [(4, 3), (5, 2), (5, 4)]
    both = [((4,), 5), ((5,), 5)]
    kinds = {"heads": lambda **k: L.MultiHeadAttention(2, 3, **k),
             "grouped": lambda **k: L.GroupQueryAttention(3, 4, 2, **k)}
    for short, kind in kinds.items():
        # GroupQueryAttention wants values as wide as the query.
        two, three = ([(4, 3), (5, w)] for w in ((3, 3) if short == "grouped" else (2, 2)))
        three = [*three, (5, 4)]
        given, mask = [*two, (4, 5)], lambda m: keras.ops.cast(m, "bool")
        case(group, short, lambda q, v: kind(use_gate=True)(q, v), two)
        case(group, f"{short}_self", lambda q: kind(use_bias=False)(q, q), [(4, 3)])
        case(group, f"{short}_key", lambda q, v, k: kind()(q, v, key=k, use_causal_mask=True),
             three)
        case(group, f"{short}_given", lambda q, v, m: kind()(q, v, attention_mask=m),
             [*two, ((4, 5), 2)])
        case(group, f"{short}_given_key",
             lambda q, v, k, m: kind(sliding_window=3)(q, v, k, attention_mask=m),
             [*three, ((4, 5), 2)])
        # Keras takes the shape of MultiHeadAttention's scores from the query alone.
        def scores(q, v):
            y, p = kind()(q, v, return_attention_scores=True)
            return [L.Dense(2)(y), p]
        case(group, f"{short}_scores", scores, two)
        def masked(q, v, **keywords):
            q, v = lookup(q), lookup(v)
            return L.GlobalAveragePooling1D()(kind()(q, v, **keywords))
        case(group, f"{short}_masked", masked, both)
        # MultiHeadAttention takes the masks off its operands, so the sum has none.
        def residual(q):
            q = lookup(q)
            return L.GlobalAveragePooling1D()(L.Add()([q, kind()(q, q)]))
        case(group, f"{short}_residual", residual, both[:1])
        case(group, f"{short}_masked_causal", lambda q, v: masked(q, v, use_causal_mask=True), both)
        case(group, f"{short}_masked_dropout", lambda q: L.Flatten()(kind(dropout=0.3)(
            lookup(q), lookup(q), use_causal_mask=True)), both[:1], train=False)
        case(group, f"{short}_rules", lambda q: kind(
            kernel_regularizer="l2", bias_regularizer="l1", kernel_constraint="unit_norm",
            bias_constraint="non_neg", kernel_initializer="he_normal")(q, q), [(4, 3)])
        case(group, f"{short}_open", lambda q, v: kind()(q, v),
             [(None, two[0][1]), (None, two[1][1])])
    case(group, "heads_output", lambda q, v: L.MultiHeadAttention(2, 3, dropout=0.2, value_dim=2,
                                                                  output_shape=(2, 3))(q, v), two,
         train=False)
    # Those of keras/src/layers/attention/multi_head_attention_test.py.
    for name, q, v, m, axes in (
        ("mask2", (3, 4), (3, 2), (4, 2), (2,)), ("mask3", (3, 4), (3, 2), (3, 4, 2), (2,)),
        ("mask4", (3, 2), (4, 2), (2, 3, 4), (1,)), ("two", (3, 2), (3, 4), (3, 2, 3, 4), (1, 2)),
        ("five", (2, 3, 2), (2, 2, 2), (3, 2, 2, 2), (2, 3)),
    ):
        layer = lambda: L.MultiHeadAttention(2, 2, attention_axes=axes)
        case(group, f"axes_{name}", lambda q, v: layer()(q, v), [(*q, 3), (*v, 3)])
        if name in ("mask3", "mask4", "two"):
            case(group, f"axes_{name}_given", lambda q, v, m: layer()(q, v, attention_mask=m),
                 [(*q, 3), (*v, 3), (m, 2)])
    case(group, "axes_first", lambda q: L.MultiHeadAttention(2, 2, attention_axes=1)(
        q, q, use_causal_mask=True), [(3, 2, 3)])
    def scores(q):
        y, p = L.MultiHeadAttention(2, 2, attention_axes=-2)(q, q, return_attention_scores=True)
        return [L.Dense(2)(y), p]
    case(group, "axes_scores", scores, [(2, 2, 3)])
    write("heads", group)


def core():
    group = {}
    # Those of keras/src/layers/core/einsum_dense_test.py, with other extents.
    for name, equation, bias, shape, output in (
        ("1d_end", "ab,b->a", None, (3,), ()),
        ("2d_middle", "ab,bc->ac", "c", (3,), (4,)),
        ("3d_middle", "abc,cd->abd", None, (3, 2), (3, 4)),
        ("3d_none", "abc,cd->abd", "d", (3, 2), (None, 4)),
        ("3d_bias_two", "abc,cd->abd", "bd", (3, 2), (3, 4)),
        ("3d_three", "abc,cde->abde", "de", (3, 2), (3, 4, 5)),
        ("3d_one_bias", "abc,cde->abde", "e", (3, 2), (3, 4, 5)),
        ("3d_middle_bias", "abc,cde->abde", "d", (3, 2), (3, 4, 5)),
        ("4d_end", "abcd,cd->ab", None, (2, 3, 4), (2,)),
        ("4d_contract", "abcd,cde->abe", "e", (2, 3, 4), (2, 5)),
        ("4d_swap", "abc,bd->adc", None, (2, 3), (4, 3)),
        ("4d_shared", "abc,bcd->abd", "bd", (2, 3), (2, 4)),
        ("outer", "ab,cd->abcd", None, (2,), (2, 3, 2)),
        ("elements", "abc,bc->abc", "c", (2, 3), (2, 3)),
        ("left", "...b,bc->...c", "c", (2, 3), (4,)),
        ("left_four", "...b,bc->...c", None, (2, 2, 3), (4,)),
        ("left_more", "...bc,cd->...bd", "d", (2, 3, 2), (3, 4)),
        ("right", "ab...,bc->ac...", "c", (3, 2, 2), (4,)),
        ("right_two", "abc...,bd->adc...", "d", (3, 2, 2), (4, 2)),
    ):
        case(group, f"einsum_{name}",
             lambda x: L.EinsumDense(equation, output, bias_axes=bias, activation="tanh")(x),
             [shape])
    case(group, "einsum_arguments", lambda x: L.EinsumDense(
        "abc,cd->abd", (None, 4), bias_axes="d", kernel_regularizer="l2", bias_regularizer="l1",
        activity_regularizer="l2", kernel_constraint="max_norm", bias_constraint="non_neg")(x),
        [(None, 3)])
    case(group, "einsum_int", lambda x: L.EinsumDense("ab,bc->ac", 4)(x), [(3,)])
    case(group, "identity", lambda x: L.GRU(2)(L.Identity()(lookup(x))), [((4,), 5)])
    case(group, "activity", lambda x: L.ActivityRegularization(0.1, 0.2)(
        L.Dense(3, "tanh")(L.ActivityRegularization(l2=0.1)(x))), [(3,)])
    write("core", group)


def wrapped():
    group = {}
    spectral = L.SpectralNormalization
    case(group, "spectral_dense", lambda x: spectral(L.Dense(4, "tanh"))(x), [(3,)])
    case(group, "spectral_conv", lambda x: spectral(L.Conv2D(3, 2), power_iterations=3)(x),
         [(4, 3, 2)])
    # Keras converts the output to the dtype of the indices.
    case(group, "spectral_embedding", lambda x: spectral(L.Embedding(5, 3))(L.ReLU()(x)), [(4,)])
    case(group, "spectral_einsum",
         lambda x: spectral(L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"))(x),
         [(3, 2)])
    case(group, "spectral_twice", lambda x: spectral(L.Dense(3, bias_regularizer="l2"))(
        spectral(L.Dense(4, use_bias=False))(x)), [(3,)])
    def tied(**arguments):
        def build(x):
            layer = L.ReversibleEmbedding(5, 3, **arguments)
            return layer(L.Dense(3, "tanh")(layer(x)), reverse=True)
        return build
    case(group, "reversible", tied(embeddings_regularizer="l2"), [((4,), 5)])
    case(group, "reversible_untied", tied(tie_weights=False, logit_soft_cap=0.5), [((4,), 5)])
    case(group, "reversible_masked", tied(mask_zero=True, reverse_dtype="float32"), [((4,), 5)])
    case(group, "reversible_once", lambda x: L.ReversibleEmbedding(5, 3)(x), [((4,), 5)])
    case(group, "lora_dense", lambda x: L.Dense(4, "tanh", lora_rank=2, kernel_regularizer="l2")(x),
         [(3,)])
    case(group, "lora_dense_alpha", lambda x: L.Dense(4, lora_rank=2, lora_alpha=6)(x), [(2, 3)])
    case(group, "lora_einsum", lambda x: L.EinsumDense(
        "ab,bcd->acd", (3, 4), bias_axes="d", lora_rank=2, lora_alpha=3)(x), [(3,)])
    case(group, "lora_embedding", lambda x: L.Dense(2)(L.Embedding(5, 3, lora_rank=2)(x)),
         [((4,), 5)])
    case(group, "lora_conv1d", lambda x: L.Conv1D(3, 2, lora_rank=1, lora_alpha=2)(x), [(5, 2)])
    case(group, "lora_conv2d", lambda x: L.Conv2D(4, (2, 1), lora_rank=2, padding="same")(x),
         [(3, 4, 2)])
    case(group, "lora_conv3d", lambda x: L.Conv3D(4, (2, 1, 2), strides=(1, 2, 1), groups=2,
                                                  lora_rank=2, lora_alpha=3)(x), [(3, 4, 2, 2)])
    case(group, "each_volume", lambda x: L.TimeDistributed(L.Conv3D(2, 2))(x), [(2, 3, 3, 2, 2)])
    case(group, "each_pooled", lambda x: L.Dense(2)(L.TimeDistributed(L.MaxPooling3D(2))(x)),
         [(3, 2, 4, 2, 2)])
    case(group, "pipeline", lambda x: L.Pipeline(
        [L.Rescaling(2.0, 1.0), L.Dense(3, "tanh"), L.Dense(2)])(x), [(3,)])
    case(group, "pipeline_images", lambda x: L.Conv2D(2, 2)(L.Pipeline(
        [L.CenterCrop(3, 4), L.Resizing(5, 5), L.BatchNormalization(momentum=0.6)],
        name="prepared")(x)), [(4, 6, 2)])
    case(group, "pipeline_masked", lambda x: L.GRU(2)(L.Pipeline(
        [L.Embedding(5, 3, mask_zero=True), L.Dense(2), L.Masking(0.5)])(x)), [((4,), 5)])
    write("wrapped", group)


def sound():
    """Samples up to 1; gradients of log are large where there is nothing to hear."""
    group = {}
    stft, mel = L.STFTSpectrogram, L.MelSpectrogram
    dense = lambda y: L.Dense(2)(L.Flatten()(y))
    for mode in ("log", "magnitude", "psd", "real", "imag", "stft"):
        case(group, f"stft_{mode}", lambda x: stft(mode, 8, frame_step=3)(x), [(20, 2)])
    case(group, "stft_same", lambda x: dense(stft(
        "psd", 9, 4, 20, "hamming", True, "spectrum", "same", True)(x)), [(21, 2)])
    case(group, "stft_plain", lambda x: stft("magnitude", 6, window=None, scaling=None)(x),
         [(13, 1)])
    for window in ("blackman", "nuttall", "blackmanharris", "flattop", "bartlett", "cosine",
                   "boxcar"):
        case(group, f"stft_{window}", lambda x: stft("stft", 6, window=window,
                                                     periodic=window == "cosine")(x), [(13, 1)])
    case(group, "stft_frozen", lambda x: dense(stft("psd", 4, trainable=False)(x)), [(9, 1)])
    few = {"fft_length": 16, "sequence_stride": 5, "num_mel_bins": 4, "sampling_rate": 4000}
    case(group, "mel", lambda x: mel(**few)(x), [(30,)], train=False)
    case(group, "mel_part", lambda x: mel(
        **few, sequence_length=11, window="hamming", min_freq=0.0, max_freq=1500.0, top_db=6.0,
        ref_power=-2.0, min_power=1e-3)(x), [(30,)], train=False)
    case(group, "mel_power", lambda x: dense(mel(
        **few, window=None, power_to_db=False, mag_exp=1.5)(x)), [(17,)])
    write("sound", group)


def merging():
    group = {}
    dense = lambda x, n=3: L.Dense(n)(x)
    pair = [(4, 3), (4, 3)]
    for kind in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum):
        name = kind.__name__.lower()
        case(group, name, lambda a, b: kind()([dense(a), b]), pair)
        case(group, f"{name}_ranks", lambda a, b: kind()([dense(a), dense(b)]), [(4, 2, 3), (3,)])
    case(group, "add_many", lambda a, b, c: L.Add()([dense(a), b, c]), [(4, 3), (1, 3), (3,)])
    case(group, "multiply_broadcast", lambda a, b: L.Multiply()([dense(a), b]),
         [(4, 1, 3), (1, 5, 1)])
    case(group, "add_one", lambda a: L.Add()([dense(a), a]), [(4, 3)])
    case(group, "average_masked", lambda a, b: L.GRU(2)(L.Average()([lookup(a), lookup(b)])),
         [((4,), 5), ((4,), 5)])
    case(group, "add_part_masked", lambda a, b: L.GRU(2)(L.Add()([lookup(a), b])),
         [((4,), 5), (4, 3)])
    for axis in (1, 2, -1, -2):
        case(group, f"concatenate{axis}",
             lambda a, b: L.Concatenate(axis=axis)([dense(a), dense(b)]), pair)
    case(group, "concatenate_masked", lambda a, b: L.GRU(2)(L.Concatenate()([lookup(a), b])),
         [((4,), 5), (4, 2)])
    case(group, "concatenate_steps", lambda a, b: L.GRU(2)(L.Concatenate(axis=1)(
        [lookup(a), lookup(b)])), [((4,), 5), ((3,), 5)])
    case(group, "concatenate_open", lambda a, b: L.Concatenate(axis=1)([dense(a), dense(b)]),
         [(None, 3), (None, 3)])
    for name, axes, a, b in (
        ("vectors", -1, (3,), (3,)), ("last", -1, (4, 3), (2, 3)), ("first", 1, (3, 4), (3, 2)),
        ("both", (2, 1), (4, 3), (3, 2)), ("negative", (-1, -2), (4, 3), (3, 2)),
        ("higher", (-2, -1), (3, 2), (1, 2, 3)), ("vector", (2, 1), (4, 3), (3,)),
        ("vector_first", (1, 2), (3,), (4, 3)), ("normalized", 1, (3,), (3,)),
    ):
        case(group, f"dot_{name}", lambda x, y: L.Dot(axes, normalize=name == "normalized")(
            [L.Dense(x.shape[-1])(x), y]), [a, b])
    write("merging", group)


def activated():
    """Layers as activations of others, which Keras builds when the model is first called."""
    group = {}
    for name, layer, shape in (
        ("conv2d", lambda: L.Conv2D(3, 2, activation=L.PReLU("he_normal", shared_axes=[1, 2])),
         (4, 4, 2)),
        ("conv1d", lambda: L.Conv1D(3, 2, activation=L.PReLU()), (4, 2)),
        ("channels_first", lambda: L.Conv2D(
            3, 2, data_format="channels_first", activation=L.PReLU(shared_axes=[2])), (2, 4, 3)),
        ("softmax_channels_first", lambda: L.Conv2D(
            3, 2, data_format="channels_first", activation=L.Softmax(1)), (2, 4, 3)),
        ("transposed", lambda: L.Conv2DTranspose(2, 2, 2, activation=L.PReLU()), (2, 2, 2)),
        ("depthwise", lambda: L.DepthwiseConv2D(2, activation=L.LayerNormalization()), (3, 3, 2)),
        ("separable", lambda: L.SeparableConv1D(3, 2, activation=L.PReLU(shared_axes=[1])),
         (4, 2)),
        ("dense", lambda: L.Dense(3, activation=L.PReLU(alpha_regularizer="l2")), (4,)),
        ("dense_statistics", lambda: L.Dense(3, activation=L.BatchNormalization()), (4,)),
        ("dense_dense", lambda: L.Dense(3, activation=L.Dense(3, activation=L.PReLU())), (4,)),
        ("dense_frozen", lambda: L.Dense(3, activation=L.PReLU(
            "he_normal", trainable=False)), (4,)),
        ("dense_nested", lambda: L.Dense(3, activation=L.Activation(L.PReLU())), (4,)),
        ("einsum", lambda: L.EinsumDense("abc,cd->abd", (None, 3), activation=L.PReLU()), (2, 4)),
        ("activation", lambda: L.Activation(L.PReLU()), (3, 4)),
    ):
        case(group, "activated_" + name, lambda x: L.Dense(2)(layer()(x)), [shape], lazy=True)
    write("activated", group)


def operations():
    """Operations of keras.ops on the results of a layer."""
    group = {}
    K = keras.ops
    scales = np.array([1.5, -0.5, 2, 0.25], "float32")
    d = lambda x: L.Dense(x.shape[-1])(x)
    floats = lambda x: K.cast(x, "float32")
    for name, build, *shapes in (
        ("sort", lambda x: K.sort(d(x)) + K.sort(d(x), axis=1), (3, 4)),
        ("argsort", lambda x: floats(K.argsort(d(x), axis=1)) * d(x), (3, 4)),
        ("argsort_equal", lambda x: floats(K.argsort(K.round(2 * d(x)))) * d(x), (9,)),
        # Without -0.0, which XLA's top_k orders before 0.0, unlike its sort.
        ("top_k", lambda x: K.top_k(d(x), 2)[0] * floats(K.top_k(K.round(2 * d(x)) + 9, 2)[1]),
         (3, 5)),
        ("median", lambda x: K.median(d(x), axis=1) + K.median(d(x), axis=2, keepdims=True)[:, 0],
         (3, 4)),
        ("depth_to_space", lambda x: K.depth_to_space(d(x), 2), (2, 3, 8)),
        ("space_to_depth", lambda x: K.space_to_depth(d(x), 2), (4, 2, 3)),
        ("resize", lambda x: K.image.resize(d(x), (5, 2)), (3, 4, 2)),
        ("resize_bicubic", lambda x: K.image.resize(
            d(x), (2, 3), interpolation="bicubic", antialias=True), (4, 4, 2)),
        ("resize_nearest", lambda x: K.image.resize(d(x), (6, 3), "nearest"), (3, 4, 2)),
        ("hyperbolic", lambda x: K.arccosh(K.exp(d(x)) + 1.5) + K.arctanh(K.tanh(d(x)) * 0.9),
         (4,)),
        ("angles", lambda x: K.deg2rad(d(x)) + K.rad2deg(d(x)) / 50 + K.sinc(d(x)), (4,)),
        ("near", lambda x: K.fmax(K.fabs(d(x)), d(x)) + K.fmin(d(x), K.erfc(d(x))), (4,)),
        ("steps", lambda x: K.heaviside(d(x), d(x)) + d(x), (4,)),
        ("infinite", lambda x: floats(K.isposinf(d(x))) + floats(K.isneginf(d(x))) + d(x), (4,)),
        ("diff", lambda x: K.diff(d(x), n=2, axis=1) + K.average(d(x), axis=-1)[:, :2, None],
         (4, 3)),
        ("layer_norm", lambda x: K.layer_normalization(d(x), epsilon=0.1) *
         K.layer_normalization(d(x), scales, scales, epsilon=0.1), (3, 4)),
        ("rms_norm", lambda x: K.rms_normalization(d(x), axis=[1, 2], epsilon=0.1) +
         K.rms_normalization(d(x), scales, epsilon=0.1), (3, 4)),
    ):
        case(group, "ops_" + name, build, shapes)
    write("operations", group)


def simple():
    group = {}
    scaled = {"kernel_initializer": "random_uniform", "bias_initializer": "ones"}
    case(group, "dense", lambda x: L.Dense(4, "relu", **scaled)(x), [(3,)])
    case(group, "dense_ranks", lambda x: L.Dense(
        5, "sigmoid", kernel_regularizer="l2", bias_regularizer="l2",
        activity_regularizer="l2", kernel_constraint="max_norm")(x), [(2, 2, 2, 3)])
    case(group, "embedding", lambda x: L.Embedding(
        5, 4, embeddings_initializer="ones", embeddings_regularizer="l1",
        embeddings_constraint="non_neg")(x), [((2, 3), 5)])
    case(group, "embedding_floats", lambda x: L.Embedding(5, 4)(L.ReLU()(x)), [(3,)])
    case(group, "masking", lambda x: L.GRU(3)(L.Masking(0.5)(x)), [(4, 3)])
    d = lambda x: L.Dense(x.shape[-1])(x)
    for name, layer, shape in (
        ("layer_normalization", lambda: L.LayerNormalization(
            -2, beta_regularizer="l2", gamma_regularizer="l1", beta_constraint="non_neg",
            gamma_constraint="unit_norm", beta_initializer="ones"), (3, 4)),
        ("layer_normalization_axes", lambda: L.LayerNormalization([-2, -1]), (3, 4)),
        ("layer_normalization_rms",
         lambda: L.LayerNormalization(rms_scaling=True, scale=False), (4,)),
        ("layer_normalization_bare", lambda: L.LayerNormalization(center=False, scale=False), (4,)),
        ("rms_normalization", lambda: L.RMSNormalization(axis=[1, 2], epsilon=1e-3), (3, 4)),
        ("unit_normalization", lambda: L.UnitNormalization(axis=[1, -1]), (3, 2, 2)),
        ("group_normalization", lambda: L.GroupNormalization(2, axis=-2, epsilon=1e-2), (4, 3)),
        ("prelu", lambda: L.PReLU("he_normal", "l1", "max_norm", shared_axes=1), (3, 4)),
        ("prelu_list", lambda: L.PReLU("ones", shared_axes=[1, 2]), (3, 4, 2)),
        ("leaky_relu", lambda: L.LeakyReLU(negative_slope=1), (3, 4)),
        ("relu", lambda: L.ReLU(10, 1, 0.5), (3, 4)),
        ("elu", lambda: L.ELU(alpha=0.3), (3, 4)),
        ("softmax", lambda: L.Softmax(axis=-2), (3, 4)),
        ("softmax_axes", lambda: L.Softmax(axis=[1, 2]), (3, 4)),
        ("softmax_list", lambda: L.Softmax(axis=[-1]), (3, 4)),
        ("softmax_one", lambda: L.Softmax(axis=1), (4,)),
        ("activation", lambda: L.Activation("gelu"), (3, 4)),
    ):
        case(group, name, lambda x: layer()(d(x)), [shape])
    # Keras' losses take the mask for one of rows and steps.
    case(group, "softmax_masked", lambda x, m: L.Softmax()(d(x), mask=m), [(3, 4), ((3, 4), 2)],
         train=False)
    case(group, "softmax_row_masked", lambda x, m: L.Softmax(axis=-2)(d(x), mask=m),
         [(3, 4), ((3, 1), 2)], train=False)
    write("simple", group)


def recurrent():
    """Masks and initial states, several outputs, normalization in time and called twice."""
    group = {}
    steps, words, state = (5, 3), ((5,), 5), (3,)
    lookup = lambda x: L.Embedding(5, 3, mask_zero=True)(x)
    flat = lambda x: L.Dense(2)(L.Flatten()(x))

    case(group, "initial_state_mask",
         lambda x, h, c: L.LSTM(3, return_sequences=True)(lookup(x), initial_state=[h, c]),
         [words, state, state])
    case(group, "initial_state_mask_after",
         lambda x, h: L.LSTM(2)(L.GRU(3, return_sequences=True)(lookup(x), initial_state=[h])),
         [words, state])
    case(group, "initial_state_both",
         lambda x, h, g: L.GRU(2)(L.Bidirectional(L.GRU(3, return_sequences=True))(
             lookup(x), initial_state=[h, g])), [words, state, state])
    case(group, "mask_given",
         lambda x, h: L.GRU(3, return_sequences=True)(
             x, initial_state=[h], mask=keras.ops.any(x > 0.3, axis=-1)), [steps, state])
    case(group, "states",
         lambda x: list(L.LSTM(3, return_state=True, return_sequences=True)(lookup(x))), [words])
    case(group, "cells_states",
         lambda x: [L.Dense(2)(y) for y in keras.tree.flatten(
             L.RNN([L.LSTMCell(3), L.GRUCell(2)], return_state=True)(x))], [steps])
    case(group, "cell", lambda x, h, c: keras.tree.flatten(L.LSTMCell(3)(x, [h, c])),
         [(4,), state, state])
    pictures = (3, 5, 4, 2)
    case(group, "conv_lstm_states", lambda x: flat(L.ConvLSTM2D(2, 3, padding="same")(
        x, initial_state=list(L.ConvLSTM2D(2, 2, padding="same", return_state=True)(x))[1:])),
         [pictures])
    volumes = (2, 4, 3, 3, 2)
    case(group, "conv_lstm3d", lambda x: L.ConvLSTM3D(2, 2)(x), [volumes])
    case(group, "conv_lstm3d_same", lambda x: L.ConvLSTM3D(
        2, (1, 2, 2), (2, 1, 2), go_backwards=True, use_bias=False)(L.ConvLSTM3D(
            2, (3, 2, 1), padding="same", return_sequences=True)(x)), [volumes])
    case(group, "conv_lstm3d_dilated", lambda x: L.ConvLSTM3D(
        2, 2, dilation_rate=(2, 1, 1), recurrent_activation="hard_sigmoid")(x), [volumes])
    case(group, "conv_lstm3d_states", lambda x: flat(L.ConvLSTM3D(2, 3, padding="same")(
        x, initial_state=list(L.ConvLSTM3D(2, 2, padding="same", return_state=True)(x))[1:])),
         [volumes])
    case(group, "each_step_normalized",
         lambda x: L.LSTM(2)(L.TimeDistributed(L.BatchNormalization(momentum=0.6))(x)), [steps])

    def twice(a, b):
        shared = L.BatchNormalization(momentum=0.7)
        return L.Dense(1)(L.Concatenate()([shared(a), shared(b)]))
    case(group, "normalized_twice", twice, [(4,), (4,)])
    write("recurrent", group)


def quantized():
    group = {}
    bf16, f16 = 4 * 2.0**-8, 4 * 2.0**-11
    # Sums of more than 1040 products are not exact in float32, nor those over several axes.
    case(group, "int8_dense", lambda x: L.Dense(3, "tanh")(x), [(5,)], mode="int8")
    case(group, "int8_dense_long", lambda x: L.Dense(2, use_bias=False)(x), [(1100,)], mode="int8",
         rows=2, train=False)
    case(group, "int8_dense_twice", lambda x: L.Dense(2, dtype="int8_from_float32")(
        L.LayerNormalization()(L.Dense(4, "relu", dtype="int8_from_float32")(x))), [(3, 5)])
    case(group, "int8_einsum", lambda x: L.Dense(2)(L.EinsumDense(
        "abc,cde->abde", (None, 2, 3), bias_axes="de")(x)), [(3, 4)], mode="int8")
    case(group, "int8_einsum_long", lambda x: L.EinsumDense(
        "abcd,cde->abe", (2, 3), bias_axes="e")(x), [(2, 30, 40)], mode="int8", rows=2)
    case(group, "int8_einsum_turned", lambda x: L.EinsumDense("btd,ndh->btnh", (None, 2, 3))(x),
         [(3, 4)], mode="int8", train=False)
    case(group, "int8_embedding", lambda x: L.Dense(2)(L.Embedding(5, 3)(x)), [((4,), 5)],
         mode="int8")
    case(group, "int8_lora_dense", lambda x: L.Dense(
        3, dtype="int8_from_float32", lora_rank=2)(x), [(5,)])
    case(group, "int8_bf16", lambda x: L.Dense(3, dtype="int8_from_mixed_bfloat16")(x), [(5,)],
         bound=bf16)
    def tied(**arguments):
        def build(x):
            layer = L.ReversibleEmbedding(5, 3, **arguments)
            return layer(L.LayerNormalization()(layer(x)), reverse=True)
        return build
    for name in "int8", "int4", "int4/2":
        short = name.replace("/", "_")
        case(group, f"{short}_tied", tied(), [((4,), 5)], mode=name)
        case(group, f"{short}_untied", tied(tie_weights=False, logit_soft_cap=0.5), [((4,), 5)],
             mode=name)
    for name in "int4/-1", "int4", "int4/2":
        short = name.replace("/", "_").replace("-", "")
        case(group, f"{short}_dense", lambda x: L.Dense(3, "tanh")(x), [(5,)], mode=name)
        case(group, f"{short}_einsum", lambda x: L.EinsumDense(
            "btd,ndh->btnh", (None, 2, 3), bias_axes="h")(x), [(3, 5)], mode=name)
        case(group, f"{short}_embedding", lambda x: L.Dense(2)(L.Embedding(5, 3)(x)), [((4,), 5)],
             mode=name)
    case(group, "int4_plain", lambda x: L.Dense(3, dtype="int4_from_float32")(x), [(5,)])
    case(group, "int4_tied_plain", tied(dtype="int4_from_float32"), [((4,), 5)])
    case(group, "int4_lora_dense", lambda x: L.Dense(
        3, dtype="int4/2_from_float32", lora_rank=2)(x), [(5,)])
    case(group, "int4_lora_embedding", lambda x: L.Dense(2)(L.Embedding(
        5, 3, dtype="int4_from_float32", lora_rank=2)(x)), [((4,), 5)])
    policy = keras.dtype_policies.QuantizedFloat8DTypePolicy
    case(group, "float8_dense", lambda x: L.Dense(2, dtype=policy("float8", "float32", 5))(
        L.Dense(4, "tanh", dtype=policy("float8", "float32", 1))(x)), [(3, 5)])
    case(group, "float8_einsum", lambda x: L.EinsumDense(
        "...b,bc->...c", 3, bias_axes="c", dtype=policy("float8", "float32", 2))(x), [(3, 4)])
    case(group, "float8_bf16", lambda x: L.Dense(3, dtype=policy("float8", "mixed_bfloat16", 3))(x),
         [(5,)], bound=bf16)
    for dtype, bound in ("bfloat16", 2 * bf16), ("float16", 2 * f16):
        case(group, dtype, lambda x: L.Dense(2, dtype=dtype)(L.BatchNormalization(
            momentum=0.5, dtype=dtype)(L.Conv1D(3, 2, activation="relu", dtype=dtype)(x))),
            [(5, 2)], bound=bound)
        case(group, f"{dtype}_steps", lambda x: L.Dense(2, dtype=dtype)(L.GRU(
            3, recurrent_initializer="glorot_uniform", dtype=dtype)(L.Embedding(
                5, 3, dtype=dtype)(x))), [((4,), 5)], bound=bound)
    write("quantized", group)


FAMILIES = (attention, heads, core, merging, quantized, recurrent, activated, operations, simple,
            sound, wrapped)

if __name__ == "__main__":
    if len(sys.argv) == 1:
        common.folder("models")
    for family in FAMILIES:
        if len(sys.argv) == 1 or family.__name__ in sys.argv[1:]:
            family()
