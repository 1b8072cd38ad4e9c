"""Small vectors for every piece of a training step. Writes pieces/GROUP.safetensors.

Tensors are named CASE/TENSOR; the metadata's "cases" says what each case is (README.md).
With --float64 FILE the script computes the same in f64 and saves only a .npz for comparison.
"""

import os
import subprocess
import sys
import tempfile

if "--float64" in sys.argv:
    os.environ["JAX_ENABLE_X64"] = "1"

import common
import jax
import jax.numpy as jnp
import keras
import numpy as np

L = keras.layers
GROUPS = {}


class Group:
    """Collects the cases of one file."""

    def __init__(self, name):
        self.arrays, self.cases = {}, {}
        GROUPS[name] = self

    def case(self, name, about, **arrays):
        assert name not in self.cases, name
        self.cases[name] = about
        for key, value in arrays.items():
            self.arrays[f"{name}/{key}"] = np.asarray(value)


def values(name, *shape, scale=1.0):
    """Inputs: f32 numbers from the case's own name, in [-scale, scale)."""
    u = common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)
    return jnp.asarray(np.float32(scale) * u, keras.config.floatx())


def losses():
    group = Group("losses")
    B, C = 6, 5
    logits = values("losses/logits", B, C, scale=4.0)
    far = logits * 40.0                         # softmax reaches 0 and 1 in f32
    probabilities = jax.nn.softmax(logits)
    extreme = jnp.asarray([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1e-7, 1 - 1e-7, 0, 0, 0],
                           [1e-8, 0.5, 0.5, 0, 0], [2, 2, 2, 2, 2], [1e-3, 0.2, 0.3, 0.4, 0.1]],
                          probabilities.dtype)  # zeros, ones, the clip's edge, not normalised
    labels = np.array([0, 3, 1, 4, 2, 0], np.int32)
    one_hot = jax.nn.one_hot(labels, C, dtype=probabilities.dtype)
    soft = jax.nn.softmax(values("losses/soft", B, C, scale=2.0))
    K = keras.losses
    cases = []
    for kind, x in (("", probabilities), ("_extreme", extreme)):
        cases += [(f"sparse{kind}", K.SparseCategoricalCrossentropy, {}, labels, x),
                  (f"categorical{kind}", K.CategoricalCrossentropy, {}, one_hot, x),
                  (f"categorical{kind}_smooth", K.CategoricalCrossentropy,
                   {"label_smoothing": 0.1}, one_hot, x)]
    for kind, x in (("", logits), ("_far", far)):
        logit = {"from_logits": True}
        cases += [(f"sparse_logits{kind}", K.SparseCategoricalCrossentropy, logit, labels, x),
                  (f"categorical_logits{kind}", K.CategoricalCrossentropy, logit, one_hot, x),
                  (f"categorical_logits{kind}_smooth", K.CategoricalCrossentropy,
                   logit | {"label_smoothing": 0.1}, one_hot, x)]
    cases.append(("categorical_soft", K.CategoricalCrossentropy, {}, soft, probabilities))
    bits = (np.arange(B * C).reshape(B, C) % 3 == 0).astype(np.float32)
    hard = jnp.where(extreme > 1, 1.0, extreme)
    for suffix, extra in (("", {}), ("_smooth", {"label_smoothing": 0.2})):
        cases += [(f"binary{suffix}", K.BinaryCrossentropy, extra, bits, jax.nn.sigmoid(logits)),
                  (f"binary_extreme{suffix}", K.BinaryCrossentropy, extra, bits, hard),
                  (f"binary_logits{suffix}", K.BinaryCrossentropy,
                   extra | {"from_logits": True}, bits, logits),
                  (f"binary_logits_far{suffix}", K.BinaryCrossentropy,
                   extra | {"from_logits": True}, bits, far)]
    cases.append(("binary_column", K.BinaryCrossentropy, {}, bits[:, :1],
                  jax.nn.sigmoid(logits)[:, :1]))
    cases.append(("mse", K.MeanSquaredError, {}, np.asarray(soft), logits))
    cases.append(("mse_3d", K.MeanSquaredError, {}, values("losses/t", 2, 3, 4),
                  values("losses/p", 2, 3, 4)))
    sequence = values("losses/sequence", 2, 3, C, scale=3.0)
    cases.append(("sparse_logits_sequence", K.SparseCategoricalCrossentropy,
                  {"from_logits": True}, labels.reshape(2, 3), sequence))
    for name, kind, settings, target, x in cases:
        for reduction in ("sum_over_batch_size",) + (("sum",) if name in ("sparse", "mse") else ()):
            loss = kind(**settings, reduction=reduction)
            value, d_x = jax.value_and_grad(lambda x: loss(target, x))(x)
            each = kind(**settings, reduction=None)(target, x)
            suffix = "" if reduction == "sum_over_batch_size" else "_" + reduction
            group.case(name + suffix, {"loss": kind.__name__, "reduction": reduction} | settings,
                       target=target, x=x, value=value, each=each, d_x=d_x)


