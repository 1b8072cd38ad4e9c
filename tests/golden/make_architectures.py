"""Models in Keras' JSON, and their predictions. Writes architectures/.

branches   two inputs, two outputs, one of them a nested model's; layers called twice, each on the
           other's result; a nested model with a Sequential one in it
sequences  integers as inputs; states from one recurrent layer to another by keyword; wrappers
masked     masked steps, for which Keras has operations; masks given by keyword
operations on tensors, written as Python has them; a call with training=False
elementwise, rearranged    each operation on its own
image      convolutions with regularizers, constraints and several initializers, batches of 4
attention  arguments of the call: causal, key by keyword, with its scores
translate  from an encoder in both directions to a decoder: their states
stack      a Sequential model of layers and models

NAME.json is model.to_json(), NAME.w100.txt its summary with the layers of nested models (not of
the last two, which are long).
architectures.safetensors has for each NAME/ the weights `w0`, `w1`, …
in the order of model.weights, the inputs `x0`, `x1`, … and the predictions `y0`, `y1`, ….
"""

import os

import common
import keras
import numpy as np

L = keras.layers
OUT = common.folder("architectures")


def branches():
    a, b = keras.Input((4,), name="a"), keras.Input((6,), name="b")
    h = keras.Input((4,))
    inner = keras.Sequential([keras.Input((4,)), L.Dense(5, "tanh"), L.Dropout(0.5, seed=3)])
    encoder = keras.Model(h, [inner(h), L.Subtract()([h, L.Dense(4)(h)])], name="encoder")
    first, second = L.Dense(4, "relu", name="first"), L.Dense(4, "tanh", name="second")
    x = second(first(second(first(a))))
    y = L.Dense(4, use_bias=False)(b)
    code, rest = encoder(x)
    other, _ = encoder(L.Average()([x, y]))
    joined = L.Concatenate(axis=-1)([code, other, L.Multiply()([rest, y])])
    scores = L.Dense(3, activation="softmax", name="scores")(joined)
    return keras.Model([a, b], [scores, encoder(y)[1]], name="branches")


def sequences():
    text = keras.Input((7,), dtype="int32", name="text")
    x = L.Embedding(11, 5)(text)
    y, h, c = L.LSTM(6, return_sequences=True, return_state=True)(x)
    z = L.LSTM(6, return_sequences=True)(y, initial_state=[h, c])
    both = L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode="sum")(z)
    each = L.TimeDistributed(L.Dense(2, activation="sigmoid"))(both)
    alike = L.Dot(axes=1, normalize=True)([z, y])
    return keras.Model(text, [each, L.SimpleRNN(4, unroll=True)(alike)], name="sequences")


def image():
    x = picture = keras.Input((8, 9, 2), batch_size=4)
    x = L.Rescaling(2, offset=-1.0)(x)
    x = L.Conv2D(4, (3, 2), padding="same", use_bias=False, kernel_initializer="he_normal",
                 kernel_regularizer=keras.regularizers.L1L2(0.01, 0.02),
                 kernel_constraint=keras.constraints.MaxNorm(2.0, axis=[0, 1, 2]))(x)
    x = L.BatchNormalization(momentum=0.9, scale=False)(x)
    x = L.Activation("relu")(x)
    shortcut = x
    x = L.Conv2D(4, 3, padding="same", activation="elu",
                 kernel_initializer=keras.initializers.TruncatedNormal(seed=1),
                 bias_regularizer="l2", activity_regularizer="l1")(x)
    x = L.Maximum()([shortcut, L.Minimum()([x, shortcut])])
    x = L.MaxPooling2D(2, strides=(2, 1))(x)
    x = L.AveragePooling2D((2, 3), padding="same")(x)
    x = L.Reshape((-1, 4))(L.Flatten()(x))
    x = L.Flatten()(x)
    y = L.Dense(3, kernel_constraint="unit_norm", bias_initializer="random_normal")(x)
    model = keras.Model(picture, y, name="image")
    model.layers[2].trainable = False
    return model


def masked():
    text, steps = keras.Input((7,), name="text"), keras.Input((7, 5), name="steps")
    x = L.Embedding(11, 5, mask_zero=True)(text)
    x = L.LSTM(6, return_sequences=True)(L.Add()([x, L.Masking(0.0)(steps)]))
    x = L.Bidirectional(L.GRU(3, return_sequences=True))(x)
    x = L.GRU(4)(x, mask=keras.ops.any(steps > 0.3, axis=-1))
    return keras.Model([text, steps], x, name="masked")


