"""Models whose layers branch: outputs, losses, a step of SGD, ten of Adam. Writes graphs/.

two       two inputs, two outputs, a dense layer called twice, a model called as a layer twice
residual  convolutions with batch normalization, identity shortcuts and 1x1 convolutions

turns      two models of one layer, each trained in its turn: `start/PATH`, `x0`, `ya`, `yb`, the loss
           of each step `losses`, and both outputs after the last, `after_a`, `after_b`

graphs.safetensors has for each CASE/ of the first two the inputs x0, x1 and labels y0, y1, `start/PATH` of each
weight, outputs `infer0`, `infer1` before training; `sgd/logs` and `sgd/PATH` after one step of
SGD at rate 1 (start - sgd is the gradient); `adam/logs` (10, n) and `after0`, `after1` after ten
steps of Adam at 0.01 on the same batch. Paths are Cornu's: a nested model's name comes before
those of its weights. Summaries are in NAME.w100.txt.
"""

import os

import common
import keras
import numpy as np

L = keras.layers
OUT = common.folder("graphs")


def two():
    source, side = keras.Input((4,), name="source"), keras.Input((6,), name="side")
    h = keras.Input((4,), name="code_in")
    encoder = keras.Model(h, L.Dense(3, activation="tanh", name="code")(h), name="encoder")
    shared = L.Dense(4, activation="relu", name="shared")
    a = shared(source)
    b = shared(L.Dense(4, name="narrow")(side))
    joined = L.Add(name="joined")([a, b])
    both = L.Concatenate(name="both")([encoder(a), encoder(joined), side])
    scores = L.Dense(3, activation="softmax", name="scores")(both)
    other = L.Multiply(name="product")([a, L.Maximum(name="larger")([a, b])])
    value = L.Dense(1, name="value")(L.Average(name="mean")([other, joined]))
    model = keras.Model([source, side], [scores, value], name="two")
    order = {"code": "encoder/code"}
    return model, ["sparse_categorical_crossentropy", "mse"], [1.0, 0.25], \
        [["accuracy"], ["mse"]], order


def block(x, filters, stride, name):
    y = L.Conv2D(filters, 3, stride, padding="same", use_bias=False, name=f"{name}_a")(x)
    y = L.BatchNormalization(name=f"{name}_a_bn")(y)
    y = L.Activation("relu", name=f"{name}_a_relu")(y)
    y = L.Conv2D(filters, 3, padding="same", use_bias=False, name=f"{name}_b")(y)
    y = L.BatchNormalization(name=f"{name}_b_bn")(y)
    if stride > 1:
        x = L.Conv2D(filters, 1, stride, padding="same", name=f"{name}_shortcut")(x)
    return L.Activation("relu", name=f"{name}_relu")(L.Add(name=f"{name}_add")([x, y]))


def residual():
    image = keras.Input((8, 8, 2), name="image")
    x = L.Conv2D(4, 3, padding="same", name="stem")(image)
    x = block(x, 4, 1, "one")
    x = block(x, 6, 2, "two")
    x = L.Flatten(name="flatten")(L.AveragePooling2D(4, name="pool")(x))
    y = L.Dense(5, activation="softmax", name="scores")(x)
    return keras.Model(image, y, name="residual"), "sparse_categorical_crossentropy", None, \
        ["accuracy"], {}


def path(v, prefixes):
    layer, name = v.path.split("/")[-2:]
    return f"{prefixes.get(layer, layer)}/{name}"


def logs(model, x, y, order):
    values = model.train_on_batch(x, y, return_dict=True)
    model.reset_metrics()
    order[:] = sorted(values)
    return [values[k] for k in order]


def case(name, build, x, y):
    result, arrays = {}, {}
    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    model, loss, weights, metrics, prefixes = build()
    lines = []
    os.environ["COLUMNS"] = "100"
    model.summary(print_fn=lines.append)
    (OUT / f"{name}.w100.txt").write_text("".join(lines))
    random = np.random.RandomState(3)
    start = [np.asarray(w) + (0.1 * random.rand(*w.shape)).astype(np.float32)
             for w in model.get_weights()]
    model.set_weights(start)
    for v, w in zip(model.weights, start):
        arrays[f"{name}/start/{path(v, prefixes)}"] = w
    for i, a in enumerate(x):
        arrays[f"{name}/x{i}"] = a
    for i, a in enumerate(y):
        arrays[f"{name}/y{i}"] = a
    many = len(y) > 1
    x, y = (x, y) if many else (x[0], y[0])
    outputs = lambda: model.predict_on_batch(x) if many else [model.predict_on_batch(x)]
    for i, a in enumerate(outputs()):
        arrays[f"{name}/infer{i}"] = a
    order = []
    model.compile(keras.optimizers.SGD(1.0), loss, loss_weights=weights, metrics=metrics)
    arrays[f"{name}/sgd/logs"] = np.array(logs(model, x, y, order), np.float32)
    for v in model.weights:
        arrays[f"{name}/sgd/{path(v, prefixes)}"] = np.asarray(v)
    model.set_weights(start)
    model.compile(keras.optimizers.Adam(0.01), loss, loss_weights=weights, metrics=metrics)
    steps = [logs(model, x, y, order) for _ in range(10)]
    arrays[f"{name}/adam/logs"] = np.array(steps, np.float32)
    for i, a in enumerate(outputs()):
        arrays[f"{name}/after{i}"] = a
    result[name] = {"logs": order, "layers": [l.name for l in model.layers]}
    return arrays, result


def turns(arrays):
    """Five steps: the first model's optimizer is unaware of the second's."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(6)
    random = np.random.RandomState(4)
    x = keras.Input((4,), name="x")
    h = L.Dense(5, activation="tanh", name="common")(x)
    a = keras.Model(x, L.Dense(3, activation="softmax", name="kind")(h), name="a")
    b = keras.Model(x, L.Dense(1, name="value")(h), name="b")
    a.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
    b.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    for v in {v.path: v for v in a.weights + b.weights}.values():
        v.assign(np.asarray(v) + (0.1 * random.rand(*v.shape)).astype(np.float32))
        arrays[f"turns/start/{v.path}"] = np.asarray(v)
    data = random.rand(16, 4).astype(np.float32)
    kinds, values = random.randint(0, 3, 16).astype(np.int32), random.rand(16, 1).astype(np.float32)
    losses = []
    for model, y in (a, kinds), (b, values), (b, values), (a, kinds), (b, values):
        losses.append(model.train_on_batch(data, y, return_dict=True)["loss"])
        model.reset_metrics()
    arrays.update({"turns/x0": data, "turns/ya": kinds, "turns/yb": values,
                   "turns/losses": np.array(losses, np.float32),
                   "turns/after_a": a.predict_on_batch(data),
                   "turns/after_b": b.predict_on_batch(data)})


def main():
    random = np.random.RandomState(1)
    f32 = lambda *shape: random.rand(*shape).astype(np.float32)
    one, about_one = case("two", two, [f32(16, 4), f32(16, 6)],
                          [random.randint(0, 3, 16).astype(np.int32), f32(16, 1)])
    other, about_other = case("residual", residual, [f32(16, 8, 8, 2)],
                              [random.randint(0, 5, 16).astype(np.int32)])
    turns(one)
    common.write_arrays(OUT / "graphs.safetensors", one | other, about_one | about_other)


if __name__ == "__main__":
    main()