def metrics():
    group = Group("metrics")
    B, C = 12, 5
    scores = np.asarray(jax.nn.softmax(values("metrics/scores", B, C, scale=3.0)))
    ties = np.round(scores * 4).astype(np.float32) / 4          # argmax takes the first
    labels = (np.arange(B) * 7 % C).astype(np.int32)
    column = np.linspace(0, 1, B).astype(np.float32)[:, None]   # none is the threshold 0.5
    column[4] = 0.5                                             # but this one
    bits = (np.arange(B) % 2).astype(np.int32)
    one_hot = np.eye(C, dtype=np.float32)[labels]
    M = keras.metrics
    cases = [
        ("accuracy_sparse", "accuracy", {}, labels, scores),
        ("accuracy_sparse_column", "accuracy", {}, labels[:, None], scores),
        ("accuracy_categorical", "accuracy", {}, one_hot, scores),
        ("accuracy_binary", "accuracy", {}, bits[:, None], column),
        ("accuracy_ties", "accuracy", {}, labels, ties),
        ("sparse_categorical_accuracy", M.SparseCategoricalAccuracy, {}, labels, scores),
        ("categorical_accuracy", M.CategoricalAccuracy, {}, one_hot, scores),
        ("binary_accuracy", M.BinaryAccuracy, {}, bits[:, None], column),
        ("binary_accuracy_07", M.BinaryAccuracy, {"threshold": 0.7}, bits[:, None], column),
        ("binary_accuracy_wide", M.BinaryAccuracy, {}, one_hot, scores),
        ("sparse_top_2", M.SparseTopKCategoricalAccuracy, {"k": 2}, labels, scores),
        ("top_2", M.TopKCategoricalAccuracy, {"k": 2}, one_hot, scores),
        ("sparse_top_2_ties", M.SparseTopKCategoricalAccuracy, {"k": 2}, labels, ties),
        ("mse", M.MeanSquaredError, {}, one_hot, scores),
        ("mae", M.MeanAbsoluteError, {}, one_hot, scores),
        ("categorical_crossentropy", M.CategoricalCrossentropy, {}, one_hot, scores),
        ("sparse_categorical_crossentropy", M.SparseCategoricalCrossentropy, {}, labels, scores),
        ("binary_crossentropy", M.BinaryCrossentropy, {}, bits[:, None], column),
    ]
    for name, kind, settings, target, x in cases:
        if kind == "accuracy":                  # resolved from the shapes, as compile() does
            resolved = keras.src.trainers.compile_utils.get_metric(kind, target, x)
        else:
            resolved = kind(**settings)
        results = []
        for part in (slice(0, 8), slice(8, B)):     # two updates: a full and a partial batch
            resolved.update_state(target[part], x[part])
            results.append(float(resolved.result()))
        about = {"metric": type(resolved).__name__, "name": resolved.name, "batches": [8, 4]}
        group.case(name, about | settings, target=target, x=x,
                   result=np.array(results, np.float32))


