"""Random heads, losses, metrics and optimizers for random_models.py, as Python source."""

import numpy as np

import random_layers as layers
from random_layers import Source, call

LOSS, METRIC, OPT = "keras.losses.", "keras.metrics.", "keras.optimizers."


def text(value):
    return str(value) if isinstance(value, Source) else repr(value)


def pick(d, table):
    """A name as a string, or a class called with arguments."""
    return object_or_name(d.weighted(table))


def object_or_name(value):
    return Source(value) if "(" in value else value


# For each kind of output: the activation of its last layer, its losses, its metrics.
HEADS = {
    "real": (4, [None], {
        "mse": 8, "mae": 4, "mean_squared_error": 2, LOSS + "MeanSquaredError()": 3,
        LOSS + "Huber()": 2, LOSS + "Huber(delta=0.5)": 1, "huber": 1, "log_cosh": 1,
        LOSS + "LogCosh()": 1, LOSS + "MeanAbsoluteError(reduction='sum')": 1,
        LOSS + "CosineSimilarity()": 1, "cosine_similarity": 1,
        LOSS + "MeanAbsolutePercentageError()": 0.5, "hinge": 0.5, LOSS + "SquaredHinge()": 0.5,
    }, {
        "mae": 6, "mse": 4, METRIC + "RootMeanSquaredError()": 4, METRIC + "MeanSquaredError()": 1,
        METRIC + "MeanAbsoluteError(name='error')": 2, "mape": 1, METRIC + "CosineSimilarity()": 1,
        METRIC + "LogCoshError()": 1, METRIC + "R2Score()": 1, "cosine_similarity": 1,
        METRIC + "PearsonCorrelation()": 0.5, METRIC + "ConcordanceCorrelation()": 0.5,
        METRIC + "Hinge()": 0.5, METRIC + "SquaredHinge()": 0.5,
    }),
    "sparse": (5, ["softmax"], {
        "sparse_categorical_crossentropy": 8, LOSS + "SparseCategoricalCrossentropy()": 3,
        LOSS + "SparseCategoricalCrossentropy(from_logits=False)": 1,
    }, {
        "accuracy": 10, "acc": 2, "sparse_categorical_accuracy": 2,
        METRIC + "SparseCategoricalAccuracy()": 2, "sparse_categorical_crossentropy": 1,
        METRIC + "SparseTopKCategoricalAccuracy(k=2)": 2,
    }),
    "sparse_logits": (3, [None], {
        LOSS + "SparseCategoricalCrossentropy(from_logits=True)": 5,
    }, {
        "accuracy": 5, METRIC + "SparseCategoricalAccuracy(name='hits')": 1,
        METRIC + "SparseCategoricalCrossentropy(from_logits=True)": 1,
    }),
    "one_hot": (4, ["softmax"], {
        "categorical_crossentropy": 8, LOSS + "CategoricalCrossentropy()": 3,
        LOSS + "CategoricalCrossentropy(label_smoothing=0.1)": 3, "kl_divergence": 1,
        LOSS + "CategoricalFocalCrossentropy()": 1, LOSS + "CategoricalHinge()": 0.5,
        LOSS + "CategoricalFocalCrossentropy(gamma=1.5, alpha=0.4)": 0.5,
        LOSS + "KLDivergence()": 1, "categorical_hinge": 0.5, LOSS + "Dice()": 0.5,
        LOSS + "Tversky(alpha=0.4, beta=0.6)": 0.5,
    }, {
        "accuracy": 10, "categorical_accuracy": 2, METRIC + "CategoricalAccuracy()": 2,
        METRIC + "AUC()": 2, METRIC + "F1Score(average='macro')": 1, METRIC + "F1Score()": 1,
        METRIC + "TopKCategoricalAccuracy(k=2)": 2, METRIC + "Precision()": 2,
        METRIC + "FBetaScore(average='micro', beta=2.0)": 0.5, METRIC + "Recall(top_k=2)": 1,
        METRIC + "AUC(multi_label=True, curve='PR')": 1, METRIC + "CategoricalCrossentropy()": 1,
        METRIC + "KLDivergence()": 0.5, METRIC + "CategoricalHinge()": 0.5,
        METRIC + "Precision(class_id=1)": 0.5,
    }),
    "one_hot_logits": (1, [None], {
        LOSS + "CategoricalCrossentropy(from_logits=True)": 3,
        LOSS + "CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)": 1,
    }, {"accuracy": 3, METRIC + "CategoricalCrossentropy(from_logits=True)": 1}),
    "binary": (5, ["sigmoid"], {
        "binary_crossentropy": 9, LOSS + "BinaryCrossentropy()": 3, "mse": 1,
        LOSS + "BinaryCrossentropy(label_smoothing=0.1)": 1, LOSS + "BinaryFocalCrossentropy()": 1,
        LOSS + "BinaryFocalCrossentropy(apply_class_balancing=True)": 0.5, LOSS + "Dice()": 0.5,
        "binary_focal_crossentropy": 0.5, LOSS + "Tversky()": 0.3,
    }, {
        "accuracy": 10, "binary_accuracy": 2, METRIC + "AUC()": 4, METRIC + "AUC(name='auc')": 2,
        METRIC + "Precision()": 3, METRIC + "Recall()": 3, METRIC + "Precision(thresholds=0.4)": 1,
        METRIC + "BinaryAccuracy(threshold=0.3)": 2, METRIC + "TruePositives()": 1,
        METRIC + "TrueNegatives()": 0.5, METRIC + "FalsePositives()": 0.5,
        METRIC + "FalseNegatives()": 0.5, METRIC + "BinaryCrossentropy()": 1,
        METRIC + "PrecisionAtRecall(0.5)": 0.5, METRIC + "RecallAtPrecision(0.6)": 0.5,
        METRIC + "SensitivityAtSpecificity(0.5)": 0.5, METRIC + "BinaryIoU()": 0.5,
        METRIC + "SpecificityAtSensitivity(0.4)": 0.5,
        METRIC + "AUC(num_thresholds=20, curve='PR', summation_method='minoring')": 0.5,
    }),
    "binary_logits": (2, [None], {
        LOSS + "BinaryCrossentropy(from_logits=True)": 4,
        LOSS + "BinaryFocalCrossentropy(from_logits=True)": 0.5,
    }, {METRIC + "BinaryAccuracy(threshold=0.0)": 3, METRIC + "AUC(from_logits=True)": 1,
        METRIC + "BinaryCrossentropy(from_logits=True)": 1}),
    "positive": (1, ["softplus", "exponential", "sigmoid"], {
        "poisson": 2, LOSS + "Poisson()": 1, "msle": 1,
        LOSS + "MeanSquaredLogarithmicError()": 1, "mean_absolute_percentage_error": 0.5,
    }, {"mae": 3, METRIC + "Poisson()": 1, "msle": 1}),
}

