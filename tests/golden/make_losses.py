"""Losses, metrics and sample weights with each of their arguments. Writes losses/.

losses.safetensors     each loss: its values, reductions with and without sample weights, gradient
metrics.safetensors    each metric: updated by three uneven batches, reset, and updated again
training.safetensors   fit, evaluate and train_on_batch with sample and class weights
"""

import common
import jax
import keras
import numpy as np

K, M, L = keras.losses, keras.metrics, keras.layers
BATCHES = (4, 1, 3)


def values(name, *shape, scale=1.0):
    u = common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)
    return np.array(np.float32(scale) * u)


def softmax(x):
    return np.asarray(jax.nn.softmax(x))


def plain(settings):
    """Settings as JSON has them; a tuple of axes is a list."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}


B, C, T = 8, 5, 3
P = softmax(values("p", B, C, scale=2.0))
SOFT = softmax(values("soft", B, C, scale=2.0))
LOGITS = values("logits", B, C, scale=4.0)
LABELS = (np.arange(B) * 7 % C).astype(np.int32)
ONE_HOT = np.eye(C, dtype=np.float32)[LABELS]
BITS = (np.arange(B * C).reshape(B, C) % 3 == 0).astype(np.float32)
SIGNS = 2 * BITS - 1
SIGMOID = np.asarray(jax.nn.sigmoid(LOGITS))
REAL = values("real", B, C, scale=3.0)
POSITIVE = np.abs(values("positive", B, C, scale=3.0)) + np.float32(0.125)
SEQUENCE, SEQUENCE_P = values("t", B, T, C, scale=2.0), values("q", B, T, C, scale=2.0)
SEQUENCE_LABELS = (np.arange(B * T).reshape(B, T) * 3 % C).astype(np.int32)
SEQUENCE_SOFT = softmax(SEQUENCE)
SPELLED = np.array([[1, 2, 3], [2, 2, 0], [4, 0, 0], [0, 0, 0], [3, 3, 3], [1, 1, 2], [4, 1, 4],
                    [2, 0, 0]], np.int32)     # with repetitions, and shorter ones
IMAGE = (values("image", B, 3, 2, 2) > 0).astype(np.float32)
IMAGE_P = np.asarray(jax.nn.sigmoid(values("image_p", B, 3, 2, 2, scale=3.0)))
PAIRED = (np.arange(B) * 5 % 3).astype(np.int32)          # every class more than once
UNIT = LOGITS / np.linalg.norm(LOGITS, axis=1, keepdims=True)
WEIGHTS = np.array([1, 0, 2.5, 0.5, 3, 1, 0.25, 2], np.float32)
STEP_WEIGHTS = np.abs(values("step_weights", B, T, scale=2.0))


def loss_cases():
    s = {"label_smoothing": 0.2}
    logits = {"from_logits": True}
    ignored = SEQUENCE_LABELS.copy()
    ignored[1] = 255
    ignored[3, 1:] = 255
    cases = {
        "mae": (K.MeanAbsoluteError, {}, REAL, LOGITS),
        "mse": (K.MeanSquaredError, {}, REAL, LOGITS),
        "mse_one_prediction": (K.MeanSquaredError, {}, REAL, LOGITS[:, :1]),
        "mae_one_label": (K.MeanAbsoluteError, {}, REAL[:, :1], LOGITS),
        "mape": (K.MeanAbsolutePercentageError, {}, REAL, LOGITS),
        "msle": (K.MeanSquaredLogarithmicError, {}, POSITIVE, np.abs(LOGITS)),
        "msle_negative": (K.MeanSquaredLogarithmicError, {}, REAL, LOGITS),
        "huber": (K.Huber, {}, REAL, LOGITS),
        "huber_delta": (K.Huber, {"delta": 2.5}, REAL, LOGITS),
        "log_cosh": (K.LogCosh, {}, REAL, LOGITS),
        "poisson": (K.Poisson, {}, POSITIVE, np.abs(LOGITS)),
        "mae_sequence": (K.MeanAbsoluteError, {}, SEQUENCE, SEQUENCE_P),
        "huber_column": (K.Huber, {}, REAL[:, 0], LOGITS[:, :1]),
        "hinge": (K.Hinge, {}, SIGNS, LOGITS),
        "hinge_binary": (K.Hinge, {}, BITS, LOGITS),
        "squared_hinge": (K.SquaredHinge, {}, SIGNS, LOGITS),
        "squared_hinge_binary": (K.SquaredHinge, {}, BITS, LOGITS),
        "categorical_hinge": (K.CategoricalHinge, {}, ONE_HOT, LOGITS),
        "kl_divergence": (K.KLDivergence, {}, SOFT, P),
        "kl_divergence_zeros": (K.KLDivergence, {}, ONE_HOT, P),
        "cosine": (K.CosineSimilarity, {}, REAL, LOGITS),
        "cosine_axis": (K.CosineSimilarity, {"axis": 1}, SEQUENCE, SEQUENCE_P),
        "categorical": (K.CategoricalCrossentropy, {}, ONE_HOT, P),
        "categorical_axis": (K.CategoricalCrossentropy, {"axis": 1},
                             np.swapaxes(np.eye(C, dtype=np.float32)[SEQUENCE_LABELS], 1, 2),
                             np.swapaxes(SEQUENCE_SOFT, 1, 2)),
        "binary": (K.BinaryCrossentropy, s, BITS, SIGMOID),
        "binary_axis": (K.BinaryCrossentropy, {"axis": 1}, IMAGE, IMAGE_P),
        "sparse": (K.SparseCategoricalCrossentropy, {}, LABELS, P),
        "sparse_sequence": (K.SparseCategoricalCrossentropy, {}, SEQUENCE_LABELS, SEQUENCE_SOFT),
        "sparse_ignore": (K.SparseCategoricalCrossentropy, {"ignore_class": 255}, ignored,
                          SEQUENCE_SOFT),
        "sparse_ignore_0": (K.SparseCategoricalCrossentropy, {"ignore_class": 0} | logits,
                            SEQUENCE_LABELS, SEQUENCE),
        "generalized": (K.CategoricalGeneralizedCrossEntropy, {}, LABELS, P),
        "generalized_q": (K.CategoricalGeneralizedCrossEntropy, {"q": 0.9}, LABELS, P),
        "ctc": (K.CTC, {}, SPELLED, values("ctc", B, 7, C, scale=2.0)),
        "ctc_one": (K.CTC, {}, SPELLED[:, :1], values("ctc_one", B, 2, C, scale=2.0)),
        "ctc_even": (K.CTC, {}, SPELLED, np.zeros((B, 7, C), np.float32)),
        "tversky": (K.Tversky, {}, BITS, SIGMOID),
        "tversky_all": (K.Tversky, {"alpha": 0.2, "beta": 0.7}, IMAGE, IMAGE_P),
        "tversky_axis": (K.Tversky, {"alpha": 0.2, "beta": 0.7, "axis": (1, 2)}, IMAGE, IMAGE_P),
        "circle": (K.Circle, {}, PAIRED, UNIT),
        "circle_all": (K.Circle, {"gamma": 8.0, "margin": 0.2, "remove_diagonal": False}, LABELS,
                       UNIT),
        "dice": (K.Dice, {}, BITS, SIGMOID),
        "dice_axis": (K.Dice, {"axis": (1, 2, 3)}, IMAGE, IMAGE_P),
    }
    focal = {"": {}, "_smooth": s, "_alpha": {"alpha": 0.6}, "_gamma": {"gamma": 1.5}}
    for suffix, settings in focal.items():
        for kind, x in (("", P), ("_logits", LOGITS)):
            more = logits if kind else {}
            cases[f"categorical_focal{kind}{suffix}"] = (K.CategoricalFocalCrossentropy,
                                                         settings | more, ONE_HOT, x)
        for kind, x in (("", SIGMOID), ("_logits", LOGITS)):
            more = logits if kind else {}
            cases[f"binary_focal{kind}{suffix}"] = (K.BinaryFocalCrossentropy,
                                                    settings | more, BITS, x)
    cases["binary_focal_balanced"] = (K.BinaryFocalCrossentropy,
                                      {"apply_class_balancing": True, "alpha": 0.6}, BITS, SIGMOID)
    cases["categorical_focal_axis"] = (K.CategoricalFocalCrossentropy, {"axis": 1},
                                       np.swapaxes(np.eye(C, dtype=np.float32)[SEQUENCE_LABELS],
                                                   1, 2), np.swapaxes(SEQUENCE_SOFT, 1, 2))
    return cases


def losses(folder):
    arrays, cases = {"weights": WEIGHTS, "step_weights": STEP_WEIGHTS}, {}
    for name, (kind, settings, target, x) in loss_cases().items():
        each = kind(**settings, reduction=None)(target, x)
        of_steps = each.ndim == 2 and each.shape[1] == T
        weights = {"": None, "_weighted": STEP_WEIGHTS if of_steps else WEIGHTS}
        if each.ndim > 1 and not of_steps:
            weights = {"": None}
        found = {"target": target, "x": x}
        if "ignore_class" not in settings:
            found["each"] = each
        for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight"):
            for suffix, weight in weights.items():
                loss = kind(**settings, reduction=reduction)
                if each.ndim == 0 and weight is not None:   # Keras leaves a scalar unchanged
                    if reduction != "sum_over_batch_size":
                        continue
                value, d_x = jax.value_and_grad(lambda x: loss(target, x, weight))(x)
                if np.ndim(value):
                    raise ValueError(name)
                if each.ndim == 0 and reduction != "sum_over_batch_size":
                    continue
                found[f"{reduction}{suffix}"], found[f"d_{reduction}{suffix}"] = value, d_x
        for key, array in found.items():
            arrays[f"{name}/{key}"] = array
        cases[name] = {"loss": kind.__name__} | plain(settings)
    common.write_arrays(folder / "losses.safetensors", arrays, cases)


def metric_cases():
    ties = np.round(P * 4).astype(np.float32) / 4
    thresholds = {"thresholds": [0.25, 0.75, 0.5, 0.0]}
    even = {"thresholds": [0.0, 0.25, 0.5, 0.75, 1.0]}
    classes = (np.arange(B * T).reshape(B, T) * 5 % 4).astype(np.int32)
    guesses = (np.arange(B * T).reshape(B, T) * 7 % 4).astype(np.float32)
    guesses[2:4] = classes[2:4]
    classes[1, 1] = 9
    simple = {
        "mean_squared_error": (M.MeanSquaredError, REAL, LOGITS),
        "mean_absolute_error": (M.MeanAbsoluteError, REAL, LOGITS),
        "root_mean_squared_error": (M.RootMeanSquaredError, REAL, LOGITS),
        "mean_absolute_percentage_error": (M.MeanAbsolutePercentageError, REAL, LOGITS),
        "mean_squared_logarithmic_error": (M.MeanSquaredLogarithmicError, POSITIVE, POSITIVE * 2),
        "log_cosh_error": (M.LogCoshError, REAL, LOGITS), "hinge": (M.Hinge, SIGNS, LOGITS),
        "squared_hinge": (M.SquaredHinge, BITS, LOGITS),
        "categorical_hinge": (M.CategoricalHinge, ONE_HOT, LOGITS),
        "kl_divergence": (M.KLDivergence, SOFT, P), "poisson": (M.Poisson, POSITIVE, P),
        "cosine_similarity": (M.CosineSimilarity, REAL, LOGITS),
        "pearson_correlation": (M.PearsonCorrelation, REAL, LOGITS),
        "concordance_correlation": (M.ConcordanceCorrelation, REAL, LOGITS),
        "r2_score": (M.R2Score, REAL, REAL + LOGITS / 4),
        "categorical_accuracy": (M.CategoricalAccuracy, ONE_HOT, P),
        "sparse_categorical_accuracy": (M.SparseCategoricalAccuracy, LABELS, P),
        "binary_accuracy": (M.BinaryAccuracy, BITS, SIGMOID),
        "binary_crossentropy": (M.BinaryCrossentropy, BITS, SIGMOID),
        "categorical_crossentropy": (M.CategoricalCrossentropy, ONE_HOT, P),
        "sparse_categorical_crossentropy": (M.SparseCategoricalCrossentropy, LABELS, P),
        "precision": (M.Precision, BITS, SIGMOID), "recall": (M.Recall, BITS, SIGMOID),
        "true_positives": (M.TruePositives, BITS, SIGMOID),
        "true_negatives": (M.TrueNegatives, BITS, SIGMOID),
        "false_positives": (M.FalsePositives, BITS, SIGMOID),
        "false_negatives": (M.FalseNegatives, BITS, SIGMOID), "auc": (M.AUC, BITS, SIGMOID),
        "f1_score": (M.F1Score, ONE_HOT, P), "fbeta_score": (M.FBetaScore, ONE_HOT, P),
        "binary_io_u": (M.BinaryIoU, BITS, SIGMOID),
    }
    cases = {name: (kind, {}, t, p) for name, (kind, t, p) in simple.items()}
    for name, kind in (("precision", M.Precision), ("recall", M.Recall)):
        cases |= {f"{name}_{k}": (kind, s, BITS, SIGMOID) for k, s in {
            "threshold": {"thresholds": 0.7}, "list": thresholds, "even": even,
            "class_0": {"class_id": 0}, "class_3": {"class_id": 3}, "top_2": {"top_k": 2},
            "top_2_class": {"top_k": 2, "class_id": 1},
            "top_3_list": {"top_k": 3, "thresholds": [0.3, 0.6]}}.items()}
    for name, kind in (("true_positives", M.TruePositives), ("true_negatives", M.TrueNegatives),
                       ("false_positives", M.FalsePositives),
                       ("false_negatives", M.FalseNegatives)):
        cases[f"{name}_list"] = (kind, thresholds, BITS, SIGMOID)
        cases[f"{name}_even"] = (kind, even, BITS, SIGMOID)
    at = {"sensitivity_at_specificity": (M.SensitivityAtSpecificity, "specificity"),
          "specificity_at_sensitivity": (M.SpecificityAtSensitivity, "sensitivity"),
          "precision_at_recall": (M.PrecisionAtRecall, "recall"),
          "recall_at_precision": (M.RecallAtPrecision, "precision")}
    for name, (kind, argument) in at.items():
        for k, s in {"": {}, "_20": {"num_thresholds": 20}, "_1": {"num_thresholds": 1},
                     "_class": {"class_id": 2}}.items():
            cases[f"{name}{k}"] = (kind, {argument: 0.6} | s, BITS, SIGMOID)
    for curve in ("ROC", "PR", "PRGAIN"):
        for method in ("interpolation", "minoring", "majoring"):
            cases[f"auc_{curve}_{method}"] = (M.AUC, {"curve": curve, "summation_method": method},
                                              BITS, SIGMOID)
    for k, s in {"20": {"num_thresholds": 20}, "list": {"thresholds": [0.2, 0.35, 0.8]},
                 "even": {"thresholds": [0.25, 0.5, 0.75]}, "labels": {"multi_label": True},
                 "labels_pr": {"multi_label": True, "curve": "PR"}}.items():
        cases[f"auc_{k}"] = (M.AUC, s, BITS, SIGMOID)
    weights = {"label_weights": [0.5, 2.0, 0.0, 1.0, 3.0]}
    cases["auc_label_weights"] = (M.AUC, weights, BITS, SIGMOID)
    cases["auc_label_weights_list"] = (M.AUC, weights | {"thresholds": [0.2, 0.35, 0.8]}, BITS,
                                       SIGMOID)
    cases["auc_labels_weighted"] = (M.AUC, weights | {"multi_label": True, "num_labels": C}, BITS,
                                    SIGMOID)
    cases["sparse_top_ids"] = (M.SparseTopKCategoricalAccuracy,
                               {"k": 2, "from_sorted_ids": True}, LABELS,
                               np.argsort(-P, axis=-1).astype(np.float32))
    cases["equality"] = (M.Accuracy, {}, classes, guesses)
    ignored = SEQUENCE_LABELS.copy()
    ignored[1], ignored[3, 1:] = 255, 255
    cases["sparse_crossentropy_ignore"] = (M.SparseCategoricalCrossentropy, {
        "ignore_class": 255}, ignored, SEQUENCE_SOFT)
    cases["sparse_crossentropy_ignore_0"] = (M.SparseCategoricalCrossentropy, {
        "ignore_class": 0, "from_logits": True}, LABELS, LOGITS)
    cases["auc_logits"] = (M.AUC, {"from_logits": True}, BITS, LOGITS)
    for k in (1, 2, 5):
        cases[f"top_{k}"] = (M.TopKCategoricalAccuracy, {"k": k}, ONE_HOT, P)
        cases[f"sparse_top_{k}"] = (M.SparseTopKCategoricalAccuracy, {"k": k}, LABELS, ties)
    cases["sparse_top_sequence"] = (M.SparseTopKCategoricalAccuracy, {"k": 2}, SEQUENCE_LABELS,
                                    SEQUENCE_SOFT)
    cases["binary_accuracy_threshold"] = (M.BinaryAccuracy, {"threshold": 0.2}, BITS, SIGMOID)
    cases["cosine_similarity_axis"] = (M.CosineSimilarity, {"axis": 1}, SEQUENCE, SEQUENCE_P)
    cases["pearson_correlation_axis"] = (M.PearsonCorrelation, {"axis": 1}, SEQUENCE, SEQUENCE_P)
    cases["concordance_correlation_axis"] = (M.ConcordanceCorrelation, {"axis": 1}, SEQUENCE,
                                             SEQUENCE_P)
    cases["binary_crossentropy_logits"] = (M.BinaryCrossentropy, {
        "from_logits": True, "label_smoothing": 0.2}, BITS, LOGITS)
    cases["categorical_crossentropy_logits"] = (M.CategoricalCrossentropy, {
        "from_logits": True, "label_smoothing": 0.2}, ONE_HOT, LOGITS)
    cases["sparse_crossentropy_logits"] = (M.SparseCategoricalCrossentropy, {
        "from_logits": True}, SEQUENCE_LABELS, SEQUENCE)
    for average in ("micro", "macro", "weighted"):
        cases[f"f1_{average}"] = (M.F1Score, {"average": average}, ONE_HOT, P)
        cases[f"fbeta_{average}"] = (M.FBetaScore, {"average": average, "beta": 2.0,
                                                    "threshold": 0.4}, BITS, SIGMOID)
    cases["f1_threshold"] = (M.F1Score, {"threshold": 0.3}, BITS, SIGMOID)
    cases["fbeta"] = (M.FBetaScore, {"beta": 0.5}, BITS, SIGMOID)
    cases["r2_variance"] = (M.R2Score, {"class_aggregation": "variance_weighted_average"}, REAL,
                            REAL + LOGITS / 4)
    cases["r2_each"] = (M.R2Score, {"class_aggregation": None}, REAL, REAL + LOGITS / 4)
    cases["r2_adjusted"] = (M.R2Score, {"num_regressors": 3}, REAL, REAL + LOGITS / 4)
    cases |= {
        "mean_io_u": (M.MeanIoU, {"num_classes": 4}, classes, guesses),
        "mean_io_u_ignore": (M.MeanIoU, {"num_classes": 4, "ignore_class": 2}, classes, guesses),
        "mean_io_u_ignore_0": (M.MeanIoU, {"num_classes": 4, "ignore_class": 0}, classes, guesses),
        "mean_io_u_pred": (M.MeanIoU, {"num_classes": C, "sparse_y_pred": False}, SEQUENCE_LABELS,
                           SEQUENCE),
        "io_u": (M.IoU, {"num_classes": 4, "target_class_ids": [1, 3]}, classes, guesses),
        "one_hot_io_u": (M.OneHotIoU, {"num_classes": C, "target_class_ids": [0, 2]}, ONE_HOT, P),
        "one_hot_mean_io_u": (M.OneHotMeanIoU, {"num_classes": C}, ONE_HOT, P),
        "binary_io_u_all": (M.BinaryIoU, {"target_class_ids": [1], "threshold": 0.3}, BITS,
                            SIGMOID),
    }
    return cases


def metrics(folder):
    arrays, cases = {"weights": WEIGHTS, "step_weights": STEP_WEIGHTS}, {}
    for name, (kind, settings, target, x) in metric_cases().items():
        for weighted in (False, True):
            weights = STEP_WEIGHTS if weighted and np.ndim(x) - (
                kind in (M.SparseTopKCategoricalAccuracy, M.SparseCategoricalCrossentropy,
                         M.CosineSimilarity, M.PearsonCorrelation, M.ConcordanceCorrelation)
                or name == "mean_io_u_pred") == 2 and x.shape[1] == T else WEIGHTS
            if name.endswith("_axis"):      # values (B, C): a weight for each row
                weights = WEIGHTS[:, None]
            if name.startswith("binary_io_u"):
                weights = np.repeat(WEIGHTS[:, None], C, axis=1)
            more = {"dtype": "float32"} if "io_u" in name and weighted else {}
            metric = kind(**settings, **more)
            results, first = [], 0
            for count in BATCHES:
                part = slice(first, first + count)
                metric.update_state(target[part], x[part], weights[part] if weighted else None)
                results.append(np.asarray(metric.result(), np.float32).reshape(-1))
                first += count
            metric.reset_state()
            metric.update_state(target[:4], x[:4], weights[:4] if weighted else None)
            results.append(np.asarray(metric.result(), np.float32).reshape(-1))
            suffix = "_weighted" if weighted else ""
            arrays[f"{name}/result{suffix}"] = np.stack(results)
            if weighted:
                arrays[f"{name}/weights"] = weights
        arrays[f"{name}/target"], arrays[f"{name}/x"] = target, x
        cases[name] = {"metric": kind.__name__, "default": metric.name} | plain(settings)
    common.write_arrays(folder / "metrics.safetensors", arrays, cases)


def training(folder):
    """20 rows in batches of 8, 3 epochs of SGD, not shuffled; another 10 rows to validate."""
    N = 20
    x = values("train/x", N, 6)
    labels = (np.arange(N) * 3 % C).astype(np.int32)
    weights = np.abs(values("train/weights", N, scale=2.0))
    weights[5:9] = 0
    held_x, held_labels = values("held/x", 10, 6), (np.arange(10) * 2 % C).astype(np.int32)
    held_weights = np.abs(values("held/weights", 10, scale=2.0))
    by_class = {0: 0.5, 2: 4.0, 3: 0.0}
    one_hot, held_hot = (np.eye(C, dtype=np.float32)[y] for y in (labels, held_labels))
    sparse, categorical = "sparse_categorical_crossentropy", "categorical_crossentropy"
    runs = {
        "sample_weight": (sparse, labels, {"sample_weight": weights, "validation_data": (
            held_x, held_labels, held_weights)}, {"sample_weight": held_weights}, held_labels),
        "class_weight": (sparse, labels, {"class_weight": by_class, "validation_data": (
            held_x, held_labels)}, {}, held_labels),
        "class_weight_one_hot": (categorical, one_hot, {"class_weight": by_class,
                                                        "validation_split": 0.3}, {}, held_hot),
        "sample_weight_split": (categorical, one_hot, {"sample_weight": weights,
                                                       "validation_split": 0.3,
                                                       "validation_freq": 2}, {}, held_hot),
        "dice": ("dice", one_hot, {"sample_weight": weights}, {}, held_hot),
        "hinge": ("hinge", one_hot, {"sample_weight": weights}, {}, held_hot),
        "sum": (K.CategoricalCrossentropy(reduction="sum"), one_hot, {"sample_weight": weights},
                {"sample_weight": held_weights}, held_hot),
        "mean_with_sample_weight": (K.CategoricalCrossentropy(reduction="mean_with_sample_weight"),
                                    one_hot, {"sample_weight": weights},
                                    {"sample_weight": held_weights}, held_hot),
    }
    kernel, bias = values("kernel", 6, C), values("bias", C, scale=0.1)
    arrays = {"x": x, "weights": weights, "held_x": held_x, "held_weights": held_weights,
              "class_weight": np.array([0.5, 1, 4, 0], np.float32), "kernel": kernel, "bias": bias}
    cases = {}
    for name, (loss, y, fit, evaluate, held_y) in runs.items():
        model = keras.Sequential([keras.Input((6,)), L.Dense(C, activation="softmax")])
        model.layers[0].set_weights([kernel, bias])
        accuracy = "accuracy"
        model.compile(keras.optimizers.SGD(0.2), loss, metrics=[accuracy],
                      weighted_metrics=[accuracy, "mse" if y.ndim == 2 else sparse])
        history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0, **fit).history
        logs = sorted(history)
        for key in logs:
            arrays[f"{name}/{key}"] = np.array(history[key], np.float32)
        found = model.evaluate(held_x, held_y, batch_size=8, verbose=0, return_dict=True,
                               **evaluate)
        for key in found:
            arrays[f"{name}/evaluated_{key}"] = np.float32(found[key])
        arrays[f"{name}/y"], arrays[f"{name}/held_y"] = y, held_y
        arrays[f"{name}/kernel_after"] = np.asarray(model.layers[0].kernel)
        model.reset_metrics()
        batch = {k: v[:8] for k, v in fit.items() if k == "sample_weight"} | {
            k: v for k, v in fit.items() if k == "class_weight"}
        found = model.train_on_batch(x[:8], y[:8], return_dict=True, **batch)
        for key in found:
            arrays[f"{name}/on_batch_{key}"] = np.float32(found[key])
        arrays[f"{name}/kernel_last"] = np.asarray(model.layers[0].kernel)
        cases[name] = {"loss": loss if isinstance(loss, str) else loss.reduction, "logs": logs,
                       "weights": sorted(set(fit) - {"validation_data"}),
                       "evaluate": sorted(evaluate)}
    common.write_arrays(folder / "training.safetensors", arrays, cases)


if __name__ == "__main__":
    out = common.folder("losses")
    losses(out)
    metrics(out)
    training(out)