def operations():
    ops = keras.ops
    x, y = keras.Input((4, 6), name="x"), keras.Input((4, 6), name="y")
    z = L.Dense(6, name="z")(2 * x[:, ::-1] - y / 3)
    z = L.Dropout(0.5)(z, training=False)
    z = ops.concatenate([z, ops.absolute(x - y)], axis=1)[:, 1:7]
    heads = ops.transpose(ops.reshape(z, (-1, 6, 2, 3)), (0, 2, 1, 3))
    scores = ops.softmax(ops.matmul(heads, ops.transpose(heads, (0, 1, 3, 2))) / np.sqrt(3.0))
    z = ops.reshape(ops.einsum("bhts,bhsd->bthd", scores, heads), (-1, 6, 6))
    z = ops.where(z > 0, z, ops.mean(z, axis=-1, keepdims=True)) + np.arange(6, dtype="float32")
    first, second = ops.split(z, 2, axis=1)
    last = ops.stack([first[:, 0], ops.max(second, axis=1), x[:, -1]], axis=1)
    return keras.Model([x, y], [L.Dense(2)(last), z ** 2], name="operations")


def joined(name, x, y, results):
    """All results as one row; and a layer with weights."""
    flat = [keras.ops.reshape(keras.ops.cast(r, "float32"), (-1, int(np.prod(r.shape[1:]))))
            for r in results]
    parts = [keras.ops.concatenate(flat[i:i + 30], axis=1) for i in range(0, len(flat), 30)]
    row = keras.ops.concatenate(parts, axis=1)
    return keras.Model([x, y], [row, L.Dense(1)(y)], name=name)


def elementwise():
    ops, x, y = keras.ops, keras.Input((2, 4), name="x"), keras.Input((2, 4), name="y")
    a, b, n = x * 4 - 2, y * 4 - 2, keras.ops.cast(x * 9 - 4, "int32")
    functions = [ops.exp, ops.exp2, ops.expm1, ops.sin, ops.cos, ops.tan, ops.sinh, ops.cosh,
                 ops.tanh, ops.erf, ops.floor, ops.ceil, ops.trunc, ops.round, ops.sign, ops.abs,
                 ops.square, ops.relu, ops.relu6, ops.silu, ops.selu, ops.sigmoid, ops.softplus,
                 ops.softsign, ops.log_sigmoid, ops.hard_sigmoid, ops.hard_silu, ops.hard_tanh,
                 ops.tanh_shrink, ops.sparse_sigmoid, ops.sparse_plus, ops.isfinite, ops.isnan,
                 ops.isinf, ops.logical_not, ops.gelu]
    positive = [ops.log, ops.log1p, ops.log2, ops.log10, ops.sqrt, ops.rsqrt, ops.reciprocal]
    pairs = [ops.add, ops.subtract, ops.multiply, ops.divide, ops.maximum, ops.minimum, ops.mod,
             ops.floor_divide, ops.logaddexp, ops.hypot, ops.divide_no_nan, ops.equal,
             ops.greater_equal, ops.less, ops.less_equal]
    results = [f(a) for f in functions] + [f(x + 1) for f in positive] + [f(a, b) for f in pairs]
    results += [a**3, a**-1, ops.power(x, 1.5), -a, 1 - a, n // 2, n % 3, n / 2, ops.where(a > b, a, 0),
                ops.logical_and(a > 0, b > 0), ops.logical_or(a > 0, b > 0),
                ops.logical_xor(a > 0, b > 0), ops.clip(a, -1, 1), ops.leaky_relu(a, 0.3),
                ops.elu(a, 0.5), ops.celu(a, 2.0), ops.hard_shrink(a), ops.soft_shrink(a),
                ops.threshold(a, 0.3, 0.1), ops.squareplus(a), ops.gelu(a, approximate=False),
                ops.zeros_like(a), ops.ones_like(a), ops.full_like(a, 3.0),
                ops.cast(a, "float16") + b]
    return joined("elementwise", x, y, results)


def rearranged():
    ops, x, y = keras.ops, keras.Input((4, 6), name="x"), keras.Input((4, 6), name="y")
    a, b = x - 0.5, y - 0.5
    results = [a[:, 0], a[..., 1:5:3], a[:, ::-1, None], a[:, -1, 4:0:-2], ops.swapaxes(a, 1, 2),
               ops.moveaxis(a, -1, 1), ops.flip(a, axis=1), ops.roll(a, 2, axis=1),
               ops.hstack([a, b]), ops.unstack(a, axis=1)[2], ops.split(a, [2, 3], axis=-1)[1],
               ops.squeeze(ops.expand_dims(a, 1)), ops.tile(a, (1, 2, 1)),
               ops.repeat(a, 2, axis=1), ops.pad(a, ((0, 0), (1, 2), (0, 0)), constant_values=2.0),
               ops.pad(a, ((0, 0), (1, 2), (2, 0)), mode="reflect"),
               ops.pad(a, ((0, 0), (1, 2), (2, 0)), mode="symmetric"), ops.tril(a),
               ops.triu(a, k=1), ops.take(a, [0, 2], axis=1), ops.take(a, 1, axis=-1),
               ops.take_along_axis(a, ops.argmax(b, axis=1, keepdims=True), axis=1),
               ops.one_hot(ops.cast(x * 5, "int32"), 4), ops.multi_hot(ops.cast(x * 5, "int32"), 4),
               ops.sum(a, axis=[1, 2], keepdims=True), ops.mean(a, axis=1), ops.max(a, axis=-1),
               ops.min(a, axis=(1, 2)), ops.var(a, axis=1), ops.std(a, axis=-1), ops.prod(a, axis=-1),
               ops.logsumexp(a, axis=-1), ops.argmax(a, axis=-1), ops.argmin(a, axis=1),
               ops.cumsum(a, axis=1), ops.cumprod(a, axis=2), ops.any(a > 0.4, axis=-1),
               ops.all(a > -0.4, axis=-1), ops.count_nonzero(a > 0, axis=1),
               ops.moments(a, axes=[1])[1], ops.softmax(a, axis=1), ops.softmax(a, axis=(1, 2)),
               ops.log_softmax(a, axis=1), ops.sparsemax(a), ops.glu(a), ops.normalize(a),
               ops.einsum("abc,abd->acd", a, b), ops.einsum("...d,...d->...", a, b),
               ops.einsum("btd->bt", a), ops.dot(a, np.ones((6, 2), np.float32)),
               ops.matmul(a, ops.transpose(b, (0, 2, 1)))]
    return joined("rearranged", x, y, results)