SCHEDULES = {
    OPT + "schedules.ExponentialDecay(0.01, 2, 0.9)": 3,
    OPT + "schedules.ExponentialDecay(0.01, decay_steps=2, decay_rate=0.9, staircase=True)": 1,
    OPT + "schedules.CosineDecay(0.01, 10)": 3,
    OPT + "schedules.CosineDecay(0.0, 10, warmup_target=0.01, warmup_steps=3)": 2,
    OPT + "schedules.PiecewiseConstantDecay([1, 3], [0.01, 0.005, 0.001])": 1,
    OPT + "schedules.PolynomialDecay(0.01, 10, power=0.5)": 1,
    OPT + "schedules.InverseTimeDecay(0.01, 2, 0.5)": 1,
    OPT + "schedules.CosineDecayRestarts(0.01, 2)": 1,
}
CLASSES = {"Adam": 14, "SGD": 8, "RMSprop": 5, "AdamW": 5, "Nadam": 2, "Adagrad": 2, "Adadelta": 1,
           "Adamax": 1, "Lion": 1, "Ftrl": 1, "Lamb": 0.5, "Adafactor": 0.5, "Muon": 0.3,
           "ScheduleFreeAdamW": 0.2}
WITHOUT = {"Lamb", "Adafactor", "Muon", "ScheduleFreeAdamW"}


def optimizer(d):
    if d.maybe(0.4):
        return d.weighted({"adam": 10, "sgd": 4, "rmsprop": 4, "adamw": 2, "nadam": 1, "adamax": 1,
                           "adagrad": 1, "adadelta": 1, "Adam": 2, "lion": 0.5})
    name = d.weighted({k: v for k, v in CLASSES.items() if not (d.only and k in WITHOUT)})
    options = {}
    if d.maybe(0.6):
        options["learning_rate"] = d.choice([0.01, 0.001, 0.005, 1e-4, 0.1 if name == "SGD"
                                             else 0.002])
        if d.maybe(0.25):
            options["learning_rate"] = Source(d.weighted(SCHEDULES))
    if name == "SGD":
        options |= d.some(0.4, momentum=[0.9, 0.5]) | d.some(0.2, nesterov=[True])
    if name == "RMSprop":
        options |= d.some(0.2, rho=[0.8], momentum=[0.9], centered=[True], epsilon=[1e-5])
    if name in ("Adam", "AdamW", "Nadam", "Adamax"):
        options |= d.some(0.15, beta_1=[0.8], beta_2=[0.99], epsilon=[1e-6, 1e-4])
    if name in ("Adam", "AdamW"):
        options |= d.some(0.1, amsgrad=[True])
    if name == "AdamW":
        options |= d.some(0.4, weight_decay=[0.01, 0.1])
    if d.maybe(0.2):
        options[d.choice(["clipnorm", "clipvalue", "global_clipnorm"])] = d.choice([0.1, 1.0])
    options |= d.some(0.05, weight_decay=[0.01], use_ema=[True], gradient_accumulation_steps=[2])
    if options.get("use_ema"):
        options |= d.some(0.5, ema_momentum=[0.9], ema_overwrite_frequency=[2])
    return Source(call(OPT + name, **options))