def schedules():
    group = Group("schedules")
    S = keras.optimizers.schedules
    cases = {
        "exponential": (S.ExponentialDecay, {"initial_learning_rate": 0.1, "decay_steps": 7,
                                             "decay_rate": 0.9}),
        "exponential_staircase": (S.ExponentialDecay, {"initial_learning_rate": 0.1,
                                  "decay_steps": 7, "decay_rate": 0.9, "staircase": True}),
        "piecewise": (S.PiecewiseConstantDecay, {"boundaries": [10, 20, 35],
                                                 "values": [1.0, 0.5, 0.1, 0.01]}),
        "polynomial": (S.PolynomialDecay, {"initial_learning_rate": 0.1, "decay_steps": 20}),
        "polynomial_power": (S.PolynomialDecay, {"initial_learning_rate": 0.1, "decay_steps": 30,
                             "end_learning_rate": 0.01, "power": 2.5}),
        "polynomial_cycle": (S.PolynomialDecay, {"initial_learning_rate": 0.1, "decay_steps": 15,
                             "end_learning_rate": 0.01, "power": 0.5, "cycle": True}),
        "inverse_time": (S.InverseTimeDecay, {"initial_learning_rate": 0.1, "decay_steps": 5,
                                              "decay_rate": 0.5}),
        "inverse_time_staircase": (S.InverseTimeDecay, {"initial_learning_rate": 0.1,
                                   "decay_steps": 5, "decay_rate": 0.5, "staircase": True}),
        "cosine": (S.CosineDecay, {"initial_learning_rate": 0.1, "decay_steps": 40}),
        "cosine_alpha": (S.CosineDecay, {"initial_learning_rate": 0.1, "decay_steps": 40,
                                         "alpha": 0.05}),
        "cosine_warmup": (S.CosineDecay, {"initial_learning_rate": 0.01, "decay_steps": 30,
                          "alpha": 0.1, "warmup_target": 0.2, "warmup_steps": 10}),
        "cosine_restarts": (S.CosineDecayRestarts, {"initial_learning_rate": 0.1,
                                                    "first_decay_steps": 7}),
        "cosine_restarts_all": (S.CosineDecayRestarts, {"initial_learning_rate": 0.1,
                                "first_decay_steps": 10, "t_mul": 1.5, "m_mul": 0.8,
                                "alpha": 0.1}),
        "cosine_restarts_even": (S.CosineDecayRestarts, {"initial_learning_rate": 0.1,
                                 "first_decay_steps": 12, "t_mul": 1.0, "m_mul": 0.5}),
    }
    for name, (kind, settings) in cases.items():
        schedule = kind(**settings)
        rates = [float(schedule(step)) for step in range(50)]
        group.case(name, {"schedule": kind.__name__} | settings, rate=np.array(rates))


def forward_backward(layer, x, training=None, d_y_name="d_y", **keywords):
    """(y, d_x, gradients by weight, updated non-trainable) of sum(y * d_y)."""
    trainable = [v.value for v in layer.trainable_variables]
    fixed = [v.value for v in layer.non_trainable_variables]
    if training is not None:
        keywords["training"] = training

    def run(trainable, x):
        return layer.stateless_call(trainable, fixed, x, **keywords)

    y, updated = run(trainable, x)
    d_y = values(d_y_name, *y.shape)
    d_w, d_x = jax.grad(lambda t, x: jnp.sum(run(t, x)[0] * d_y), argnums=(0, 1))(trainable, x)
    result = {"x": x, "y": y, "d_y": d_y, "d_x": d_x}
    for v, g in zip(layer.trainable_variables, d_w):
        result[v.name] = v.value
        result[f"d_{v.name}"] = g
    return result, updated


