"""Models whose files, calls or updates are unusual, and three steps of training. Writes trained/.

calls     batch normalizations called several times, also on each other's results
products  Multiply, Maximum and Minimum of masked steps with others, masked or not
states    initial states beside a mask
batches   batch normalization under TimeDistributed, also in a model, and of masked steps
forms     arguments that Keras writes in several forms: axes of Dot and LayerNormalization; layers
          whose constructors lack arguments that all others have

CASE.keras is the model after one step; CASE.npz has the inputs x0, x1, …, the labels y0, …, the
predictions p0, …, the loss of each of three more steps `losses`, and after them the weights w0, …
and the predictions q0, ….
"""

import zipfile

import common
import keras
import numpy as np

import random_reference

L = keras.layers
OUT = common.folder("trained")


def calls():
    a, b = keras.Input((3,)), keras.Input((3,))
    first, second = L.BatchNormalization(momentum=0.8), L.BatchNormalization()
    one, two = first(a), first(b)
    three = first(one)
    tensors = [second(t) for t in (one, b, two, three)]
    tensors.append(second(tensors[2]))
    nested = keras.Sequential([keras.Input((3,)), L.BatchNormalization(momentum=0.7)])
    both = L.Average()([nested(two), nested(a)])
    model = keras.Model([a, b], L.Dense(2)(L.Concatenate()(tensors + [both])), name="calls")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model, [normal(5, 3), normal(5, 3) + 1], [normal(5, 2)]


def products():
    text = keras.Input((5,), dtype="int32")
    x = L.Embedding(7, 3, mask_zero=True)(text)
    y = L.Embedding(6, 3, mask_zero=True)(text)
    one = L.Multiply()([x, L.Conv1D(3, 2, padding="same")(x)])
    both = L.Multiply()([x, y])
    larger = L.Maximum()([x, L.ReLU()(y), L.Rescaling(-1.0)(x)])
    smaller = L.Minimum()([x, L.Conv1D(3, 1)(y)])
    parts = [L.LSTM(2)(one), L.GlobalAveragePooling1D()(both), L.Flatten()(both),
             L.LSTM(2)(L.RMSNormalization()(x)), L.Flatten()(larger), L.Flatten()(smaller)]
    model = keras.Model(text, L.Dense(2)(L.Concatenate()(parts)), name="products")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model, [random.randint(0, 6, (6, 5)).astype(np.int32)], [normal(6, 2)]


def states():
    source, target = keras.Input((4,), dtype="int32"), keras.Input((5,), dtype="int32")
    x, y = L.Embedding(6, 3, mask_zero=True)(source), L.Embedding(5, 3, mask_zero=True)(target)
    h, c = L.LSTM(2, return_state=True)(x)[1:]
    y = L.LSTM(2, return_sequences=True)(y, initial_state=[h, c])
    y = L.Bidirectional(L.GRU(2, return_sequences=True))(y, initial_state=[h, c])
    model = keras.Model([source, target], L.GRU(3)(y), name="states")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    ids = lambda most, *shape: random.randint(0, most, shape).astype(np.int32)
    return model, [ids(6, 6, 4), ids(5, 6, 5)], [normal(6, 3)]


def batches():
    text, steps = keras.Input((5,), dtype="int32"), keras.Input((3, 4, 4, 2))
    x = L.BatchNormalization(momentum=0.8)(L.Embedding(5, 3, mask_zero=True)(text))
    inner = keras.Input((4, 4, 2))
    y = L.GlobalMaxPooling2D()(L.BatchNormalization()(L.Conv2D(2, 3)(inner)))
    y = L.TimeDistributed(keras.Model(inner, y))(steps)
    y = L.TimeDistributed(L.BatchNormalization(momentum=0.9))(y)
    both = L.Concatenate()([L.LSTM(3)(x), L.Flatten()(y)])
    model = keras.Model([text, steps], L.Dense(2)(both), name="batches")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model, [random.randint(0, 5, (6, 5)).astype(np.int32), normal(6, 3, 4, 4, 2)], \
        [normal(6, 2)]


def forms():
    a, b = keras.Input((4, 3)), keras.Input((3,))
    c = L.SpatialDropout1D(0.0)(L.LayerNormalization(axis=[-2, -1])(a))
    parts = [
        L.Dot(axes=(-1, -1), normalize=True)([b, c]),
        L.Dot(axes=(2, 1))([c, b]),
        L.Flatten()(L.Dot(axes=-2)([c, c])),
        L.Flatten()(L.Dot(axes=2, normalize=True)([c, L.RepeatVector(4)(b)])),
        L.Flatten()(L.SpatialDropout2D(0.0)(L.Reshape((2, 2, 3))(c))),
    ]
    model = keras.Model([a, b], L.Dense(2)(L.Concatenate()(parts)), name="forms")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model, [normal(5, 4, 3), normal(5, 3)], [normal(5, 2)]


random = np.random.RandomState(2)


def normal(*shape):
    return random.randn(*shape).astype(np.float32)


def smaller(path):
    """Compresses the file, as Keras does not."""
    with zipfile.ZipFile(path) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def case(build):
    keras.utils.clear_session()
    keras.utils.set_random_seed(4)
    model, x, y = build()
    model.set_weights([w + (0.1 * random.rand(*w.shape)).astype(np.float32)
                       for w in model.get_weights()])
    pack = lambda arrays: arrays[0] if len(arrays) == 1 else arrays
    model.train_on_batch(pack(x), pack(y))
    path = OUT / f"{model.name}.keras"
    model.save(path)
    out, names = random_reference.run(keras.models.load_model(path), x, y, [], 3)
    smaller(path)
    arrays = {n: a for n, a in out.items() if n[0] in "pqw"}
    arrays["losses"] = np.float32([out[f"l{i}"][names.index("loss")] for i in range(3)])
    arrays |= {f"x{i}": a for i, a in enumerate(x)} | {f"y{i}": a for i, a in enumerate(y)}
    np.savez(OUT / f"{model.name}.npz", **arrays)


def main():
    for build in (calls, products, states, batches, forms):
        case(build)


if __name__ == "__main__":
    main()