class Output:
    """An output of the model: its tensor, its kind, and how its targets are drawn."""

    def __init__(self, tensor, kind):
        self.tensor, self.kind = tensor, kind

    def targets(self, random, shape, sparse_column):
        """Targets for predictions of a shape."""
        kind, classes = self.kind, shape[-1]
        if kind.startswith("sparse"):
            y = random.randint(0, classes, shape[:-1]).astype(np.int32)
            return y[..., None] if sparse_column or y.ndim == 1 and random.rand() < 0.3 else y
        if kind.startswith("one_hot"):
            return np.eye(classes, dtype=np.float32)[random.randint(0, classes, shape[:-1])]
        if kind.startswith("binary"):
            return random.randint(0, 2, shape).astype(np.float32)
        if kind == "positive":
            return random.rand(*shape).astype(np.float32) + 0.1
        return random.randn(*shape).astype(np.float32)


def head(p, tensor, named):
    """An output of the model after its last layer; `named` gives that a name of its own."""
    d = p.d
    kind = d.choices(list(HEADS), [h[0] for h in HEADS.values()])[0]
    shape = p.shape(tensor)
    name = {"name": p.name("out_")} if named else {}
    float32 = {"dtype": "float32"} if p.mixed and d.maybe(0.7) else {}
    if kind == "real" and d.maybe(0.3) and not named and len(shape) > 0:
        return Output(tensor, kind)
    units = 1 if kind.startswith("binary") and d.maybe(0.7) else d.randint(2, 5)
    if kind == "real" and d.maybe(0.5):
        units = 1
    last = d.choice(HEADS[kind][1])
    if len(shape) == 3 and d.maybe(0.7):
        source = call("L.Conv2D", units, 1, **({"activation": last} if last else {}), **name,
                      **float32)
    elif last and d.maybe(0.15):
        tensor = p.must(tensor, call("L.Dense", units))
        source = call("L.Activation", last, **name, **float32)
    else:
        source = call("L.Dense", units, **({"activation": last} if last else {}), **name, **float32)
    return Output(p.must(tensor, source), kind)


def losses_of(kind, shape):
    """The losses for an output. The direction of a single value has the gradient 0, of which the
    optimizers that divide by its size see the rounding alone."""
    table = HEADS[kind][2]
    if shape[-1] != 1:
        return table
    return {name: weight for name, weight in table.items() if "osine" not in name}


def metrics(d, kind, shape):
    table = dict(HEADS[kind][3])
    if len(shape) > 1:    # these take rows of classes
        table = {k: v for k, v in table.items() if not any(
            n in k for n in ("F1", "FBeta", "R2", "Correlation", "multi_label", "class_id",
                             "top_k"))}
    count = d.choice([0, 1, 1, 1, 2, 3])
    made = []
    for _ in range(count):
        metric = pick(d, table)
        if metric not in made:
            made.append(metric)
    return made


def compiled(p, outputs):
    """The line that compiles the model of those outputs."""
    d = p.d
    losses = [pick(d, losses_of(o.kind, p.shape(o.tensor))) for o in outputs]
    measured = [metrics(d, o.kind, p.shape(o.tensor)) for o in outputs]
    options = {"optimizer": optimizer(d)}
    listed = lambda values: Source("[" + ", ".join(text(v) for v in values) + "]")
    names = [p.space[o.tensor]._keras_history.operation.name for o in outputs]
    table = lambda values: Source("{" + ", ".join(
        f"{n!r}: {text(v)}" for n, v in zip(names, values)) + "}")
    several = len(outputs) > 1
    by_name = several and d.maybe(0.4) and len(set(names)) == len(names) and not d.only
    form = table if by_name else listed
    options["loss"] = form(losses) if several else losses[0]
    if several and len(set(losses)) == 1 and d.maybe(0.2):
        options["loss"] = losses[0]
    if several and d.maybe(0.4):
        options["loss_weights"] = form([d.number(0.1, 2) for _ in losses])
    if any(measured):
        lists = [listed(m) for m in measured]
        options["metrics"] = form(lists) if several else lists[0]
    if not several and d.maybe(0.05):
        options["weighted_metrics"] = listed(metrics(d, outputs[0].kind,
                                                     p.shape(outputs[0].tensor)))
    options |= d.some(0.05, steps_per_execution=[2], jit_compile=[False, True],
                      run_eagerly=[True])
    if p.mixed == "mixed_float16" and d.maybe(0.1):
        options["auto_scale_loss"] = False
    return call("model.compile", **options)