def layer_case(group, name, layer, shape, training=None, scale=1.0, mask=None):
    x = values(f"{name}/x", *shape, scale=scale)
    layer.build(shape)
    for v in layer.weights:
        size = 0.5 if v.name in ("kernel", "bias", "beta", "moving_mean", "renorm_mean") else 0.25
        base = 1.0 if v.name in ("gamma", "moving_variance", "moving_stddev",
                                 "renorm_stddev") else 0.0
        v.assign(base + values(f"{name}/{v.name}", *v.shape, scale=size))
    before = {v.name: np.asarray(v.value) for v in layer.non_trainable_variables if v.shape}
    given = {} if mask is None else {"mask": mask}
    result, updated = forward_backward(layer, x, training, f"{name}/d_y", **given)
    if mask is not None:
        result["mask"] = mask.astype(np.uint8)
    if before:
        result |= before
        if training:
            for v, new in zip(layer.non_trainable_variables, updated):
                if v.shape:
                    result[f"after_{v.name}"] = new
    skip = ("name", "trainable", "synchronized")
    plain = (int, float, bool, str, tuple, list)
    config = {k: v for k, v in layer.get_config().items()
              if k not in skip and isinstance(v, plain) and v != "channels_last"}
    if not config.get("renorm", True):
        del config["renorm"], config["renorm_momentum"]
    if getattr(layer, "renorm_clipping", None):
        config["renorm_clipping"] = layer.renorm_clipping
    if training is not None:
        config["training"] = training
    group.case(name, {"layer": type(layer).__name__} | config, **result)