def attention():
    # The same number of steps in both: Keras' summary takes the scores' shape from x alone.
    x, memory = keras.Input((5, 6), name="x"), keras.Input((5, 6), name="memory")
    y = L.LayerNormalization(epsilon=1e-5)(x)
    y = L.MultiHeadAttention(2, 3, name="own")(y, y, use_causal_mask=True)
    y = L.Add()([x, y])
    z, scores = L.MultiHeadAttention(2, 3, value_dim=4, use_bias=False, name="other")(
        y, memory, key=memory, return_attention_scores=True)
    return keras.Model([x, memory], [L.Subtract()([y, z]), scores], name="attention")


def translate():
    source, target = keras.Input((7, 5), name="source"), keras.Input((4, 3), name="target")
    code, *states = L.Bidirectional(L.LSTM(3, return_state=True))(source)
    h, c = L.Concatenate()([states[0], states[2]]), L.Concatenate()([states[1], states[3]])
    y = L.LSTM(6, return_sequences=True)(target, initial_state=[h, c])
    a, b, *last = L.Bidirectional(L.GRU(6, return_sequences=True, return_state=True),
                                  merge_mode=None)(y, initial_state=[h, code])
    last = L.Subtract()(last)
    return keras.Model([source, target], [L.Dense(2)(L.Concatenate()([a, b])), last],
                       name="translate")


def stack():
    h = keras.Input((5,))
    branch = keras.Model(h, L.Add()([h, L.Dense(5, "gelu")(h)]), name="branch")
    more = keras.Sequential([keras.Input((5,)), L.Dense(4), L.Activation("softplus")], name="more")
    return keras.Sequential([keras.Input((3,)), L.Dense(5), branch, more, L.Dense(2)],
                            name="stack")


def case(build, inputs, arrays):
    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    model = build()
    name = model.name
    indent = None if name in ("elementwise", "rearranged") else 1
    (OUT / f"{name}.json").write_text(model.to_json(indent=indent) + "\n")
    lines = []
    os.environ["COLUMNS"] = "100"
    model.summary(print_fn=lines.append, expand_nested=True)
    if indent:
        (OUT / f"{name}.w100.txt").write_text("".join(lines))
    random = np.random.RandomState(3)
    weights = [np.asarray(w) + (0.1 * random.rand(*w.shape)).astype(np.float32)
               for w in model.get_weights()]
    model.set_weights(weights)
    outputs = model.predict_on_batch(inputs if len(inputs) > 1 else inputs[0])
    outputs = outputs if isinstance(outputs, list) else [outputs]
    for kind, each in ("w", weights), ("x", inputs), ("y", outputs):
        arrays.update({f"{name}/{kind}{i}": a for i, a in enumerate(each)})
    return name, {"weights": len(weights), "inputs": len(inputs), "outputs": len(outputs)}


def main():
    random = np.random.RandomState(1)
    f32 = lambda *shape: random.rand(*shape).astype(np.float32)
    arrays = {}
    cases = dict([
        case(branches, [f32(6, 4), f32(6, 6)], arrays),
        case(sequences, [random.randint(0, 11, (6, 7)).astype(np.int32)], arrays),
        case(image, [f32(4, 8, 9, 2)], arrays),
        case(stack, [f32(6, 3)], arrays),
        case(attention, [f32(6, 5, 6), f32(6, 5, 6)], arrays),
        case(translate, [f32(6, 7, 5), f32(6, 4, 3)], arrays),
        case(elementwise, [f32(3, 2, 4), f32(3, 2, 4)], arrays),
        case(rearranged, [f32(3, 4, 6), f32(3, 4, 6)], arrays),
        case(operations, [f32(6, 4, 6), f32(6, 4, 6)], arrays),
        case(masked, [random.randint(0, 4, (6, 7)).astype(np.float32), f32(6, 7, 5)], arrays),
    ])
    common.write_arrays(OUT / "architectures.safetensors", arrays, cases)


if __name__ == "__main__":
    main()
