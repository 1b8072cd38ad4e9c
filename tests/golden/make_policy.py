"""Mixed precision: a small network trained under each policy, and the loss scale. Writes policy/.

training.safetensors     start, batches, layer outputs and losses per policy; dtypes, get_config()
loss_scale.safetensors   LossScaleOptimizer around SGD with momentum and Adam, gradients given
"""

import common
import keras
import numpy as np

STEPS, B, CLASSES = 6, 16, 4
INPUT = (8, 8, 2)
# name -> global policy, dtype of the last layer
POLICIES = {
    "float32": ("float32", None),
    "mixed_bfloat16": ("mixed_bfloat16", None),
    "mixed_bfloat16_last_float32": ("mixed_bfloat16", "float32"),
    "mixed_float16_last_float32": ("mixed_float16", "float32"),
}


def network(last):
    L = keras.layers
    return keras.Sequential(
        [
            keras.Input(INPUT),
            L.Conv2D(6, 3, activation="relu", name="conv2d"),
            L.BatchNormalization(name="batch_normalization"),
            L.MaxPooling2D(2, name="max_pooling2d"),
            L.Flatten(name="flatten"),
            L.Dense(12, activation="relu", name="dense"),
            L.Dense(CLASSES, activation="softmax", name="dense_1", dtype=last),
        ],
        name="policy",
    )


def plain(value):
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(value, "float32")))


def training():
    random = np.random.RandomState(3)
    x = random.uniform(0, 1, (STEPS, B) + INPUT).astype(np.float32)
    y = random.randint(0, CLASSES, (STEPS, B)).astype(np.int32)
    arrays, cases, start = {"x": x, "y": y}, {}, None
    for case, (policy, last) in POLICIES.items():
        keras.config.set_dtype_policy(policy)
        model = network(last)
        if start is None:
            start = [
                random.uniform(-0.4, 0.4, w.shape).astype(np.float32) if "kernel" in w.path
                else plain(w)
                for w in model.weights
            ]
            for w, value in zip(model.weights, start):
                arrays["start/" + w.path.removeprefix("policy/")] = value
        model.set_weights(start)
        about = {"policy": policy, "layers": {}, "config": model.get_config()}
        value = x[0, :2]
        for layer in model.layers:
            value = layer(value)
            arrays[f"{case}/{layer.name}"] = plain(value)
            about["layers"][layer.name] = {
                "output": keras.backend.standardize_dtype(value.dtype),
                "weights": [keras.backend.standardize_dtype(w.dtype) for w in layer.weights],
            }
        model.compile(keras.optimizers.SGD(0.02, momentum=0.9), "sparse_categorical_crossentropy")
        losses = []
        for i in range(STEPS):
            model.reset_metrics()
            losses.append(model.train_on_batch(x[i], y[i]))
        arrays[f"{case}/losses"] = np.asarray(losses, np.float32)
        for w in model.weights:
            arrays[f"{case}/after/" + w.path.removeprefix("policy/")] = plain(w.value)
        about["optimizer"] = [v.path for v in model.optimizer.variables]
        cases[case] = about
    keras.config.set_dtype_policy("float32")
    return arrays, cases


def loss_scale():
    """Gradients of the scaled loss, among them inf and nan; the counter begins at 1997."""
    random = np.random.RandomState(5)
    steps = 9
    w0 = random.uniform(-1, 1, 7).astype(np.float32)
    gradients = (random.uniform(-1, 1, (steps, 7)) * 2.0**15).astype(np.float32)
    gradients[1, 2] = np.inf
    gradients[4, 0] = np.nan
    gradients[5, 6] = -np.inf
    counters = {0: 1997, 2: 1998, 6: 1999}     # set before these steps
    arrays, cases = {"w0": w0, "gradients": gradients}, {}
    for case, make in {
        "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        "adam": lambda: keras.optimizers.Adam(0.01),
    }.items():
        optimizer = keras.optimizers.LossScaleOptimizer(make())
        w = keras.Variable(w0, name="w")
        optimizer.build([w])
        out = {"w": [], "scale": [], "counter": [], "iteration": []}
        for i in range(steps):
            if i in counters:
                optimizer.step_counter.assign(counters[i])
            g = keras.ops.convert_to_tensor(gradients[i])
            (new_w,), new = optimizer.stateless_apply(
                [v.value for v in optimizer.variables], [g], [w.value]
            )
            w.assign(new_w)
            for variable, value in zip(optimizer.variables, new):
                variable.assign(value)
            out["w"].append(plain(w))
            out["scale"].append(plain(optimizer.dynamic_scale))
            out["counter"].append(int(optimizer.step_counter))
            out["iteration"].append(int(optimizer.inner_optimizer.iterations))
        for name, values in out.items():
            dtype = np.float32 if name in ("w", "scale") else np.int32
            arrays[f"{case}/{name}"] = np.asarray(values, dtype)
        cases[case] = {"counters": {str(k): v for k, v in counters.items()}}
    return arrays, cases


def main():
    out = common.folder("policy")
    common.write_arrays(out / "training.safetensors", *training())
    common.write_arrays(out / "loss_scale.safetensors", *loss_scale())


main()