def layers():
    group = Group("layers")
    for name, layer, shape in (
        ("dense", L.Dense(4), (3, 5)), ("dense_no_bias", L.Dense(4, use_bias=False), (3, 5)),
        ("dense_relu", L.Dense(6, activation="relu"), (4, 3)),
        ("dense_softmax", L.Dense(5, activation="softmax"), (4, 3)),
        ("dense_one", L.Dense(1), (1, 1)), ("dense_3d", L.Dense(4), (2, 3, 5)),
    ):
        layer_case(group, name, layer, shape)

    group = Group("conv2d")
    for padding in ("valid", "same"):
        for kernel in (1, 2, 3, 4, 5, 6):
            for stride in (1, 2, 3):
                name = f"k{kernel}_s{stride}_{padding}"
                layer = L.Conv2D(3, kernel, strides=stride, padding=padding)
                layer_case(group, name, layer, (2, 7, 8, 2))
        for kernel in (2, 3):
            layer = L.Conv2D(3, kernel, dilation_rate=2, padding=padding)
            layer_case(group, f"k{kernel}_d2_{padding}", layer, (2, 7, 8, 2))
        layer = L.Conv2D(2, (2, 3), dilation_rate=(2, 1), padding=padding)
        layer_case(group, f"k2x3_d2x1_{padding}", layer, (2, 7, 8, 2))
        layer = L.Conv2D(2, (3, 1), strides=(1, 2), padding=padding)
        layer_case(group, f"k3x1_s1x2_{padding}", layer, (2, 5, 9, 1))
        layer = L.Conv2D(4, (1, 5), strides=(3, 1), padding=padding)
        layer_case(group, f"k1x5_s3x1_{padding}", layer, (1, 9, 6, 3))
        layer = L.Conv2D(2, 3, padding=padding, use_bias=False, activation="relu")
        layer_case(group, f"k3_relu_no_bias_{padding}", layer, (3, 6, 6, 1))
    layer_case(group, "kernel_is_image", L.Conv2D(3, (4, 5)), (2, 4, 5, 2))
    layer_case(group, "kernel_over_image_same", L.Conv2D(2, 6, padding="same"), (2, 3, 4, 2))
    layer_case(group, "k6_s2_same_28", L.Conv2D(2, 6, strides=2, padding="same"), (1, 28, 28, 1))

    group = Group("pooling")
    for kind, layer in (("max", L.MaxPooling2D), ("average", L.AveragePooling2D)):
        for padding in ("valid", "same"):
            for pool, stride, size in (
                (2, None, (6, 6)), (2, None, (5, 7)), (3, None, (7, 8)), (3, 2, (7, 7)),
                (2, 1, (4, 5)), (2, 3, (8, 7)), ((2, 3), None, (6, 7)), ((3, 2), (1, 2), (5, 6)),
                (4, 2, (3, 9)),
            ):
                if padding == "valid" and pool == 4:
                    continue                        # the window does not fit
                pair = pool if isinstance(pool, tuple) else (pool, pool)
                by = stride if isinstance(stride, tuple) else (stride, stride)
                step = "" if stride is None else f"_s{by[0]}x{by[1]}"
                name = f"{kind}_p{pair[0]}x{pair[1]}{step}_{padding}_{size[0]}x{size[1]}"
                layer_case(group, name, layer(pool, strides=stride, padding=padding),
                           (2,) + size + (2,))
    x = jnp.asarray(np.array([0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, -1, -1],
                             np.float32).reshape(1, 3, 6, 1), keras.config.floatx())
    layer = L.MaxPooling2D(3, strides=1, padding="same")
    layer.build(x.shape)
    result, _ = forward_backward(layer, x, None, "max_ties/d_y")    # equal values in a window
    group.case("max_ties", {"layer": "MaxPooling2D", "pool_size": [3, 3], "strides": [1, 1],
                            "padding": "same"}, **result)

    group = Group("batch_normalization")
    for training in (True, False):
        word = "train" if training else "infer"
        for name, keywords, shape in (
            ("dense", {}, (6, 3)), ("image", {}, (2, 3, 4, 3)),
            ("no_scale", {"scale": False}, (5, 4)), ("no_center", {"center": False}, (5, 4)),
            ("bare", {"scale": False, "center": False}, (2, 2, 2, 3)),
            ("settings", {"momentum": 0.5, "epsilon": 0.1}, (4, 3)), ("one_row", {}, (1, 4)),
        ):
            layer = L.BatchNormalization(**keywords)
            layer_case(group, f"{name}_{word}", layer, shape, training, scale=3.0)

    group = Group("activations")
    points = np.array([-100, -20, -5, -3, -2.5, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1, 2.5, 3, 5, 6.5,
                       20, 88, 100, 30], np.float32).reshape(4, 5)
    for name in ("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "sigmoid",
                 "hard_sigmoid", "tanh", "softmax", "softplus", "softsign", "mish", "exponential",
                 "linear"):
        for kind in ("points", "random"):
            if kind == "points" and name == "exponential":
                x = jnp.asarray(np.minimum(points, 20.0), keras.config.floatx())
            elif kind == "points":
                x = jnp.asarray(points, keras.config.floatx())
            else:
                x = values(f"activations/{name}", 4, 5, scale=3.0)
            layer = L.Activation(name)
            layer.build(x.shape)
            result, _ = forward_backward(layer, x, None, f"activations/{name}_{kind}/d_y")
            group.case(f"{name}_{kind}", {"activation": name}, **result)
    layer_case(group, "LeakyReLU_layer", L.LeakyReLU(), (4, 5), scale=3.0)


def distance(a, b):
    scale = np.abs(b).max() if b.size else 0.0
    return float(np.abs(a.astype(np.float64) - b).max() / scale) if scale else 0.0


def main():
    for make in (losses, metrics, schedules, layers):
        make()
    if "--float64" in sys.argv:
        np.savez(sys.argv[sys.argv.index("--float64") + 1],
                 **{f"{g}|{k}": v for g, group in GROUPS.items()
                    for k, v in group.arrays.items()})
        return
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/f64.npz"
        subprocess.run([sys.executable, __file__, "--float64", file], check=True)
        exact = dict(np.load(file))
    out = common.folder("pieces")
    lines = ["group case/tensor max|f32-f64|/max|f64|, where above 1e-6"]
    for name, group in GROUPS.items():
        common.write_arrays(out / f"{name}.safetensors", group.arrays, group.cases)
        for key, value in group.arrays.items():
            if value.dtype.kind == "f" and not np.isnan(value).any():
                d = distance(value, exact[f"{name}|{key}"])
                if d > 1e-6:
                    lines.append(f"{name} {key} {d:.1e}")
    (out / "float64.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if "--float64" in sys.argv:
        keras.config.set_floatx("float64")
    main()
