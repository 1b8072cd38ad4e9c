"""Models compiled with every form of the arguments of compile. Writes compiled/.

compiled.safetensors   the JSON of models and of their compile_config, the logs of three steps of
                       training, and the number of the optimizer's variables
"""

import json

import common
import keras
import numpy as np

O = keras.optimizers
F = keras.losses
L = keras.layers
M = keras.metrics
ROWS = 16


def values(name, *shape):
    return np.array(common.hashed_uniform(name, int(np.prod(shape))).reshape(shape))


def one():
    x = keras.Input((4,), name="x")
    hidden = L.Dense(5, activation="tanh", name="hidden")(x)
    return keras.Model(x, L.Dense(3, activation="sigmoid", name="out")(hidden), name="one")


def two():
    x = keras.Input((4,), name="x")
    hidden = L.Dense(5, activation="tanh", name="hidden")(x)
    return keras.Model(x, [L.Dense(1, name="size")(hidden),
                           L.Dense(3, activation="softmax", name="kind")(hidden)], name="two")


def many():
    x = keras.Input((4,), name="x")
    return keras.Model(x, [L.Dense(1, name=f"out{i}")(x) for i in range(10)], name="many")


def still():
    """Without trainable weights: only statistics move."""
    x = keras.Input((4,), name="x")
    hidden = L.Dense(3, trainable=False, name="hidden")(x)
    return keras.Model(x, L.BatchNormalization(center=False, scale=False, name="out")(hidden),
                       name="still")


def added():
    """With a loss that a layer adds, and no other."""
    x = keras.Input((4,), name="x")
    return keras.Model(x, L.Dense(3, activity_regularizer="l2", name="out")(x), name="added")


def data():
    classes = np.arange(ROWS) * 5 % 7 % 3
    onehot = np.eye(3, dtype="float32")[classes]
    size = values("compiled/size", ROWS, 1)
    return {"x": values("compiled/x", ROWS, 4), "one": [onehot], "still": [onehot],
            "added": [onehot], "two": [size, onehot],
            "many": [values(f"compiled/many{i}", ROWS, 1) for i in range(10)]}


def quartic(y_true, y_pred):
    return keras.ops.mean((y_true - y_pred) ** 4, axis=-1)


def arrangements():
    """Arguments as strings, objects, functions, lists and dictionaries."""
    cce = "categorical_crossentropy"
    return {
        "string": (one, "adam", "mse", {"metrics": ["accuracy"]}),
        "function": (one, "sgd", F.mean_squared_error, {"metrics": [F.mean_absolute_error,
                                                                    M.binary_accuracy]}),
        "wrapped_function": (one, "sgd", "mse", {"metrics": [M.MeanMetricWrapper(
            F.binary_crossentropy, name="wrapped", label_smoothing=0.2)]}),
        "dictionary": (one, "sgd", {"out": F.Huber()},
                       {"metrics": {"out": ["mae", "mse"]}, "loss_weights": {"out": 0.5}}),
        "dictionary_of_one": (one, "sgd", {"out": "mse"}, {"metrics": {"out": "mae"}}),
        "list": (one, "sgd", ["mse"], {"metrics": [["mae"]], "loss_weights": [0.3]}),
        "weight": (one, "sgd", "mse", {"loss_weights": 0.3}),
        "sum": (one, "sgd", F.MeanSquaredError(reduction="sum"), {}),
        "mean": (one, "sgd", F.MeanSquaredError(reduction="mean"), {}),
        "iou": (one, "sgd", "bce", {"metrics": [
            M.BinaryIoU(threshold=0.4), M.OneHotMeanIoU(3), M.OneHotIoU(3, [0, 2]), M.MeanIoU(2),
            M.IoU(2, [1])]}),
        "dtype": (one, "sgd", "bce", {"metrics": [M.AUC(dtype="float64", name="auc")]}),
        "thirteen_metrics": (one, "sgd", "bce", {"metrics": [
            "mae", "mse", "acc", "bce", M.AUC(name="auc"), M.Precision(name="precision"),
            M.Recall(name="recall"), M.F1Score(), M.TruePositives(name="tp"),
            M.TopKCategoricalAccuracy(2), "mape", "msle", "hinge"],
            "weighted_metrics": ["mae", "hinge"]}),
        "same_names": (one, "sgd", "mse", {"metrics": ["mae", "mae", M.MeanAbsoluteError()],
                                           "weighted_metrics": ["mae", "mae"]}),
        "settings": (one, "sgd", "mse", {"run_eagerly": True}),
        "steps": (one, "sgd", "mse", {"steps_per_execution": 2, "jit_compile": False}),
        "two_lists": (two, "sgd", ["mse", cce], {"metrics": [["mae"], ["accuracy", "mse"]],
                                                 "loss_weights": [0.2, 2]}),
        "two_dictionaries": (two, "sgd", {"kind": cce, "size": "mse"},
                             {"metrics": {"kind": ["accuracy"], "size": "mae"},
                              "loss_weights": {"kind": 2, "size": 0.2}}),
        "two_sorted_weights": (two, "sgd", ["mse", cce], {"loss_weights": {"size": 2,
                                                                           "kind": 0.2}}),
        "two_metrics_of_one": (two, "sgd", {"kind": cce, "size": "mse"},
                               {"metrics": {"size": ["mae"]}, "weighted_metrics": {"kind": "acc"}}),
        "two_strings": (two, "sgd", "mse", {"metrics": ["mae", "mse"]}),
        "two_with_one_loss": (two, "sgd", [None, cce], {"metrics": [None, ["accuracy"]]}),
        "two_with_none_by_name": (two, "sgd", {"kind": cce, "size": None}, {"metrics": {
            "size": ["mae"]}}),
        "ten_outputs": (many, "sgd", ["mse"] * 9 + [F.Huber()], {"metrics": [["mae"]] * 9 + [[]],
                                             "loss_weights": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}),
        "class_names": (one, "sgd", "Huber", {
            "metrics": ["Precision", "MeanSquaredError", "CosineSimilarity", "f_beta_score", "AUC",
                        "Accuracy"],
            "weighted_metrics": ["Hinge"]}),
        "loss_functions": (one, "sgd", "mse", {"metrics": [
            F.huber, F.log_cosh, F.dice, F.tversky, F.cosine_similarity,
            F.binary_focal_crossentropy, F.categorical_focal_crossentropy,
            M.MeanMetricWrapper(F.huber, name="narrow", delta=0.5)]}),
        "nothing_trains": (still, "adam", "mse", {"metrics": ["mae"]}),
        "added_alone": (added, "sgd", None, {}),
        "own_loss": (one, "sgd", quartic, {}),
        "own_metric": (one, "sgd", "mse", {"metrics": [quartic]}),
    }


def optimizers():
    """Optimizers that wrap others, or whose files have more than numbers."""
    S = O.schedules
    return {
        "loss_scale": O.LossScaleOptimizer(O.Adam(), initial_scale=1024.0, dynamic_growth_steps=2),
        "loss_scale_named": O.LossScaleOptimizer(O.SGD(S.ExponentialDecay(0.1, 3, 0.5)),
                                                 name="mine"),
        "loss_scale_adafactor": O.LossScaleOptimizer(O.Adafactor(0.1)),
        "ftrl": O.Ftrl(0.05),
        "lamb": O.Lamb(0.02, beta_1=0.8),
        "adafactor": O.Adafactor(S.CosineDecay(0.1, 5), clip_threshold=0.5),
        "muon": O.Muon(0.02, exclude_layers=["o.t"], rms_rate=None, adam_weight_decay=None,
                       ns_steps=3, nesterov=False),
        "schedule_free": O.ScheduleFreeAdamW(0.02, warmup_steps=2, weight_decay=0.1),
        "multi": O.MultiOptimizer(O.OptimizerMap(O.Adam(0.01), {
            "hidden/.*": O.SGD(0.1, momentum=0.9), "out/bias": O.RMSprop(0.02),
            "none": O.Adagrad()}), loss_scale_factor=4.0),
    }


def main():
    out = common.folder("compiled")
    arrays = data()
    cases, models = {}, {}
    kept = {"x": arrays["x"]}
    settings = arrangements() | {
        name: (one, optimizer, "mse", {}) for name, optimizer in optimizers().items()}
    for name, (make, optimizer, loss, given) in settings.items():
        keras.utils.set_random_seed(7)
        model = make()
        y = arrays[model.name]
        for i, array in enumerate(y):
            kept[f"{model.name}/y{i}"] = array
        for i, w in enumerate(model.weights):
            w.assign(0.7 * values(f"compiled/{model.name}/{i}", *w.shape))
            kept[f"{model.name}/w{i}"] = np.array(w.value)
        models[model.name] = json.loads(model.to_json())
        model.compile(optimizer, loss, **given)
        logs = []
        for _ in range(3):
            model.reset_metrics()
            log = model.train_on_batch(arrays["x"], y if len(y) > 1 else y[0], return_dict=True)
            logs.append([float(np.mean(np.array(value))) for value in log.values()])
        kept[f"{name}/logs"] = np.array(logs, np.float32)
        cases[name] = {"model": model.name, "names": list(log),
                       "compile_config": json.loads(json.dumps(model.get_compile_config())),
                       "variables": len(model.optimizer.variables)}
    common.write_arrays(out / "compiled.safetensors", kept, {"models": models, "cases": cases})


main()
